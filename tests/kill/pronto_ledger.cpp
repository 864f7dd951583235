// A program over durable objects that tells when a crash has broken it: tests/kill/kill_loop.py kills it.
//
// Usage: pronto_ledger ACKNOWLEDGED THREADS OPERATIONS [wait [PAUSE_MS]]
// With `wait` a thread whose operation is refused says so, and does nothing more: tests/cluster ends the program. PAUSE_MS: between two
// operations of a thread.
// Threads number their operations on a bank whose accounts have locks, a queue, and a map, a map of strings and a map in shards of
// the library. ACKNOWLEDGED is a file in which each thread notes, by a store to shared memory, which operation it begins and
// which has returned. At the start and at the end each object must hold, of each thread, exactly its operations up to one between those.

#include <array>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "pronto_ledger_objects.hpp"
#include "stillpoint/durable.hpp"
#include "stillpoint/stillpoint.h"
#include "told.hpp"

namespace {

enum Kind : unsigned { transfers, entries, texts, in_shards, handovers, kind_count };
constexpr const char* kind_names[] = {"transfers", "entries", "texts", "in shards", "handovers"};

using Promises = Told<kind_count, threads_max>;

using Entries = stillpoint::durable::map<std::uint64_t, std::uint64_t>;
using Texts = stillpoint::durable::string_map;
using Shards = stillpoint::durable::sharded_string_map;

struct Ledger {
    Bank& bank;
    Entries& entries;
    Texts& texts;
    Shards shards;
    Handovers& handovers;
    std::mutex entries_guard;  // The object's operations are for one thread at a time.
};

Promises* told = nullptr;
std::atomic<bool> is_over{false};
constexpr std::uint64_t slots = 40;

std::uint64_t entry_key(unsigned thread, std::uint64_t slot) { return thread * slots + slot; }
std::string text_key(unsigned thread, std::uint64_t slot) { return std::to_string(thread) + "-" + std::to_string(slot); }

/// A text of any length, no part of which passes for another.
std::string text_of(std::uint64_t number)
{
    std::string text = std::to_string(number) + ":";
    const std::size_t length = text.size() + number * 2654435761u % (number % 16 == 0 ? 4000 : 200);
    while (text.size() < length) {
        text += static_cast<char>('a' + (number + text.size()) % 26);
    }
    return text;
}

// ---- What a thread does --------------------------------------------------------------------

void perform(Ledger& ledger, Kind kind, unsigned thread, std::uint64_t number, std::mt19937_64& random)
{
    switch (kind) {
    case transfers: ledger.bank.transfer(thread, number, random() % account_count, random() % account_count, random() % 100); break;
    case entries: {
        const std::lock_guard hold(ledger.entries_guard);
        ledger.entries.insert_or_assign(entry_key(thread, number % slots), number);
        break;
    }
    case texts: ledger.texts.put(text_key(thread, number % slots), text_of(number)); break;
    case in_shards: ledger.shards.put(text_key(thread, number % slots), text_of(number)); break;
    default:
        if (number % 2 == 0) {
            ledger.handovers.push(thread, number);
        } else {
            ledger.handovers.pop(thread, number);
        }
    }
}

using Numbers = std::array<std::uint64_t, kind_count>;

void work(Ledger& ledger, unsigned thread, Numbers done, std::uint64_t operations)
{
    std::mt19937_64 random(std::random_device{}());
    Promises::Thread& own = told->threads[thread];
    for (std::uint64_t i = 0; i < operations && !is_over; ++i) {
        const auto kind = static_cast<Kind>(random() % kind_count);
        own.begun[kind] = ++done[kind];
        try {
            perform(ledger, kind, thread, done[kind], random);
        } catch (const std::exception& error) {
            stop_where_refused(error.what());
            std::printf("BROKEN: operation %" PRIu64 " of %s failed: %s\n", done[kind], kind_names[kind], error.what());
            std::fflush(stdout);
            is_over = true;
            return;
        }
        own.acknowledged[kind] = done[kind];
        if (i % 16 == 0) {
            told->durable_epoch = sp_durable_epoch();
        }
        pause_between_operations();
    }
}

// ---- Whether all of it is there ---------------------------------------------------------------

/// The newest number of the thread's slots, where all are as after it; UINT64_MAX: they do not fit together.
template <class NumberOf>
std::uint64_t newest_of(NumberOf&& number_of)
{
    std::array<std::uint64_t, slots> numbers{};
    std::uint64_t newest = 0;
    for (std::uint64_t slot = 0; slot < slots; ++slot) {
        numbers[slot] = number_of(slot);
        newest = std::max(newest, numbers[slot]);
    }
    for (std::uint64_t back = 0; back < slots && back < newest; ++back) {
        if (numbers[(newest - back) % slots] != newest - back) {
            return UINT64_MAX;
        }
    }
    return newest;
}

std::uint64_t entries_done(const Ledger& ledger, unsigned thread)
{
    return newest_of([&](std::uint64_t slot) -> std::uint64_t {
        const auto found = ledger.entries.find(entry_key(thread, slot));
        return found != ledger.entries.end() ? found->second : 0;
    });
}

template <class Map>
std::uint64_t texts_done(const Map& map, unsigned thread)
{
    return newest_of([&](std::uint64_t slot) -> std::uint64_t {
        const auto text = map.get(text_key(thread, slot));
        const std::uint64_t number = text ? std::strtoull(text->c_str(), nullptr, 10) : 0;
        return !text || *text == text_of(number) ? number : UINT64_MAX;
    });
}

/// No other thread runs. What each thread has done; says what is wrong.
std::vector<Numbers> check(const Ledger& ledger, unsigned threads, const char* when)
{
    std::vector<Numbers> done(threads);
    std::string wrong = ledger.bank.problem() + ledger.handovers.problem();
    Numbers sums{};
    for (unsigned thread = 0; thread < threads; ++thread) {
        done[thread] = {ledger.bank.done_by(thread), entries_done(ledger, thread), texts_done(ledger.texts, thread),
                        texts_done(ledger.shards, thread), ledger.handovers.done_by(thread)};
        for (unsigned kind = 0; kind < kind_count; ++kind) {
            const std::uint64_t is = done[thread][kind];
            sums[kind] += is;
            wrong += told->problem(thread, kind, kind_names[kind], is);
        }
    }
    std::printf("ledger %s: %" PRIu64 " transfers, %" PRIu64 " entries, %" PRIu64 " texts, %" PRIu64 " in shards, %" PRIu64
                " handovers%s\n",
                when, sums[transfers], sums[entries], sums[texts], sums[in_shards], sums[handovers], wrong.c_str());
    std::fflush(stdout);
    return done;
}

int run(const char* path, unsigned threads, std::uint64_t operations)
{
    namespace pronto = stillpoint::pronto;
    told = Promises::open(path);
    Ledger ledger{pronto::get_object<Bank>("bank"),           pronto::get_object<Entries>("entries"),
                  pronto::get_object<Texts>("texts"),         Shards("shards", 3),
                  pronto::get_object<Handovers>("handovers"), {}};
    const std::vector<Numbers> done = check(ledger, threads, "at the start");
    for (unsigned thread = 0; thread < threads; ++thread) {
        told->note_start(thread, done[thread]);
    }
    told->has_begun = 1;
    std::vector<std::thread> all;
    for (unsigned thread = 0; thread < threads; ++thread) {
        all.emplace_back(work, std::ref(ledger), thread, done[thread], operations);
    }
    for (std::thread& thread : all) {
        thread.join();
    }
    check(ledger, threads, "done");
    return is_over ? 1 : 0;
}

}  // namespace

int main(int count, char** words)
{
    const unsigned threads = threads_in(count, words, threads_max);
    if (threads == 0) {
        std::fputs("Usage: pronto_ledger ACKNOWLEDGED THREADS OPERATIONS [wait [PAUSE_MS]]\n", stderr);
        return 64;
    }
    try {
        return run(words[1], threads, std::strtoull(words[3], nullptr, 10));
    } catch (const std::exception& error) {
        std::printf("BROKEN: %s\n", error.what());
        return 1;
    }
}
