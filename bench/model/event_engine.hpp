#pragma once
// The event engine: a clock, a queue of events, and what simulated threads wait for. It knows nothing of transactions.
//
// Events at the same time happen in the order in which they were made, so a run depends on its seed alone.

#include <algorithm>
#include <coroutine>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "task.hpp"

namespace bench::model {

/// A sleep that another thread may end early. One for each simulated thread.
class Sleeper {
    friend class Simulation;
    std::coroutine_handle<> handle_;
    /// Raised at each wake-up: an event of an earlier sleep is void.
    std::uint64_t sleep_ = 0;
    bool interrupted_ = false;
};

class Simulation {
public:
    [[nodiscard]] double now_ns() const noexcept { return now_ns_; }

    /// Resumes `handle` after `delay_ns`.
    void resume_after(double delay_ns, std::coroutine_handle<> handle) { push({now_ns_ + delay_ns, next_++, handle, nullptr, 0}); }

    struct Delay {
        Simulation& simulation;
        double delay_ns;
        bool await_ready() const noexcept { return delay_ns <= 0; }
        void await_suspend(std::coroutine_handle<> handle) const { simulation.resume_after(delay_ns, handle); }
        void await_resume() const noexcept {}
    };
    /// co_await: the thread does something that takes `delay_ns`.
    [[nodiscard]] Delay delay(double delay_ns) { return {*this, delay_ns}; }

    /// co_await: like delay(), and true, unless interrupt() comes first; then false.
    [[nodiscard]] auto sleep(Sleeper& sleeper, double delay_ns)
    {
        struct Sleep {
            Simulation& simulation;
            Sleeper& sleeper;
            double delay_ns;
            bool await_ready() const noexcept { return false; }
            void await_suspend(std::coroutine_handle<> handle) const
            {
                sleeper.handle_ = handle;
                sleeper.interrupted_ = false;
                simulation.push({simulation.now_ns_ + delay_ns, simulation.next_++, {}, &sleeper, sleeper.sleep_});
            }
            bool await_resume() const noexcept { return !sleeper.interrupted_; }
        };
        return Sleep{*this, sleeper, delay_ns};
    }

    void interrupt(Sleeper& sleeper)
    {
        if (!sleeper.handle_) {
            return;
        }
        sleeper.interrupted_ = true;
        ++sleeper.sleep_;
        resume_after(0, std::exchange(sleeper.handle_, {}));
    }

    /// Runs until no event is left or `is_done` says so.
    template <class IsDone>
    void run(IsDone is_done)
    {
        while (!events_.empty() && !is_done()) {
            const Event event = events_.top();
            events_.pop();
            if (event.sleeper != nullptr) {
                Sleeper& sleeper = *event.sleeper;
                if (sleeper.sleep_ != event.sleep) {
                    continue;
                }
                now_ns_ = event.time_ns;
                ++sleeper.sleep_;
                std::exchange(sleeper.handle_, {}).resume();
                continue;
            }
            now_ns_ = event.time_ns;
            event.handle.resume();
        }
    }

private:
    struct Event {
        double time_ns;
        std::uint64_t number;
        std::coroutine_handle<> handle;
        Sleeper* sleeper;
        std::uint64_t sleep;

        bool operator>(const Event& other) const noexcept
        {
            return time_ns != other.time_ns ? time_ns > other.time_ns : number > other.number;
        }
    };

    void push(Event event) { events_.push(event); }

    double now_ns_ = 0;
    std::uint64_t next_ = 0;
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

/// Threads wait here until another one changes what they look at. They wake one after the other's line has reached them, and look again.
class Signal {
public:
    [[nodiscard]] auto wait()
    {
        struct Wait {
            Signal& signal;
            bool await_ready() const noexcept { return false; }
            void await_suspend(std::coroutine_handle<> handle) const { signal.waiting_.push_back(handle); }
            void await_resume() const noexcept {}
        };
        return Wait{*this};
    }

    void notify_all(Simulation& simulation, double delay_ns = 0)
    {
        for (const std::coroutine_handle<> handle : std::exchange(waiting_, {})) {
            simulation.resume_after(delay_ns, handle);
        }
    }

private:
    std::vector<std::coroutine_handle<>> waiting_;
};

/// Threads wait until a number that only grows has reached theirs: a marker, a durable position in a log.
class Watermark {
public:
    [[nodiscard]] double value() const noexcept { return value_; }

    [[nodiscard]] auto reached(double wanted)
    {
        struct Wait {
            Watermark& mark;
            double wanted;
            bool await_ready() const noexcept { return mark.value_ >= wanted; }
            void await_suspend(std::coroutine_handle<> handle) const { mark.waiting_.push({wanted, mark.next_++, handle}); }
            void await_resume() const noexcept {}
        };
        return Wait{*this, wanted};
    }

    void raise(Simulation& simulation, double value, double delay_ns)
    {
        value_ = std::max(value_, value);
        while (!waiting_.empty() && waiting_.top().wanted <= value_) {
            simulation.resume_after(delay_ns, waiting_.top().handle);
            waiting_.pop();
        }
    }

private:
    struct Waiting {
        double wanted;
        std::uint64_t number;
        std::coroutine_handle<> handle;

        bool operator>(const Waiting& other) const noexcept
        {
            return wanted != other.wanted ? wanted > other.wanted : number > other.number;
        }
    };

    double value_ = -1;
    std::uint64_t next_ = 0;
    std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting_;
};

/// A server that does one thing after the other, in the order of arrival: the bandwidth of a memory, a line that caches pass around.
class Server {
public:
    /// Occupies the server for `service_ns`; returns how long from now until that is done.
    double occupy(const Simulation& simulation, double service_ns)
    {
        free_at_ns_ = std::max(free_at_ns_, simulation.now_ns()) + service_ns;
        return free_at_ns_ - simulation.now_ns();
    }

private:
    double free_at_ns_ = 0;
};

}  // namespace bench::model
