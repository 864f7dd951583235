#include "media/rados/agent_link.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

#include "core/formatted.hpp"
#include "media/errno_text.hpp"
#include "os/clock.hpp"
#include "os/detached_process.hpp"
#include "os/direct_call.hpp"
#include "os/environment.hpp"
#include "os/own_mappings.hpp"

namespace stillpoint::rados {

namespace {

constexpr std::string_view agent_name = "stillpoint-rados-agent";
/// A sleeper looks this often whether the agent lives: nothing wakes it when that has ended.
constexpr std::uint64_t look_again_ns = 100'000'000;
/// The agent keeps its own time; beyond it and this the agent hangs.
constexpr std::uint64_t grace_ns = 5'000'000'000;

/// The folder of the object that this function was linked into: the library's, or that of the command.
std::string own_folder()
{
    Dl_info info{};
    if (dladdr(reinterpret_cast<const void*>(&find_agent), &info) == 0 || info.dli_fname == nullptr) {
        return {};
    }
    std::string path = info.dli_fname;
    if (path.find('/') == std::string::npos || path.front() != '/') {
        path = "/proc/self/exe";  // A program's own name is as it was typed.
    }
    if (char* const real = realpath(path.c_str(), nullptr); real != nullptr) {
        path = real;
        std::free(real);  // NOLINT: realpath's contract
    }
    return path.substr(0, path.rfind('/'));
}

/// The environment that librados knows, and nothing that would bring the library into the agent.
std::vector<char*> environment_of_agent(std::vector<std::string>& texts)
{
    for (const char* const name : {"CEPH_CONF", "CEPH_ARGS", "CEPH_KEYRING", "HOME", "PATH", "TZ"}) {
        if (const char* const value = os::environment_variable(name); value != nullptr) {
            texts.push_back(std::string(name) + "=" + value);
        }
    }
    std::vector<char*> pointers;
    for (std::string& text : texts) {
        pointers.push_back(text.data());
    }
    pointers.push_back(nullptr);
    return pointers;
}

void sleep_on(const std::atomic<std::uint32_t>& word, std::uint32_t expected, std::uint64_t ns) noexcept
{
    const timespec time{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
    os::direct_call(SYS_futex, &word, FUTEX_WAIT, expected, &time, nullptr, 0);
}

/// poll() by a direct call: the program's own is a shim, which may be one of its acknowledgements.
int poll_one(int descriptor, short events, std::uint64_t ns) noexcept
{
    pollfd one{descriptor, events, 0};
    const timespec time{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
    return os::direct_call(SYS_ppoll, &one, 1, &time, nullptr, sizeof(std::uint64_t)) > 0 ? one.revents : 0;
}

}  // namespace

Result<std::string> find_agent()
{
    const std::string folder = own_folder();
    for (const std::string_view place :
         {"/", "/stillpoint/", "/../bin/", "/../" STILLPOINT_LIBRARY_FOLDER "/stillpoint/", "/../lib/stillpoint/"}) {
        const std::string path = folder + std::string(place) + std::string(agent_name);
        if (!folder.empty() && access(path.c_str(), X_OK) == 0) {
            return path;
        }
    }
    return fail(SP_E_UNSUPPORTED, 0,
                "pools in Ceph need the program {}, which is not here: install the package stillpoint-rados, or build Stillpoint where "
                "the package librados-dev is installed",
                agent_name);
}

Result<std::unique_ptr<AgentLink>> AgentLink::open(const std::string& agent, const OpenRequest& request, OpenReply& reply)
{
    std::unique_ptr<AgentLink> link(new AgentLink);
    if (auto started = link->start(agent, request.mode == Mode::standby); !started) {
        return pass_on(started.error());
    }
    const auto answer = link->converse(request);
    if (!answer) {
        return pass_on(answer.error());
    }
    reply = *answer;
    if (reply.outcome.code != 0) {
        return pass_on(failure_in(reply.outcome));
    }
    return link;
}

Result<void> AgentLink::start(const std::string& agent, bool keep_memory)
{
    int ends[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return fail(SP_E_IO, errno, "no socket for {}: {}", agent, describe_errno(errno));
    }
    socket_ = os::Descriptor{ends[0]};
    const os::Descriptor far_end{ends[1]};
    os::Descriptor memory{memfd_create("stillpoint-rados", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
    const os::Descriptor program{static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0))};
    if (!memory.valid() || !program.valid() || ftruncate(memory.get(), memory_bytes) != 0 ||
        fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        return fail(SP_E_NO_MEMORY, errno, "no memory to share with {}: {}", agent, describe_errno(errno));
    }
    void* const mapped = os::map_own(nullptr, memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
    if (mapped == MAP_FAILED) {
        return fail(SP_E_NO_MEMORY, errno, "no memory to share with {}: {}", agent, describe_errno(errno));
    }
    state_ = static_cast<SharedState*>(mapped);
    state_->magic = protocol_magic;
    state_->version = protocol_version;
    std::string name{agent_name};
    char* const arguments[] = {name.data(), nullptr};
    std::vector<std::string> texts;
    const std::vector<char*> environment = environment_of_agent(texts);
    const int descriptors[] = {far_end.get(), memory.get(), program.get()};
    if (const int error = os::start_detached({agent.c_str(), arguments, environment.data(), descriptors}); error != 0) {
        return fail(SP_E_UNSUPPORTED, error, "{} cannot be started: {}", agent, describe_errno(error));
    }
    socket_.claim();
    if (keep_memory) {
        memory_ = std::move(memory);
    }
    return {};
}

Result<OpenReply> AgentLink::converse(const OpenRequest& request)
{
    if (os::direct_call(SYS_sendto, socket_.get(), &request, sizeof request, MSG_NOSIGNAL, nullptr, 0) != sizeof request) {
        return pass_on(end_of_agent());
    }
    const std::uint64_t deadline_ns = os::monotonic_ns() + (std::uint64_t{request.timeout_ms} + request.lease_ms) * 1'000'000 + grace_ns;
    while (!can_receive(look_again_ns)) {
        if (os::monotonic_ns() > deadline_ns) {
            return fail(SP_E_TIMED_OUT, 0, "{} does not answer; see `ceph status`", agent_name);
        }
    }
    return receive_reply();
}

bool AgentLink::can_receive(std::uint64_t ns) noexcept { return (poll_one(socket_.get(), POLLIN, ns) & (POLLIN | POLLHUP)) != 0; }

Result<OpenReply> AgentLink::receive_reply()
{
    OpenReply reply{};
    const long got = os::direct_call(SYS_recvfrom, socket_.get(), &reply, sizeof reply, MSG_DONTWAIT | MSG_TRUNC, nullptr, nullptr);
    if (got <= 0) {
        return pass_on(end_of_agent());
    }
    const char* const fault = got == sizeof reply ? fault_in(reply) : "its reply has another length";
    if (fault != nullptr) {
        return fail(SP_E_IO, 0, "{} is no agent of this library: {}; install both from one version", agent_name, fault);
    }
    return reply;
}

AgentLink::~AgentLink()
{
    if (state_ != nullptr && !detached_) {
        os::unmap_own(state_, memory_bytes);
    }
}

Failure AgentLink::end_of_agent() const noexcept
{
    return fail(SP_E_IO, 0,
                "{}, which talks to the Ceph cluster for this program, has ended: nothing is acknowledged any more; restart the program",
                agent_name)
        .value();
}

bool AgentLink::has_ended() noexcept { return (poll_one(socket_.get(), POLLRDHUP, 0) & (POLLHUP | POLLRDHUP | POLLERR)) != 0; }

Result<void> AgentLink::request(std::uint32_t number) noexcept
{
    Slot& slot = state_->slots[number];
    slot.zero = 0;
    slot.outcome.code = 0;
    slot.state.store(static_cast<std::uint32_t>(SlotState::requested), std::memory_order_release);
    const SlotMessage message{protocol_magic, number};
    long sent = 0;
    do {
        sent = os::direct_call(SYS_sendto, socket_.get(), &message, sizeof message, MSG_NOSIGNAL, nullptr, 0);
    } while (sent < 0 && errno == EINTR);
    if (sent != sizeof message) {
        slot.state.store(static_cast<std::uint32_t>(SlotState::free), std::memory_order_release);
        return pass_on(end_of_agent());
    }
    return {};
}

bool AgentLink::is_done(std::uint32_t number) noexcept
{
    return state_->slots[number].state.load(std::memory_order_acquire) == static_cast<std::uint32_t>(SlotState::done);
}

bool AgentLink::await(std::uint32_t number, std::uint64_t deadline_ns) noexcept
{
    const Slot& slot = state_->slots[number];
    while (slot.state.load(std::memory_order_acquire) == static_cast<std::uint32_t>(SlotState::requested)) {
        const std::uint64_t now_ns = os::monotonic_ns();
        if (now_ns >= deadline_ns) {
            return true;
        }
        sleep_on(slot.state, static_cast<std::uint32_t>(SlotState::requested), std::min(look_again_ns, deadline_ns - now_ns));
        if (slot.state.load(std::memory_order_acquire) == static_cast<std::uint32_t>(SlotState::requested) && has_ended()) {
            return slot.state.load(std::memory_order_acquire) == static_cast<std::uint32_t>(SlotState::done);
        }
    }
    return true;
}

Result<void> AgentLink::finish(std::uint32_t number) noexcept
{
    Slot& slot = state_->slots[number];
    const bool is_answered = await(number);
    const Failure failure = is_answered ? failure_in(slot.outcome) : end_of_agent();
    const bool is_well = is_answered && slot.outcome.code == 0;
    slot.state.store(static_cast<std::uint32_t>(SlotState::free), std::memory_order_release);
    return is_well ? Result<void>{} : Result<void>{pass_on(failure)};
}

Result<void> AgentLink::check_ownership() noexcept
{
    for (;;) {
        if (state_->is_lost.load(std::memory_order_acquire) != 0) {
            return pass_on(failure_in(state_->loss));
        }
        const std::uint64_t until_ns = state_->lease_until_ns.load(std::memory_order_acquire);
        if (until_ns == 0 || os::monotonic_ns() < until_ns) {
            return {};
        }
        if (has_ended()) {
            return pass_on(end_of_agent());
        }
        sleep_on(state_->is_lost, 0, look_again_ns / 10);
    }
}

void AgentLink::detach_after_fork() noexcept
{
    socket_.reset();
    detached_ = true;
}

}  // namespace stillpoint::rados
