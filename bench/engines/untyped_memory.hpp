#pragma once
// Memory for objects of a type, for engines that need not know what lies in a block, and what such an engine makes of a guarded
// variable and of a record.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace bench {

/// A mutex and the variable that it guards.
template <class E, class T>
struct MutexAndVariable {
    typename E::Mutex mutex;
    typename E::template Durable<T> value;
};

/// A struct that is written as a whole.
template <class E, class T>
class PlainRecord {
    static_assert(std::is_trivially_copyable_v<T>);

public:
    [[nodiscard]] const T& get() const noexcept { return value_; }
    void set(const T& value)
    {
        E::about_to_write(&value_, sizeof value_);
        value_ = value;
    }

private:
    T value_;
};

/// Base of an engine that has allocate(), allocate_aligned() and root() by size.
template <class E>
struct UntypedMemory {
    static constexpr bool rolls_back_bytes = true;
    static constexpr bool has_spare_bytes = false;

    template <class T>
    using Record = PlainRecord<E, T>;
    template <class T>
    using Guarded = MutexAndVariable<E, T>;

    /// Blocks of one size that begin with a T.
    template <class T>
    class Blocks {
    public:
        explicit Blocks(std::size_t size_bytes = sizeof(T)) noexcept : size_bytes_(size_bytes) {}
        [[nodiscard]] T* make() const
        {
            constexpr std::size_t usual_alignment_bytes = 16;
            if constexpr (alignof(T) > usual_alignment_bytes) {
                return static_cast<T*>(E::allocate_aligned(alignof(T), size_bytes_));
            } else {
                return static_cast<T*>(E::allocate(size_bytes_));
            }
        }

    private:
        std::size_t size_bytes_;
    };

    template <class T>
    [[nodiscard]] static T* make()
    {
        return Blocks<T>().make();
    }
    template <class T>
    [[nodiscard]] static T* make_array(std::size_t count)
    {
        constexpr std::size_t line_bytes = 64;
        const std::size_t size_bytes = (count * sizeof(T) + line_bytes - 1) / line_bytes * line_bytes;
        void* const array = E::allocate_aligned(line_bytes, size_bytes);
        std::memset(array, 0, size_bytes);
        return static_cast<T*>(array);
    }
    template <class T>
    [[nodiscard]] static T* named(const char* name, std::size_t count = 1)
    {
        return static_cast<T*>(E::root(name, count * sizeof(T)));
    }
    template <class Variable>
    static void clear(Variable* first, std::size_t count)
    {
        E::about_to_write(first, count * sizeof(Variable));
        std::memset(static_cast<void*>(first), 0, count * sizeof(Variable));
    }
    static void rest() noexcept {}
};

}  // namespace bench
