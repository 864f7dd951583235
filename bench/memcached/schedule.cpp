#include "schedule.hpp"

#include <cmath>

namespace bench {

namespace {

/// Keys and kinds as the mix says.
class Draws {
public:
    explicit Draws(const Traffic& traffic)
        : random_(traffic.seed), zipf_(traffic.keys), keys_(traffic.keys), read_percent_(traffic.read_percent), is_zipf_(traffic.is_zipf)
    {
    }
    Request next(std::uint64_t intended_ns)
    {
        const std::uint64_t key = is_zipf_ ? zipf_.next_scrambled(random_) : random_.below(keys_);
        return {static_cast<std::uint32_t>(key), random_.below(100) >= read_percent_, intended_ns};
    }
    /// Above 0, at most 1.
    double share() noexcept { return static_cast<double>((random_.next() >> 11) + 1) * 0x1p-53; }

private:
    Random random_;
    Zipf zipf_;
    std::uint32_t keys_;
    unsigned read_percent_;
    bool is_zipf_;
};

/// Each key once, in order.
class EachKey final : public Schedule {
public:
    explicit EachKey(const Traffic& traffic) : keys_(traffic.keys), is_update_(traffic.mode == Mode::load) {}

    std::optional<Request> next(std::uint64_t now_ns) override
    {
        return key_ < keys_ ? std::optional(Request{key_++, is_update_, now_ns}) : std::nullopt;
    }
    [[nodiscard]] std::uint64_t next_ns() const override { return never; }
    [[nodiscard]] bool is_over(std::uint64_t) const override { return key_ == keys_; }
    [[nodiscard]] bool counts(const Request&, std::uint64_t) const override { return true; }

private:
    std::uint32_t key_ = 0;
    std::uint32_t keys_;
    bool is_update_;
};

class ClosedLoop final : public Schedule {
public:
    explicit ClosedLoop(const Traffic& traffic) : draws_(traffic), begin_ns_(traffic.begin_ns), end_ns_(traffic.end_ns) {}

    std::optional<Request> next(std::uint64_t now_ns) override
    {
        return now_ns < end_ns_ ? std::optional(draws_.next(now_ns)) : std::nullopt;
    }
    [[nodiscard]] std::uint64_t next_ns() const override { return end_ns_; }
    [[nodiscard]] bool is_over(std::uint64_t now_ns) const override { return now_ns >= end_ns_; }
    /// By their replies: a rate is what was answered in a time.
    [[nodiscard]] bool counts(const Request&, std::uint64_t done_ns) const override { return done_ns >= begin_ns_ && done_ns < end_ns_; }

private:
    Draws draws_;
    std::uint64_t begin_ns_;
    std::uint64_t end_ns_;
};

/// Arrivals whose times do not depend on replies. One that finds no free connection keeps its time and is sent later, so its wait
/// is in its latency; nothing is stored for it.
class OpenLoop final : public Schedule {
public:
    OpenLoop(const Traffic& traffic, std::uint64_t start_ns)
        : draws_(traffic), begin_ns_(traffic.begin_ns), end_ns_(traffic.end_ns), mean_gap_ns_(1e9 / traffic.rate_per_s),
          is_poisson_(traffic.arrivals == Arrivals::poisson), arrival_ns_(static_cast<double>(start_ns))
    {
        advance();
    }
    std::optional<Request> next(std::uint64_t now_ns) override
    {
        const std::uint64_t arrival_ns = next_ns();
        if (arrival_ns > now_ns || arrival_ns >= end_ns_) {
            return std::nullopt;
        }
        advance();
        return draws_.next(arrival_ns);
    }
    [[nodiscard]] std::uint64_t next_ns() const override { return static_cast<std::uint64_t>(arrival_ns_); }
    [[nodiscard]] bool is_over(std::uint64_t) const override { return next_ns() >= end_ns_; }
    /// By the time at which they should have been sent: the slow ones at the end are not left out.
    [[nodiscard]] bool counts(const Request& request, std::uint64_t) const override { return request.intended_ns >= begin_ns_; }

private:
    void advance() { arrival_ns_ += is_poisson_ ? -std::log(draws_.share()) * mean_gap_ns_ : mean_gap_ns_; }

    Draws draws_;
    std::uint64_t begin_ns_;
    std::uint64_t end_ns_;
    double mean_gap_ns_;
    bool is_poisson_;
    double arrival_ns_;  ///< a double holds 100 days to the nanosecond
};

}  // namespace

std::unique_ptr<Schedule> make_schedule(const Traffic& traffic, std::uint64_t start_ns)
{
    switch (traffic.mode) {
    case Mode::closed: return std::make_unique<ClosedLoop>(traffic);
    case Mode::open: return std::make_unique<OpenLoop>(traffic, start_ns);
    case Mode::load:
    case Mode::check: break;
    }
    return std::make_unique<EachKey>(traffic);
}

}  // namespace bench
