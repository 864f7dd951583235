// Shows how much a crash and an end lose where a thread comes late to its restart point, and what stands there meanwhile:
//   respct_bounds late     one thread stays between restart points until a line comes in, another has finished its work
//   respct_bounds waiting  counts, asks for a checkpoint after restart point 7, counts again, and is killed
//   respct_bounds end MS   main returns while another thread stays between restart points for so long
// Each prints first what it finds. bounds_test.py judges.

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <thread>
#include <unistd.h>

#include "stillpoint/respct.hpp"
#include "stillpoint/stillpoint.h"

namespace respct = stillpoint::respct;

namespace {

struct State {
    respct::logged<std::uint64_t> late, early;
};

struct Locals {
    respct::logged<std::uint64_t> count;
};

struct Guarded {
    respct::mutex lock;
};

std::atomic<bool> inside{false};
std::atomic<bool> may_go_on{false};

void wait_for_a_line()
{
    const respct::blocking_call wait;
    std::fflush(stdout);
    std::getchar();
}

/// Stores, and stays between two restart points.
void come_late(State& state)
{
    respct::RP(1);
    ++state.late;
    inside = true;
    while (!may_go_on) {
        usleep(1000);
    }
    respct::RP(2);
    const respct::blocking_call wait;
    pause();
}

void begin_late_thread(State& state)
{
    std::thread(come_late, std::ref(state)).detach();
    const respct::blocking_call wait;
    while (!inside) {
        usleep(1000);
    }
}

int run_late(State& state)
{
    std::printf("late %lu early %lu\n", static_cast<std::uint64_t>(state.late), static_cast<std::uint64_t>(state.early));
    begin_late_thread(state);
    respct::RP(3);
    ++state.early;
    respct::RP(4);
    wait_for_a_line();
    may_go_on = true;
    wait_for_a_line();
    return 0;
}

int run_waiting()
{
    auto& guarded = *respct::root<Guarded>("guarded");
    static std::mutex ordinary;
    respct::thread_frame<Locals> frame("worker");
    std::printf("place %d count %lu\n", frame.resumes_at(), static_cast<std::uint64_t>(frame->count));
    respct::RP(7);
    ++frame->count;
    std::printf("checkpoint %d", sp_checkpoint());
    ++frame->count;
    guarded.lock.lock();
    std::printf(" locked %d %d", sp_checkpoint(), sp_wait_durable(sp_epoch(), -1));
    guarded.lock.unlock();
    ordinary.lock();
    std::printf(" %d %d\n", sp_checkpoint(), sp_wait_durable(sp_epoch(), -1));
    ordinary.unlock();
    std::fflush(stdout);
    return kill(getpid(), SIGKILL);
}

int run_to_end(State& state, unsigned milliseconds)
{
    std::printf("late %lu early %lu\n", static_cast<std::uint64_t>(state.late), static_cast<std::uint64_t>(state.early));
    begin_late_thread(state);
    respct::RP(3);
    ++state.early;
    std::thread([=] {
        usleep(milliseconds * 1000);
        may_go_on = true;
    }).detach();
    return 0;
}

}  // namespace

int main(int argc, char** argv)
{
    const std::string_view what = argc > 1 ? argv[1] : "";
    if (what == "waiting") {
        return run_waiting();
    }
    State& state = *respct::root<State>("state");
    return what == "late" ? run_late(state) : run_to_end(state, static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10)));
}
