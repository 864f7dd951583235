// Clones of functions of libc and of stillpoint.h, for code of `stillpoint cc`: layers/spht/layer.yaml names those that are here. Names are
// those of clones: _ZGTt, the length, the function.

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <new>

#include "itm/abi.hpp"
#include "itm/messages.hpp"
#include "itm/transaction.hpp"
#include "stillpoint/itm.h"
#include "stillpoint/stillpoint.h"

STILLPOINT_ITM_API void _ITM_memcpyRtWt(void* target, const void* source, std::size_t bytes);
STILLPOINT_ITM_API void _ITM_memmoveRtWt(void* target, const void* source, std::size_t bytes);
STILLPOINT_ITM_API void _ITM_memsetW(void* target, int value, std::size_t bytes);
STILLPOINT_ITM_API void* _ITM_malloc(std::size_t bytes);
STILLPOINT_ITM_API void* _ITM_calloc(std::size_t count, std::size_t bytes);
STILLPOINT_ITM_API void _ITM_free(void* block);

namespace {

using stillpoint::itm::end_process;
using stillpoint::itm::Transaction;

/// Bytes as the transaction sees them, one after the other: a look-up for each word.
class Reader {
public:
    explicit Reader(const void* place) : at_(reinterpret_cast<std::uintptr_t>(place)) {}

    unsigned char next()
    {
        if (!has_word_ || at_ % sizeof word_ == 0) {
            word_ = Transaction::running().load(reinterpret_cast<const std::uint64_t*>(at_ & ~std::uintptr_t{sizeof word_ - 1}));
            has_word_ = true;
        }
        const auto byte = static_cast<unsigned char>(word_ >> (at_ % sizeof word_ * 8));
        ++at_;
        return byte;
    }

private:
    std::uintptr_t at_;
    std::uint64_t word_ = 0;
    bool has_word_ = false;
};

/// `most` bytes of the string at `place`, without its end.
std::size_t length_of(const char* place, std::size_t most)
{
    Reader reader(place);
    std::size_t length = 0;
    while (length < most && reader.next() != 0) {
        ++length;
    }
    return length;
}

constexpr std::size_t any_length = ~std::size_t{0};

int compare(const void* one, const void* other, std::size_t bytes, bool ends_at_zero)
{
    Reader left(one);
    Reader right(other);
    for (std::size_t done = 0; done < bytes; ++done) {
        const int first = left.next();
        const int second = right.next();
        if (first != second) {
            return first - second;
        }
        if (ends_at_zero && first == 0) {
            return 0;
        }
    }
    return 0;
}

void* allocate_durable(std::size_t bytes, std::size_t alignment_bytes = 16)
{
    return Transaction::running().allocate_durable(bytes, alignment_bytes);
}

void release_aligned(void* block) { std::free(block); }

void* allocate_aligned(std::size_t alignment_bytes, std::size_t bytes)
{
    void* const block = std::aligned_alloc(alignment_bytes, bytes);
    if (block != nullptr) {
        Transaction::running().note_allocated(block, bytes, release_aligned);
    }
    return block;
}

}  // namespace

// ---- Memory -----------------------------------------------------------------------------------

STILLPOINT_ITM_API void* _ZGTt6malloc(std::size_t bytes) { return _ITM_malloc(bytes); }
STILLPOINT_ITM_API void* _ZGTt6calloc(std::size_t count, std::size_t bytes) { return _ITM_calloc(count, bytes); }
STILLPOINT_ITM_API void _ZGTt4free(void* block) { _ITM_free(block); }
STILLPOINT_ITM_API void* _ZGTt13aligned_alloc(std::size_t alignment, std::size_t bytes) { return allocate_aligned(alignment, bytes); }
STILLPOINT_ITM_API int _ZGTt14posix_memalign(void** place, std::size_t alignment, std::size_t bytes)
{
    void* const block = allocate_aligned(alignment, bytes);
    if (block == nullptr) {
        return errno;
    }
    Transaction::running().store(reinterpret_cast<std::uint64_t*>(place), reinterpret_cast<std::uint64_t>(block));
    return 0;
}
STILLPOINT_ITM_API void* _ZGTt7realloc(void* block, std::size_t bytes)
{
    if (block != nullptr && stillpoint_is_persistent(block)) {
        end_process("realloc of a durable block inside a transaction: allocate another, copy, and free the first");
    }
    void* const made = _ITM_malloc(bytes);
    if (made != nullptr && block != nullptr) {
        _ITM_memcpyRtWt(made, block, std::min(bytes, malloc_usable_size(block)));
        _ITM_free(block);
    }
    return made;
}
STILLPOINT_ITM_API void* _ZGTtnwmSt11align_val_t(std::size_t bytes, std::size_t alignment)
{
    void* const block = allocate_aligned(alignment, (bytes + alignment - 1) / alignment * alignment);
    if (block == nullptr) {
        throw std::bad_alloc();
    }
    return block;
}
STILLPOINT_ITM_API void _ZGTtdlPvSt11align_val_t(void* block, std::size_t /*alignment*/) { _ITM_free(block); }
STILLPOINT_ITM_API void _ZGTtdlPvmSt11align_val_t(void* block, std::size_t /*bytes*/, std::size_t /*alignment*/) { _ITM_free(block); }
STILLPOINT_ITM_API void _ZGTtdaPv(void* array);
STILLPOINT_ITM_API void _ZGTtdaPvm(void* array, std::size_t /*bytes*/) { _ZGTtdaPv(array); }

