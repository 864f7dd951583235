#include "worker.hpp"

#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace bench {

TurnThreads::TurnThreads(TurnWorkload& workload, unsigned threads)
    : work_([this, &workload](unsigned thread, std::uint64_t deadline_ns) {
          Random own = random_[thread];  // on this thread's stack: the list's neighbours share cache lines
          std::uint64_t done = 0;
          while (monotonic_ns() < deadline_ns) {
              done += workload.perform(thread, own);
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

int serve(TurnWorkload& workload, unsigned threads)
{
    TurnThreads slices(workload, threads);
    workload.settle();
    std::puts("ready");
    std::fflush(stdout);
    char line[64];
    while (std::fgets(line, sizeof line, stdin) != nullptr) {
        std::uint64_t slice_ns = 0;
        if (std::sscanf(line, "run %" SCNu64, &slice_ns) != 1) {
            break;
        }
        const std::uint64_t cpu_before = process_cpu_ns();
        const SliceThreads::Slice slice = slices.run(slice_ns);
        const std::uint64_t cpu_after = process_cpu_ns();
        workload.settle();
        std::printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", slice.operations, slice.wall_ns,
                    cpu_after - cpu_before, process_cpu_ns() - cpu_after);
        std::fflush(stdout);
    }
    return EXIT_SUCCESS;
}

bool parse(const char* text, std::uint64_t minimum, std::uint64_t maximum, std::uint64_t& out)
{
    const char* end = text + std::strlen(text);
    const auto parsed = std::from_chars(text, end, out);
    return parsed.ec == std::errc() && parsed.ptr == end && out >= minimum && out <= maximum;
}

}  // namespace bench
