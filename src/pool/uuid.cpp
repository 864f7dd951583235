#include "pool/uuid.hpp"

#include <sys/random.h>

#include <cerrno>
#include <cstring>
#include <iterator>

#include <fmt/core.h>

namespace stillpoint {

Result<Uuid> draw_uuid()
{
    Uuid uuid{};
    std::size_t filled = 0;
    while (filled < uuid.size()) {
        const ssize_t drawn = ::getrandom(uuid.data() + filled, uuid.size() - filled, 0);
        if (drawn < 0 && errno != EINTR) {
            return fail(SP_E_IO, errno, "getrandom for the pool's UUID: {}", std::strerror(errno));
        }
        filled += drawn > 0 ? static_cast<std::size_t>(drawn) : 0;
    }
    uuid[6] = static_cast<std::uint8_t>((uuid[6] & 0x0f) | 0x40);  // RFC 4122: version 4
    uuid[8] = static_cast<std::uint8_t>((uuid[8] & 0x3f) | 0x80);  // and its variant
    return uuid;
}

std::string to_text(const Uuid& uuid)
{
    std::string text;
    for (std::size_t i = 0; i < uuid.size(); ++i) {
        fmt::format_to(std::back_inserter(text), "{}{:02x}", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
    }
    return text;
}

}  // namespace stillpoint
