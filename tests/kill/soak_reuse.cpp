#include "soak_reuse.hpp"

#include <cerrno>
#include <ctime>
#include <pthread.h>

#include "marks_by_hand.h"
#include "stillpoint/stillpoint.h"

namespace soak {

namespace {

constexpr std::uint64_t big_bytes = 3 * 4096;
constexpr std::uint64_t small_bytes = 2 * 4096;
constexpr std::uint64_t objects_at = small_bytes + 128;  ///< beyond the end of a block that has shrunk

struct Objects {
    pthread_mutex_t mutex;
    pthread_cond_t condition;
};

Objects& objects_of(const Reused& reused) noexcept { return *reinterpret_cast<Objects*>(reused.block + objects_at); }

std::uint32_t integer_at(const Reused& reused, std::uint64_t place) noexcept
{
    return static_cast<std::uint32_t>((reused.tag + place) % 5);
}

/// A wait that is over when it begins: enough for the runtime to see the objects used.
bool use_once(Objects& objects) noexcept
{
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    pthread_mutex_lock(&objects.mutex);
    const int error = pthread_cond_timedwait(&objects.condition, &objects.mutex, &now);
    pthread_mutex_unlock(&objects.mutex);
    sp_mark_written(&objects, sizeof objects);
    return error == ETIMEDOUT || error == 0;
}

void make(Reused& reused)
{
    auto* const block = static_cast<unsigned char*>(sp_malloc(big_bytes));
    if (block == nullptr) {
        return;
    }
    reused.block = block;
    pthread_mutex_init(&objects_of(reused).mutex, nullptr);
    pthread_cond_init(&objects_of(reused).condition, nullptr);
    sp_mark_written(&objects_of(reused), sizeof(Objects));
    reused.use = Use::made;
}

/// Another size, or NULL for a block that stays as it is because the pool is full.
bool resize(Reused& reused, std::uint64_t bytes)
{
    auto* const block = static_cast<unsigned char*>(sp_realloc(reused.block, bytes));
    reused.block = block != nullptr ? block : reused.block;
    return block != nullptr;
}

void end_objects(Reused& reused, std::uint64_t dice)
{
    if (dice % 8 < 4) {  // No thread is in a call on them, so they need not be destroyed.
        pthread_cond_destroy(&objects_of(reused).condition);
        pthread_mutex_destroy(&objects_of(reused).mutex);
    }
    reused.bytes = big_bytes;
    switch (dice % 4) {
    case 0: break;
    case 1: reused.bytes = resize(reused, small_bytes) && !resize(reused, big_bytes) ? small_bytes : big_bytes; break;
    case 2: reused.bytes = resize(reused, 5 * big_bytes) ? 5 * big_bytes : big_bytes; break;
    case 3:
        if (void* const other = sp_malloc(64); other != nullptr) {  // The block's place need not be the next one's.
            sp_free(other);
        }
        sp_free(reused.block);
        reused.block = static_cast<unsigned char*>(sp_malloc(big_bytes));
        break;
    }
    if (reused.block == nullptr) {
        reused.use = Use::none;
        return;
    }
    reused.tag = dice;
    auto* const integers = reinterpret_cast<std::uint32_t*>(reused.block);
    for (std::uint64_t i = 0; i < reused.bytes / sizeof *integers; ++i) {
        integers[i] = integer_at(reused, i);
    }
    sp_mark_written(integers, reused.bytes);
    reused.use = Use::integers;
}

}  // namespace

bool verify(const Reused& reused, std::uint64_t& wanted, std::uint64_t& found)
{
    if (reused.use == Use::made || reused.use == Use::used) {
        wanted = 1;
        found = use_once(objects_of(reused)) ? 1 : 0;
        return found == 1;
    }
    const auto* const integers = reinterpret_cast<const std::uint32_t*>(reused.block);
    for (std::uint64_t i = 0; reused.use == Use::integers && i < reused.bytes / sizeof *integers; ++i) {
        wanted = integer_at(reused, i);
        found = integers[i];
        if (found != wanted) {
            return false;
        }
    }
    return true;
}

void use(const Reused& reused)
{
    if (reused.use == Use::made) {
        use_once(objects_of(reused));
    }
}

bool step(Reused& reused, std::uint64_t dice, std::uint64_t& wanted, std::uint64_t& found)
{
    bool is_right = true;
    switch (reused.use) {
    case Use::none: make(reused); break;
    case Use::made: reused.use = Use::used; break;
    case Use::used: end_objects(reused, dice); break;
    case Use::integers:
        is_right = verify(reused, wanted, found);
        sp_free(reused.block);
        reused.block = nullptr;
        reused.use = Use::none;
        break;
    }
    sp_mark_written(&reused, sizeof reused);
    return is_right;
}

}  // namespace soak
