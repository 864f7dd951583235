// As loop.c, with a vector of stillpoint.hpp.

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "stillpoint/stillpoint.hpp"

int main(int argc, char** argv)
{
    using Clock = std::chrono::steady_clock;
    const std::chrono::duration<double> seconds(argc > 1 ? std::atof(argv[1]) : 1);
    const long per_section = argc > 2 ? std::atol(argv[2]) : 1;
    auto& numbers = stillpoint::root<stillpoint::vector<long>>("numbers", 1000UL);
    const auto begin = Clock::now();
    unsigned long done = 0;
    while (Clock::now() - begin < seconds) {
        for (int i = 0; i < 100; ++i) {
            stillpoint::atomically([&] {
                for (long j = 0; j < per_section; ++j) {
                    volatile long& number = numbers[done++ % 1000];
                    number = number + 1;
                }
            });
        }
    }
    std::printf("%.0f\n", static_cast<double>(done) / std::chrono::duration<double>(Clock::now() - begin).count());
    return 0;
}
