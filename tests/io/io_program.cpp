// Reads a file into durable memory, by a way that the command line names, and can tell afterwards whether every byte is there.
//
//   io_program WAY FILE [--threads N] [--calls N] [--megabytes N] [--then-kill 1]
//
// Each thread has chunks of 1 MiB. In one failure-atomic section it fills a chunk from a random place of the file
// and notes the place. So in every epoch each chunk holds what the file has at the noted place: that is verified first, and
// the number of pages that do not is printed. Then it reads until it is killed, or so many calls in each thread. With
// --then-kill it takes a checkpoint after those and kills itself.
//
// Exit codes: 0 done; 2 cannot run; 3 pages are stale; 5 a call failed or was short.

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <mutex>
#include <random>
#include <string_view>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "io_ways.hpp"
#include "marks_by_hand.h"
#include "stillpoint/stillpoint.h"

namespace {

constexpr std::size_t chunk_bytes = 1 << 20;
constexpr std::size_t page_bytes = 4096;
constexpr unsigned threads_max = 8;
constexpr unsigned chunks_max = 64;

struct Chunk {
    std::uint64_t place;  ///< 1 + offset in the file; 0: never filled
    unsigned char* bytes;
};

struct State {
    std::uint64_t made;
    Chunk chunks[threads_max][chunks_max];
};

struct Arguments {
    std::string_view way;
    const char* file = nullptr;
    unsigned threads = 1;
    std::uint64_t calls = 0;  ///< of each thread; 0: until killed
    unsigned chunks = 8;
    bool then_kill = false;
};

Arguments arguments;
State* state;
std::mutex locks[threads_max];
std::atomic<bool> failed{false};

[[noreturn]] void end(int code, const char* what)
{
    std::fprintf(stderr, "io_program: %s\n", what);
    _exit(code);
}

/// Bytes are kept apart from the records, page by page.
void make_state()
{
    sp_fase_begin();
    for (unsigned thread = 0; thread < arguments.threads; ++thread) {
        for (unsigned i = 0; i < arguments.chunks; ++i) {
            state->chunks[thread][i].bytes = static_cast<unsigned char*>(sp_aligned_alloc(page_bytes, chunk_bytes));
            if (state->chunks[thread][i].bytes == nullptr) {
                end(2, sp_last_error());
            }
        }
    }
    state->made = 1;
    sp_mark_written(state, sizeof *state);
    sp_fase_end();
}

std::uint64_t stale_pages(int file, const Chunk& chunk)
{
    static unsigned char wanted[chunk_bytes];
    if (pread(file, wanted, sizeof wanted, static_cast<off_t>(chunk.place - 1)) != static_cast<ssize_t>(sizeof wanted)) {
        end(2, "the file is not what it was");
    }
    std::uint64_t stale = 0;
    for (std::size_t at = 0; at < chunk_bytes; at += page_bytes) {
        stale += std::memcmp(wanted + at, chunk.bytes + at, page_bytes) != 0 ? 1 : 0;
    }
    return stale;
}

void verify(int file)
{
    std::uint64_t filled = 0;
    std::uint64_t stale = 0;
    for (const auto& of_thread : state->chunks) {
        for (const Chunk& chunk : of_thread) {
            if (chunk.place != 0) {
                ++filled;
                stale += stale_pages(file, chunk);
            }
        }
    }
    std::printf("epoch %llu: %llu of %llu pages are stale\n", static_cast<unsigned long long>(sp_durable_epoch()),
                static_cast<unsigned long long>(stale), static_cast<unsigned long long>(filled * (chunk_bytes / page_bytes)));
    std::fflush(stdout);
    if (stale != 0) {
        _exit(3);
    }
}

void work(unsigned thread, std::uint64_t file_bytes)
{
    const auto way = io_ways::make_way(arguments.way, arguments.file);
    std::minstd_rand random(static_cast<unsigned>(getpid()) * 7 + thread);
    for (std::uint64_t call = 0; (arguments.calls == 0 || call < arguments.calls) && !failed; ++call) {
        Chunk& chunk = state->chunks[thread][random() % arguments.chunks];
        const std::uint64_t offset = random() % ((file_bytes - chunk_bytes) / page_bytes) * page_bytes;
        const std::lock_guard guard(locks[thread]);
        if (!way->fill(chunk.bytes, chunk_bytes, offset)) {
            failed = true;
        }
        chunk.place = 1 + offset;
        sp_mark_written(&chunk, sizeof chunk);
    }
}

bool parse(int argc, char** argv)
{
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (!word.starts_with("--")) {
            if (arguments.way.empty()) {
                arguments.way = word;
            } else {
                arguments.file = argv[i];
            }
        } else if (i + 1 == argc) {
            return false;
        } else if (const auto value = std::strtoull(argv[++i], nullptr, 10); word == "--threads") {
            arguments.threads = static_cast<unsigned>(value);
        } else if (word == "--calls") {
            arguments.calls = value;
        } else if (word == "--then-kill") {
            arguments.then_kill = value != 0;
        } else if (word == "--megabytes") {
            arguments.chunks = static_cast<unsigned>(value);
        } else {
            return false;
        }
    }
    return arguments.file != nullptr && arguments.threads >= 1 && arguments.threads <= threads_max && arguments.chunks >= 1 &&
           arguments.chunks <= chunks_max;
}

}  // namespace

int main(int argc, char** argv)
{
    if (!parse(argc, argv)) {
        end(2, "usage: io_program WAY FILE [--threads N] [--calls N] [--megabytes N] [--then-kill 1]");
    }
    const int file = open(arguments.file, O_RDONLY | O_CLOEXEC);
    struct stat facts{};
    if (file < 0 || fstat(file, &facts) != 0 || facts.st_size < static_cast<off_t>(2 * chunk_bytes)) {
        end(2, "the file must have 2 MiB or more");
    }
    state = static_cast<State*>(sp_root("io", sizeof *state));
    if (state == nullptr) {
        end(2, sp_last_error());
    }
    const bool verify_only = arguments.way == "verify";
    if (state->made == 0 && !verify_only) {
        make_state();
    }
    verify(file);
    if (verify_only) {
        return 0;
    }
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < arguments.threads; ++i) {
        threads.emplace_back(work, i, static_cast<std::uint64_t>(facts.st_size));
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    if (arguments.then_kill && !failed) {
        if (sp_checkpoint() != 0) {
            end(2, sp_last_error());
        }
        kill(getpid(), SIGKILL);
    }
    return failed ? 5 : 0;
}
