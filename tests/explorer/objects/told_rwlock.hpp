#pragma once
// A reader-writer lock and a barrier that tell the runtime of their uses, as libstillpoint.so does (told_mutex.hpp).

#include <barrier>
#include <shared_mutex>

#include "runtime/fase_gate.hpp"
#include "runtime/section_ends.hpp"

namespace stillpoint::explorer {

class ToldRwlock {
public:
    void lock()
    {
        fase::enter(&lock_, LockKind::rwlock);
        lock_.lock();
    }
    void lock_shared()
    {
        fase::enter(&lock_, LockKind::rwlock);
        lock_.lock_shared();
    }
    void unlock()
    {
        release([this] { lock_.unlock(); });
    }
    void unlock_shared()
    {
        release([this] { lock_.unlock_shared(); });
    }

private:
    template <class Unlock>
    void release(Unlock unlock)
    {
        if (section_ends::are_told()) {
            section_ends::tell_release(&lock_);
        }
        unlock();
        fase::leave(&lock_);
        if (section_ends::are_told()) {
            section_ends::tell_ended();
        }
    }

    std::shared_mutex lock_;
};

class ToldBarrier {
public:
    explicit ToldBarrier(int threads) : barrier_(threads) {}
    void wait()
    {
        if (section_ends::are_told()) {
            section_ends::tell_wakeup();
        }
        barrier_.arrive_and_wait();
    }

private:
    std::barrier<> barrier_;
};

}  // namespace stillpoint::explorer
