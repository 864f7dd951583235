// Load for a memcached server on this machine, and what it is like to be its client.
//
//   memcached_load_generator mode=load                         every key once, with its value
//   memcached_load_generator mode=check                        reads every key once
//   memcached_load_generator mode=closed seconds=5            throughput: each connection sends when it has its reply
//   memcached_load_generator mode=open rate=50000              latency: requests are due at times of their own
//
// In the open loop a latency runs from the moment at which a request was due, whether or not it could be sent then (no
// coordinated omission). Each reply is checked; a wrong one ends the program with a message and exit code 70. The result is
// one JSON object on standard output, also after Ctrl-C (exit code 130). One thread: the server needs the CPUs too.

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <fmt/format.h>
#include <map>
#include <string>
#include <sysexits.h>

#include "../harness/clock.hpp"
#include "../harness/commands.hpp"
#include "../harness/ending.hpp"
#include "event_loop.hpp"

namespace {

using bench::Arrivals;
using bench::Mode;
using bench::Protocol;

constexpr int exit_interrupted = 130;
volatile std::sig_atomic_t is_interrupted = 0;

const std::map<std::string, Mode> modes{{"load", Mode::load}, {"check", Mode::check}, {"closed", Mode::closed}, {"open", Mode::open}};
const std::map<std::string, Protocol> protocols{{"text", Protocol::text}, {"meta", Protocol::meta}};
const std::map<std::string, Arrivals> arrival_names{{"poisson", Arrivals::poisson}, {"constant", Arrivals::constant}};

template <class Value>
std::string name_of(const std::map<std::string, Value>& names, Value wanted)
{
    for (const auto& [name, value] : names) {
        if (value == wanted) {
            return name;
        }
    }
    return {};
}

struct Call {
    bench::Target target;
    bench::Traffic traffic;
    double seconds = 5;
    double warm_up_seconds = 0.2;
    double drain_seconds = 5;
    bool with_histogram = false;
};

/// One of the names.
template <class Value>
Value chosen(const bench::Settings& settings, const char* name, const std::map<std::string, Value>& values, Value usual)
{
    const std::string wanted = settings.text(name);
    const auto found = values.find(wanted);
    if (wanted.empty() || found != values.end()) {
        return wanted.empty() ? usual : found->second;
    }
    std::string names;
    for (const auto& [each, value] : values) {
        names += " " + each;
    }
    bench::give_up(fmt::format("{}={}: one of these is needed:{}", name, wanted, names));
}

template <class Number>
Number whole(const bench::Settings& settings, const char* name, Number usual, std::uint64_t minimum, std::uint64_t maximum)
{
    return static_cast<Number>(settings.has(name) ? settings.number_from(name, minimum, maximum) : usual);
}

Call call_of(const bench::Settings& settings)
{
    Call call;
    bench::Target& target = call.target;
    bench::Traffic& traffic = call.traffic;
    traffic.mode = chosen(settings, "mode", modes, traffic.mode);
    target.host = settings.text("host", target.host);  // an IPv4 address
    target.port = whole(settings, "port", target.port, 1, 65535);
    target.protocol = chosen(settings, "protocol", protocols, target.protocol);
    target.connections = whole(settings, "connections", target.connections, 1, 10'000);
    target.depth = whole(settings, "pipeline", target.depth, 1, 1000);
    traffic.keys = whole(settings, "keys", traffic.keys, 2, bench::keys_max);
    target.value_bytes = whole(settings, "value_bytes", target.value_bytes, bench::value_bytes_min, bench::value_bytes_max);
    traffic.read_percent = whole(settings, "reads", traffic.read_percent, 0, 100);
    traffic.is_zipf = settings.number("zipf", 0) != 0;  // keys are drawn by Zipf's law (0.99), not uniformly
    call.seconds = settings.decimal("seconds", call.seconds, 0.01, 86400);
    call.warm_up_seconds = settings.decimal("warm_up", call.warm_up_seconds, 0, 3600);
    call.drain_seconds = settings.decimal("drain", call.drain_seconds, 0.1, 600);
    traffic.rate_per_s = settings.decimal("rate", 0, traffic.mode == Mode::open ? 1 : 0, 1e8);
    traffic.arrivals = chosen(settings, "arrivals", arrival_names, traffic.arrivals);
    traffic.seed = settings.number("seed", traffic.seed);
    target.allows_misses = settings.number("allow_misses", 0) != 0;   // a key that is not there is counted, not an error
    call.with_histogram = settings.number("histogram", 0) != 0;       // adds latencies_ns: [[ns, count], ...]
    return call;
}

/// The largest value of the bucket that holds the rank.
std::uint64_t percentile(const bench::LatencyHistogram& histogram, std::uint64_t total, double rank)
{
    const auto wanted = static_cast<std::uint64_t>(std::ceil(rank * static_cast<double>(total)));
    std::uint64_t seen = 0;
    std::uint64_t found = 0;
    histogram.for_each([&](std::uint64_t largest_ns, std::uint64_t count) {
        found = seen < wanted ? largest_ns : found;
        seen += count;
    });
    return found;
}

void print_result(const Call& call, const bench::Tally& tally, std::uint64_t wall_ns)
{
    const std::uint64_t operations = tally.reads + tally.updates;
    const double seconds = static_cast<double>(wall_ns) * 1e-9;
    fmt::print("{{\"mode\": \"{}\", \"protocol\": \"{}\", \"connections\": {}, \"pipeline\": {}, \"keys\": {}, \"value_bytes\": {}, ",
               name_of(modes, call.traffic.mode), name_of(protocols, call.target.protocol), call.target.connections, call.target.depth,
               call.traffic.keys, call.target.value_bytes);
    fmt::print("\"operations\": {}, \"reads\": {}, \"updates\": {}, \"misses\": {}, \"requests_in_all\": {}, "
               "\"updates_in_all\": {}, \"unanswered\": {}, \"behind\": {}, ",
               operations, tally.reads, tally.updates, tally.misses, tally.requests_in_all, tally.updates_in_all, tally.unanswered,
               tally.is_behind);
    fmt::print("\"interrupted\": {}, \"wall_ns\": {}, \"rate_per_s\": {:.1f}, \"client_cpu_ns\": {}, ", is_interrupted != 0, wall_ns,
               seconds > 0 ? static_cast<double>(operations) / seconds : 0.0, bench::process_cpu_ns());
    fmt::print("\"latency_ns\": {{\"p50\": {}, \"p99\": {}, \"p99.9\": {}, \"max\": {}}}", percentile(tally.latencies, operations, 0.5),
               percentile(tally.latencies, operations, 0.99), percentile(tally.latencies, operations, 0.999),
               percentile(tally.latencies, operations, 1));
    if (call.with_histogram) {
        fmt::print(", \"latencies_ns\": [");
        const char* comma = "";
        tally.latencies.for_each([&](std::uint64_t largest_ns, std::uint64_t count) {
            fmt::print("{}[{}, {}]", comma, largest_ns, count);
            comma = ", ";
        });
        fmt::print("]");
    }
    fmt::print("}}\n");
}

/// SIGINT and SIGTERM are let in while the loop waits, and end it there.
void catch_interrupts()
{
    struct sigaction action{};
    action.sa_handler = [](int) { is_interrupted = 1; };
    sigset_t both;
    sigemptyset(&both);
    for (const int signal : {SIGINT, SIGTERM}) {
        sigaction(signal, &action, nullptr);
        sigaddset(&both, signal);
    }
    sigprocmask(SIG_BLOCK, &both, nullptr);
}

int run(Call& call)
{
    bench::Traffic& traffic = call.traffic;
    const bool is_timed = traffic.mode == Mode::closed || traffic.mode == Mode::open;
    catch_interrupts();
    bench::EventLoop loop(call.target, traffic.seed, static_cast<std::uint64_t>(call.drain_seconds * 1e9), is_interrupted);
    const std::uint64_t start_ns = bench::monotonic_ns();
    traffic.begin_ns = start_ns + (is_timed ? static_cast<std::uint64_t>(call.warm_up_seconds * 1e9) : 0);
    traffic.end_ns = is_timed ? traffic.begin_ns + static_cast<std::uint64_t>(call.seconds * 1e9) : bench::Schedule::never;
    const auto schedule = bench::make_schedule(traffic, start_ns);
    loop.run(*schedule, traffic.end_ns);
    const bench::Tally& tally = loop.tally();
    // An interrupted run gives what there was.
    const std::uint64_t last_ns = std::max(tally.last_ns, traffic.begin_ns);
    print_result(call, tally, is_timed && is_interrupted == 0 ? traffic.end_ns - traffic.begin_ns : last_ns - traffic.begin_ns);
    if (is_interrupted != 0) {
        return exit_interrupted;
    }
    if (tally.unanswered != 0 || tally.is_behind) {
        fmt::print(stderr, "memcached_load_generator: after {} s {} replies had not come{}\n", call.drain_seconds, tally.unanswered,
                   tally.is_behind ? ", and requests were still to be sent: the rate is more than the server does" : "");
        return EX_UNAVAILABLE;
    }
    return EXIT_SUCCESS;
}

}  // namespace

int main(int count, char** words)
{
    Call call = call_of(bench::Settings(count, words));
    return run(call);
}
