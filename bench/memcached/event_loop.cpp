#include "event_loop.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "../harness/clock.hpp"
#include "../harness/ending.hpp"

namespace bench {

namespace {

constexpr std::size_t events_max = 64;
std::array<epoll_event, events_max> events;

void watch(int poller, int action, int descriptor, std::size_t number, bool also_for_room)
{
    epoll_event event{};
    event.events = EPOLLIN | (also_for_room ? EPOLLOUT : 0u);
    event.data.u64 = number;
    if (epoll_ctl(poller, action, descriptor, &event) != 0) {
        give_up(fmt::format("a connection cannot be watched: {}", std::strerror(errno)));
    }
}

}  // namespace

EventLoop::EventLoop(const Target& target, std::uint64_t seed, std::uint64_t drain_ns, const volatile std::sig_atomic_t& stop)
    : target_(target), drain_ns_(drain_ns), stop_(&stop), poller_(epoll_create1(EPOLL_CLOEXEC)), waits_for_socket_(target.connections),
      version_(seed << 40)
{
    if (poller_ < 0) {
        give_up("no epoll instance can be made");
    }
    prctl(PR_SET_TIMERSLACK, 1);  // an arrival is due when it is due, not 50 us later
    for (std::size_t number = 0; number < target.connections; ++number) {
        connections_.push_back(std::make_unique<Connection>(target.host, target.port, target.protocol, target.value_bytes, target.depth));
        watch(poller_, EPOLL_CTL_ADD, connections_.back()->descriptor(), number, false);
        with_room_.push_back(number);
    }
}

EventLoop::~EventLoop() { close(poller_); }

void EventLoop::flush(std::size_t number)
{
    Connection& connection = *connections_[number];
    connection.flush();
    if (connection.wants_to_send() != waits_for_socket_[number]) {
        waits_for_socket_[number] = connection.wants_to_send();
        watch(poller_, EPOLL_CTL_MOD, connection.descriptor(), number, connection.wants_to_send());
    }
}

void EventLoop::send_due(Schedule& schedule, std::uint64_t now_ns)
{
    while (!with_room_.empty()) {
        const auto request = schedule.next(now_ns);
        if (!request) {
            break;
        }
        const std::size_t number = with_room_.front();
        with_room_.pop_front();
        Connection& connection = *connections_[number];
        connection.queue(*request, ++version_);
        ++sent_;
        to_flush_.push_back(number);
        if (connection.has_room()) {
            with_room_.push_back(number);
        }
    }
    for (const std::size_t number : to_flush_) {
        flush(number);
    }
    to_flush_.clear();
}

void EventLoop::take_replies(Connection& connection, std::size_t number, const Schedule& schedule)
{
    connection.receive();
    const std::uint64_t now_ns = monotonic_ns();
    const bool had_room = connection.has_room();
    Request request;
    Reply::Kind kind{};
    while (connection.next_reply(request, kind)) {
        ++answered_;
        ++tally_.requests_in_all;
        tally_.updates_in_all += request.is_update;
        tally_.last_ns = now_ns;
        if (kind == Reply::Kind::miss && !target_.allows_misses) {
            give_up(fmt::format("key-{:08d} is missing: load the keys first (--mode load), or use --allow-misses", request.key));
        }
        if (schedule.counts(request, now_ns)) {
            (request.is_update ? tally_.updates : tally_.reads) += 1;
            tally_.misses += kind == Reply::Kind::miss;
            tally_.latencies.record(now_ns - std::min(now_ns, request.intended_ns));
        }
    }
    if (!had_room && connection.has_room()) {
        with_room_.push_back(number);
    }
}

int EventLoop::wait(std::uint64_t until_ns)
{
    const std::uint64_t now_ns = monotonic_ns();
    const std::uint64_t wait_ns = until_ns > now_ns ? until_ns - now_ns : 0;
    const timespec limit{static_cast<time_t>(wait_ns / 1'000'000'000u), static_cast<long>(wait_ns % 1'000'000'000u)};
    sigset_t none;
    sigemptyset(&none);  // Signals come here and nowhere else.
    const int count = epoll_pwait2(poller_, events.data(), events_max, &limit, &none);
    if (count < 0 && errno != EINTR) {
        give_up(fmt::format("waiting for replies failed: {}", std::strerror(errno)));
    }
    return std::max(count, 0);
}

void EventLoop::run(Schedule& schedule, std::uint64_t end_ns)
{
    const std::uint64_t limit_ns = end_ns == Schedule::never ? Schedule::never : end_ns + drain_ns_;
    std::uint64_t progress_ns = monotonic_ns();
    while (*stop_ == 0) {
        const std::uint64_t now_ns = monotonic_ns();
        send_due(schedule, now_ns);
        if (schedule.is_over(now_ns) && in_flight() == 0) {
            break;
        }
        if (now_ns >= std::min(limit_ns, progress_ns + drain_ns_)) {
            tally_.is_behind = !schedule.is_over(now_ns);
            break;
        }
        // An arrival that waits for a free connection needs no clock, only a reply.
        const std::uint64_t due_ns = with_room_.empty() || schedule.is_over(now_ns) ? Schedule::never : schedule.next_ns();
        const int count = wait(std::min({due_ns, limit_ns, progress_ns + drain_ns_}));
        for (int i = 0; i < count; ++i) {
            const auto& event = events[static_cast<std::size_t>(i)];
            if ((event.events & EPOLLOUT) != 0) {
                flush(event.data.u64);
            }
            if ((event.events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) {
                take_replies(*connections_[event.data.u64], event.data.u64, schedule);
                send_due(schedule, monotonic_ns());
                progress_ns = std::max(progress_ns, tally_.last_ns);
            }
        }
        if (in_flight() == 0) {
            progress_ns = monotonic_ns();
        }
    }
    tally_.unanswered = in_flight();
}

}  // namespace bench
