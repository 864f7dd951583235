// Which function has a clone that the compiler has instrumented: each file of the program and each shared library brings a table.

#include <algorithm>
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

}  // namespace

void* stillpoint::itm::clone_of(void* function)
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

using stillpoint::itm::clone_of;

STILLPOINT_ITM_API void _ITM_registerTMCloneTable(void* table, std::size_t count)
{
    const auto* const pairs = static_cast<const Pair*>(table);
    Table made{table, {pairs, pairs + count}};
    std::sort(made.pairs.begin(), made.pairs.end(), is_before);
    Tables& known = all();
    const std::lock_guard guard(known.guard);
    known.tables.push_back(std::move(made));
}

STILLPOINT_ITM_API void _ITM_deregisterTMCloneTable(void* table)
{
    Tables& known = all();
    const std::lock_guard guard(known.guard);
    std::erase_if(known.tables, [&](const Table& one) { return one.place == table; });
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
