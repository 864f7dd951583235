#pragma once
// ExceptionObjects: the C++ exceptions of a transaction, so that a rollback leaves none behind [Intel TM ABI 1.1, §5.15].

#include <cstddef>
#include <vector>

namespace stillpoint::itm {

class ExceptionObjects {
public:
    /// The object that a throw expression fills. No other thread knows it: it is written in place.
    [[nodiscard]] void* allocate(std::size_t bytes);
    /// Filling it has failed.
    void free(void* object) noexcept;
    /// Before the first throw.
    void note_throw() noexcept { note_uncaught(); }
    [[nodiscard]] void* begin_catch(void* exception) noexcept;
    void end_catch();

    [[nodiscard]] bool any() const noexcept { return was_used_; }
    /// In an object that the transaction has allocated, and has not freed.
    [[nodiscard]] bool contains(const void* place) const noexcept;

    void forget() noexcept
    {
        if (was_used_) [[unlikely]] {
            forget_all();
        }
    }
    /// The transaction is rolled back while `exception` leaves it (nullptr: none does).
    void roll_back(void* exception) noexcept
    {
        if (was_used_ || exception != nullptr) [[unlikely]] {
            delete_all(exception);
        }
    }

private:
    void note_uncaught() noexcept;
    void forget_all() noexcept;
    void delete_all(void* exception) noexcept;

    struct Object {
        std::byte* first;
        std::size_t bytes;
        bool is_kept;  ///< by a reference of this list: the end of a handler calls no destructor
    };
    [[nodiscard]] Object* find(const void* object) noexcept;

    bool was_used_ = false;
    unsigned uncaught_ = 0;  ///< exceptions in flight before the transaction's first
    unsigned catches_ = 0;   ///< handlers that were begun and have not ended
    std::vector<Object> objects_;
};

}  // namespace stillpoint::itm
