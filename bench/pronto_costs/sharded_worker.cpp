// Insertions of several threads into 32 unordered maps with a lock each: Pronto, Figures 5.4 and 5.7.
//
// Usage: pronto_sharded_SIDE threads=N value_bytes=N inserts=N [folder=DIR]
//
//   fill     the threads insert `inserts` elements together; then the maps are emptied
//            -> operations, wall_ns, cpu_ns, settle_wall_ns, settle_cpu_ns, and counters where the side has some

#include <string>

#if defined(PRONTO_SIDE_DURABLE)
#include "durable_sharded_map.hpp"
#else
#include "volatile_sharded_map.hpp"
#endif

#include "../harness/ending.hpp"
#include "../harness/slice_threads.hpp"
#include "../harness/commands.hpp"
#include "records.hpp"

namespace bench {
namespace {

class Filling {
public:
    explicit Filling(const Settings& settings)
        : side_(settings), map_(sharded_map(side_)), inserts_(settings.number("inserts", 10'000)),
          value_bytes_(settings.number("value_bytes", 1024)), threads_(static_cast<unsigned>(settings.number("threads", 1)), true)
    {
    }

    void fill(Answer& answer)
    {
        const std::uint64_t each = inserts_ / threads_.count();
        const SliceThreads::Work work = [&](unsigned thread, std::uint64_t) {
            RecordValue value(value_bytes_);
            const std::uint64_t first = next_ + thread * each;
            for (std::uint64_t number = first; number < first + each; ++number) {
                map_.insert(RecordKey(number).view(), value.of(number));
            }
            return each;
        };
        side_.begin();
        Stopwatch watch;
        const std::uint64_t operations = threads_.run(0, work).operations;
        watch.lap();
        side_.settle();
        side_.add_counters(answer);  // a runtime publishes its counters at a snapshot
        watch.add_to(answer, operations);
        next_ += operations;
        if (map_.size() != operations) {
            give_up("the map has " + std::to_string(map_.size()) + " elements, not " + std::to_string(operations));
        }
        map_.clear();
        side_.settle();
    }

private:
    Side side_;
    ShardedMap& map_;
    std::uint64_t inserts_;
    std::uint64_t value_bytes_;
    SliceThreads threads_;
    std::uint64_t next_ = 0;
};

void run(const Settings& settings)
{
    Filling filling(settings);
    Commands commands;
    commands.add("fill", 0, [&](const Commands::Numbers&, Answer& answer) { filling.fill(answer); });
    commands.serve(Answer().text("side", Side::name));
}

}  // namespace
}  // namespace bench

int main(int count, char** words) { return bench::worker_main(count, words, &bench::run); }
