#pragma once
// The numbers that a ledger's threads were told, in a file that the kernel keeps when the process is killed.
//
// A new file promises nothing: the start that makes it notes in it what it found. tests/cluster compares the files of all owners of a
// pool, tests/kill gives each start the same file.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

inline bool waits_where_refused = false;
inline std::chrono::milliseconds between_operations{0};  ///< of a thread

/// The words "ACKNOWLEDGED THREADS OPERATIONS [wait [PAUSE_MS]]". The number of threads; 0: they are others.
inline unsigned threads_in(int count, char** words, unsigned most)
{
    waits_where_refused = count >= 5 && std::string(words[4]) == "wait";
    if (count == 6 && waits_where_refused) {
        between_operations = std::chrono::milliseconds(std::strtoul(words[5], nullptr, 10));
    }
    const bool is_known = count == 4 || (waits_where_refused && count <= 6);
    const auto threads = is_known ? static_cast<unsigned>(std::strtoul(words[2], nullptr, 10)) : 0;
    return threads <= most ? threads : 0;
}

inline void pause_between_operations()
{
    if (between_operations.count() != 0) {
        std::this_thread::sleep_for(between_operations);
    }
}

/// The medium may refuse to make anything more durable: then the promises so far are all that is left to keep.
inline void stop_where_refused(const char* reason)
{
    if (!waits_where_refused) {
        return;
    }
    std::printf("refused: %s\n", reason);
    std::fflush(stdout);
    for (;;) {
        pause();
    }
}

template <unsigned kind_count, unsigned threads_max>
struct Told {
    std::atomic<std::uint64_t> durable_epoch;
    std::atomic<std::uint64_t> has_begun;  ///< a start has noted what it found, and works
    struct Thread {
        std::atomic<std::uint64_t> found[kind_count], begun[kind_count], acknowledged[kind_count];
    } threads[threads_max];

    /// The text for a thread that has done `is` of a kind, and was told otherwise. Empty: they agree.
    std::string problem(unsigned thread, unsigned kind, const char* name, std::uint64_t is) const
    {
        const std::uint64_t first = threads[thread].begun[kind], last = threads[thread].acknowledged[kind];
        if (has_begun == 0 || (is >= last && is <= first)) {
            return "";
        }
        return std::string(is < last ? " LOST: " : " BROKEN: ") + name + " of thread " + std::to_string(thread) + " are " +
               std::to_string(is) + ", acknowledged " + std::to_string(last) + ", begun " + std::to_string(first);
    }

    template <typename Numbers>
    void note_start(unsigned thread, const Numbers& done)
    {
        for (unsigned kind = 0; kind < kind_count; ++kind) {
            Thread& own = threads[thread];
            own.begun[kind] = own.acknowledged[kind] = done[kind];
            if (has_begun == 0) {
                own.found[kind] = done[kind];
            }
        }
    }

    static Told* open(const char* path)
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
};
