#pragma once
// The interface between `stillpoint lint` and an engine whose programs keep rules of their own instead of those of FASEs: the hooks'
// runtime tells the engine's observer what the program does, and the observer adds findings to the report. Threads: any. No malloc.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/lint_report.hpp"

namespace stillpoint::lint {

struct Finding {
    Kind kind;
    const void* address;
    std::size_t size;
    std::uint64_t value;  ///< the pointer; with Detail::code the code
    const void* caller;  ///< the code that did it returns there
    const char* name;  ///< with Detail::function
    const void* outer;  ///< where two calls are told apart by the caller of `caller`; else nullptr
};

/// The functions of the hooks' runtime for an observer.
struct Reporter {
    /// Counts the finding at its place, which it returns; nullptr where it is not counted: in a child made by fork, or in a handler of a
    /// signal that came while the thread was in there.
    Place* (*add)(const Finding& finding) noexcept;
    /// The innermost return address of the calling thread that lies in the program; or the one `outwards` beyond it.
    const void* (*program_caller)(unsigned outwards) noexcept;
};

/// The calls that an engine gets of a program that is linted. `caller`: the code that did it returns there.
struct Observer {
    /// Once, before the others.
    void (*begin)(const Reporter& reporter) noexcept;
    /// The bytes are about to be read, and were written.
    void (*read)(const void* address, std::size_t size_bytes, const void* caller) noexcept;
    void (*written)(const void* address, std::size_t size_bytes, const void* caller) noexcept;
    /// `function` is about to be called.
    void (*blocking_call)(const char* function, std::uintptr_t first_argument, const void* caller) noexcept;
    /// The calling thread ends the program.
    void (*ends)() noexcept;
};

/// The fact that a finding names besides its place.
enum class Detail : std::uint8_t {
    none,
    code,  ///< Finding::value is a return address: of what came before
    function,  ///< Finding::name is the function that is called
};

/// The words for a kind of finding.
struct KindWords {
    std::string_view headline;
    std::string_view in_json;
    std::string_view remedy;  ///< what to do; empty: the headline says it
    Detail detail = Detail::none;
    std::string_view detail_headline = {};  ///< comes before the detail
    std::string_view detail_in_json = {};
};

/// The rules of an engine's programs. The kinds of its findings are `engine_kind(i)` for each row i of `kinds`.
struct EngineRules {
    std::string_view layer;  ///< of NVHooks (layers/), which such programs are compiled for; linted, they get this engine. Empty: no rules
    std::string_view headers;  ///< in paths of the engine's headers: their inline functions stand for the program's line that calls them
    std::span<const KindWords> kinds = {};
    const Observer* observer = nullptr;
};

}  // namespace stillpoint::lint
