// A computation that a crash interrupts anywhere and that continues where it was, with restart points [ResPCT §3.3]: one thread computes
// x^p for a table of rows, as Figure 6 of the paper does, and hands each result to another, which folds them into one number (Figure 7).
//
//     stillpoint run --engine=respct --pool powers.pool -- respct-resume [ROWS [POWER]]
//     kill -9, at any moment; and once more. Without a pool it computes the same in one go.
//
// A thread's state to continue lies in its frame in the pool: its locals, and the id of its last restart point. After a crash all memory
// is as it was when the last durable epoch ended, and each thread enters its code at the restart point where it was then: in the
// middle of a row, or with a result in its hand.

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "stillpoint/respct.hpp"

namespace respct = stillpoint::respct;

namespace {

constexpr std::uint64_t modulus = 2305843009213693951;  // a prime, 2^61 - 1
constexpr std::uint64_t multiplications_between_restart_points = 4096;
constexpr std::uint64_t room = 4;

std::uint64_t product(std::uint64_t one, std::uint64_t other)
{
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>(static_cast<Wide>(one) * other % modulus);
}

/// Results on their way from one thread to the other.
struct Queue {
    respct::mutex guard;
    respct::condition changed;
    respct::logged<std::uint64_t> put, taken;
    respct::logged<std::uint64_t> results[room];
};

/// The ids: each is one place in the code, the same in every run.
enum Place { begin_of_row = 1, inside_row = 2, hand_over = 3, take = 4 };

struct PowersLocals {
    respct::logged<std::uint64_t> row;
    respct::logged<std::uint64_t> x;     ///< read first behind a restart point, and written later: logged
    respct::logged<std::uint64_t> done;  ///< of the row's multiplications
    respct::logged<std::uint64_t> base;  ///< so is this: read after inside_row, and written for the next row
};

std::uint64_t multiplications_here = 0;  // of this run only: not durable

void compute_powers(Queue& queue, std::uint64_t rows, std::uint64_t power)
{
    respct::thread_frame<PowersLocals> frame("powers");
    int place = frame.resumes_at();
    if (place != 0) {
        std::printf("powers continues at restart point %d, in row %" PRIu64 " after %" PRIu64 " multiplications\n", place, frame->row.get(),
                    frame->done.get());
        std::fflush(stdout);
    }
    while (true) {
        if (place <= begin_of_row) {
            respct::RP(begin_of_row);
            if (frame->row == rows) {
                return;
            }
            frame->base = frame->row + 2;
            frame->x = 1;
            frame->done = 0;
        }
        while (place != hand_over && frame->done < power) {
            respct::RP(inside_row);
            std::uint64_t x = frame->x;  // Between two restart points a plain local will do.
            std::uint64_t done = frame->done;
            const std::uint64_t base = frame->base;
            for (std::uint64_t left = multiplications_between_restart_points; left > 0 && done < power; --left, ++done) {
                x = product(x, base);
                ++multiplications_here;
            }
            frame->x = x;
            frame->done = done;
        }
        {
            respct::critical_section section(hand_over, queue.guard);
            section.wait(queue.changed, [&queue] { return queue.put - queue.taken < room; });
            queue.results[queue.put % room] = frame->x;
            ++queue.put;
            ++frame->row;
            queue.changed.notify_all();
        }
        place = 0;
    }
}

struct DigestLocals {
    respct::logged<std::uint64_t> digest;
    respct::logged<std::uint64_t> count;
};

std::uint64_t fold(Queue& queue, std::uint64_t rows)
{
    respct::thread_frame<DigestLocals> frame("digest");  // The thread has one restart point: there is no other place to go on.
    while (frame->count < rows) {
        respct::critical_section section(take, queue.guard);
        section.wait(queue.changed, [&queue] { return queue.put != queue.taken; });
        frame->digest = product(frame->digest + queue.results[queue.taken % room], 31);
        ++frame->count;
        ++queue.taken;
        queue.changed.notify_all();
    }
    return frame->digest;
}

}  // namespace

int main(int count, char** words)
{
    const std::uint64_t rows = count > 1 ? std::strtoull(words[1], nullptr, 10) : 100;
    const std::uint64_t power = count > 2 ? std::strtoull(words[2], nullptr, 10) : 1000000;
    auto& queue = *respct::root<Queue>("queue");
    std::uint64_t digest = 0;
    {
        const respct::blocking_call wait;  // This thread only waits for the others.
        std::thread powers([&] { compute_powers(queue, rows, power); });
        std::thread folding([&] { digest = fold(queue, rows); });
        powers.join();
        folding.join();
    }
    std::printf("%" PRIu64 " rows, digest %016" PRIx64 ", %" PRIu64 " multiplications in this run\n", rows, digest, multiplications_here);
    return 0;
}
