#pragma once
// The report of the runtime to `stillpoint lint`: a file that both map, so that nothing is lost when the program crashes.
//
// The tool makes the file, of LintReport's size and all zeroes but for the magic, and names it in the variable below.
// Numbers are the machine's own: both ends run on it. Places are found by their key (open addressing).
// A program is checked against the rules of FASEs, or against those of an engine (runtime/lint_rules.hpp).

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace stillpoint::lint {

inline constexpr const char* report_variable = "STILLPOINT_LINT_REPORT";

inline constexpr std::uint64_t report_magic = 0x32544e494c505300;  // "\0SPLINT2"
inline constexpr std::size_t places_max = 8192;   ///< a power of two
inline constexpr std::size_t modules_max = 256;
inline constexpr std::size_t frames_max = 24;
inline constexpr std::uint16_t no_module = 0xffff;

enum class Kind : std::uint32_t {
    store = 1,             ///< a durable store outside a FASE
    pointer = 2,           ///< a pointer to volatile memory, in durable memory
    possible_pointer = 3,  ///< a word that may be one: it was not stored as a pointer
    found_pointer = 4,     ///< the same, found in durable memory at the end: no hook saw its store
    first_of_engine = 5,   ///< this and those after it: by the rows of EngineRules::kinds
};
inline constexpr unsigned kind_bits = 4;
inline constexpr std::size_t engine_kinds_max = (std::size_t{1} << kind_bits) - static_cast<std::size_t>(Kind::first_of_engine);

/// The kind that row `row` of an engine's table stands for.
[[nodiscard]] constexpr Kind engine_kind(std::uint32_t row) noexcept
{
    return static_cast<Kind>(static_cast<std::uint32_t>(Kind::first_of_engine) + row);
}

/// The target of a pointer.
enum class Target : std::uint32_t { none, own_stack, heap, code, data, constant, file, anonymous, unmapped };

/// An address in a loaded module, as its file counts them: the same in every run.
struct ModuleAddress {
    std::uint64_t offset;  ///< from where the module was loaded; the address itself with no_module
    std::uint16_t module;
};

struct Place {
    std::atomic<std::uint64_t> key;    ///< 0: free
    std::atomic<std::uint64_t> count;
    std::atomic<std::uint32_t> ready;  ///< 1: what follows is complete
    Kind kind;
    // About the first time:
    std::uint64_t address;  ///< of the store
    std::uint64_t size;     ///< in bytes; of the block, with found_pointer
    std::uint64_t block_offset;  ///< of the word in its block, with found_pointer
    std::uint64_t value;    ///< of the pointer
    Target target;
    std::uint32_t frame_count;
    ModuleAddress target_spot;       ///< with Target::code, data and constant; of the code, with Detail::code
    char name[40];          ///< of the function that is called, with Detail::function
    ModuleAddress frames[frames_max];  ///< return addresses, innermost first; none with found_pointer
};

struct Module {
    char path[512];  ///< of the file, zero-terminated
};

struct Report {
    std::uint64_t magic;
    char engine[32];                          ///< whose rules are checked, zero-terminated; "": those of FASEs. The tool's choice
    std::atomic<std::uint32_t> attached;      ///< 1: the runtime has found the report
    std::atomic<std::uint32_t> module_count;
    std::atomic<std::uint64_t> lost;          ///< findings for which there was no place left
    Module modules[modules_max];
    Place places[places_max];
};

}  // namespace stillpoint::lint
