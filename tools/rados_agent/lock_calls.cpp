#include "lock_calls.hpp"

#include <cstring>

namespace stillpoint::rados {

namespace {

constexpr std::uint8_t may_renew = 1;

/// Little-endian, as Ceph's encoding is on every machine.
void put(std::string& to, std::uint64_t value, std::size_t bytes)
{
    for (std::size_t i = 0; i < bytes; ++i) {
        to += static_cast<char>(value >> (8 * i) & 0xff);
    }
}

void put(std::string& to, std::string_view text)
{
    put(to, text.size(), 4);
    to += text;
}

/// With the version of the structure, the oldest that can read it, and its length.
std::string framed(const std::string& content)
{
    std::string result;
    put(result, 1, 1);
    put(result, 1, 1);
    put(result, content);
    return result;
}

class Reader {
public:
    explicit Reader(std::string_view bytes) noexcept : rest_(bytes) {}

    std::uint64_t number(std::size_t bytes) noexcept
    {
        const std::string_view taken = take(bytes);
        std::uint64_t value = 0;
        for (std::size_t i = 0; i < taken.size(); ++i) {
            value |= std::uint64_t{static_cast<unsigned char>(taken[i])} << (8 * i);
        }
        return value;
    }
    std::string_view text() noexcept { return take(number(4)); }
    /// The content of a framed structure.
    std::string_view frame() noexcept
    {
        number(1);
        const std::uint64_t oldest_reader = number(1);
        is_sound_ = is_sound_ && oldest_reader == 1;
        return text();
    }
    [[nodiscard]] bool is_sound() const noexcept { return is_sound_; }

private:
    std::string_view take(std::uint64_t bytes) noexcept
    {
        if (!is_sound_ || bytes > rest_.size()) {
            is_sound_ = false;
            return {};
        }
        const std::string_view taken = rest_.substr(0, bytes);
        rest_.remove_prefix(bytes);
        return taken;
    }
    std::string_view rest_;
    bool is_sound_ = true;
};

}  // namespace

std::string lock_message(const LockRequest& request)
{
    std::string content;
    put(content, request.name);
    put(content, static_cast<std::uint8_t>(request.type), 1);
    put(content, request.cookie);
    put(content, std::string_view{});  // no tag
    put(content, request.description);
    put(content, request.lease_ms / 1000, 4);
    put(content, request.lease_ms % 1000 * 1'000'000, 4);
    put(content, may_renew, 1);
    return framed(content);
}

std::string unlock_message(std::string_view name, std::string_view cookie)
{
    std::string content;
    put(content, name);
    put(content, cookie);
    return framed(content);
}

std::string break_message(std::string_view name, const Locker& locker)
{
    std::string content;
    put(content, name);
    put(content, locker.entity_type, 1);
    put(content, locker.entity_number, 8);
    put(content, locker.cookie);
    return framed(content);
}

std::string info_message(std::string_view name)
{
    std::string content;
    put(content, name);
    return framed(content);
}

std::optional<LockState> lock_state_in(std::string_view reply)
{
    Reader outer(reply);
    Reader reader(outer.frame());
    LockState state;
    const std::uint64_t count = reader.number(4);
    for (std::uint64_t i = 0; i < count && outer.is_sound() && reader.is_sound(); ++i) {
        Reader id(reader.frame());
        Locker locker;
        locker.entity_type = static_cast<std::uint8_t>(id.number(1));
        locker.entity_number = id.number(8);
        locker.cookie = id.text();
        Reader facts(reader.frame());
        locker.expires_s = static_cast<std::uint32_t>(facts.number(4));
        if (!id.is_sound() || !facts.is_sound()) {
            return std::nullopt;
        }
        state.lockers.push_back(std::move(locker));
    }
    state.type = static_cast<LockType>(reader.number(1));
    return outer.is_sound() && reader.is_sound() ? std::optional(state) : std::nullopt;
}

}  // namespace stillpoint::rados
