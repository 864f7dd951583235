#pragma once
// respct: logged variables, and a restart point in front of each operation. Durable where STILLPOINT_POOL names a pool of that
// engine; without one, ordinary memory behind the same calls.
//
// A thread is at a restart point when an operation begins, before its first lock; so an operation is in one epoch, whole. What a
// crash rolls back is what was logged (Durable, Record) and what was allocated. Plain bytes in a live block are durable with their epoch,
// and not rolled back: that is right for what is written again before it is read, whenever it is written again [ResPCT §3.3.2].

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "../../harness/ending.hpp"
#include "../engine.hpp"
#include "../locked_sections.hpp"
#include "stillpoint/respct.hpp"
#include "stillpoint/stillpoint.h"

namespace bench {

/// The calling thread's way in and out: a thread that sleeps or waits for others must not be waited for.
class RespctThread {
public:
    static void begin_operation() noexcept
    {
        if (state_ != State::working) [[unlikely]] {
            begin_work();
        } else {
            stillpoint::respct::RP(restart_point);
        }
    }
    /// Before whatever touches durable memory outside of operations.
    static void begin_work() noexcept
    {
        if (state_ == State::resting) {
            sp_respct_checkpoint_prevent(nullptr);
        }
        state_ = State::working;
    }
    static void rest() noexcept
    {
        if (state_ == State::working) {
            sp_respct_checkpoint_allow();
            state_ = State::resting;
        }
    }

private:
    /// New: the library counts a thread as working from its first call on.
    enum class State : unsigned char { is_new, working, resting };
    static constexpr int restart_point = 1;

    inline static thread_local constinit State state_ = State::is_new;
};

struct RespctLocks {
    using Mutex = stillpoint::respct::mutex;
    static void lock(Mutex* mutex) noexcept { mutex->lock(); }
    static void unlock(Mutex* mutex) noexcept { mutex->unlock(); }
};

/// A restart point, then the locks.
template <unsigned locks_max>
class RespctOperation {
public:
    RespctOperation() noexcept { RespctThread::begin_operation(); }

    void lock(stillpoint::respct::mutex& mutex) noexcept { locks_.lock(mutex); }
    void unlock_unwritten(stillpoint::respct::mutex& mutex) noexcept { locks_.unlock_unwritten(mutex); }
    /// Figure 7: nothing was written since the restart point.
    void wait(stillpoint::respct::condition& condition, stillpoint::respct::mutex& mutex) noexcept
    {
        sp_respct_wait(condition.native_handle(), mutex.native_handle());
    }

private:
    LockedSection<locks_max, RespctLocks> locks_;
};

/// A struct that is written as a whole: its words are logged.
template <class T>
class RespctRecord {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % sizeof(std::uint64_t) == 0);
    static constexpr std::size_t count = sizeof(T) / sizeof(std::uint64_t);

public:
    [[nodiscard]] T get() const noexcept
    {
        T value;
        for_each_word([&](std::size_t i) {
            const std::uint64_t word = words_[i];
            std::memcpy(place_of(value, i), &word, sizeof word);
        });
        return value;
    }
    void set(const T& value) noexcept
    {
        for_each_word([&](std::size_t i) {
            std::uint64_t word = 0;
            std::memcpy(&word, place_of(const_cast<T&>(value), i), sizeof word);
            words_[i] = word;
        });
    }

private:
    static void* place_of(T& value, std::size_t word) noexcept
    {
        return reinterpret_cast<std::byte*>(&value) + word * sizeof(std::uint64_t);
    }
    /// Not a loop: the words of a struct that is on the stack then stay in registers, where a loop would store them one by one and
    /// load them in pairs, at a dozen cycles for each pair.
    template <class Visit>
    static void for_each_word(Visit visit) noexcept
    {
        [&]<std::size_t... i>(std::index_sequence<i...>) { (visit(i), ...); }(std::make_index_sequence<count>());
    }

    stillpoint::respct::logged<std::uint64_t> words_[count];
};

struct RespctEngine {
    static constexpr std::uint32_t line_bytes = 64;
    /// Nothing in it is logged, and no lock.
    template <class T>
    static constexpr bool is_plain = std::is_trivially_default_constructible_v<T>;

    static constexpr StoresSeen stores_seen = StoresSeen::announced;
    static constexpr bool rolls_back_bytes = false;
    static constexpr bool has_spare_bytes = true;

    template <class T>
    using Durable = stillpoint::respct::logged<T>;
    using Mutex = stillpoint::respct::mutex;
    using Condition = stillpoint::respct::condition;
    template <unsigned locks_max>
    using Operation = RespctOperation<locks_max>;
    template <unsigned locks_max>
    using Reading = RespctOperation<locks_max>;
    template <class T>
    using Record = RespctRecord<T>;
    /// In one line.
    template <class T>
    struct alignas(64) Guarded {
        Durable<T> value;
        Mutex mutex;
    };

