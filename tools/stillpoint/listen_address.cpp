#include "listen_address.hpp"

#include <arpa/inet.h>
#include <charconv>
#include <netdb.h>
#include <sys/socket.h>

#include "output.hpp"

namespace stillpoint::tool {

namespace {

bool is_numeric(const std::string& host)
{
    in6_addr place{};
    return inet_pton(AF_INET, host.c_str(), &place) == 1 || inet_pton(AF_INET6, host.c_str(), &place) == 1;
}

}  // namespace

tl::expected<ListenAddress, std::string> parse_listen_address(const std::string& text)
{
    const std::size_t colon = text.rfind(':');
    if (colon == std::string::npos) {
        return tl::unexpected(std::string("an address and a port are needed, as 127.0.0.1:9742"));
    }
    ListenAddress address{text.substr(0, colon), 0};
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, address.port);
    if (error != std::errc{} || rest != end) {
        return tl::unexpected(std::string("the port is a number from 0 to 65535"));
    }
    if (address.host.empty()) {
        address.host = "127.0.0.1";
    }
    if (address.host.starts_with('[') && address.host.ends_with(']')) {
        address.host = address.host.substr(1, address.host.size() - 2);
    } else if (address.host.find(':') != std::string::npos) {
        return tl::unexpected(std::string("an IPv6 address stands in brackets, as [::1]:9742"));
    }
    if (!is_numeric(address.host)) {
        return tl::unexpected(text_of("\"{}\" is not an address in numbers, as 127.0.0.1 or [::1]", address.host));
    }
    return address;
}

std::string address_of_socket(int socket)
{
    sockaddr_storage place{};
    socklen_t size = sizeof place;
    char host[NI_MAXHOST];
    char port[NI_MAXSERV];
    if (getsockname(socket, reinterpret_cast<sockaddr*>(&place), &size) != 0 ||
        getnameinfo(reinterpret_cast<const sockaddr*>(&place), size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
        return "?";
    }
    return place.ss_family == AF_INET6 ? text_of("[{}]:{}", host, port) : text_of("{}:{}", host, port);
}

}  // namespace stillpoint::tool
