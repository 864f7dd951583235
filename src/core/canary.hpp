#pragma once
// Canaries: switches that take one flush, fence, sync, checksum or write out of the code, for the test that
// shows that the crash explorer notices (docs/internals/crash-explorer.md). The product is built without:
// is_removed() is then a constant, and nothing of it remains.
//
// A folder has its canaries in its canaries.inc, one row each; the build collects those of all folders (cmake/Layers.cmake):
//   STILLPOINT_CANARY(name, part of the name of the campaign that notices soonest, "what is taken out when it is removed")
// Campaigns of an engine begin with its name; rows in the engine's folder leave that out.
// A canary that no campaign of the explorer reaches has STILLPOINT_CANARY_TEST there: a test program of its own removes it.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#define STILLPOINT_CANARY_TEST "its own test"

namespace stillpoint {

enum class Canary : std::uint8_t {
#define STILLPOINT_CANARY(name, campaign, text) name,
#include "every_canary.inc"
#undef STILLPOINT_CANARY
};

// Two names for the linker: files built with the switches and files built without are linked together.
#if defined(STILLPOINT_CANARIES)
inline namespace with_canaries {
/// Whether this process runs without what the canary stands for.
[[nodiscard]] bool is_removed(Canary canary) noexcept;
/// Explored programs are small: what the product divides among threads from some size on is divided from a smaller one on.
[[nodiscard]] bool shares_are_small() noexcept;
}  // namespace with_canaries
#else
inline namespace without_canaries {
[[nodiscard]] constexpr bool is_removed(Canary) noexcept { return false; }
[[nodiscard]] constexpr bool shares_are_small() noexcept { return false; }
}  // namespace without_canaries
#endif

}  // namespace stillpoint