STILLPOINT_ITM_API void* _ZGTt9sp_malloc(std::size_t bytes) { return allocate_durable(bytes); }
STILLPOINT_ITM_API void* _ZGTt9sp_calloc(std::size_t count, std::size_t bytes)
{
    std::size_t all = 0;
    if (__builtin_mul_overflow(count, bytes, &all)) {
        errno = ENOMEM;
        return nullptr;
    }
    void* const block = allocate_durable(all);
    if (block != nullptr) {
        _ITM_memsetW(block, 0, all);
    }
    return block;
}
STILLPOINT_ITM_API void* _ZGTt16sp_aligned_alloc(std::size_t alignment, std::size_t bytes) { return allocate_durable(bytes, alignment); }
STILLPOINT_ITM_API void _ZGTt7sp_free(void* block) { Transaction::running().free_durable(block); }

// ---- Bytes and strings --------------------------------------------------------------------------

STILLPOINT_ITM_API void* _ZGTt6memcpy(void* target, const void* source, std::size_t bytes)
{
    _ITM_memcpyRtWt(target, source, bytes);
    return target;
}
STILLPOINT_ITM_API void* _ZGTt7memmove(void* target, const void* source, std::size_t bytes)
{
    _ITM_memmoveRtWt(target, source, bytes);
    return target;
}
STILLPOINT_ITM_API void* _ZGTt6memset(void* target, int value, std::size_t bytes)
{
    _ITM_memsetW(target, value, bytes);
    return target;
}
STILLPOINT_ITM_API int _ZGTt6memcmp(const void* one, const void* other, std::size_t bytes) { return compare(one, other, bytes, false); }
STILLPOINT_ITM_API int _ZGTt4bcmp(const void* one, const void* other, std::size_t bytes) { return compare(one, other, bytes, false); }
STILLPOINT_ITM_API void* _ZGTt6memchr(const void* place, int wanted, std::size_t bytes)
{
    Reader reader(place);
    for (std::size_t done = 0; done < bytes; ++done) {
        if (reader.next() == static_cast<unsigned char>(wanted)) {
            return const_cast<char*>(static_cast<const char*>(place) + done);
        }
    }
    return nullptr;
}
STILLPOINT_ITM_API std::size_t _ZGTt6strlen(const char* text) { return length_of(text, any_length); }
STILLPOINT_ITM_API std::size_t _ZGTt7strnlen(const char* text, std::size_t most) { return length_of(text, most); }
STILLPOINT_ITM_API int _ZGTt6strcmp(const char* one, const char* other) { return compare(one, other, any_length, true); }
STILLPOINT_ITM_API int _ZGTt7strncmp(const char* one, const char* other, std::size_t most) { return compare(one, other, most, true); }
STILLPOINT_ITM_API char* _ZGTt6strchr(const char* text, int wanted)
{
    Reader reader(text);
    for (std::size_t at = 0;; ++at) {
        const unsigned char byte = reader.next();
        if (byte == static_cast<unsigned char>(wanted)) {
            return const_cast<char*>(text + at);
        }
        if (byte == 0) {
            return nullptr;
        }
    }
}
STILLPOINT_ITM_API char* _ZGTt7strrchr(const char* text, int wanted)
{
    Reader reader(text);
    char* last = nullptr;
    for (std::size_t at = 0;; ++at) {
        const unsigned char byte = reader.next();
        if (byte == static_cast<unsigned char>(wanted)) {
            last = const_cast<char*>(text + at);
        }
        if (byte == 0) {
            return last;
        }
    }
}
STILLPOINT_ITM_API char* _ZGTt6stpcpy(char* target, const char* source)
{
    const std::size_t length = length_of(source, any_length);
    _ITM_memcpyRtWt(target, source, length + 1);
    return target + length;
}
STILLPOINT_ITM_API char* _ZGTt6strcpy(char* target, const char* source)
{
    static_cast<void>(_ZGTt6stpcpy(target, source));
    return target;
}
STILLPOINT_ITM_API char* _ZGTt7strncpy(char* target, const char* source, std::size_t bytes)
{
    const std::size_t length = length_of(source, bytes);
    _ITM_memcpyRtWt(target, source, length);
    _ITM_memsetW(target + length, 0, bytes - length);
    return target;
}
STILLPOINT_ITM_API char* _ZGTt6strcat(char* target, const char* source)
{
    static_cast<void>(_ZGTt6stpcpy(target + length_of(target, any_length), source));
    return target;
}
STILLPOINT_ITM_API char* _ZGTt6strdup(const char* text)
{
    const std::size_t length = length_of(text, any_length);
    auto* const made = static_cast<char*>(_ITM_malloc(length + 1));
    if (made != nullptr) {
        _ITM_memcpyRtWt(made, text, length + 1);
    }
    return made;
}

// ---- Jumps --------------------------------------------------------------------------------------

STILLPOINT_ITM_API [[noreturn]] void _ZGTt7longjmp(void* /*place*/, int /*value*/)
{
    end_process("longjmp inside a transaction, which would stay open; return from its body, or call sp_tm_cancel");
}
