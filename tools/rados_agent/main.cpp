// stillpoint-rados-agent: the process through which a program with a pool in Ceph talks to the cluster. The library starts it, with a
// socket, memory that both share, and a descriptor of the program's process; it ends when the program closes the pool or is gone.

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sysexits.h>
#include <thread>
#include <unistd.h>

#include "cluster.hpp"
#include "media/rados/agent_protocol.hpp"
#include "os/clock.hpp"
#include "ownership.hpp"
#include "service.hpp"
#include "standby.hpp"

namespace stillpoint::rados {

namespace {

constexpr std::uint64_t ns_per_ms = 1'000'000;
constexpr std::uint64_t end_patience_ns = 10'000 * ns_per_ms;

/// Ends the process where librados waits for longer than it may: some of its calls know no time-out.
class Watchdog {
public:
    using Teller = void (*)(const char* step);
    /// `tell` answers for the process, which then ends; nullptr: it only ends.
    explicit Watchdog(std::uint64_t timeout_ns, Teller tell = nullptr)
        : tell_(tell), deadline_ns_(os::monotonic_ns() + timeout_ns), thread_([this] { watch(); })
    {
    }
    ~Watchdog()
    {
        {
            const std::lock_guard guard(mutex_);
            is_over_ = true;
        }
        changed_.notify_all();
        thread_.join();
    }
    Watchdog(const Watchdog&) = delete;
    Watchdog& operator=(const Watchdog&) = delete;

    void set_step(const char* step) noexcept { step_.store(step, std::memory_order_relaxed); }

private:
    void watch()
    {
        std::unique_lock lock(mutex_);
        const auto wait = std::chrono::nanoseconds(deadline_ns_ - os::monotonic_ns());
        if (!changed_.wait_for(lock, wait, [this] { return is_over_; })) {
            if (tell_ != nullptr) {
                tell_(step_.load(std::memory_order_relaxed));
            }
            _exit(EX_TEMPFAIL);
        }
    }
    Teller tell_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool is_over_ = false;
    std::atomic<const char*> step_{"connecting"};
    std::uint64_t deadline_ns_;
    std::thread thread_;
};

void send_reply(const OpenReply& reply) { static_cast<void>(send(socket_descriptor, &reply, sizeof reply, MSG_NOSIGNAL)); }

OpenReply new_reply()
{
    OpenReply reply{};
    reply.magic = protocol_magic;
    reply.version = protocol_version;
    return reply;
}

int refuse(const Failure& failure)
{
    OpenReply reply = new_reply();
    put_outcome(reply.outcome, failure);
    send_reply(reply);
    return EX_UNAVAILABLE;
}

void tell_of_timeout(const char* step)
{
    refuse(fail(SP_E_TIMED_OUT, ETIMEDOUT,
                "the Ceph cluster does not answer ({}): a placement group may be inactive, or too few OSDs run; see `ceph health detail`",
                step)
               .value());
}

/// The memory, if it is sealed at the size that it must have: else the program could take it away from under this process.
SharedState* map_shared()
{
    struct stat facts{};
    constexpr int needed = F_SEAL_SHRINK;
    if (fstat(memory_descriptor, &facts) != 0 || facts.st_size != static_cast<off_t>(memory_bytes) ||
        (fcntl(memory_descriptor, F_GET_SEALS) & needed) == 0) {
        return nullptr;
    }
    void* const mapped = mmap(nullptr, memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory_descriptor, 0);
    auto* const state = mapped != MAP_FAILED ? static_cast<SharedState*>(mapped) : nullptr;
    return state != nullptr && state->magic == protocol_magic && state->version == protocol_version ? state : nullptr;
}

bool receive_request(OpenRequest& request)
{
    const ssize_t got = recv(socket_descriptor, &request, sizeof request, MSG_TRUNC);
    return got == static_cast<ssize_t>(sizeof request);
}

enum class Message { slot, none, end };

/// The next message that is there.
Message next_message(std::uint32_t& slot)
{
    SlotMessage message{};
    const ssize_t got = recv(socket_descriptor, &message, sizeof message, MSG_DONTWAIT | MSG_TRUNC);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return Message::none;
    }
    if (got != static_cast<ssize_t>(sizeof message) || message.magic != protocol_magic || message.slot >= slot_count) {
        return Message::end;
    }
    slot = message.slot;
    return Message::slot;
}

/// After a standby: the program's process is the one that took the link, which need not be the one that waited.
void watch_adopter(const SharedState& shared, std::uint32_t& known)
{
    const std::uint32_t adopter = shared.adopter.load(std::memory_order_acquire);
    if (adopter == known) {
        return;
    }
    known = adopter;
    const int descriptor = static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(adopter), 0));
    if (descriptor >= 0) {
        dup2(descriptor, program_descriptor);
        close(descriptor);
    }
}