    static void open(const Shape&) noexcept {}

    /// Plain bytes.
    static void* allocate(std::size_t size_bytes) { return noted(sp_malloc(size_bytes), size_bytes); }
    static void* allocate_aligned(std::size_t alignment_bytes, std::size_t size_bytes)
    {
        return noted(sp_aligned_alloc(alignment_bytes, size_bytes), size_bytes);
    }
    static void deallocate(void* block) { sp_free(block); }
    static void* root(const char* name, std::size_t size_bytes)
    {
        RespctThread::begin_work();
        return checked(sp_root(name, size_bytes));
    }

    /// Blocks of one size that begin with a T: of one layout, by which recovery finds the logged variables and the locks in them.
    template <class T>
    class TypedBlocks {
    public:
        explicit TypedBlocks(std::size_t size_bytes) : layout_(*new sp_respct_layout(stillpoint::respct::layout_of<T>()))
        {
            layout_.size_bytes = static_cast<std::uint32_t>((size_bytes + alignof(T) - 1) / alignof(T) * alignof(T));
            if (layout_.size_bytes % line_bytes == 0 && layout_.alignment_bytes < line_bytes) {
                layout_.alignment_bytes = line_bytes;  // no block has a line more than it must have
            }
        }
        [[nodiscard]] T* make() const { return static_cast<T*>(noted(make_unnoted(), layout_.size_bytes)); }
        /// For a T of which the initialisation notes all lines.
        [[nodiscard]] T* make_unnoted() const { return static_cast<T*>(checked(sp_respct_allocate(&layout_, 1))); }

    private:
        sp_respct_layout& layout_;  ///< never freed: the library keeps its address
    };
    /// Registers types in which recovery has nothing to find.
    template <class T>
    class PlainBlocks {
    public:
        explicit PlainBlocks(std::size_t size_bytes) noexcept : size_bytes_(size_bytes) {}
        [[nodiscard]] T* make() const { return static_cast<T*>(allocate(size_bytes_)); }

    private:
        std::size_t size_bytes_;
    };
    template <class T>
    struct Blocks : std::conditional_t<is_plain<T>, PlainBlocks<T>, TypedBlocks<T>> {
        using Made = std::conditional_t<is_plain<T>, PlainBlocks<T>, TypedBlocks<T>>;
        explicit Blocks(std::size_t size_bytes = sizeof(T)) : Made(size_bytes) {}
    };
    template <class T>
    [[nodiscard]] static T* make()
    {
        static const Blocks<T> blocks;
        return blocks.make();
    }
    template <class T>
    [[nodiscard]] static T* make_array(std::size_t count)
    {
        if constexpr (is_plain<T>) {
            const std::size_t size_bytes = (count * sizeof(T) + line_bytes - 1) / line_bytes * line_bytes;
            void* const array = allocate_aligned(line_bytes, size_bytes);
            std::memset(array, 0, size_bytes);
            return static_cast<T*>(array);
        } else {
            return static_cast<T*>(checked(sp_respct_allocate_zeroed(&stillpoint::respct::layout_of<T>(), count)));
        }
    }
    template <class T>
    [[nodiscard]] static T* named(const char* name, std::size_t count = 1)
    {
        if constexpr (is_plain<T>) {
            return static_cast<T*>(root(name, count * sizeof(T)));
        } else {
            RespctThread::begin_work();
            return static_cast<T*>(checked(sp_respct_root(name, &stillpoint::respct::layout_of<T>(), count)));
        }
    }

    template <class T, class Value>
    static void init(Durable<T>& variable, const Value& value)
    {
        variable.initialise(static_cast<T>(value));
    }
    static void about_to_write(void* block, std::size_t size_bytes) noexcept { sp_respct_add_modified(block, size_bytes); }
    template <class T>
    static void clear(Durable<T>* first, std::size_t count)
    {
        for (std::size_t i = 0; i < count; ++i) {
            if (first[i].get() != T{}) {
                first[i] = T{};
            }
        }
    }
    static void notify_all(Condition& condition) noexcept { condition.notify_all(); }

    static void rest() noexcept { RespctThread::rest(); }
    static void settle() noexcept
    {
        rest();
        (void)sp_checkpoint();
    }

    /// A statistic of the runtime (docs/guide/statistics.md); none without a pool.
    static std::optional<std::uint64_t> statistic(std::string_view name)
    {
        std::uint64_t value = 0;
        return sp_statistic(std::string(name).c_str(), &value) == SP_OK ? std::optional(value) : std::nullopt;
    }

private:
    static void* checked(void* block) { return block != nullptr ? block : (out_of_memory(sp_last_error()), nullptr); }
    /// A store to a new block in the operation that makes it needs no announcement.
    static void* noted(void* block, std::size_t size_bytes)
    {
        sp_respct_add_modified(checked(block), size_bytes);
        return block;
    }
};
static_assert(MemoryEngine<RespctEngine>);

}  // namespace bench
