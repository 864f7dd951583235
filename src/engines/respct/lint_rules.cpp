#include "engines/respct/lint_rules.hpp"

#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <pthread.h>
#include <string_view>
#include <sys/stat.h>

#include "core/logged_words.hpp"
#include "engines/respct/checks.hpp"
#include "engines/respct/lint_intervals.hpp"
#include "heap/heap_layout.hpp"
#include "runtime/fase.hpp"
#include "runtime/fase_gate.hpp"
#include "runtime/held_locks.hpp"
#include "runtime/session_state.hpp"

namespace stillpoint::respct {

namespace {

using namespace lint_notes;

namespace member_kinds = heap::member_kind;

namespace kinds {
constexpr lint::Kind unlogged = lint::engine_kind(0);
constexpr lint::Kind untracked = lint::engine_kind(1);
constexpr lint::Kind restart_point_in_section = lint::engine_kind(2);
constexpr lint::Kind blocking_call = lint::engine_kind(3);
constexpr lint::Kind store_at_restart_point = lint::engine_kind(4);
}  // namespace kinds

constexpr lint::KindWords words[] = {
    {"durable store that needs logging", "store-needs-logging",
     "a thread that continues at that restart point after a crash may read the new value: make it a logged<T>, or write it before it is read",
     lint::Detail::code, "read first, after a restart point, by", "read_at"},
    {"durable store that is not tracked", "store-not-tracked",
     "no add_modified of it before the thread's next restart point, so a crash may lose it: call it after the store, or make it a logged<T>"},
    {"restart point inside a critical section", "restart-point-in-section",
     "a crash would bring back half of the section: release the lock before the restart point"},
    {"blocking call between restart points", "blocking-call",
     "it holds every checkpoint off: put it between the calls checkpoint_allow and checkpoint_prevent (C++: blocking_call; for a condition, "
     "critical_section::wait)",
     lint::Detail::function, "calls", "calls"},
    {"durable store at a restart point", "store-at-restart-point",
     "a checkpoint may be taken in the middle: store after checkpoint_prevent, or after the thread's first call of the engine"},
};
static_assert(std::size(words) <= lint::engine_kinds_max);

lint::Reporter reporter;  // Written once, before the first note.

constinit thread_local Interval* own [[gnu::tls_model("initial-exec")]] = nullptr;
constinit thread_local bool has_ended [[gnu::tls_model("initial-exec")]] = false;
pthread_key_t end_of_thread;

/// Where the calling thread's notes go, while it lasts.
class Notes {
public:
    Notes() noexcept
    {
        if (own == nullptr && !has_ended) {
            own = Interval::make();
            pthread_setspecific(end_of_thread, own);
        }
        is_free_ = own != nullptr && !own->is_busy;
        if (is_free_) {
            own->is_busy = true;
        }
    }
    ~Notes()
    {
        if (is_free_) {
            own->is_busy = false;
        }
    }
    Notes(const Notes&) = delete;
    Notes& operator=(const Notes&) = delete;

