// memcpy, memmove and memset of the ABI [Intel TM ABI 1.1, §5.13]. The letters after R and W say whether that side is read or written
// transactionally (t…) or is memory that no other thread knows (n).

#include <algorithm>
#include <cstring>

#include "itm/abi.hpp"
#include "itm/transaction.hpp"

namespace {

using stillpoint::itm::Transaction;

enum class Side { own, shared };
constexpr std::size_t piece_bytes = 1024;

template <Side from, Side to>
void copy_piece(std::byte* target, const std::byte* source, std::size_t bytes)
{
    Transaction& transaction = Transaction::running();
    if constexpr (from == Side::own) {
        transaction.write(target, source, bytes);
    } else {
        std::byte piece[piece_bytes];
        transaction.read(source, piece, bytes);
        if constexpr (to == Side::own) {
            std::memcpy(target, piece, bytes);
        } else {
            transaction.write(target, piece, bytes);
        }
    }
}

template <Side from, Side to>
void copy(void* target, const void* source, std::size_t bytes)
{
    auto* const last = static_cast<std::byte*>(target);
    const auto* const first = static_cast<const std::byte*>(source);
    // From the end on where the target begins inside the source: no byte is written before it is read.
    const bool backwards = reinterpret_cast<std::uintptr_t>(last) - reinterpret_cast<std::uintptr_t>(first) < bytes;
    for (std::size_t done = 0; done < bytes;) {
        const std::size_t part = std::min(bytes - done, piece_bytes);
        const std::size_t at = backwards ? bytes - done - part : done;
        copy_piece<from, to>(last + at, first + at, part);
        done += part;
    }
}

void fill(void* target, int value, std::size_t bytes)
{
    std::byte piece[piece_bytes];
    std::memset(piece, value, std::min(bytes, piece_bytes));
    Transaction& transaction = Transaction::running();
    for (std::size_t done = 0; done < bytes;) {
        const std::size_t part = std::min(bytes - done, piece_bytes);
        transaction.write(static_cast<std::byte*>(target) + done, piece, part);
        done += part;
    }
}

}  // namespace

#define STILLPOINT_ITM_COPIES(NAME, FROM, TO)                                                                                              \
    STILLPOINT_ITM_API void _ITM_memcpy##NAME(void* target, const void* source, std::size_t bytes)                                         \
    {                                                                                                                                      \
        copy<Side::FROM, Side::TO>(target, source, bytes);                                                                                 \
    }                                                                                                                                      \
    STILLPOINT_ITM_API void _ITM_memmove##NAME(void* target, const void* source, std::size_t bytes)                                        \
    {                                                                                                                                      \
        copy<Side::FROM, Side::TO>(target, source, bytes);                                                                                 \
    }

STILLPOINT_ITM_COPIES(RnWt, own, shared)
STILLPOINT_ITM_COPIES(RnWtaR, own, shared)
STILLPOINT_ITM_COPIES(RnWtaW, own, shared)
STILLPOINT_ITM_COPIES(RtWn, shared, own)
STILLPOINT_ITM_COPIES(RtWt, shared, shared)
STILLPOINT_ITM_COPIES(RtWtaR, shared, shared)
STILLPOINT_ITM_COPIES(RtWtaW, shared, shared)
STILLPOINT_ITM_COPIES(RtaRWn, shared, own)
STILLPOINT_ITM_COPIES(RtaRWt, shared, shared)
STILLPOINT_ITM_COPIES(RtaRWtaR, shared, shared)
STILLPOINT_ITM_COPIES(RtaRWtaW, shared, shared)
STILLPOINT_ITM_COPIES(RtaWWn, shared, own)
STILLPOINT_ITM_COPIES(RtaWWt, shared, shared)
STILLPOINT_ITM_COPIES(RtaWWtaR, shared, shared)
STILLPOINT_ITM_COPIES(RtaWWtaW, shared, shared)

STILLPOINT_ITM_API void _ITM_memsetW(void* target, int value, std::size_t bytes) { fill(target, value, bytes); }
STILLPOINT_ITM_API void _ITM_memsetWaR(void* target, int value, std::size_t bytes) { fill(target, value, bytes); }
STILLPOINT_ITM_API void _ITM_memsetWaW(void* target, int value, std::size_t bytes) { fill(target, value, bytes); }
