// The values that a transaction would overwrite: for protocols that log them.

#include "engines/spht/transaction.hpp"
#include "engines/spht/transactional_memory.hpp"

namespace stillpoint::spht {

void Transaction::build_undo_record() noexcept
{
    undo_record_.clear();
    for (const WriteSet::Entry& entry : writes_) {
        if (const std::uint64_t offset = memory_.offset_of(entry.word); offset != TransactionalMemory::no_offset) {
            undo_record_.add_bytes(offset / 8, byte_mask(entry.mask), __atomic_load_n(entry.word, __ATOMIC_RELAXED));
        }
    }
}

}  // namespace stillpoint::spht
