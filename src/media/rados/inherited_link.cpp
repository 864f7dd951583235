// The link of a standby, which waits in one process image and is used in the next: the process keeps its number and its open descriptors
// over exec, and a variable says which they are.

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/formatted.hpp"
#include "media/errno_text.hpp"
#include "media/rados/agent_link.hpp"
#include "os/environment.hpp"
#include "os/own_mappings.hpp"

namespace stillpoint::rados {

namespace {

constexpr const char* variable = "STILLPOINT_RADOS_STANDBY";
/// No program meets it that counts from 3 upwards.
constexpr int first_number = 500;

struct Left {
    int socket = -1;
    int memory = -1;
    std::uint64_t size_bytes = 0;
    std::uint32_t replicas = 0;
    std::uint32_t is_erasure_coded = 0;
    std::string_view path;
};

/// False: the text does not begin with a number and a space.
template <class Number>
bool take_number(std::string_view& text, Number& number)
{
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
    if (parsed.ec != std::errc{} || parsed.ptr == text.data() + text.size() || *parsed.ptr != ' ') {
        return false;
    }
    text.remove_prefix(static_cast<std::size_t>(parsed.ptr - text.data()) + 1);
    return true;
}

bool parse(std::string_view text, Left& left)
{
    const bool is_sound = take_number(text, left.socket) && take_number(text, left.memory) && take_number(text, left.size_bytes) &&
                          take_number(text, left.replicas) && take_number(text, left.is_erasure_coded);
    left.path = text;
    return is_sound && left.socket >= 0 && left.memory >= 0;
}

/// The numbers may be those of other files by now, in a program that closes what it did not open.
bool are_a_link(const Left& left)
{
    int type = 0;
    socklen_t bytes = sizeof type;
    struct stat facts{};
    return getsockopt(left.socket, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0 && type == SOCK_SEQPACKET && fstat(left.memory, &facts) == 0 &&
           facts.st_size == static_cast<off_t>(memory_bytes) && (fcntl(left.memory, F_GET_SEALS) & F_SEAL_SHRINK) != 0;
}

}  // namespace

Result<bool> AgentLink::await_second_reply(OpenReply& reply, std::uint64_t ns) noexcept
{
    if (!can_receive(ns)) {
        return false;
    }
    const auto received = receive_reply();
    if (!received) {
        return pass_on(received.error());
    }
    reply = *received;
    return reply.outcome.code == 0 ? Result<bool>{true} : Result<bool>{pass_on(failure_in(reply.outcome))};
}

Result<void> AgentLink::leave_to_program(std::string_view path, const OpenReply& reply)
{
    // Without the flag that closes them at exec, which the claimed ones have.
    const int socket = fcntl(socket_.get(), F_DUPFD, first_number);
    const int memory = fcntl(memory_.get(), F_DUPFD, first_number);
    if (socket < 0 || memory < 0) {
        return fail(SP_E_IO, errno, "the link to the cluster cannot be left to the program: {}", describe_errno(errno));
    }
    std::array<char, 2048> text{};
    const auto end = fmt::format_to_n(text.data(), text.size() - 1, "{} {} {} {} {} {}", socket, memory, reply.size_bytes, reply.replicas,
                                      reply.is_erasure_coded, path);
    if (end.size >= text.size() || setenv(variable, text.data(), 1) != 0) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "{} is too long", path);
    }
    return {};
}

std::unique_ptr<AgentLink> AgentLink::inherited(std::string_view path, bool keep, OpenReply& reply)
{
    const char* const text = os::environment_variable(variable);
    Left left;
    if (text == nullptr || !parse(text, left) || left.path != path || !are_a_link(left)) {
        return {};
    }
    reply = {};
    reply.magic = protocol_magic;
    reply.version = protocol_version;
    reply.size_bytes = left.size_bytes;
    reply.replicas = left.replicas;
    reply.is_erasure_coded = left.is_erasure_coded;
    void* const mapped = os::map_own(nullptr, memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, left.memory, 0);
    if (mapped == MAP_FAILED) {
        return {};
    }
    std::unique_ptr<AgentLink> link(new AgentLink);
    link->state_ = static_cast<SharedState*>(mapped);
    const bool is_sound = link->state_->magic == protocol_magic && link->state_->version == protocol_version && fault_in(reply) == nullptr;
    std::uint32_t adopter = 0;
    // One process has it, once: a second one, started by the same program, opens the pool as any other does.
    if (!is_sound || (keep ? !link->state_->adopter.compare_exchange_strong(adopter, static_cast<std::uint32_t>(getpid()))
                           : link->state_->adopter.load(std::memory_order_acquire) != 0)) {
        return {};
    }
    link->socket_ = os::Descriptor{fcntl(left.socket, F_DUPFD_CLOEXEC, first_number)};
    link->is_borrowed_ = !keep;
    if (keep) {
        link->socket_.claim();
        close(left.socket);
        close(left.memory);
    }
    return link;
}

}  // namespace stillpoint::rados
