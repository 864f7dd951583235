#include "global_clock.hpp"

#include <algorithm>

namespace bench::model {

void GlobalClock::leave(const Worker& worker) { std::erase(holders_, &worker); }

void GlobalClock::abort_others(Worker& worker)
{
    for (Worker* const other : holders_) {
        if (other != &worker) {
            speculation_.abort(*other, Abort::clock);
        }
    }
    holders_ = {&worker};
}

Task<bool> GlobalClock::read(Worker& worker)
{
    const double access_ns = world_.access_ns(line_, worker);
    if (!co_await speculation_.run(worker, access_ns)) {
        co_return false;
    }
    holders_.push_back(&worker);
    co_return true;
}

Task<bool> GlobalClock::increment_and_commit(Worker& worker, double commit_ns)
{
    // The request for the line aborts the others when it arrives, half a transfer later; from then on the next request aborts this one.
    const double half_ns = line_.owner == &worker || line_.owner == nullptr ? 0 : world_.transfer_ns(*line_.owner, worker) / 2;
    bool is_alive = co_await speculation_.run(worker, half_ns);
    if (is_alive) {
        abort_others(worker);
        line_.owner = &worker;
        is_alive = co_await speculation_.run(worker, half_ns + world_.machine.compare_and_swap_ns + commit_ns);
    }
    leave(worker);
    value_ += is_alive ? 1U : 0U;
    co_return is_alive;
}

}  // namespace bench::model
