#pragma once
// The messages of Ceph's class "lock" (cls_lock in its source), which librados can send as a part of a larger operation only as bytes:
// a write that takes effect if this client holds the lock, and not otherwise, is one operation.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stillpoint::rados {

inline constexpr const char* lock_class = "lock";
enum class LockType : std::uint8_t { none = 0, exclusive = 1, shared = 2 };

struct LockRequest {
    LockType type = LockType::exclusive;
    std::string_view name;
    std::string_view cookie;
    std::string_view description;
    std::uint32_t lease_ms = 0;
};

/// One holder of a lock: a client, and what it calls its hold.
struct Locker {
    std::uint8_t entity_type = 0;
    std::uint64_t entity_number = 0;
    std::string cookie;
    std::uint32_t expires_s = 0;  ///< by the clock of the object's OSD; 0: never
};
struct LockState {
    LockType type = LockType::none;
    std::vector<Locker> lockers;
};

/// "lock": takes the lock, or renews it.
[[nodiscard]] std::string lock_message(const LockRequest& request);
/// "unlock".
[[nodiscard]] std::string unlock_message(std::string_view name, std::string_view cookie);
/// "break_lock".
[[nodiscard]] std::string break_message(std::string_view name, const Locker& locker);
/// "get_info".
[[nodiscard]] std::string info_message(std::string_view name);
/// The reply to "get_info"; nothing where it is malformed.
[[nodiscard]] std::optional<LockState> lock_state_in(std::string_view reply);

}  // namespace stillpoint::rados
