// A program under restart points that tells when a crash has broken it: tests/kill/kill_loop.py kills it.
//
// Usage: respct_ledger ACKNOWLEDGED THREADS OPERATIONS
// Threads transfer between accounts, keep a stack of allocated receipts, and hand numbers from one to another through a small queue and a
// condition variable. Each counts its operations in its frame. At the start and at the end everything must fit together. ACKNOWLEDGED gets
// a line "epoch transfers" for what is durable: never may there be fewer transfers.

#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include "stillpoint/respct.hpp"
#include "stillpoint/stillpoint.h"

namespace respct = stillpoint::respct;

namespace {

constexpr std::uint64_t account_count = 300, first_balance = 1000, room = 7, receipts_max = 400;

struct Account {
    respct::logged<std::uint64_t> balance;
    respct::logged<std::uint32_t> transfers;
    respct::mutex guard;
};

struct Receipt {
    Receipt* next;
    std::uint64_t number, inverted;
};

struct Ledger {
    respct::mutex guard;  // of the stack
    respct::logged<Receipt*> receipts;
    respct::logged<std::uint64_t> receipt_count, receipt_sum;

    respct::mutex queue_guard;
    respct::condition changed;
    respct::logged<std::uint64_t> put, taken;
    respct::logged<std::uint64_t> queued[room];
};

struct Locals {
    respct::mutex guard;  // of transfers: another thread reads them
    respct::logged<std::uint64_t> transfers, handed_over, taken, taken_sum;
};

enum Place { transfer = 1, receipt = 2, hand_over = 3, take = 4, rest = 5 };

std::atomic<bool> is_over{false};
Account* accounts = nullptr;

std::uint64_t number_of(std::uint64_t position) { return position * 0x9e3779b97f4a7c15u; }

void transfer_once(Locals& own, std::mt19937_64& random)
{
    respct::RP(transfer);
    Account& one = accounts[random() % account_count];
    Account& other = accounts[random() % account_count];
    if (&one == &other) {
        return;
    }
    const std::lock_guard first(&one < &other ? one.guard : other.guard);
    const std::lock_guard second(&one < &other ? other.guard : one.guard);
    const std::uint64_t amount = random() % (one.balance / 4 + 1);
    one.balance -= amount;
    other.balance += amount;
    ++one.transfers;
    ++other.transfers;
    const std::lock_guard counting(own.guard);
    ++own.transfers;
}

void keep_receipt(Ledger& ledger, std::mt19937_64& random)
{
    respct::RP(receipt);
    const std::lock_guard hold(ledger.guard);
    if (Receipt* const top = ledger.receipts; top != nullptr && random() % receipts_max < ledger.receipt_count) {
        ledger.receipts = top->next;
        --ledger.receipt_count;
        ledger.receipt_sum -= top->number;
        respct::destroy(top);
        return;
    }
    auto* const made = respct::make<Receipt>();
    *made = {ledger.receipts, random(), 0};
    made->inverted = ~made->number;
    respct::add_modified(*made);
    ledger.receipts = made;
    ++ledger.receipt_count;
    ledger.receipt_sum += made->number;
}

void hand_over_once(Ledger& ledger, Locals& own)
{
    respct::critical_section section(hand_over, ledger.queue_guard);
    section.wait(ledger.changed, [&] { return ledger.put - ledger.taken < room || is_over; });
    if (ledger.put - ledger.taken < room) {
        ledger.queued[ledger.put % room] = number_of(ledger.put);
        ++ledger.put;
        ++own.handed_over;
    }
    ledger.changed.notify_all();
}

void take_once(Ledger& ledger, Locals& own)
{
    respct::critical_section section(take, ledger.queue_guard);
    section.wait(ledger.changed, [&] { return ledger.put != ledger.taken || is_over; });
    if (ledger.put != ledger.taken) {
        own.taken_sum += ledger.queued[ledger.taken % room];
        ++ledger.taken;
        ++own.taken;
    }
    ledger.changed.notify_one();
}

Locals& locals_of(unsigned thread) { return respct::thread_frame<Locals>::of(("thread-" + std::to_string(thread)).c_str()); }

void work(Ledger& ledger, unsigned thread, std::uint64_t operations)
{
    respct::thread_frame<Locals> frame(("thread-" + std::to_string(thread)).c_str());
    std::mt19937_64 random(std::random_device{}());
    for (std::uint64_t i = 0; i < operations; ++i) {
        transfer_once(*frame, random);
        keep_receipt(ledger, random);
        if (i % 16 == 0) {
            thread % 2 == 0 ? hand_over_once(ledger, *frame) : take_once(ledger, *frame);
        }
    }
    respct::RP(rest);
    is_over = true;
    const std::lock_guard hold(ledger.queue_guard);
    ledger.changed.notify_all();
}

/// No other thread runs.
void check(const Ledger& ledger, unsigned threads, const char* when)
{
    std::uint64_t balances = 0, transfers = 0, receipts = 0, receipt_sum = 0, expected_sum = 0;
    std::uint64_t done = 0, put = 0, taken = 0, taken_sum = 0;
    for (std::uint64_t i = 0; i < account_count; ++i) {
        balances += accounts[i].balance;
        transfers += accounts[i].transfers;
    }
    for (unsigned thread = 0; thread < threads; ++thread) {
        const Locals& own = locals_of(thread);
        done += own.transfers;
        put += own.handed_over;
        taken += own.taken;
        taken_sum += own.taken_sum;
    }
    bool is_sound = true;
    for (const Receipt* one = ledger.receipts; one != nullptr && receipts <= ledger.receipt_count; one = one->next) {
        is_sound = is_sound && one->inverted == ~one->number;
        receipt_sum += one->number;
        ++receipts;
    }
    for (std::uint64_t i = 0; i < ledger.taken; ++i) {
        expected_sum += number_of(i);
    }
    is_sound = is_sound && balances == account_count * first_balance && transfers == 2 * done && receipts == ledger.receipt_count &&
               receipt_sum == ledger.receipt_sum && put == ledger.put && taken == ledger.taken && taken_sum == expected_sum;
    std::printf("ledger %s: %" PRIu64 " transfers, %" PRIu64 " receipts, %" PRIu64 " put, %" PRIu64 " taken%s\n", when, done, receipts, put,
                taken, is_sound ? "" : " BROKEN");
    std::fflush(stdout);
}

std::uint64_t transfers_now(unsigned threads)
{
    std::uint64_t done = 0;
    for (unsigned thread = 0; thread < threads; ++thread) {
        Locals& locals = locals_of(thread);
        const std::lock_guard hold(locals.guard);
        done += locals.transfers;
    }
    return done;
}

void acknowledge(const char* path, unsigned threads)
{
    std::ofstream file(path, std::ios::app);
    while (!is_over) {
        respct::RP(rest);
        const std::uint64_t done = transfers_now(threads);
        const std::uint64_t epoch = sp_epoch();
        const respct::blocking_call wait;
        if (sp_wait_durable(epoch, 1000) == SP_OK) {
            file << epoch << ' ' << done << std::endl;
        }
        usleep(1000);
    }
}

std::uint64_t acknowledged_in(const char* path)
{
    std::ifstream file(path);
    std::string line;
    std::uint64_t done = 0;
    while (std::getline(file, line) && !file.eof()) {
        done = std::strtoull(line.c_str() + line.find(' ') + 1, nullptr, 10);
    }
    return done;
}

}  // namespace

