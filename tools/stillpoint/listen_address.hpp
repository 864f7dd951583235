#pragma once
// The address that a server of the command listens on.

#include <cstdint>
#include <string>

#include <tl/expected.hpp>

namespace stillpoint::tool {

struct ListenAddress {
    std::string host;  ///< in numbers
    std::uint16_t port = 0;
};

/// "127.0.0.1:9742", "[::1]:9742", ":9742" (this machine only). An error is the text for the user.
[[nodiscard]] tl::expected<ListenAddress, std::string> parse_listen_address(const std::string& text);

/// The address and port of an open socket, in the same form.
[[nodiscard]] std::string address_of_socket(int socket);

}  // namespace stillpoint::tool
