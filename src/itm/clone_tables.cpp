// Which function has a clone that the compiler has instrumented: each file of the program and each shared library brings a table.

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "itm/abi.hpp"
#include "itm/clone_tables.hpp"
#include "itm/messages.hpp"
#include "itm/transaction.hpp"

namespace {

using stillpoint::itm::Transaction;

struct Pair {
    void* function;
    void* clone;
};

struct Table {
    const void* place;  ///< of the table that the program has
    std::vector<Pair> pairs;  ///< by function
};

/// Few, and they change only when a shared library is loaded or unloaded. Never destroyed: files deregister theirs at the very end.
struct Tables {
    std::mutex guard;
    std::vector<Table> tables;
};
Tables& all()
{
    static auto* const tables = new Tables;
    return *tables;
}

bool is_before(const Pair& one, const Pair& other) { return one.function < other.function; }

/// How often tables have come or gone: what a thread remembers of older ones does not count.
std::atomic<std::uint64_t> changes{1};

/// The clones that a thread has looked for last.
struct Remembered {
    static constexpr std::size_t pairs_max = 16;
    std::uint64_t changes;
    Pair pairs[pairs_max];
};
constinit thread_local Remembered remembered [[gnu::tls_model("initial-exec")]] = {};

void* find_clone(void* function)
{
    Tables& known = all();
    const std::lock_guard guard(known.guard);
    for (const Table& table : known.tables) {
        const auto found = std::lower_bound(table.pairs.begin(), table.pairs.end(), Pair{function, nullptr}, is_before);
        // Clang's units name functions of others too, and have a null where these have no clone for them.
        if (found != table.pairs.end() && found->function == function && found->clone != nullptr) {
            return found->clone;
        }
    }
    return nullptr;
}

}  // namespace

void* stillpoint::itm::clone_of(void* function)
{
    Remembered& own = remembered;
    if (const std::uint64_t now = changes.load(std::memory_order_acquire); own.changes != now) [[unlikely]] {
        own = {now, {}};
    }
    // Functions begin at multiples of 16.
    Pair& pair = own.pairs[reinterpret_cast<std::uintptr_t>(function) / 16 % Remembered::pairs_max];
    if (pair.function != function) {
        pair = {function, find_clone(function)};
    }
    return pair.clone;
}

using stillpoint::itm::clone_of;

STILLPOINT_ITM_API void _ITM_registerTMCloneTable(void* table, std::size_t count)
{
    const auto* const pairs = static_cast<const Pair*>(table);
    Table made{table, {pairs, pairs + count}};
    std::sort(made.pairs.begin(), made.pairs.end(), is_before);
    Tables& known = all();
    const std::lock_guard guard(known.guard);
    known.tables.push_back(std::move(made));
    changes.fetch_add(1, std::memory_order_release);
}

STILLPOINT_ITM_API void _ITM_deregisterTMCloneTable(void* table)
{
    Tables& known = all();
    const std::lock_guard guard(known.guard);
    std::erase_if(known.tables, [&](const Table& one) { return one.place == table; });
    changes.fetch_add(1, std::memory_order_release);
}

STILLPOINT_ITM_API void* _ITM_getTMCloneOrIrrevocable(void* function)
{
    if (void* const clone = clone_of(function); clone != nullptr) {
        return clone;
    }
    Transaction::running().become_irrevocable();
    return function;
}

/// Calls by name in code of `stillpoint cc`: `clone` is a weak symbol, which another unit or a library may define.
STILLPOINT_ITM_API void* sp_tm_clone_or_irrevocable(void* clone, void* function)
{
    if (clone != nullptr) [[likely]] {
        return clone;
    }
    Transaction::running().become_irrevocable();
    return function;
}

STILLPOINT_ITM_API void* _ITM_getTMCloneSafe(void* function)
{
    void* const clone = clone_of(function);
    if (clone == nullptr) {
        stillpoint::itm::end_process("a pointer to a function that is transaction_safe leads to one that is not");
    }
    return clone;
}
