#include "lint.hpp"

#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/registry.hpp"
#include "api/session.hpp"
#include "lint_memory.hpp"
#include "lint_target.hpp"
#include "os/descriptor.hpp"
#include "os/elf_section.hpp"
#include "os/environment.hpp"
#include "os/futex.hpp"
#include "os/log.hpp"
#include "runtime/fase.hpp"
#include "stillpoint/stillpoint.h"

namespace stillpoint::lint {

constinit std::atomic<State> state{State::undecided};

namespace {

struct Range {
    std::uintptr_t begin;
    std::uintptr_t end;
};

constexpr std::size_t globals_max = 128;

// Written once, before `state` is on.
Report* report = nullptr;
const EngineRules* rules = nullptr;  ///< nullptr: those of FASEs
pid_t owner = 0;
Range globals[globals_max];
std::size_t global_count = 0;

void find_globals()
{
    static os::LoadedSection sections[globals_max];
    const std::size_t found = os::find_sections("sp_persistent", sections, globals_max);
    for (std::size_t index = 0; index < found; ++index) {
        const auto begin = reinterpret_cast<std::uintptr_t>(sections[index].memory);
        globals[global_count++] = {begin, begin + sections[index].size};
    }
}

constexpr Reporter reporter{&add, &program_caller};

/// The report that `stillpoint lint` has made, or nullptr.
Report* map_report(const char* path)
{
    const os::Descriptor file(open(path, O_RDWR | O_CLOEXEC));
    struct stat status{};
    if (!file.valid() || fstat(file.get(), &status) != 0 || status.st_size != static_cast<off_t>(sizeof(Report))) {
        return nullptr;
    }
    void* const memory = mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    auto* const mapped = memory == MAP_FAILED ? nullptr : static_cast<Report*>(memory);
    return mapped != nullptr && mapped->magic == report_magic ? mapped : nullptr;
}

/// At the orderly end: what the hooks have not seen.
void look_at_memory(const Heap& heap) noexcept
{
    if (getpid() == owner) {
        if (rules != nullptr) {
            rules->observer->ends();
        }
        find_pointers(heap, *report);
    }
}

State look_for_report()
{
    const char* const path = os::environment_variable(report_variable);
    if (path == nullptr || *path == '\0') {
        return State::off;
    }
    if (sp_start_kind() == SP_START_VOLATILE) {
        return State::off;  // a program that the linted one has started
    }
    report = map_report(path);
    if (report == nullptr) {
        os::log(os::Severity::warning, "{} names {}, which is not a report: nothing is checked", report_variable, path);
        return State::off;
    }
    const EngineDriver* const engine = find_engine({report->engine, strnlen(report->engine, sizeof report->engine)});
    rules = engine != nullptr && engine->lint.observer != nullptr ? &engine->lint : nullptr;
    owner = getpid();
    find_globals();
    set_session_end_hook(&look_at_memory);
    if (rules != nullptr) {
        rules->observer->begin(reporter);
    }
    report->attached.store(1, std::memory_order_relaxed);
    return State::on;
}

/// True while this thread is in here: a signal's handler that comes meanwhile must not wait for a lock that its own
/// thread holds. What it stores is counted as lost.
constinit thread_local bool is_busy [[gnu::tls_model("initial-exec")]] = false;

bool is_about_code(Kind kind)
{
    return kind >= Kind::first_of_engine &&
           rules->kinds[static_cast<std::uint32_t>(kind) - static_cast<std::uint32_t>(Kind::first_of_engine)].detail == Detail::code;
}

void fill(Place& place, const Finding& finding)
{
    place.kind = finding.kind;
    place.address = reinterpret_cast<std::uint64_t>(finding.address);
    place.size = finding.size;
    place.value = finding.value;
    if (is_about_code(finding.kind)) {
        place.target_spot = spot_of(finding.value, *report);
    } else if (finding.kind == Kind::pointer || finding.kind == Kind::possible_pointer) {
        const TargetFacts facts = facts_of_target(finding.value, __builtin_frame_address(0), *report);
        place.target = facts.target;
        place.target_spot = facts.spot;
    }
    if (finding.name != nullptr) {
        std::strncpy(place.name, finding.name, sizeof place.name - 1);
    }
    place.frame_count = call_stack(finding.caller, place.frames, frames_max, *report);
    place.ready.store(1, std::memory_order_release);
}

/// The word that this thread recorded as possible last: note_pointer() comes next, if the word was stored as a pointer.
struct LastPossiblePointer {
    const void* location;
    Place* place;
};
constinit thread_local LastPossiblePointer last_possible_pointer [[gnu::tls_model("initial-exec")]] = {nullptr, nullptr};

}  // namespace

const Observer* observer() noexcept { return rules == nullptr ? nullptr : rules->observer; }

Place* add(const Finding& finding) noexcept
{
    if (getpid() != owner) {
        return nullptr;  // A child made by fork: its memory is not durable.
    }
    if (is_busy) {
        report->lost.fetch_add(1, std::memory_order_relaxed);
        return nullptr;
    }
    is_busy = true;
    bool is_new = false;
    constexpr std::uint64_t scatter = 0x9e3779b97f4a7c15ULL;
    const std::uint64_t where = reinterpret_cast<std::uint64_t>(finding.caller) + reinterpret_cast<std::uint64_t>(finding.outer) * scatter;
    const auto key = (where << kind_bits) | static_cast<std::uint64_t>(finding.kind);
    Place* const place = place_of(*report, key, is_new);
    if (place != nullptr && is_new) {
        fill(*place, finding);
    }
    is_busy = false;
    return place;
}

bool decide() noexcept
{
    static constinit os::FutexLock lock;
    if (is_busy) {
        return false;
    }
    is_busy = true;
    lock.lock();
    if (state.load(std::memory_order_relaxed) == State::undecided) {
        state.store(look_for_report(), std::memory_order_release);
    }
    lock.unlock();
    is_busy = false;
    return state.load(std::memory_order_relaxed) == State::on;
}

bool is_in_durable_global(const void* address) noexcept
{
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    for (std::size_t index = 0; index < global_count; ++index) {
        if (at >= globals[index].begin && at < globals[index].end) {
            return true;
        }
    }
    return false;
}

void note_write(const void* address, std::size_t size_bytes, const void* caller) noexcept
{
    if (rules != nullptr) {
        rules->observer->written(address, size_bytes, caller);
    } else if (!inside_fase()) {
        add({Kind::store, address, size_bytes, 0, caller, nullptr, nullptr});
    }
    visit_volatile_addresses(address, size_bytes, [&](const std::uint64_t* word, std::uint64_t value) {
        remember(word);
        last_possible_pointer = {word, add({Kind::possible_pointer, word, sizeof *word, value, caller, nullptr, nullptr})};
    });
}

void note_pointer(const void* location, const void* value, const void* caller) noexcept
{
    if (last_possible_pointer.location == location && last_possible_pointer.place != nullptr) {
        last_possible_pointer.place->count.fetch_sub(1, std::memory_order_relaxed);
        last_possible_pointer = {nullptr, nullptr};
    }
    const auto address = reinterpret_cast<std::uint64_t>(value);
    if (may_be_volatile(address)) {
        remember(location);
        add({Kind::pointer, location, sizeof value, address, caller, nullptr, nullptr});
    }
}

}  // namespace stillpoint::lint
