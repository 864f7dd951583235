#pragma once
// Threads of an explored program, whose failures are those of join().

#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace stillpoint::explorer {

class Threads {
public:
    Threads() = default;
    Threads(const Threads&) = delete;
    Threads& operator=(const Threads&) = delete;
    ~Threads() { end(); }

    template <class Work>
    void run(Work work)
    {
        threads_.emplace_back([this, work = std::move(work)]() mutable {
            try {
                work();
            } catch (...) {
                const std::lock_guard guard(lock_);
                failure_ = std::current_exception();
            }
        });
    }
    void join()
    {
        end();
        if (failure_ != nullptr) {
            std::rethrow_exception(failure_);
        }
    }

private:
    void end()
    {
        for (std::thread& thread : threads_) {
            thread.join();
        }
        threads_.clear();
    }

    std::mutex lock_;
    std::exception_ptr failure_;
    std::vector<std::thread> threads_;
};

}  // namespace stillpoint::explorer
