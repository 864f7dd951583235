// Insertions into one container, on one side: Pronto, Figures 5.6 and 5.8.
//
// Usage: pronto_containers_SIDE container=map|unordered_map|vector|priority_queue value_bytes=N inserts=N [folder=DIR pool_mib=N]
//
//   fill     inserts `inserts` elements into the empty container, waits until all is durable, and empties it again
//            -> operations, wall_ns, cpu_ns, settle_wall_ns, settle_cpu_ns, and counters where the side has some

#include <string>

#if defined(PRONTO_SIDE_DURABLE)
#include "durable_containers.hpp"
#elif defined(PRONTO_SIDE_PMEMOBJ)
#include "pmemobj_containers.hpp"
#else
#include "volatile_containers.hpp"
#endif

#include "../harness/ending.hpp"
#include "../harness/commands.hpp"
#include "records.hpp"

namespace bench {
namespace {

template <class Container>
class Filling {
public:
    Filling(Side& side, const Settings& settings)
        : side_(side), inserts_(settings.number("inserts", 10'000)), value_(settings.number("value_bytes", 64)), container_(side, inserts_)
    {
    }

    /// New keys each time: nothing of an earlier life of the container makes the next one cheaper.
    void fill(Answer& answer)
    {
        side_.begin();
        Stopwatch watch;
        for (std::uint64_t i = 0; i < inserts_; ++i) {
            container_.insert(RecordKey(next_).view(), value_.of(next_));
            ++next_;
        }
        watch.lap();
        side_.settle();
        side_.add_counters(answer);  // a runtime publishes its counters at a snapshot
        watch.add_to(answer, inserts_);
        if (container_.size() != inserts_) {
            give_up("the container has " + std::to_string(container_.size()) + " elements, not " + std::to_string(inserts_));
        }
        container_.clear();
        side_.settle();
    }

private:
    Side& side_;
    std::uint64_t inserts_;
    RecordValue value_;
    Container container_;
    std::uint64_t next_ = 0;
};

template <class Container>
void serve(Side& side, const Settings& settings)
{
    Filling<Container> filling(side, settings);
    Commands commands;
    commands.add("fill", 0, [&](const Commands::Numbers&, Answer& answer) { filling.fill(answer); });
    commands.serve(Answer().text("side", Side::name));
}

void run(const Settings& settings)
{
    Side side(settings);
    const std::string container = settings.text("container");
    if (container == "map") {
        serve<OrderedMap>(side, settings);
    } else if (container == "unordered_map") {
        serve<UnorderedMap>(side, settings);
#if !defined(PRONTO_SIDE_PMEMOBJ)
    } else if (container == "vector") {
        serve<Vector>(side, settings);
    } else if (container == "priority_queue") {
        serve<PriorityQueue>(side, settings);
#endif
    } else {
        give_up("container=" + container + ": this side has no such container");
    }
}

}  // namespace
}  // namespace bench

int main(int count, char** words) { return bench::worker_main(count, words, &bench::run); }