    /// False in a handler of a signal that came while the thread was in here.
    explicit operator bool() const noexcept { return is_free_; }
    Interval* operator->() const noexcept { return own; }

private:
    bool is_free_;
};

/// Whether the byte belongs to a logged variable.
bool is_logged(std::uintptr_t address) noexcept
{
    const Session* const session = open_session();
    if (session == nullptr) {
        return false;
    }
    for (unsigned kind = 0; kind < logged::kinds; ++kind) {
        const std::uintptr_t begin = address & ~(logged::total_bytes(kind) - 1);
        if (session->heap->is_member(reinterpret_cast<const void*>(begin), kind)) {
            return true;
        }
    }
    return false;
}

/// Which bytes of a word belong to one-word locks: recovery frees them, whatever they hold.
std::uint8_t lock_bytes_of(std::uintptr_t word) noexcept
{
    const Session* const session = open_session();
    std::uint8_t found = 0;
    for (std::uintptr_t half = 0; session != nullptr && half < word_bytes; half += heap::word_lock_bytes) {
        const auto* const at = reinterpret_cast<const void*>(word + half);
        if (session->heap->is_member(at, member_kinds::word_mutex) || session->heap->is_member(at, member_kinds::word_condition)) {
            found |= static_cast<std::uint8_t>(0xf << half);
        }
    }
    return found;
}
bool is_lock(const void* address) noexcept
{
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    return (lock_bytes_of(at & ~(word_bytes - 1)) >> (at % word_bytes) & 1) != 0;
}

/// Calls visit(address of the word, mask of its bytes) for each word of the bytes.
template <class Visit>
void visit_words(const void* address, std::size_t size_bytes, Visit visit) noexcept
{
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    const std::uintptr_t end = begin + size_bytes;
    for (std::uintptr_t word = begin & ~(word_bytes - 1); word < end; word += word_bytes) {
        const unsigned first = static_cast<unsigned>(std::max(begin, word) - word);
        const unsigned last = static_cast<unsigned>(std::min(end, word + word_bytes) - word);
        visit(word, static_cast<std::uint8_t>((0xffU >> (word_bytes - last)) & (0xffU << first)));
    }
}

/// Written after it was read. The bytes belong to no logged variable.
void report_unlogged(const Word& word, std::uint8_t bytes, const void* caller) noexcept
{
    const auto first = static_cast<unsigned>(__builtin_ctz(bytes));
    const auto size = static_cast<std::size_t>(__builtin_popcount(bytes));
    const auto* const address = reinterpret_cast<const void*>(word.address + first);
    reporter.add({kinds::unlogged, address, size, reinterpret_cast<std::uint64_t>(word.reader), caller, nullptr, nullptr});
}

/// The store's place, which is not counted before it is known that nothing tracks it.
Place* untracked_place(const void* address, std::size_t size_bytes, const void* caller) noexcept
{
    Place* const place = reporter.add({kinds::untracked, address, size_bytes, 0, caller, nullptr, nullptr});
    if (place != nullptr) {
        place->count.fetch_sub(1, std::memory_order_relaxed);
    }
    return place;
}

void report_untracked(Interval& interval) noexcept
{
    interval.visit_untracked([](const Line& line) {
        if (line.place->count.fetch_add(1, std::memory_order_relaxed) == 0) {
            line.place->address = line.store;
            line.place->size = line.size_bytes;
        }
    });
}

bool is_in_critical_section() noexcept
{
    const ThreadRecord* const record = fase::own_record;
    if (record == nullptr) {
        return false;
    }
    return !held_locks::holds_none(*record, record->depth.load(std::memory_order_relaxed));
}

void at_restart_point() noexcept
{
    if (is_in_critical_section()) {
        reporter.add({kinds::restart_point_in_section, nullptr, 0, 0, reporter.program_caller(0), nullptr, reporter.program_caller(1)});
    }
    const Notes notes;
    if (notes) {
        report_untracked(*own);
        notes->begin_next();
    }
}

void at_allow() noexcept
{
    const Notes notes;
    if (notes) {
        report_untracked(*own);  // The epoch may end here. After a crash the thread continues at its restart point anyway.
        notes->forget_tracked();
    }
}

void at_modified(const void* address, std::size_t size_bytes) noexcept
{
    const Notes notes;
    if (notes) {
        notes->tracked(address, size_bytes);
    }
}

void at_allocated(const void* block, std::size_t size_bytes) noexcept
{
    Interval::reused(block, size_bytes);
    const Notes notes;
    if (notes) {
        notes->allocated(block, size_bytes);
    }
}

void at_freed(const void* block, std::size_t size_bytes) noexcept
{
    Interval::reused(block, size_bytes);
    at_modified(block, size_bytes);  // A value that was stored in it need not survive.
}

constexpr checks::Listener notes_of_lint{&at_restart_point, &at_allow, &at_modified, &at_allocated, &at_freed};

/// A wait for a condition by a thread that holds nothing but the mutex ends its FASE.
bool is_condition_wait(std::string_view function) noexcept
{
    return function.find("cond") != std::string_view::npos || function.starts_with("cnd_");
}

/// Functions whose first argument is a descriptor, of what may be a file on a disk.
bool reads_descriptor(std::string_view function) noexcept
{
    return function == "read" || function == "readv" || function.starts_with("recv") || function.starts_with("accept") ||
           function == "connect";
}

bool may_block(int descriptor) noexcept
{
    struct stat status{};
    if (fstat(descriptor, &status) != 0 || S_ISREG(status.st_mode) || S_ISDIR(status.st_mode) || S_ISBLK(status.st_mode)) {
        return false;
    }
    const int flags = fcntl(descriptor, F_GETFL);
    return flags >= 0 && (flags & O_NONBLOCK) == 0;
}

void end_of_thread_notes() noexcept
{
    if (own != nullptr) {
        report_untracked(*own);
        own->unmake();
        own = nullptr;
        has_ended = true;
    }
}

void begin(const lint::Reporter& of_lint) noexcept
{
    reporter = of_lint;
    pthread_key_create(&end_of_thread, [](void*) { end_of_thread_notes(); });
    checks::listen(notes_of_lint);
}

void note_read(const void* address, std::size_t size_bytes, const void* caller) noexcept
{
    const Notes notes;
    if (!notes) {
        return;
    }
    visit_words(address, size_bytes, [&](std::uintptr_t at, std::uint8_t bytes) {
        Word* const word = notes->word(at);
        if (word == nullptr) {
            return;
        }
        auto first = static_cast<std::uint8_t>(bytes & ~(word->exposed | word->written_first));
        if (first != 0) {
            first &= static_cast<std::uint8_t>(~lock_bytes_of(at));
        }
        if (first != 0 && !notes->is_new(at) && !is_logged(at)) {  // A new block is allocated once more after a crash.
            word->reader = caller;
            word->exposed |= first;
            word->exposed_at = Interval::now();
        }
    });
}

void note_write(const void* address, std::size_t size_bytes, const void* caller) noexcept
{
    if (is_lock(address)) {
        return;
    }
    const ThreadRecord* const record = fase::own_record;
    if (record != nullptr && record->depth.load(std::memory_order_relaxed) == 0) {
        reporter.add({kinds::store_at_restart_point, address, size_bytes, 0, caller, nullptr, nullptr});
    }
    const Notes notes;
    if (!notes) {
        return;
    }
    if (is_logged(reinterpret_cast<std::uintptr_t>(address))) {
        notes->tracked(address, size_bytes);  // The store's line is written back with the epoch, and so is what lies next to it.
        return;
    }
    visit_words(address, size_bytes, [&](std::uintptr_t at, std::uint8_t bytes) {
        Word* const word = notes->word(at);
        if (word == nullptr) {
            return;
        }
        if (const auto exposed = static_cast<std::uint8_t>(bytes & word->exposed); exposed != 0) {
            report_unlogged(*word, exposed, caller);
        }
        word->written_first |= bytes;
    });
    if (Place* const place = untracked_place(address, size_bytes, caller); place != nullptr) {
        notes->written(reinterpret_cast<std::uintptr_t>(address), size_bytes, place);
    }
}

void note_blocking_call(const char* function, std::uintptr_t first_argument, const void* caller) noexcept
{
    const ThreadRecord* const record = fase::own_record;
    const std::uint32_t depth = record == nullptr ? 0 : record->depth.load(std::memory_order_relaxed);
    if (depth == 0 || (depth == 1 && is_condition_wait(function) && is_in_critical_section()) ||
        (reads_descriptor(function) && !may_block(static_cast<int>(first_argument)))) {
        return;
    }
    reporter.add({kinds::blocking_call, nullptr, 0, 0, caller, function, nullptr});
}

constexpr lint::Observer observer{&begin, &note_read, &note_write, &note_blocking_call, &end_of_thread_notes};

}  // namespace

const lint::EngineRules lint_rules{.layer = "respct", .headers = "stillpoint/respct", .kinds = words, .observer = &observer};

}  // namespace stillpoint::respct
