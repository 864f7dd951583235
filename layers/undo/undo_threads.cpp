// Threads: each has a slot of the pool from its first use of durable memory until it ends.

#include <cstdlib>
#include <new>
#include <pthread.h>

#include "undo_machine.hpp"
#include "undo_runtime.hpp"

namespace stillpoint::undo {

namespace {

thread_local Thread* own = nullptr;

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
bool slot_taken[UNDO_THREADS_MAX];  // guarded by lock, as are the next three
std::uint64_t slots_of_opening = 0;
std::uint64_t threads_ever = 0;
bool key_made = false;
pthread_key_t key;

void discard(Thread* thread) noexcept
{
    thread->log_chunks.free();
    thread->freed.free();
    thread->released.free();
    std::free(thread);
}

void end_thread(void* ended)
{
    auto* thread = static_cast<Thread*>(ended);
    if (thread->depth > 0) {
        die("a thread ended inside a FASE");
    }
    if (thread->opening == runtime.opening) {
        if (thread->chunk != Chunks::none) {
            runtime.chunks.give_back(thread->chunk);
        }
        pthread_mutex_lock(&lock);
        slot_taken[thread->slot] = false;
        pthread_mutex_unlock(&lock);
    }
    own = nullptr;
    discard(thread);
}

/// A free slot of the open pool; the number of slots where all are taken.
std::uint32_t take_slot(std::uint64_t& id) noexcept
{
    const std::uint32_t slots = runtime.pool.geometry().slots;
    pthread_mutex_lock(&lock);
    if (!key_made) {
        key_made = pthread_key_create(&key, end_thread) == 0;
    }
    if (slots_of_opening != runtime.opening) {
        for (bool& taken : slot_taken) {
            taken = false;
        }
        slots_of_opening = runtime.opening;
    }
    std::uint32_t slot = 0;
    while (slot < slots && slot_taken[slot]) {
        ++slot;
    }
    if (slot < slots) {
        slot_taken[slot] = true;
    }
    id = ++threads_ever;
    pthread_mutex_unlock(&lock);
    return slot;
}

}  // namespace

Thread* this_thread_if_any() noexcept { return own != nullptr && own->opening == runtime.opening ? own : nullptr; }

Thread& this_thread() noexcept
{
    if (own != nullptr && own->opening == runtime.opening) [[likely]] {
        return *own;
    }
    if (!runtime.open) {
        die("durable memory is used while no pool is open");
    }
    if (own != nullptr) {
        discard(own);
        own = nullptr;
    }
    void* memory = std::calloc(1, sizeof(Thread));
    if (memory == nullptr) {
        die("no memory for a thread's log");
    }
    auto* made = new (memory) Thread;
    made->opening = runtime.opening;
    made->slot = take_slot(made->id);
    if (made->slot == runtime.pool.geometry().slots || !key_made || pthread_setspecific(key, made) != 0) {
        die("more threads use durable memory at the same time than the pool has logs");
    }
    own = made;
    return *made;
}

template <class T>
void List<T>::grow() noexcept
{
    const std::size_t room = room_ == 0 ? 16 : 2 * room_;
    void* moved = std::realloc(items_, room * sizeof(T));
    if (moved == nullptr) {
        die("no memory for the records of a FASE");
    }
    items_ = static_cast<T*>(moved);
    room_ = room;
}

template <class T>
void List<T>::free() noexcept
{
    std::free(items_);
    items_ = nullptr;
    count_ = room_ = 0;
}

template class List<std::uint64_t>;
template class List<undo_rwlock*>;

}  // namespace stillpoint::undo
