// The commit of a transaction that runs alone and has let other code store into durable memory.

#include <cerrno>

#include "engines/spht/transaction.hpp"
#include "engines/spht/transactional_memory.hpp"

namespace stillpoint::spht {

/// Others begin when all is durable: the lines' versions do not tell them of it.
Outcome Transaction::commit_plain() noexcept
{
    write_back();
    PlainStores& stores = memory_.plain_stores();
    bool is_complete = stores.collect(memory_.image());
    const Heap& heap = *memory_.heap();
    for (std::uint64_t i = 0; i < freed_count_ && is_complete; ++i) {
        const Heap::BlockState state = heap.state_of_block(freed_[i]);
        is_complete = stores.leave_out(state.bytes, state.size_bytes);
    }
    if (!is_complete) {
        failure_ = fail(SP_E_IO, errno, "the plain stores of a transaction cannot be found any more").value();
        return give_up(Outcome::failed);
    }
    build_plain_record();
    if (record_.empty()) {
        return commit_reads();
    }
    Timestamp timestamp = 0;
    for (std::uint64_t spare_words = 1024; timestamp == 0; spare_words *= 4) {
        const std::uint64_t words = record_.words() + spare_words;
        if (record_.overflowed()) {
            failure_ = fail(SP_E_TRANSACTION_TOO_LARGE, 0, "the transaction has written more than {} MiB by plain stores; divide it",
                            record_.words_max() * 8 / mib)
                           .value();
            return give_up(Outcome::failed);
        }
        if (auto room = memory_.protocol().make_room(committing_, words); !room) {
            failure_ = room.error();
            return give_up(Outcome::failed);
        }
        announce();
        timestamp = choose_timestamp(true);
        // Again: the library may have stored in between for another thread, and its record has an earlier timestamp.
        build_plain_record();
        if (record_.words() > words) {
            memory_.protocol().cancel(committing_);
            memory_.protocol().skip(timestamp);
            withdraw();
            timestamp = 0;
        }
    }
    committing_.depends_on = logs::timestamp_max;
    static_cast<void>(memory_.protocol().settle(committing_, timestamp));  // No conflict: it runs alone.
    memory_.protocol().log(committing_, timestamp);
    const Outcome outcome = make_durable(timestamp);
    leave_gate();
    depth_ = 0;
    free_blocks(freed_, freed_count_);
    return outcome;
}

void Transaction::build_plain_record() noexcept
{
    record_.clear();
    memory_.plain_stores().add_to(record_, memory_.image());
    add_freed();
}

}  // namespace stillpoint::spht
