#pragma once
// The head of a pool in RADOS: an attribute of its first object that says how its bytes are striped, how many there are and which process
// owns it. Each change compares the whole text with what the changer has read, in one operation: the text is the version, too.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stillpoint::rados {

inline constexpr const char* head_attribute = "stillpoint";

/// A process, so that others of its machine can tell whether it lives.
struct Identity {
    std::string host;
    std::string boot;        ///< of the kernel: differs after each start of the machine
    std::uint64_t space = 0; ///< the pid namespace: numbers are of one only
    std::uint64_t process = 0;
    std::uint64_t started = 0;  ///< in clock ticks since the machine's start
    std::uint64_t agent = 0;
    std::uint64_t agent_started = 0;
};

struct Head {
    static constexpr std::uint64_t layout_known = 1;

    std::uint64_t layout = layout_known;
    std::uint64_t object_bytes = 0;
    std::uint64_t size_bytes = 0;
    bool is_published = false;
    std::uint64_t generation = 0;  ///< how many owners there were
    std::uint64_t writer = 0;  ///< the number of the process that has claimed the pool last and that no other has opened since; 0: none
    std::string address;  ///< of the owner's client, as the cluster's block list takes it; empty: it ended in order
    Identity owner;

    [[nodiscard]] std::string text() const;
    /// Nothing where the text is malformed. A newer layout is not: the caller refuses it by its number.
    [[nodiscard]] static std::optional<Head> parse(std::string_view text);
};

/// This process, and the program `process` that it works for.
[[nodiscard]] Identity own_identity(std::uint64_t process);
enum class Life { unknown, dead, alive };
/// Whether the program, or its agent, lives; `unknown` where it cannot be seen from here.
[[nodiscard]] Life life_of_program(const Identity& identity, const Identity& own);
[[nodiscard]] Life life_of_agent(const Identity& identity, const Identity& own);
/// "process 12 on host".
[[nodiscard]] std::string name_of(const Identity& identity);

}  // namespace stillpoint::rados
