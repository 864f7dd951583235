#include "itm/messages.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "stillpoint/stillpoint.h"

namespace stillpoint::itm {

namespace {

std::atomic<unsigned> reported{0};
std::atomic<int> failure{SP_OK};

const char* text_of(Message message)
{
    switch (message) {
    case Message::other_engine: return "transactions are not durable, and run one at a time";
    case Message::plain_stores: return "what functions without instrumentation store in irrevocable transactions is not durable";
    case Message::not_durable: return "transactions are not durable any more";
    }
    return "";
}

}  // namespace

void report_once(Message message, const char* reason) noexcept
{
    const unsigned bit = 1u << static_cast<unsigned>(message);
    if ((reported.fetch_or(bit, std::memory_order_relaxed) & bit) != 0) {
        return;
    }
    const bool has_reason = reason != nullptr && *reason != '\0';
    std::fprintf(stderr, "stillpoint-itm: %s%s%s\n", text_of(message), has_reason ? ": " : "", has_reason ? reason : "");
}

void note_failure(int code) noexcept
{
    int none = SP_OK;
    failure.compare_exchange_strong(none, code, std::memory_order_relaxed);
    report_once(Message::not_durable, sp_last_error());
}

int first_failure() noexcept { return failure.load(std::memory_order_relaxed); }

void end_process(const char* reason) noexcept
{
    std::fprintf(stderr, "stillpoint-itm: %s\n", reason);
    std::abort();
}

}  // namespace stillpoint::itm
