// Clients of a durable string_map, each of which waits until what it has put is durable.
//
// Usage: pronto_group_commit threads=N value_bytes=N [ahead=N]
//
// ahead: each client has so many operations under way that it has not waited for. Each counts when it was waited for.
//
//   slice NS   -> operations, wall_ns, cpu_ns, settle_wall_ns, settle_cpu_ns, counters

#include <string>
#include <vector>

#include "../harness/clock.hpp"
#include "../harness/ending.hpp"
#include "../harness/random.hpp"
#include "../harness/slice_threads.hpp"
#include "durable_side.hpp"
#include "records.hpp"
#include "stillpoint/durable/string_map.hpp"

namespace bench {
namespace {

constexpr std::uint64_t keys_of_each = 1000;

void run(const Settings& settings)
{
    Side side(settings);
    auto& map = stillpoint::pronto::get_object<stillpoint::durable::string_map>("bench.clients");
    const std::uint64_t value_bytes = settings.number("value_bytes", 100);
    const std::uint64_t ahead = settings.number("ahead", 0);
    SliceThreads threads(static_cast<unsigned>(settings.number("threads", 1)), false);
    const SliceThreads::Work work = [&](unsigned thread, std::uint64_t deadline_ns) {
        RecordValue value(value_bytes);
        Random random(thread + 1);
        std::uint64_t done = 0;
        std::vector<stillpoint::pronto::durable_future> under_way(ahead);
        for (; monotonic_ns() < deadline_ns; ++done) {
            const RecordKey key(thread * keys_of_each + random.below(keys_of_each));
            if (ahead == 0) {
                map.put(key.view(), value.of(done));
                continue;
            }
            under_way[done % ahead].wait();
            stillpoint::pronto::without_waiting batch;
            map.put(key.view(), value.of(done));
            under_way[done % ahead] = batch.commit_async();
        }
        for (const auto& one : under_way) {
            one.wait();
        }
        return done;
    };
    Commands commands;
    commands.add("slice", 1, [&](const Commands::Numbers& numbers, Answer& answer) {
        side.begin();
        Stopwatch watch;
        const std::uint64_t operations = threads.run(numbers[0], work).operations;
        watch.lap();
        side.settle();
        side.add_counters(answer);  // a runtime publishes its counters at a snapshot
        watch.add_to(answer, operations);
    });
    commands.serve(Answer().text("side", Side::name));
}

}  // namespace
}  // namespace bench

int main(int count, char** words) { return bench::worker_main(count, words, &bench::run); }
