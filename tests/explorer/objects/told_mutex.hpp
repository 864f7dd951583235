#pragma once
// A mutex in a durable object. The explorer intercepts no locks, so it tells the runtime of each, as libstillpoint.so does: a snapshot
// may capture it while a reader holds it, and recovery then makes it free.

#include <condition_variable>
#include <mutex>
#include <stdexcept>

#include "runtime/fase_gate.hpp"
#include "runtime/section_ends.hpp"

namespace stillpoint::explorer {

class ToldMutex {
public:
    void lock()
    {
        fase::enter(&mutex_, LockKind::mutex);
        mutex_.lock();
    }
    void unlock()
    {
        if (section_ends::are_told()) {
            section_ends::tell_release(&mutex_);
        }
        mutex_.unlock();
        fase::leave(&mutex_);
        if (section_ends::are_told()) {
            section_ends::tell_ended();
        }
    }

    /// Waits for `condition`, as the shims do: the mutex is given away, and with it the section ends where it is the only lock.
    void wait(std::condition_variable& condition)
    {
        if (section_ends::are_told()) {
            section_ends::tell_release(&mutex_);
        }
        const bool is_outside = fase::suspend_for_wait(&mutex_);
        std::unique_lock held(mutex_, std::adopt_lock);
        condition.wait(held);
        held.release();
        if (is_outside && !fase::resume_after_wait(&mutex_)) {
            throw std::logic_error("a stop came while a thread waited for a condition");  // Engines whose programs wait here have none.
        }
    }

private:
    std::mutex mutex_;
};

}  // namespace stillpoint::explorer
