#pragma once
// One connection of the load generator: requests go out, replies come back in the same order. Memory is bounded: a
// fixed buffer for replies, and as many requests in flight as the pipeline is deep.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "protocol.hpp"

namespace bench {

class Connection {
public:
    /// Connects; ends the process with a message where that fails.
    Connection(const std::string& host, std::uint16_t port, Protocol protocol, std::size_t value_bytes, unsigned depth);
    ~Connection();
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
    [[nodiscard]] bool has_room() const noexcept { return in_flight_ < pending_.size(); }
    [[nodiscard]] bool wants_to_send() const noexcept { return sent_ < output_.size(); }

    /// Takes a request; it leaves with flush().
    void queue(const Request& request, std::uint64_t version);
    /// Sends as much as the socket takes.
    void flush();
    /// Takes what has come, once. Ends the process if the server closed the connection.
    void receive();
    /// Takes the next reply out of what has come: false if none is whole. Ends the process with a message on a wrong one.
    bool next_reply(Request& request, Reply::Kind& kind);

private:
    int descriptor_ = -1;
    Protocol protocol_;
    std::size_t value_bytes_;
    std::vector<Request> pending_;  ///< a ring: those in flight, oldest first
    std::size_t oldest_ = 0;
    std::size_t in_flight_ = 0;
    std::string output_;
    std::size_t sent_ = 0;
    std::vector<char> input_;
    std::size_t begin_ = 0;  ///< of what is not parsed yet
    std::size_t end_ = 0;
};

}  // namespace bench
