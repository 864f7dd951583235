#include "connection.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../harness/ending.hpp"

namespace bench {

namespace {

constexpr std::size_t input_bytes_min = 64 * 1024;

[[noreturn]] void lost(const char* what) { give_up(fmt::format("{}: {}", what, std::strerror(errno))); }

int connected(const std::string& host, std::uint16_t port)
{
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    if (inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) {
        give_up(fmt::format("{} is no IPv4 address", host));
    }
    const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int one = 1;
    if (descriptor < 0 || setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0) {
        lost("no socket can be made");
    }
    if (connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        give_up(fmt::format("no memcached answers at {}:{}: {}", host, port, std::strerror(errno)));
    }
    return descriptor;
}

}  // namespace

Connection::Connection(const std::string& host, std::uint16_t port, Protocol protocol, std::size_t value_bytes, unsigned depth)
    : descriptor_(connected(host, port)), protocol_(protocol), value_bytes_(value_bytes), pending_(depth),
      input_(std::max(input_bytes_min, 2 * (value_bytes + line_bytes_max)))
{
}

Connection::~Connection() { close(descriptor_); }

void Connection::queue(const Request& request, std::uint64_t version)
{
    pending_[(oldest_ + in_flight_) % pending_.size()] = request;
    ++in_flight_;
    append_request(output_, protocol_, request, value_bytes_, version);
}

void Connection::flush()
{
    while (wants_to_send()) {
        const ssize_t count = send(descriptor_, output_.data() + sent_, output_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count < 0) {
            if (errno == EAGAIN || errno == EINTR) {
                return;
            }
            lost("a request could not be sent");
        }
        sent_ += static_cast<std::size_t>(count);
    }
    output_.clear();
    sent_ = 0;
}

void Connection::receive()
{
    // The rest is less than one reply, so half of the buffer at most.
    std::memmove(input_.data(), input_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    const ssize_t count = recv(descriptor_, input_.data() + end_, input_.size() - end_, MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (count < 0) {
        lost("no reply could be read");
    }
    if (count == 0) {
        give_up("the server closed the connection");
    }
    end_ += static_cast<std::size_t>(count);
}

bool Connection::next_reply(Request& request, Reply::Kind& kind)
{
    const std::string_view input(input_.data() + begin_, end_ - begin_);
    if (input.empty()) {
        return false;
    }
    if (in_flight_ == 0) {
        give_up("the server sent something that was not asked for");
    }
    const Reply reply = parse_reply(input, protocol_, pending_[oldest_], value_bytes_);
    if (reply.kind == Reply::Kind::wrong) {
        give_up("a wrong reply: " + reply.fault);
    }
    if (reply.kind == Reply::Kind::incomplete) {
        return false;
    }
    begin_ += reply.bytes;
    request = pending_[oldest_];
    kind = reply.kind;
    oldest_ = (oldest_ + 1) % pending_.size();
    --in_flight_;
    return true;
}

}  // namespace bench
