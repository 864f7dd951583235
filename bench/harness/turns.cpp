#include "turns.hpp"

namespace bench {

TurnThreads::TurnThreads(TurnWorkload& workload, unsigned threads)
    : workload_(workload), work_([this](unsigned thread, std::uint64_t deadline_ns) {
          Random own = random_[thread];  // on this thread's stack: the list's neighbours share cache lines
          std::uint64_t done = 0;
          while (monotonic_ns() < deadline_ns) {
              done += workload_.perform(thread, own);
          }
          random_[thread] = own;
          return done;
      }),
      threads_(threads, false)
{
    for (unsigned thread = 0; thread < threads; ++thread) {
        random_.emplace_back(thread + 1);
    }
}

void TurnThreads::slice(std::uint64_t slice_ns, Answer& answer)
{
    Stopwatch watch;
    const SliceThreads::Slice slice = run(slice_ns);
    watch.lap();
    workload_.settle();
    watch.add_to(answer, slice.operations, slice.wall_ns);
    workload_.describe(answer);
}

void serve(TurnWorkload& workload, unsigned threads, const Answer& ready)
{
    TurnThreads slices(workload, threads);
    workload.settle();
    Commands commands;
    commands.add("slice", 1, [&](const Commands::Numbers& numbers, Answer& answer) { slices.slice(numbers[0], answer); });
    commands.serve(ready);
}

}  // namespace bench
