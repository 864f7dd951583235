#pragma once
// Work on all zones of a pool at opening, by several threads.

#include <array>
#include <atomic>
#include <cstdint>

#include "core/result.hpp"
#include "engines/breeze/breeze_layout.hpp"
#include "os/service_thread.hpp"

namespace stillpoint::breeze {

/// Calls work(worker, zone) for each zone; a worker is a number below `threads`, which is at most rewriters_max. One zone is visited by
/// one thread. Threads that cannot be started are done without.
template <class Work>
void for_each_zone(std::uint64_t zones, unsigned threads, Work&& work)
{
    struct Team {
        Work* work;
        std::uint64_t zones;
        std::atomic<std::uint64_t> next{0};

        void take(unsigned worker)
        {
            constexpr std::uint64_t at_once = 4;
            for (std::uint64_t first = next.fetch_add(at_once); first < zones; first = next.fetch_add(at_once)) {
                for (std::uint64_t zone = first; zone < zones && zone < first + at_once; ++zone) {
                    (*work)(worker, zone);
                }
            }
        }
    };
    struct Member {
        Team* team;
        unsigned number;
        os::ServiceThread thread;
    };
    Team team{&work, zones};
    std::array<Member, rewriters_max> members;
    for (unsigned number = 1; number < threads; ++number) {
        members[number].team = &team;
        members[number].number = number;
        static_cast<void>(members[number].thread.start(
            "sp-scan",
            [](void* self) {
                auto* const member = static_cast<Member*>(self);
                member->team->take(member->number);
            },
            &members[number]));
    }
    team.take(0);
    for (unsigned number = 1; number < threads; ++number) {
        if (members[number].thread.running()) {
            members[number].thread.join();
        }
    }
}

}  // namespace stillpoint::breeze