/// Until the program closes the pool, ends, or says what makes no sense.
void serve(Service& service, const SharedState& shared)
{
    std::uint32_t adopter = 0;
    while (!service.is_closing()) {
        watch_adopter(shared, adopter);
        pollfd watched[] = {{socket_descriptor, POLLIN, 0}, {program_descriptor, POLLIN, 0}, {service.refused(), POLLIN, 0}};
        std::uint64_t held_ns = 0;
        if (!service.send_held(held_ns)) {
            return;
        }
        const std::uint64_t wait_ns = std::min(service.renew_in_ns(), held_ns);
        poll(watched, std::size(watched), static_cast<int>(std::min<std::uint64_t>(wait_ns / ns_per_ms + 1, 60'000)));
        std::uint32_t slot = 0;
        Message message = Message::none;
        while ((message = next_message(slot)) == Message::slot) {
            if (!service.begin(slot)) {
                return;
            }
        }
        // All that a program has sent before its end was read above.
        if (message == Message::end || (watched[1].revents & (POLLIN | POLLERR | POLLNVAL)) != 0) {
            return;
        }
    }
}

void put_redundancy(OpenReply& reply, const Cluster& cluster)
{
    const Cluster::Redundancy redundancy = cluster.redundancy();
    reply.replicas = redundancy.copies;
    reply.is_erasure_coded = redundancy.is_erasure_coded ? 1 : 0;
}

/// Answers twice: when the pool is followed, and when it is this process's.
std::unique_ptr<WarmCache> stand_by(const Cluster& cluster, Ownership& ownership, SharedState& shared, const OpenRequest& request)
{
    auto cache = WarmCache::make(cluster, shared, request.size_bytes);
    if (!cache) {
        _exit(refuse(cache.error()));
    }
    OpenReply reply = new_reply();
    put_redundancy(reply, cluster);
    send_reply(reply);
    if (auto owned = await_ownership(ownership, **cache); !owned) {
        _exit(refuse(owned.error()));
    }
    (*cache)->verify();
    reply.size_bytes = ownership.head().size_bytes;
    send_reply(reply);
    return std::move(*cache);
}

/// Becomes what the request says and answers, but for a standby, whose pool is only looked at.
void open_pool(const OpenRequest& request, std::unique_ptr<Cluster>& cluster, std::unique_ptr<Ownership>& ownership)
{
    const std::uint64_t patience_ms = request.timeout_ms + std::uint64_t{request.mode == Mode::owner ? 0 : request.lease_ms};
    Watchdog watchdog(patience_ms * ns_per_ms, &tell_of_timeout);
    auto connected = Cluster::connect({std::string(text_in(request.ceph_pool)), std::string(text_in(request.name)),
                                       std::string(text_in(request.user)), std::string(text_in(request.configuration)),
                                       request.timeout_ms});
    if (!connected) {
        _exit(refuse(connected.error()));
    }
    cluster = std::move(*connected);
    ownership = std::make_unique<Ownership>(*cluster, request);
    const auto note_step = [&](const char* step) { watchdog.set_step(step); };
    if (request.mode == Mode::standby) {
        note_step("reading the pool's first object");
        if (auto there = ownership->look(); !there) {
            _exit(refuse(there.error()));
        }
        return;
    }
    if (auto taken = ownership->take(note_step); !taken) {
        _exit(refuse(taken.error()));  // Taking leave of a cluster that is gone would wait without an end.
    }
    OpenReply reply = new_reply();
    reply.size_bytes = ownership->head().size_bytes;
    reply.last_writer = ownership->last_writer();
    watchdog.set_step("asking for the number of replicas");
    if (request.mode != Mode::owner) {
        put_redundancy(reply, *cluster);
    }
    const Identity& owner = ownership->head().owner;
    const bool is_here = life_of_program(owner, own_identity(static_cast<std::uint64_t>(request.process))) == Life::alive;
    reply.owner_process = is_here ? static_cast<std::int32_t>(owner.process) : 0;
    send_reply(reply);
}

int run()
{
    OpenRequest request{};
    SharedState* const shared = map_shared();
    if (shared == nullptr || !receive_request(request)) {
        return EX_USAGE;
    }
    if (const char* const fault = fault_in(request); fault != nullptr) {
        return refuse(
            fail(SP_E_UNSUPPORTED, 0, "the agent refuses the request to open: {}; install library and agent from one version", fault)
                .value());
    }
    std::unique_ptr<Cluster> cluster;
    std::unique_ptr<Ownership> ownership;
    open_pool(request, cluster, ownership);
    if (request.mode == Mode::owner) {
        _exit(EX_OK);
    }
    const std::unique_ptr<WarmCache> cache = request.mode == Mode::standby ? stand_by(*cluster, *ownership, *shared, request)
                                                                           : std::unique_ptr<WarmCache>{};
    Service service(*cluster, *ownership, *shared, request.lease_ms, cache.get());
    serve(service, *shared);
    Watchdog watchdog(request.lease_ms * ns_per_ms + end_patience_ns);
    service.drain();
    ownership->release();
    if (service.is_closing()) {
        service.end_closing();
    }
    _exit(EX_OK);  // librados would take its time to end its threads, and there is nothing left to wait for.
}

}  // namespace

}  // namespace stillpoint::rados

int main()
{
    // A service that is stopped has all its processes signalled: the program's last checkpoint still needs this one.
    for (const int ignored : {SIGPIPE, SIGTERM, SIGINT, SIGHUP, SIGQUIT}) {
        signal(ignored, SIG_IGN);
    }
    return stillpoint::rados::run();
}
