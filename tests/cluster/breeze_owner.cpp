// A program of typed objects that owns a pool in Ceph and tells when a crash has broken it: faults.py breaks what is around it.
//
// Usage: breeze_owner POOL ACKNOWLEDGED THREADS
// Each thread numbers its transactions and writes a thing that follows from the number into one of its slots. ACKNOWLEDGED is a file as
// told.hpp has it. At the start the pool must hold exactly the transactions of each thread up to one between those that it was told of and
// those that it began, with exact reference counts, and after a collection no object that cannot be reached.
// Exit code 75: another process owns the pool, at the start or later.

#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sysexits.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "../kill/breeze_ledger_objects.hpp"
#include "../kill/told.hpp"

namespace ledger {
namespace {

constexpr unsigned threads_max = 8;
constexpr std::size_t pool_bytes = 16 << 20;

struct Root {
    Part* parts[threads_max];
};
NVM_TYPE(Root, NVM_HAS_PTR(Root, parts));

using Promises = Told<1, threads_max>;

Promises* told = nullptr;

[[noreturn]] void broken(const std::string& text)
{
    std::printf("BROKEN: %s\n", text.c_str());
    std::fflush(stdout);
    _exit(1);
}

/// Some thread hears that the pool is lost, the others that nothing is durable any more.
[[noreturn]] void end_for(const Refused& refusal)
{
    if (refusal.code == SP_E_POOL_LOCKED) {
        std::fprintf(stderr, "breeze_owner: %s\n", refusal.what());
        _exit(EX_TEMPFAIL);
    }
    stop_where_refused(refusal.what());
    broken(refusal.what());
}

// ---- Transactions -----------------------------------------------------------------------------

void perform(NVM_POOL* pool, Part& part, std::uint64_t number)
{
    need(nvm_tx_begin(pool));
    write_slot(pool, part.slots[number % slots], number);
    set(part.done, number);
    need(nvm_tx_commit(pool));
}

/// A pool that is full has objects that nothing leads to.
void perform_with_room(NVM_POOL* pool, Part& part, std::uint64_t number)
{
    for (unsigned attempt = 0;; ++attempt) {
        try {
            perform(pool, part, number);
            return;
        } catch (const Refused& refusal) {
            if (refusal.code != SP_E_POOL_FULL || attempt == 8) {
                throw;
            }
            need(nvm_tx_abort(pool));
            need(nvm_collect(pool, nullptr));
        }
    }
}

void work(NVM_POOL* pool, unsigned thread)
{
    Part& part = *static_cast<Root*>(nvm_pool_root(pool))->parts[thread];
    Promises::Thread& own = told->threads[thread];
    try {
        for (std::uint64_t number = part.done + 1;; ++number) {
            own.begun[0] = number;
            perform_with_room(pool, part, number);
            own.acknowledged[0] = number;
        }
    } catch (const Refused& refusal) {
        end_for(refusal);
    }
}

// ---- Whether all of it is there ---------------------------------------------------------------

std::uint64_t writer_of(std::uint64_t done, std::size_t place)
{
    const std::uint64_t back = (done + slots - place) % slots;
    return done > back ? done - back : 0;
}

std::string problem_of_objects(NVM_POOL* pool, const Reached& reached)
{
    need(nvm_drain(pool));
    need(nvm_collect(pool, nullptr));
    for (const auto& [object, references] : reached) {
        nvm_object_facts found;
        if (nvm_object(pool, object, &found) != SP_OK || found.references != references) {
            return " BROKEN: an object is freed, or has another count than pointers";
        }
    }
    nvm_pool_facts facts;
    need(nvm_facts(pool, &facts));
    return facts.damaged_objects == 0 && facts.objects == reached.size() ? "" : " BROKEN: objects are there that cannot be reached";
}

/// No other thread runs.
void check(NVM_POOL* pool, const Root& root)
{
    Reached reached;
    reached[&root] = 1;
    std::string wrong;
    std::uint64_t sum = 0;
    for (unsigned thread = 0; thread < threads_max; ++thread) {
        const Part& part = *root.parts[thread];
        ++reached[&part];
        sum += part.done;
        wrong += told->problem(thread, 0, "transactions", part.done);
        for (std::size_t place = 0; place < slots && wrong.empty(); ++place) {
            if (!is_sound_slot(pool, part.slots[place], writer_of(part.done, place), reached)) {
                wrong = " BROKEN: slot " + std::to_string(place) + " is not as its transaction has left it";
            }
        }
        told->note_start(thread, std::array{part.done});
    }
    wrong += wrong.empty() ? problem_of_objects(pool, reached) : "";
    std::printf("ledger at the start: %" PRIu64 " transfers%s\n", sum, wrong.c_str());
    std::fflush(stdout);
}

Root& obtain_root(NVM_POOL* pool)
{
    if (nvm_pool_root(pool) == nullptr) {
        need(nvm_tx_begin(pool));
        auto* const root = make<Root>(pool, NVM_TYPE_ID(Root));
        for (Part*& part : root->parts) {
            part = make<Part>(pool, NVM_TYPE_ID(Part));
        }
        need(nvm_pool_set_root(pool, root));
        need(nvm_tx_commit(pool));
    }
    return *static_cast<Root*>(nvm_pool_root(pool));
}

int run(const char* path, const char* acknowledged, unsigned threads)
{
    waits_where_refused = true;
    told = Promises::open(acknowledged);
    NVM_POOL* const pool = nvm_pool_obtain(path, pool_bytes);
    if (pool == nullptr) {
        std::fprintf(stderr, "breeze_owner: %s\n", sp_last_error());
        return std::strstr(sp_last_error(), " the pool ") != nullptr ? EX_TEMPFAIL : EX_SOFTWARE;
    }
    check(pool, obtain_root(pool));
    told->has_begun = 1;
    std::vector<std::thread> all;
    for (unsigned thread = 0; thread < threads; ++thread) {
        all.emplace_back(work, pool, thread);
    }
    for (std::thread& thread : all) {
        thread.join();
    }
    return EX_SOFTWARE;
}

}  // namespace
}  // namespace ledger

int main(int count, char** words)
{
    const auto threads = count == 4 ? static_cast<unsigned>(std::strtoul(words[3], nullptr, 10)) : 0;
    if (threads == 0 || threads > ledger::threads_max) {
        std::fputs("Usage: breeze_owner POOL ACKNOWLEDGED THREADS\n", stderr);
        return EX_USAGE;
    }
    try {
        return ledger::run(words[1], words[2], threads);
    } catch (const ledger::Refused& refusal) {
        ledger::end_for(refusal);
    }
}
