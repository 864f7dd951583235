#pragma once
// While an object's own code runs for the engine (construct, destroy, replay) its operations begin nothing that is logged, and the thread
// acts on the object's pool.

#include "engines/pronto/thread_log.hpp"

namespace stillpoint::pronto {

class InsideObject {
public:
    explicit InsideObject(const LiveObject& object) noexcept : in_pool_(*object.session), thread_(own_thread_log())
    {
        if (thread_ != nullptr) {
            before_ = thread_->replaying;
            thread_->replaying = &object;
        }
    }
    ~InsideObject()
    {
        if (thread_ != nullptr) {
            thread_->replaying = before_;
        }
    }
    InsideObject(const InsideObject&) = delete;
    InsideObject& operator=(const InsideObject&) = delete;

private:
    InSession in_pool_;
    ThreadLog* thread_;
    const LiveObject* before_ = nullptr;
};

}  // namespace stillpoint::pronto
