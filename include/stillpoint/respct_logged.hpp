#pragma once
// Logged variables for C++, the part of respct.hpp that other parts rest on: include that.

#if __cplusplus < 202002L
#error "Stillpoint's C++ headers need C++20: compile with -std=c++20 or a later standard"
#else

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <source_location>
#include <type_traits>
#include <utility>

#include "stillpoint/respct.h"

#if !defined(STILLPOINT_RESPCT_CHECKED)
#if defined(__OPTIMIZE__) || defined(NDEBUG)
#define STILLPOINT_RESPCT_CHECKED 0
#else
#define STILLPOINT_RESPCT_CHECKED 1
#endif
#endif
// Two names for the linker: checked and plain objects may be linked together.
#if STILLPOINT_RESPCT_CHECKED
#define STILLPOINT_RESPCT_FORM checked
#else
#define STILLPOINT_RESPCT_FORM plain
#endif

namespace stillpoint::respct {
inline namespace STILLPOINT_RESPCT_FORM {

template <class T>
class logged;

namespace detail {

inline constexpr bool is_checked = STILLPOINT_RESPCT_CHECKED != 0;
inline constexpr std::size_t value_bytes_max = 16;

template <class T>
struct is_atomic : std::false_type {};
template <class T>
struct is_atomic<std::atomic<T>> : std::true_type {};

constexpr unsigned kind_for(std::size_t value_bytes) noexcept
{
    unsigned kind = 0;
    while ((std::size_t{1} << kind) < value_bytes) {
        ++kind;
    }
    return kind;
}
constexpr std::size_t logged_bytes_for(unsigned kind) noexcept { return kind <= 1 ? 16 : kind <= 3 ? 32 : 64; }

/// Learns where the members of a type lie, from their constructors.
class Discovery {
public:
    static constexpr unsigned runs_max = 24;

    Discovery(const void* begin, std::size_t size) noexcept : begin_(static_cast<const std::byte*>(begin)), size_(size), outer_(current)
    {
        current = this;
    }
    Discovery(const Discovery&) = delete;
    Discovery& operator=(const Discovery&) = delete;
    ~Discovery() = default;
    void finish() noexcept { current = outer_; }

    /// True: the member at `address` is part of the type that is being examined, and is not durable.
    static bool note(const void* address, unsigned kind, std::size_t bytes) noexcept
    {
        Discovery* const here = current;
        if (here == nullptr) [[likely]] {
            return false;
        }
        const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(address) - here->begin_);
        if (offset >= here->size_) {
            return false;
        }
        here->add(static_cast<std::uint32_t>(offset), kind, bytes);
        return true;
    }

    sp_respct_member members[runs_max] = {};
    std::uint32_t count = 0;

private:
    void add(std::uint32_t offset, unsigned kind, std::size_t bytes) noexcept
    {
        if (count != 0 && count <= runs_max) {
            sp_respct_member& last = members[count - 1];
            if (last.kind == kind && last.offset_bytes + last.count * bytes == offset && last.count != UINT16_MAX) {
                ++last.count;
                return;
            }
        }
        if (count < runs_max) {
            members[count] = {offset, static_cast<std::uint16_t>(kind), 1};
        }
        ++count;  // More than runs_max: the library refuses the layout, and says so.
    }

    inline static thread_local Discovery* current = nullptr;
    const std::byte* begin_;
    std::size_t size_;
    Discovery* outer_;
};

/// A value and the line it is assigned in.
template <class T>
struct Assigned {
    T value;
    std::source_location where;
    template <class Value>
        requires std::convertible_to<Value, T>
    // NOLINTNEXTLINE(google-explicit-constructor): the conversion is what captures the line
    Assigned(Value&& from, std::source_location line = std::source_location::current())
        : value(static_cast<T>(std::forward<Value>(from))), where(line)
    {
    }
};

template <class T>
using Parameter = std::conditional_t<is_checked, Assigned<T>, std::conditional_t<(sizeof(T) > sizeof(void*)), const T&, T>>;
/// The right side of += and its relatives.
template <class T>
using Operand = Parameter<std::conditional_t<std::is_pointer_v<T>, std::ptrdiff_t, T>>;

}  // namespace detail

/// An InCLL variable [§3.2.1, Figure 2]: a T of which a crash rolls back what the epochs that were not durable yet have stored.
/// T: trivially copyable, at most 16 bytes. Reads are plain loads. Lies in the pool, in an object of make(), make_array() or root(), or in
/// ordinary memory where no pool is open. Layout and costs: respct.h.
/// Threads: as a plain T; several threads write it under one lock.
template <class T>
class logged {
    static_assert(!detail::is_atomic<T>::value,
                  "logged<std::atomic<T>>: ResPCT cannot log atomic read-modify-writes, because value and backup could not change "
                  "as one [ResPCT, section 2.1]; guard a logged<T> by a mutex instead");
    static_assert(std::is_trivially_copyable_v<T>, "logged<T>: T must be trivially copyable, since a crash copies it back byte by byte");
    static_assert(sizeof(T) <= detail::value_bytes_max,
                  "logged<T>: a value, its two backups and its epoch must fit into one cache line, so T has at most 16 bytes; log its "
                  "members one by one");

