#pragma once
// Which request comes next, and when: every key once, as fast as replies come (closed loop), or at intended times that do
// not wait for replies (open loop).

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>

#include "../harness/random.hpp"
#include "../harness/zipf.hpp"
#include "protocol.hpp"

namespace bench {

enum class Mode { load, check, closed, open };
enum class Arrivals { poisson, constant };

struct Traffic {
    Mode mode = Mode::closed;
    std::uint32_t keys = 1'000'000;
    unsigned read_percent = 90;
    bool is_zipf = false;
    std::uint64_t seed = 1;
    std::uint64_t begin_ns = 0;  ///< of what counts; before it is warm-up
    std::uint64_t end_ns = 0;
    double rate_per_s = 0;  ///< of the open loop
    Arrivals arrivals = Arrivals::poisson;
};

class Schedule {
public:
    static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

    virtual ~Schedule() = default;
    /// A request that is to be sent now, or none yet.
    virtual std::optional<Request> next(std::uint64_t now_ns) = 0;
    /// When to ask again although no reply came; `never` where only replies matter.
    [[nodiscard]] virtual std::uint64_t next_ns() const = 0;
    /// No further request will come.
    [[nodiscard]] virtual bool is_over(std::uint64_t now_ns) const = 0;
    /// Whether a request belongs to what is measured.
    [[nodiscard]] virtual bool counts(const Request& request, std::uint64_t done_ns) const = 0;
};

/// `start_ns`: the present time; an open loop's warm-up begins with it.
std::unique_ptr<Schedule> make_schedule(const Traffic& traffic, std::uint64_t start_ns);

}  // namespace bench
