// A program over pools of breeze that tells when a crash has broken one: tests/kill/kill_loop.py kills it.
//
// Usage: breeze_ledger POOL MEDIUM ACKNOWLEDGED THREADS TRANSACTIONS
//
// Two pools are open, POOL and POOL.second, and at some starts a copy of the first one beside it. Each thread numbers its transactions in
// each pool, and writes a thing that follows from the number into one of its slots; some also move tokens between shelves that all
// threads share, under locks. ACKNOWLEDGED is a file in which threads note, by stores to shared memory, which transaction begins and
// which has returned. At the start and at the end each pool must hold exactly the transactions of each thread up to one between those,
// with exact reference counts, no object that is freed, and after a collection none that cannot be reached. At every other start the
// pools' addresses are taken, so that pointers are rewritten.

#include <array>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "breeze_ledger_objects.hpp"

namespace ledger {
namespace {

constexpr std::size_t threads_max = 8;
constexpr std::size_t pool_count = 2;
constexpr std::size_t pool_bytes = 16 << 20;
constexpr std::size_t shelves = 6;
constexpr std::size_t tokens = 40;
constexpr std::uintptr_t step_bytes = 2 << 20;  ///< of addresses

struct Root {
    Part* parts[threads_max];
    Item* shelves[ledger::shelves];
};
NVM_TYPE(Root, NVM_HAS_PTR(Root, parts), NVM_HAS_PTR(Root, shelves));

/// Outside of durable memory: a file that the kernel keeps when the process is killed. tests/kill/kill_loop.py reads the first words.
struct Told {
    enum Phase : std::uint64_t { starting, opening, checking, working };
    std::atomic<std::uint64_t> phase;
    std::atomic<std::uint64_t> starts;
    std::atomic<std::uint64_t> moved_openings;  ///< that have rewritten pointers
    std::atomic<std::uint64_t> undone;          ///< transactions
    std::atomic<std::uint64_t> collections;
    std::atomic<std::uint64_t> copies;
    struct Pool {
        std::atomic<std::uint64_t> base;
        struct Thread {
            std::atomic<std::uint64_t> begun, acknowledged;
        } threads[threads_max];
    } pools[pool_count];
};

Told* told = nullptr;
std::atomic<bool> is_over{false};

struct OpenPool {
    NVM_POOL* pool = nullptr;
    Root* root = nullptr;
    Told::Pool* told = nullptr;
    std::array<std::mutex, shelves> locks{};
};

[[noreturn]] void broken(const std::string& text)
{
    std::printf("BROKEN: %s\n", text.c_str());
    std::fflush(stdout);
    _exit(1);
}

// ---- Transactions -----------------------------------------------------------------------------

/// Tokens are never made nor freed.
void move_token(OpenPool& pool, std::size_t from, std::size_t to)
{
    Item* const token = pool.root->shelves[from];
    if (token != nullptr && from != to) {
        set(pool.root->shelves[from], token->next);
        set(token->next, pool.root->shelves[to]);
        set(pool.root->shelves[to], token);
    }
}

/// The changes of transaction `number`, inside of it.
void change(OpenPool& pool, Part& part, std::uint64_t number)
{
    const std::size_t place = number % slots;
    Slot& slot = part.slots[place];
    void* const before = thing_of(slot);
    const bool frees = slot.shape == text && number % 3 == 0;
    const nvm_weak former = part.watched[place];
    write_slot(pool.pool, slot, number);
    if (thing_of(slot) != before) {
        need(nvm_log(&part.former[place], sizeof(nvm_weak)));
        part.former[place] = frees ? nvm_weak{} : former;
        need(nvm_weak_set(pool.pool, &part.watched[place], thing_of(slot)));
        if (frees) {
            need(nvm_free(pool.pool, before));
        }
    }
    set(part.done, number);
}

/// Changes that are rolled back, since the program says so, or since they are refused.
void rehearse(OpenPool& pool, OpenPool& other, Part& part, std::uint64_t number, std::mt19937_64& random)
{
    need(nvm_tx_begin(pool.pool));
    change(pool, part, number + slots * (random() % 5));
    switch (random() % 4) {
    case 0: {  // A pointer into the other pool.
        Slot& slot = part.slots[random() % slots];
        need(nvm_log(&slot, sizeof slot));
        slot.shape = list;
        slot.list = other.root->shelves[random() % shelves];
        const bool has_pointer = slot.list != nullptr;
        const int committed = has_pointer ? nvm_tx_commit(pool.pool) : nvm_tx_abort(pool.pool);
        if (has_pointer && committed != SP_E_NOT_DURABLE_ADDRESS) {
            broken("a pointer into another pool was committed: " + std::to_string(committed));
        }
        break;
    }
    case 1:  // A store to the other pool.
        if (nvm_log(&other.root->shelves[0], sizeof(Item*)) != SP_E_INVALID_ARGUMENT || nvm_tx_commit(pool.pool) != SP_E_INVALID_ARGUMENT) {
            broken("a transaction on one pool may store to another");
        }
        break;
    default: need(nvm_tx_abort(pool.pool)); break;
    }
}

void perform(OpenPool& pool, Part& part, std::uint64_t number, std::mt19937_64& random)
{
    const std::size_t from = random() % shelves;
    const std::size_t to = random() % shelves;
    std::unique_lock<std::mutex> low(pool.locks[std::min(from, to)], std::defer_lock);
    std::unique_lock<std::mutex> high(pool.locks[std::max(from, to)], std::defer_lock);
    const bool moves = random() % 3 == 0 && from != to;
    if (moves) {  // Held until the commit has returned.
        low.lock();
        high.lock();
    }
    need(nvm_tx_begin(pool.pool));
    change(pool, part, number);
    if (moves) {
        move_token(pool, from, to);
    }
    need(nvm_tx_commit(pool.pool));
}

/// True: done. False: the pool was full.
bool attempt(OpenPool& pool, OpenPool& other, unsigned thread, std::uint64_t number, std::mt19937_64& random)
{
    Part& part = *pool.root->parts[thread];
    try {
        if (random() % 6 == 0) {
            rehearse(pool, other, part, number, random);
        }
        perform(pool, part, number, random);
        return true;
    } catch (const Refused& refusal) {
        if (refusal.code != SP_E_POOL_FULL) {
            throw;
        }
        need(nvm_tx_abort(pool.pool));
        return false;
    }
}

void work(std::array<OpenPool, pool_count>& pools, unsigned thread, std::uint64_t transactions)
{
    std::mt19937_64 random(std::random_device{}());
    std::uint64_t full = 0;
    try {
        for (std::uint64_t i = 0; i < transactions && !is_over; ++i) {
            const std::size_t which = random() % pool_count;
            OpenPool& pool = pools[which];
            Told::Pool::Thread& own = pool.told->threads[thread];
            const std::uint64_t number = pool.root->parts[thread]->done + 1;
            own.begun = number;
            if (attempt(pool, pools[1 - which], thread, number, random)) {
                own.acknowledged = number;
                full = 0;
            } else if (++full > 8) {
                broken("the pool is full, and a collection does not help");
            }
            if (full != 0 || random() % 400 == 0) {
                need(nvm_collect(pool.pool, nullptr));
                ++told->collections;
            } else if (random() % 50 == 0) {
                need(nvm_drain(pool.pool));
            }
        }
    } catch (const std::exception& error) {
        broken(std::string("a call is refused: ") + error.what());
    }
}

// ---- Whether all of it is there ----------------------------------------------------------------

/// The newest transaction up to `done` that has written that slot; 0: none.
std::uint64_t writer_of(std::uint64_t done, std::size_t place)
{
    const std::uint64_t back = (done + slots - place) % slots;
    return done > back ? done - back : 0;
}

void check_part(const OpenPool& pool, const Part& part, Reached& reached, const char* when)
{
    for (std::size_t place = 0; place < slots; ++place) {
        const std::uint64_t written = writer_of(part.done, place);
        if (!is_sound_slot(pool.pool, part.slots[place], written, reached)) {
            broken(std::string(when) + ": slot " + std::to_string(place) + " is not as transaction " + std::to_string(written) +
                   " has left it, of shape " + std::to_string(shape_of(written)));
        }
        if (nvm_weak_get(pool.pool, &part.watched[place]) != thing_of(part.slots[place])) {
            broken(std::string(when) + ": a weak pointer does not lead to a live object");
        }
    }
}

void check_tokens(const OpenPool& pool, Reached& reached)
{
    std::array<unsigned, tokens + 1> seen{};
    for (const Item* token : pool.root->shelves) {
        for (; token != nullptr; token = token->next) {
            ++reached[token];
            if (token->number == 0 || token->number > tokens || token->inverse != ~token->number || ++seen[token->number] != 1) {
                broken("a token is torn, or there twice");
            }
        }
    }
    for (std::size_t i = 1; i <= tokens; ++i) {
        if (seen[i] != 1) {
            broken("a token is lost");
        }
    }
}

void check_objects(const OpenPool& pool, const Reached& reached, bool collects)
{
    need(nvm_drain(pool.pool));
    if (collects) {
        need(nvm_collect(pool.pool, nullptr));
    }
    for (const auto& [object, references] : reached) {
        nvm_object_facts found;
        if (nvm_object(pool.pool, object, &found) != SP_OK) {
            broken(std::string("an object that can be reached was freed: ") + sp_last_error());
        }
        const bool may_have_more = !collects;  // Cycles that cannot be reached may point to it.
        if (found.references != references && !(may_have_more && found.references > references)) {
            broken("an object of type " + std::to_string(found.type) + " has the count " + std::to_string(found.references) + ", and " +
                   std::to_string(references) + " pointers lead to it");
        }
    }
    nvm_pool_facts facts;
    need(nvm_facts(pool.pool, &facts));
    if (facts.damaged_objects != 0 || facts.objects < reached.size() || (collects && facts.objects != reached.size())) {
        broken(std::to_string(facts.objects) + " objects are there, " + std::to_string(facts.damaged_objects) + " damaged, and " +
               std::to_string(reached.size()) + " can be reached");
    }
    for (const Part* const part : pool.root->parts) {
        for (const nvm_weak& former : part->former) {
            if (collects && nvm_weak_get(pool.pool, &former) != nullptr) {
                broken("a weak pointer leads to an object that nothing keeps alive");
            }
        }
    }
}

/// No thread changes the pool.
void check(const OpenPool& pool, bool collects, const char* when)
{
    Reached reached;
    reached[pool.root] = 1;
    for (unsigned thread = 0; thread < threads_max; ++thread) {
        const Part& part = *pool.root->parts[thread];
        ++reached[&part];
        const Told::Pool::Thread& promised = pool.told->threads[thread];
        if (part.done < promised.acknowledged) {
            std::printf("LOST: thread %u was told of transaction %" PRIu64 ", and %" PRIu64 " is there\n", thread,
                        promised.acknowledged.load(), part.done);
            std::fflush(stdout);
            _exit(1);
        }
        if (part.done > promised.begun) {
            broken("a transaction is there that has not begun");
        }
        check_part(pool, part, reached, when);
    }
    check_tokens(pool, reached);
    check_objects(pool, reached, collects);
}

// ---- Pools ------------------------------------------------------------------------------------

void make_root(OpenPool& pool)
{
    need(nvm_tx_begin(pool.pool));
    auto* const root = make<Root>(pool.pool, NVM_TYPE_ID(Root));
    for (Part*& part : root->parts) {
        part = make<Part>(pool.pool, NVM_TYPE_ID(Part));
    }
    for (std::size_t i = 1; i <= tokens; ++i) {
        auto* const token = make<Item>(pool.pool, NVM_TYPE_ID(Item));
        *token = {root->shelves[i % shelves], i, ~i};
        root->shelves[i % shelves] = token;
    }
    need(nvm_pool_set_root(pool.pool, root));
    need(nvm_tx_commit(pool.pool));
    pool.root = root;
}

/// Opens the file, or makes it. NULL: sp_last_error() says why.
NVM_POOL* try_open(const std::string& path, const nvm_options& options)
{
    return access(path.c_str(), F_OK) == 0 ? nvm_pool_open_with(path.c_str(), &options)
                                           : nvm_pool_create_with(path.c_str(), pool_bytes, &options);
}

/// How a start opens a pool: nothing special, or so that it must move.
struct Opening {
    bool takes_old_address = false;
    std::uintptr_t address = 0;
    nvm_options options{};
};

Opening opening_of(std::uint64_t start, const char* medium, std::uintptr_t last_base)
{
    Opening made;
    made.options.medium = medium;
    made.options.durability = "process";
    made.options.threads = 1 + start % 2;
    made.options.collect = start % 5 == 4;
    if (start % 2 == 1 && last_base != 0) {
        // Half of them overlap the old place: there a pointer that is rewritten twice passes for one that was not.
        made.takes_old_address = start % 4 == 1;
        made.options.base_address = made.takes_old_address ? 0 : last_base + (start % 8 == 3 ? step_bytes : -step_bytes);
    }
    return made;
}

void open(const std::string& path, Opening opening, Told::Pool& promised, OpenPool& pool)
{
    const std::uintptr_t last = promised.base;
    if (opening.takes_old_address) {
        void* const place = reinterpret_cast<void*>(last);
        mmap(place, step_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE, -1, 0);
    }
    pool.pool = try_open(path, opening.options);
    if (pool.pool == nullptr && opening.options.base_address != 0) {  // The other pool lies there, or there the window ends.
        opening.options.base_address = 0;
        pool.pool = try_open(path, opening.options);
    }
    if (pool.pool == nullptr) {
        broken(std::string("a pool does not open: ") + sp_last_error());
    }
    nvm_pool_facts facts;
    need(nvm_facts(pool.pool, &facts));
    if (opening.takes_old_address && facts.base_address == last) {
        broken("the pool lies where another mapping is");
    }
    told->moved_openings += facts.pointers_rewritten != 0 ? 1 : 0;
    told->undone += facts.transactions_undone;
    pool.told = &promised;
    promised.base = facts.base_address;
    pool.root = static_cast<Root*>(nvm_pool_root(pool.pool));
}

void copy_file(const std::string& from, const std::string& to)
{
    const int source = ::open(from.c_str(), O_RDONLY | O_CLOEXEC);
    const int target = ::open(to.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    struct stat facts{};
    if (source < 0 || target < 0 || fstat(source, &facts) != 0) {
        broken("the pool cannot be copied");
    }
    for (off_t left = facts.st_size; left > 0;) {
        const ssize_t copied = copy_file_range(source, nullptr, target, nullptr, static_cast<std::size_t>(left), 0);
        if (copied <= 0) {
            broken("the pool cannot be copied");
        }
        left -= copied;
    }
    close(source);
    close(target);
}

/// The copy has the same addresses, so it moves; it is as sound as the pool, which stays as it is.
void check_copy(const std::string& path, const OpenPool& original, Opening opening)
{
    const std::string copy = path + ".copy";
    OpenPool beside;
    Told::Pool& promised = *original.told;
    opening.options.base_address = 0;
    beside.pool = try_open(copy, opening.options);
    if (beside.pool == nullptr) {
        broken(std::string("a copy does not open beside its pool: ") + sp_last_error());
    }
    beside.told = &promised;
    beside.root = static_cast<Root*>(nvm_pool_root(beside.pool));
    if (beside.root != nullptr) {
        check(beside, true, "in a copy");
    }
    need(nvm_pool_close(beside.pool));
    unlink(copy.c_str());
    ++told->copies;
}

Told* open_told(const char* path)
{
    const int file = ::open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void* const memory = file >= 0 && ftruncate(file, sizeof(Told)) == 0
                             ? mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
                             : MAP_FAILED;
    if (memory == MAP_FAILED) {
        throw std::runtime_error(std::string("cannot map ") + path);
    }
    close(file);
    return static_cast<Told*>(memory);
}

int run(const std::string& path, const char* medium, const char* told_path, unsigned threads, std::uint64_t transactions)
{
    told = open_told(told_path);
    const std::uint64_t start = told->starts++;
    const bool has_copy = start % 4 == 2 && access(path.c_str(), F_OK) == 0;
    if (has_copy) {
        copy_file(path, path + ".copy");
    }
    const std::array<std::string, pool_count> paths = {path, path + ".second"};
    std::array<OpenPool, pool_count> pools;
    told->phase = Told::opening;
    for (std::size_t i = 0; i < pool_count; ++i) {
        open(paths[i], opening_of(start + i, medium, told->pools[i].base), told->pools[i], pools[i]);
    }
    told->phase = Told::checking;
    for (OpenPool& pool : pools) {
        if (pool.root != nullptr) {
            check(pool, start % 2 == 0, "at the start");
        } else {
            make_root(pool);
        }
    }
    if (has_copy) {
        check_copy(path, pools[0], opening_of(start, medium, 0));
    }
    std::printf("ledger at the start: %" PRIu64 " transactions of thread 0\n", pools[0].root->parts[0]->done);
    std::fflush(stdout);
    told->phase = Told::working;
    std::vector<std::thread> all;
    for (unsigned thread = 0; thread < threads; ++thread) {
        all.emplace_back(work, std::ref(pools), thread, transactions);
    }
    for (std::thread& thread : all) {
        thread.join();
    }
    for (OpenPool& pool : pools) {
        check(pool, true, "at the end");
        need(nvm_pool_close(pool.pool));
    }
    std::puts("ledger done");
    return 0;
}

}  // namespace
}  // namespace ledger

int main(int count, char** words)
{
    const auto threads = count == 6 ? static_cast<unsigned>(std::strtoul(words[4], nullptr, 10)) : 0;
    if (threads == 0 || threads > ledger::threads_max) {
        std::fputs("Usage: breeze_ledger POOL MEDIUM ACKNOWLEDGED THREADS TRANSACTIONS\n", stderr);
        return 64;
    }
    try {
        return ledger::run(words[1], words[2], words[3], threads, std::strtoull(words[5], nullptr, 10));
    } catch (const std::exception& error) {
        std::printf("BROKEN: %s\n", error.what());
        return 1;
    }
}
