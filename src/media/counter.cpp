#include "media/counter.hpp"

namespace stillpoint {

constinit thread_local unsigned counter_share [[gnu::tls_model("initial-exec")]] = 0;

unsigned choose_counter_share() noexcept
{
    static std::atomic<unsigned> chosen{0};
    counter_share = chosen.fetch_add(1, std::memory_order_relaxed) + 1;
    return counter_share;
}

}  // namespace stillpoint
