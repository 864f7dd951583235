#include "engines/spht/lint_rules.hpp"

#include <iterator>

#include "engines/spht/own_transaction.hpp"
#include "engines/spht/transaction.hpp"

namespace stillpoint::spht {

namespace {

namespace kinds {
constexpr lint::Kind store_outside = lint::engine_kind(0);
constexpr lint::Kind plain_store = lint::engine_kind(1);
constexpr lint::Kind plain_read = lint::engine_kind(2);
}  // namespace kinds

constexpr lint::KindWords words[] = {
    {"durable store outside of a transaction", "store-outside-transaction",
     "it is not durable, and a transaction may overwrite it: write it in the body of a transaction"},
    {"plain store inside a transaction", "plain-store-in-transaction",
     "it is neither durable nor rolled back: write it by the transaction (tx.write), or make the body plain (sp_tm_run)"},
    {"plain read inside a transaction", "plain-read-in-transaction",
     "it misses what the transaction has written, and may see a part of another one: read it by the transaction (tx.read), or make the body "
     "plain (sp_tm_run)"},
};
static_assert(std::size(words) <= lint::engine_kinds_max);

lint::Reporter reporter;  // Written once, before the first note.

/// nullptr: the calling thread is in none.
const Transaction* running_transaction() noexcept
{
    const Transaction* const own = own_transaction.transaction;
    return own != nullptr && own->is_running() ? own : nullptr;
}

void begin(const lint::Reporter& of_lint) noexcept { reporter = of_lint; }

void note_read(const void* address, std::size_t size_bytes, const void* caller) noexcept
{
    const Transaction* const running = running_transaction();
    if (running != nullptr && !running->finds_plain_stores()) {
        reporter.add({kinds::plain_read, address, size_bytes, 0, caller, nullptr, nullptr});
    }
}

void note_write(const void* address, std::size_t size_bytes, const void* caller) noexcept
{
    const Transaction* const running = running_transaction();
    if (running == nullptr || !running->finds_plain_stores()) {
        reporter.add({running == nullptr ? kinds::store_outside : kinds::plain_store, address, size_bytes, 0, caller, nullptr, nullptr});
    }
}

void note_blocking_call(const char* /*function*/, std::uintptr_t /*first_argument*/, const void* /*caller*/) noexcept {}

void end_of_program() noexcept {}

constexpr lint::Observer observer{&begin, &note_read, &note_write, &note_blocking_call, &end_of_program};

}  // namespace

const lint::EngineRules lint_rules{.layer = "spht-lint", .headers = "stillpoint/spht", .kinds = words, .observer = &observer};

}  // namespace stillpoint::spht
