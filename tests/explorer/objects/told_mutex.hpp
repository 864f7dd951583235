#pragma once
// A mutex in a durable object. The explorer intercepts no locks, so it tells the runtime of each, as libstillpoint.so does: a snapshot
// may capture it while a reader holds it, and recovery then makes it free.

#include <mutex>

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

private:
    std::mutex mutex_;
};

}  // namespace stillpoint::explorer