int main(int count, char** words)
{
    if (count != 4) {
        std::fputs("Usage: respct_ledger ACKNOWLEDGED THREADS OPERATIONS\n", stderr);
        return 64;
    }
    const auto threads = static_cast<unsigned>(std::strtoul(words[2], nullptr, 10));
    auto& ledger = *respct::root<Ledger>("ledger");
    accounts = respct::root<Account>("accounts", account_count);
    auto& is_made = *respct::root<respct::logged<bool>>("made");
    if (!is_made) {
        for (std::uint64_t i = 0; i < account_count; ++i) {
            accounts[i].balance = first_balance;
        }
        is_made = true;
    }
    check(ledger, threads, "at the start");
    if (transfers_now(threads) < acknowledged_in(words[1])) {
        std::puts("LOST: fewer transfers than were acknowledged");
    }
    std::vector<std::thread> all;
    for (unsigned thread = 0; thread < threads; ++thread) {
        all.emplace_back(work, std::ref(ledger), thread, std::strtoull(words[3], nullptr, 10));
    }
    std::thread acknowledging(acknowledge, words[1], threads);
    {
        const respct::blocking_call wait;
        for (std::thread& thread : all) {
            thread.join();
        }
        acknowledging.join();
    }
    check(ledger, threads, "done");
    return 0;
}