    /// A variable and the line in which an operator without a right side is applied to it.
    struct Reached {
        logged& variable;
        std::source_location where;
        // NOLINTNEXTLINE(google-explicit-constructor): the conversion is what captures the line
        Reached(logged& reached, std::source_location line = std::source_location::current()) noexcept : variable(reached), where(line) {}
    };
    using Target = std::conditional_t<detail::is_checked, Reached, logged&>;

public:
    static constexpr unsigned kind = detail::kind_for(sizeof(T));

private:
    static constexpr std::size_t slot_bytes = std::size_t{1} << kind;
    /// Spare words after the three slots.
    static constexpr std::size_t words = (detail::logged_bytes_for(kind) - (3 * slot_bytes + 7) / 8 * 8) / 8;

public:
    using value_type = T;

    /// Value-initialised.
    logged(std::source_location where = std::source_location::current()) noexcept  // NOLINT(google-explicit-constructor): the default one
    {
        make(T{}, where);
    }
    explicit logged(const T& value, std::source_location where = std::source_location::current()) noexcept { make(value, where); }
    logged(const logged& other, std::source_location where = std::source_location::current()) noexcept : logged(other.get(), where) {}
    ~logged() = default;

    [[nodiscard]] T get() const noexcept { return slots_[0].value; }
    operator T() const noexcept { return get(); }  // NOLINT(google-explicit-constructor): it stands for a T
    T operator->() const noexcept
        requires std::is_pointer_v<T>
    {
        return get();
    }

    /// update_InCLL [Figure 4].
    logged& operator=(detail::Parameter<T> value) noexcept
    {
        if constexpr (detail::is_checked) {
            store(value.value, value.where);
        } else {
            store(value);
        }
        return *this;
    }
    logged& operator=(const logged& other) noexcept
    {
        store(other.get());
        return *this;
    }

    friend logged& operator++(Target target) noexcept
        requires std::integral<T>
    {
        return step(target, T{1}, T{0});
    }
    friend logged& operator--(Target target) noexcept
        requires std::integral<T>
    {
        return step(target, T{0}, T{1});
    }
    friend T operator++(Target target, int) noexcept
        requires std::integral<T>
    {
        return static_cast<T>(step(target, T{1}, T{0}).get() - T{1});
    }
    friend T operator--(Target target, int) noexcept
        requires std::integral<T>
    {
        return static_cast<T>(step(target, T{0}, T{1}).get() + T{1});
    }
    // clang-format off
    logged& operator+=(detail::Operand<T> other) noexcept { return combine(other, [](auto a, auto b) { return a + b; }); }
    logged& operator-=(detail::Operand<T> other) noexcept { return combine(other, [](auto a, auto b) { return a - b; }); }
    logged& operator*=(detail::Operand<T> other) noexcept { return combine(other, [](auto a, auto b) { return a * b; }); }
    logged& operator|=(detail::Operand<T> other) noexcept { return combine(other, [](auto a, auto b) { return a | b; }); }
    logged& operator&=(detail::Operand<T> other) noexcept { return combine(other, [](auto a, auto b) { return a & b; }); }
    logged& operator^=(detail::Operand<T> other) noexcept { return combine(other, [](auto a, auto b) { return a ^ b; }); }
    // clang-format on

    /// Does what operator= does, for a caller that knows the source line.
    void store(const T& value, std::source_location where = std::source_location::current()) noexcept
    {
        if constexpr (detail::is_checked) {
            sp_respct_check_update(this, kind, where.file_name(), where.line());
        }
        if ((epoch_word() | 1) != __atomic_load_n(&sp_respct_running, __ATOMIC_RELAXED)) {
            log();
        }
        write(slots_[0], value);
    }

