// A program whose pool grows: full_test.py fills the cluster under it.
//
// Usage: growing ACKNOWLEDGED STEPS
// Each step makes a block and puts it at the head of a list. STEPS is a file that has how many this start has done; ACKNOWLEDGED gets a
// line "epoch blocks" for each epoch that is known to be durable. Main returns when there is a file STEPS.end.

#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <string>
#include <thread>
#include <unistd.h>

#include "stillpoint/stillpoint.h"

namespace {

constexpr std::size_t block_bytes = 16 << 10;
constexpr std::chrono::milliseconds between_steps{10};

struct Block {
    Block* next;
    std::uint64_t number;
    char bytes[block_bytes - 16];
};
struct State {
    std::mutex guard;
    Block* newest;
    std::uint64_t blocks;
};

State* state = nullptr;
std::atomic<std::uint64_t> known{0};

bool is_sound()
{
    std::uint64_t number = state->blocks;
    for (const Block* block = state->newest; block != nullptr; block = block->next, --number) {
        if (block->number != number || block->bytes[number % sizeof block->bytes] != static_cast<char>(number)) {
            return false;
        }
    }
    return number == 0;
}

void acknowledge(int file)
{
    for (;;) {
        const std::uint64_t blocks = known;
        const std::uint64_t epoch = sp_epoch();
        if (sp_wait_durable(epoch, -1) != SP_OK) {
            std::printf("refused: %s\n", sp_last_error());
            std::fflush(stdout);
            return;
        }
        dprintf(file, "%" PRIu64 " %" PRIu64 "\n", epoch, blocks);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

void step()
{
    const std::lock_guard hold(state->guard);
    auto* const block = static_cast<Block*>(sp_malloc(sizeof(Block)));
    if (block == nullptr) {
        std::printf("BROKEN: no memory: %s\n", sp_last_error());
        std::fflush(stdout);
        _exit(1);
    }
    block->number = ++state->blocks;
    std::memset(block->bytes, static_cast<char>(block->number), sizeof block->bytes);
    block->next = state->newest;
    state->newest = block;
}

}  // namespace

int main(int count, char** words)
{
    state = count == 3 ? static_cast<State*>(sp_root("growing", sizeof(State))) : nullptr;
    if (state == nullptr) {
        std::fprintf(stderr, "growing: %s\n", count == 3 ? sp_last_error() : "Usage: growing ACKNOWLEDGED STEPS");
        return 64;
    }
    std::printf("growing at the start: %" PRIu64 " blocks%s\n", state->blocks, is_sound() ? "" : " BROKEN");
    std::fflush(stdout);
    known = state->blocks;
    const int acknowledged = open(words[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    const int steps = open(words[2], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    std::thread(acknowledge, acknowledged).detach();
    const std::string end = std::string(words[2]) + ".end";
    for (std::uint64_t done = 1; access(end.c_str(), F_OK) != 0; ++done) {
        step();
        known = state->blocks;
        if (pwrite(steps, &done, sizeof done, 0) != sizeof done) {
            return 1;
        }
        std::this_thread::sleep_for(between_steps);
    }
    std::printf("main returns\n");
    std::fflush(stdout);
    return 0;
}
