#pragma once
// One thread that keeps all connections busy, as a schedule tells.

#include <csignal>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "../harness/latency_histogram.hpp"
#include "connection.hpp"
#include "schedule.hpp"

namespace bench {

struct Target {
    std::string host = "127.0.0.1";
    std::uint16_t port = 11211;
    Protocol protocol = Protocol::text;
    unsigned connections = 32;
    unsigned depth = 1;  ///< requests in flight on each connection
    std::size_t value_bytes = 100;
    bool allows_misses = false;
};

/// The figures measured.
struct Tally {
    std::uint64_t reads = 0;
    std::uint64_t updates = 0;
    std::uint64_t misses = 0;      ///< of the reads
    std::uint64_t requests_in_all = 0;  ///< answered, warm-up included; of these:
    std::uint64_t updates_in_all = 0;
    std::uint64_t unanswered = 0;  ///< in flight when the time to wait for them was over
    bool is_behind = false;        ///< an open loop could not send everything in that time either
    std::uint64_t last_ns = 0;     ///< when the last reply came
    LatencyHistogram latencies;
};

class EventLoop {
public:
    /// `drain_ns`: how long to wait for the last replies. `stop`: is examined after each wait; not 0: ends at once.
    EventLoop(const Target& target, std::uint64_t seed, std::uint64_t drain_ns, const volatile std::sig_atomic_t& stop);
    ~EventLoop();
    EventLoop(const EventLoop&) = delete;
    EventLoop& operator=(const EventLoop&) = delete;

    void run(Schedule& schedule, std::uint64_t end_ns);
    [[nodiscard]] const Tally& tally() const noexcept { return tally_; }

private:
    void send_due(Schedule& schedule, std::uint64_t now_ns);
    void take_replies(Connection& connection, std::size_t number, const Schedule& schedule);
    void flush(std::size_t number);
    /// Waits for sockets, and until `until_ns` at most.
    int wait(std::uint64_t until_ns);
    [[nodiscard]] std::uint64_t in_flight() const noexcept { return sent_ - answered_; }

    Target target_;
    std::uint64_t drain_ns_;
    const volatile std::sig_atomic_t* stop_;
    int poller_ = -1;
    std::vector<std::unique_ptr<Connection>> connections_;
    std::deque<std::size_t> with_room_;     ///< connections that can take a request
    std::vector<std::size_t> to_flush_;
    std::vector<bool> waits_for_socket_;    ///< by connection: it is watched for room in its send buffer
    std::uint64_t version_;
    std::uint64_t sent_ = 0;
    std::uint64_t answered_ = 0;
    Tally tally_;
};

}  // namespace bench