    /// init_InCLL [Figure 4]: the first value of a variable that lies in new memory and was made by no constructor.
    void initialise(const T& value, std::source_location where = std::source_location::current()) noexcept
    {
        if constexpr (detail::is_checked) {
            sp_respct_check_init(this, kind, where.file_name(), where.line());
        }
        const std::uint64_t running = sp_respct_first_update(this);
        for (Slot& slot : slots_) {
            write(slot, value);
        }
        __atomic_thread_fence(__ATOMIC_RELEASE);
        set_epoch_word(running & ~std::uint64_t{1});
    }

    /// The bytes that no field of the variable uses in its line: 8 bytes where T has 3, 4 or 9 to 16. The program's: not logged, written as
    /// other bytes are, and durable together with an update that follows in the same epoch.
    static constexpr std::size_t spare_bytes = (words - 1) * sizeof(std::uint64_t);
    template <class Spare>
    [[nodiscard]] Spare spare() const noexcept
    {
        static_assert(std::is_trivially_copyable_v<Spare> && sizeof(Spare) <= spare_bytes);
        Spare found;
        std::memcpy(static_cast<void*>(&found), words_, sizeof found);
        return found;
    }
    template <class Spare>
    void set_spare(const Spare& from) noexcept
    {
        static_assert(std::is_trivially_copyable_v<Spare> && sizeof(Spare) <= spare_bytes);
        std::memcpy(words_, &from, sizeof from);
    }

private:
    struct Slot {
        alignas(slot_bytes) T value;
    };
    static_assert(sizeof(Slot) == slot_bytes);

    [[nodiscard]] std::uint64_t epoch_word() const noexcept { return words_[words - 1]; }
    void set_epoch_word(std::uint64_t word) noexcept { __atomic_store_n(&words_[words - 1], word, __ATOMIC_RELAXED); }

    /// Writes by one store where the processor has one, so that the value does not tear.
    static void write(Slot& slot, const T& value) noexcept
    {
        if constexpr (std::is_scalar_v<T> && sizeof(T) <= sizeof(std::uint64_t)) {
            T copy = value;
            __atomic_store(&slot.value, &copy, __ATOMIC_RELAXED);
        } else {
            std::memcpy(static_cast<void*>(&slot.value), &value, sizeof value);
        }
    }

    static logged& step(Target target, T up, T down) noexcept
    {
        if constexpr (detail::is_checked) {
            target.variable.store(static_cast<T>(target.variable.get() + up - down), target.where);
            return target.variable;
        } else {
            target.store(static_cast<T>(target.get() + up - down));
            return target;
        }
    }

    void make(const T& value, std::source_location where) noexcept
    {
        if (detail::Discovery::note(this, kind, sizeof *this)) {
            write(slots_[0], value);  // The object's destructor may look at the value.
        } else {
            initialise(value, where);
        }
    }

    template <class Operation>
    logged& combine(const detail::Operand<T>& other, Operation operation) noexcept
    {
        if constexpr (detail::is_checked) {
            store(static_cast<T>(operation(get(), other.value)), other.where);
        } else {
            store(static_cast<T>(operation(get(), other)));
        }
        return *this;
    }

    /// The first update in an epoch: keeps the value that the epoch began with. The order is the backup, the epoch word, and, after it,
    /// the value. The other backup stays: until the epoch before is durable, a crash goes back to it.
    [[gnu::noinline, gnu::cold]] void log() noexcept
    {
        const std::uint64_t epoch = sp_respct_first_update(this) >> 1;
        const bool in_epoch_before = (epoch_word() >> 1) + 1 == epoch;
        write(slots_[1 + (epoch & 1)], get());
        __atomic_thread_fence(__ATOMIC_RELEASE);
        set_epoch_word((epoch << 1) | std::uint64_t{in_epoch_before});
        __atomic_thread_fence(__ATOMIC_RELEASE);
    }

    alignas(detail::logged_bytes_for(kind)) Slot slots_[3];  ///< the value, the one at the beginning of an even epoch, and of an odd one
    std::uint64_t words_[words];  ///< the last one is the epoch word
};

}  // namespace STILLPOINT_RESPCT_FORM
}  // namespace stillpoint::respct

#endif
