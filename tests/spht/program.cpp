// A ledger in transactions, for restart_test.py: two threads transfer money and count what they do; a third reads.
//
//   spht_program POOL OPTIONS COMMAND…
//   transfer=N   the first thread's work, N times
//   run          both threads and the reader, until the process is killed. Each line is printed when its transaction has returned:
//                "done THREAD COUNT" or "read COUNT COUNT"
//   fail         transfers until one reports an error, and two more; prints "done 0 COUNT" and "error CODE"
//   halfway      a transaction that has written and allocated when the process kills itself
//   blocks       prints how many blocks of the heap are live
//   show         "COUNT COUNT whole", or "torn": what the transactions keep together is not together
//   die          kill -9

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <unistd.h>

#include "stillpoint/spht.hpp"

namespace spht = stillpoint::spht;

namespace {

constexpr int accounts = 8;
constexpr long transfers_per_note = 4;

struct Note {
    Note* older;
    long thread;
    long count;
};

struct Ledger {
    std::array<long, accounts> balance;  ///< their sum is 0
    std::array<std::array<long, 8>, 2> count;  ///< by thread, in lines of their own: the first word
    Note* newest;  ///< one for each `transfers_per_note` transfers of a thread
    long notes;
};

Ledger* ledger = nullptr;

long transfer(std::size_t thread)
{
    return spht::atomically([&](spht::transaction& tx) {
        const long count = tx.read(ledger->count[thread][0]) + 1;
        long& from = ledger->balance[static_cast<std::size_t>(count) % accounts];
        long& to = ledger->balance[(static_cast<std::size_t>(count) + thread + 1) % accounts];
        tx.write(from, tx.read(from) - count);
        tx.write(to, tx.read(to) + count);
        tx.write(ledger->count[thread][0], count);
        if (count % transfers_per_note == 0) {
            tx.write(ledger->newest, tx.create(Note{tx.read(ledger->newest), static_cast<long>(thread), count}));
            tx.write(ledger->notes, tx.read(ledger->notes) + 1);
        }
        return count;
    });
}

void print(const std::string& line)
{
    if (write(STDOUT_FILENO, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
        std::exit(1);
    }
}

std::array<long, 2> counts()
{
    return spht::atomically([](spht::transaction& tx) { return std::array{tx.read(ledger->count[0][0]), tx.read(ledger->count[1][0])}; },
                            SP_SPHT_READ_ONLY);
}

void run()
{
    const auto work = [](std::size_t thread) {
        while (true) {
            const long count = transfer(thread);
            print("done " + std::to_string(thread) + " " + std::to_string(count) + "\n");
        }
    };
    std::thread first(work, 0);
    std::thread second(work, 1);
    while (true) {
        const auto [one, two] = counts();
        print("read " + std::to_string(one) + " " + std::to_string(two) + "\n");
    }
}

[[noreturn]] void die()
{
    std::raise(SIGKILL);
    std::abort();
}

void stop_halfway()
{
    spht::atomically([](spht::transaction& tx) {
        tx.write(ledger->count[0][0], -1L);
        tx.write(ledger->newest, tx.create(Note{nullptr, -1, -1}));
        die();
    });
}

void work_until_the_medium_fails()
{
    for (int errors = 0; errors < 3;) {
        try {
            print("done 0 " + std::to_string(transfer(0)) + "\n");
        } catch (const spht::error& error) {
            print("error " + std::to_string(error.code()) + "\n");
            ++errors;
        }
    }
    std::_Exit(0);
}

void show_blocks()
{
    sp_heap_statistics figures;
    print(sp_heap_stats(&figures) == SP_OK ? std::to_string(figures.live_blocks) + "\n" : "unknown\n");
}

void show()
{
    long sum = 0;
    for (const long balance : ledger->balance) {
        sum += balance;
    }
    const std::array<long, 2> count = {ledger->count[0][0], ledger->count[1][0]};
    std::array<long, 2> expected = {count[0] / transfers_per_note, count[1] / transfers_per_note};  // notes that are left to be found
    bool whole = sum == 0 && ledger->notes == expected[0] + expected[1];
    for (const Note* note = ledger->newest; note != nullptr && whole; note = note->older) {
        const auto thread = static_cast<std::size_t>(note->thread);
        whole = thread < 2 && note->count == expected[thread]-- * transfers_per_note;
    }
    whole = whole && expected == std::array<long, 2>{0, 0};
    print(std::to_string(count[0]) + " " + std::to_string(count[1]) + (whole ? " whole\n" : " torn\n"));
}

}  // namespace

int main(int argc, char** argv)
{
    if (argc < 3 || sp_open(argv[1], argv[2]) != SP_OK) {
        std::fprintf(stderr, "spht_program: %s\n", sp_last_error());
        return 1;
    }
    ledger = static_cast<Ledger*>(sp_root("ledger", sizeof(Ledger)));
    if (ledger == nullptr) {
        std::fprintf(stderr, "spht_program: %s\n", sp_last_error());
        return 1;
    }
    for (int i = 3; i < argc; ++i) {
        const std::string command = argv[i];
        if (command.starts_with("transfer=")) {
            for (long left = std::stol(command.substr(9)); left != 0; --left) {
                transfer(0);
            }
        } else if (command == "run") {
            run();
        } else if (command == "fail") {
            work_until_the_medium_fails();
        } else if (command == "halfway") {
            stop_halfway();
        } else if (command == "blocks") {
            show_blocks();
        } else if (command == "show") {
            show();
        } else if (command == "die") {
            die();
        } else {
            std::fprintf(stderr, "spht_program: no command '%s'\n", command.c_str());
            return 1;
        }
    }
    return sp_close() == SP_OK ? 0 : 1;
}
