// faults_files' sibling under restart points: a whole life of epochs, or a look at what is there. Prints "start KIND count N", N being -1
// if the counts differ or the large block is not as it was filled, and "commit N result R" for each epoch, where R is sp_checkpoint's.

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>
#include <stdexcept>

#include "stillpoint/respct.hpp"
#include "stillpoint/stillpoint.h"

namespace respct = stillpoint::respct;

namespace {

constexpr std::uint64_t count_total = 4096;  // of 32 bytes and more: over many pages
constexpr std::uint64_t filling = 0x5ca1ab1e0ddba115;

/// More than the pool has at the start.
struct Large {
    std::uint64_t words[(6u << 20) / sizeof(std::uint64_t)];
};

struct State {
    respct::logged<Large*> large;
    respct::logged<std::uint64_t> counts[count_total];
};

long count_of(const State& state)
{
    const std::uint64_t first = state.counts[0];
    for (const auto& count : state.counts) {
        if (count != first) {
            return -1;
        }
    }
    const Large* const large = state.large;
    if (large != nullptr) {
        for (const std::uint64_t word : large->words) {
            if (word != filling) {
                return -1;
            }
        }
    }
    return static_cast<long>(first);
}

int commit(State& state)
{
    respct::RP(1);
    for (auto& count : state.counts) {
        ++count;
    }
    respct::RP(2);
    int result = SP_OK;
    {
        const respct::blocking_call checkpoint;
        result = sp_checkpoint();
    }
    std::printf("commit %ld result %d\n", count_of(state), result);
    if (result != SP_OK) {
        std::printf("error %s\n", sp_last_error());
    }
    std::fflush(stdout);
    return result;
}

void grow(State& state)
{
    if (state.large != nullptr) {
        return;
    }
    respct::RP(3);
    try {
        auto* const large = respct::make<Large>();
        for (std::uint64_t& word : large->words) {
            word = filling;
        }
        respct::add_modified(*large);
        state.large = large;
        std::puts("grown yes");
    } catch (const std::exception&) {
        std::printf("grown %s\n", sp_last_error());
    }
}

int live(State& state)
{
    commit(state);
    grow(state);
    commit(state);
    return commit(state) == SP_OK ? 0 : 4;
}

}  // namespace

int main(int argc, char** argv)
{
    try {
        State& state = *respct::root<State>("state");
        std::printf("start %d count %ld\n", static_cast<int>(sp_start_kind()), count_of(state));
        std::fflush(stdout);
        return argc > 1 && std::strcmp(argv[1], "live") == 0 ? live(state) : 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "faults_lines: %s; %s\n", error.what(), sp_last_error());
        return 3;
    }
}
