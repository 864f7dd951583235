#include "lint.hpp"

#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lint_report.hpp"
#include "lint_target.hpp"
#include "os/descriptor.hpp"
#include "os/elf_section.hpp"
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

State look_for_report()
{
    const char* const path = std::getenv(report_variable);
    if (path == nullptr || *path == '\0') {
        return State::off;
    }
    if (sp_start_kind() == SP_START_VOLATILE) {
        return State::off;  // a program that the linted one has started
    }
    report = map_report(path);
    if (report == nullptr) {
        os::log(os::Severity::warning, "{} names {}, which is no report: nothing is looked for", report_variable, path);
        return State::off;
    }
    owner = getpid();
    find_globals();
    report->attached.store(1, std::memory_order_relaxed);
    return State::on;
}

std::uint64_t key_of(Kind kind, const void* caller)
{
    return (reinterpret_cast<std::uint64_t>(caller) << 2) | static_cast<std::uint64_t>(kind);
}

/// The place with this key, and whether the caller has to fill it; nullptr: there is no room left.
Place* place_of(std::uint64_t key, bool& is_new)
{
    constexpr std::size_t probes_max = 64;
    const std::size_t first = static_cast<std::size_t>((key * 0x9e3779b97f4a7c15ULL) >> 32);
    for (std::size_t probe = 0; probe < probes_max; ++probe) {
        Place& place = report->places[(first + probe) % places_max];
        std::uint64_t present = place.key.load(std::memory_order_relaxed);
        if (present == 0) {
            is_new = place.key.compare_exchange_strong(present, key, std::memory_order_relaxed);
            if (is_new) {
                return &place;
            }
        }
        if (present == key) {
            return &place;
        }
    }
    return nullptr;
}

struct Finding {
    Kind kind;
    const void* address;
    std::size_t size;
    std::uint64_t value;
    const void* caller;
};

void fill(Place& place, const Finding& finding)
{
    place.kind = finding.kind;
    place.address = reinterpret_cast<std::uint64_t>(finding.address);
    place.size = finding.size;
    place.value = finding.value;
    if (finding.kind != Kind::store) {
        const TargetFacts facts = facts_of_target(finding.value, __builtin_frame_address(0), *report);
        place.target = facts.target;
        place.target_spot = facts.spot;
    }
    place.frame_count = call_stack(finding.caller, place.frames, frames_max, *report);
    place.ready.store(1, std::memory_order_release);
}

/// Returns the finding's place, or nullptr where it is not counted.
Place* add(const Finding& finding)
{
    if (getpid() != owner) {
        return nullptr;  // A child made by fork: its memory is not durable.
    }
    bool is_new = false;
    Place* const place = place_of(key_of(finding.kind, finding.caller), is_new);
    if (place == nullptr) {
        report->lost.fetch_add(1, std::memory_order_relaxed);
        return nullptr;
    }
    place->count.fetch_add(1, std::memory_order_relaxed);
    if (is_new) {
        fill(*place, finding);
    }
    return place;
}

/// What this thread held for possible last: note_pointer() comes next, if the word was stored as a pointer.
struct LastPossible {
    const void* location;
    Place* place;
};
constinit thread_local LastPossible last_possible [[gnu::tls_model("initial-exec")]] = {nullptr, nullptr};

bool is_durable(std::uint64_t address)
{
    const void* const pointer = reinterpret_cast<const void*>(address);
    return stillpoint_is_persistent(pointer);
}

bool is_mapped(std::uint64_t address)
{
    constexpr std::uint64_t page_bytes = 4096;
    unsigned char is_resident = 0;
    return mincore(reinterpret_cast<void*>(address & ~(page_bytes - 1)), page_bytes, &is_resident) == 0;
}

}  // namespace

bool decide() noexcept
{
    static constinit os::FutexLock lock;
    lock.lock();
    if (state.load(std::memory_order_relaxed) == State::undecided) {
        state.store(look_for_report(), std::memory_order_release);
    }
    lock.unlock();
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
    if (!inside_fase()) {
        add({Kind::store, address, size_bytes, 0, caller});
    }
    constexpr std::uintptr_t word_bytes = sizeof(std::uint64_t);
    const auto begin = (reinterpret_cast<std::uintptr_t>(address) + word_bytes - 1) & ~(word_bytes - 1);
    const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(address) + size_bytes;
    for (std::uintptr_t at = begin; at + word_bytes <= end; at += word_bytes) {
        const auto* const word = reinterpret_cast<const std::uint64_t*>(at);
        const std::uint64_t value = __atomic_load_n(word, __ATOMIC_RELAXED);
        if (may_be_address(value) && !is_durable(value) && is_mapped(value)) {
            last_possible = {word, add({Kind::possible_pointer, word, word_bytes, value, caller})};
        }
    }
}

void note_pointer(const void* location, const void* value, const void* caller) noexcept
{
    if (last_possible.location == location && last_possible.place != nullptr) {
        last_possible.place->count.fetch_sub(1, std::memory_order_relaxed);
        last_possible = {nullptr, nullptr};
    }
    const auto address = reinterpret_cast<std::uint64_t>(value);
    if (may_be_address(address) && !is_durable(address)) {
        add({Kind::pointer, location, sizeof value, address, caller});
    }
}

}  // namespace stillpoint::lint
