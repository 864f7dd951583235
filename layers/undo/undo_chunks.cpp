#include "undo_chunks.hpp"

#include <cstdlib>

namespace stillpoint::undo {

namespace {

class Locked {
public:
    explicit Locked(pthread_mutex_t& lock) noexcept : lock_(lock) { pthread_mutex_lock(&lock_); }
    ~Locked() { pthread_mutex_unlock(&lock_); }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;

private:
    pthread_mutex_t& lock_;
};

}  // namespace

bool Chunks::open(const Pool& pool) noexcept
{
    pool_ = &pool;
    first_hint_ = 0;
    room_hint_ = 0;
    owned_ = static_cast<std::uint8_t*>(std::calloc(pool.geometry().chunks, 1));
    return owned_ != nullptr;
}

void Chunks::close() noexcept
{
    std::free(owned_);
    owned_ = nullptr;
}

std::uint64_t Chunks::take_empty(std::uint64_t count) noexcept
{
    const Locked locked(lock_);
    const std::uint64_t chunks = pool_->geometry().chunks;
    std::uint64_t run = 0;
    bool skipped = false;  // an empty chunk that is too small a run stays below the hint
    for (std::uint64_t chunk = first_hint_; chunk < chunks; ++chunk) {
        const bool empty = owned_[chunk] == 0 && pool_->used(chunk) == 0;
        skipped = skipped || (!empty && run > 0);
        run = empty ? run + 1 : 0;
        if (run == count) {
            const std::uint64_t first = chunk + 1 - count;
            for (std::uint64_t taken = first; taken <= chunk; ++taken) {
                owned_[taken] = 1;
            }
            first_hint_ = skipped ? first_hint_ : chunk + 1;
            return first;
        }
    }
    return none;
}

std::uint64_t Chunks::take_with_room(std::uint64_t bytes) noexcept
{
    {
        // Only what earlier runs and ended threads left: the rest is full or owned.
        const Locked locked(lock_);
        for (; room_hint_ < first_hint_; ++room_hint_) {
            const std::uint64_t chunk = room_hint_;
            if (owned_[chunk] == 0 && chunk_bytes - pool_->used(chunk) >= bytes) {
                owned_[chunk] = 1;
                return chunk;
            }
        }
    }
    return take_empty(1);
}

void Chunks::give_back(std::uint64_t chunk) noexcept
{
    const Locked locked(lock_);
    owned_[chunk] = 0;
    room_hint_ = chunk < room_hint_ ? chunk : room_hint_;
    if (pool_->used(chunk) == 0 && chunk < first_hint_) {
        first_hint_ = chunk;
    }
}

}  // namespace stillpoint::undo
