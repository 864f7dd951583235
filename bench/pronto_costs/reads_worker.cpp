// A filled container of stillpoint/durable: as a durable object, and as the same class in ordinary memory (without_pool).
//
// Usage: pronto_reads_SIDE container=map|unordered_map|vector|string_map|sharded_string_map keys=N [value_bytes=N settles=0]
//
// At its start it fills the container, if that is empty, and takes a snapshot, unless settles=0. The first answer: object_bytes, the size
// of the class itself, which is the same on both sides.
//
//   read NS THREADS   the threads read values of random keys for NS -> operations, wall_ns, cpu_ns, settle_wall_ns, settle_cpu_ns
//   update N          gives N random keys another value of the same size, where the container can: the string maps
//   snapshot          waits until a snapshot is durable

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "../harness/clock.hpp"
#include "../harness/commands.hpp"
#include "../harness/ending.hpp"
#include "../harness/random.hpp"
#include "../harness/slice_threads.hpp"
#include "records.hpp"
#include "stillpoint/durable/map.hpp"
#include "stillpoint/durable/sharded_string_map.hpp"
#include "stillpoint/durable/string_map.hpp"
#include "stillpoint/durable/unordered_map.hpp"
#include "stillpoint/durable/vector.hpp"

#if defined(PRONTO_SIDE_DURABLE)
#include "durable_side.hpp"
#endif

namespace bench {
namespace {

namespace durable = stillpoint::durable;

#if defined(PRONTO_SIDE_DURABLE)
void settle() { take_snapshot(); }
constexpr const char* side_name = "pronto";
#else
void settle() {}
constexpr const char* side_name = "volatile";
#endif

std::uint64_t first_word(std::string_view value) noexcept
{
    std::uint64_t word = 0;
    std::memcpy(&word, value.data(), sizeof word);
    return word;
}

/// std's interface: map and unordered_map.
template <class Map>
class StandardMap {
public:
    explicit StandardMap(const std::string& name) : map_(stillpoint::pronto::get_object<Map>(name)) {}
    void put(std::uint64_t number, std::string_view value) { map_.insert(RecordKey(number).view(), value); }
    [[nodiscard]] std::uint64_t read(std::uint64_t number) const
    {
        const auto found = map_.find(RecordKey(number).view());
        return found == map_.end() ? 0 : first_word(found->second);
    }
    [[nodiscard]] std::size_t size() const { return map_.size(); }
    static constexpr std::size_t object_bytes = sizeof(Map);

private:
    Map& map_;
};

class Vector {
public:
    explicit Vector(const std::string& name) : vector_(stillpoint::pronto::get_object<Values>(name)) {}
    void put(std::uint64_t, std::string_view value) { vector_.push_back(value); }
    [[nodiscard]] std::uint64_t read(std::uint64_t number) const { return first_word(vector_[number]); }
    [[nodiscard]] std::size_t size() const { return vector_.size(); }

private:
    using Values = durable::vector<std::string>;

public:
    static constexpr std::size_t object_bytes = sizeof(Values);

private:
    Values& vector_;
};

/// `Map`: what reads by visit(), a reference to an object or a handle.
template <class Map, std::size_t bytes>
class VisitedMap {
public:
    explicit VisitedMap(Map map) : map_(map) {}
    void put(std::uint64_t number, std::string_view value) { map_.put(RecordKey(number).view(), value); }
    [[nodiscard]] std::uint64_t read(std::uint64_t number) const
    {
        std::uint64_t word = 0;
        map_.visit(RecordKey(number).view(), [&](std::string_view value) { word = first_word(value); });
        return word;
    }
    [[nodiscard]] std::size_t size() const { return map_.size(); }
    static constexpr std::size_t object_bytes = bytes;

private:
    Map map_;
};
using StringMap = VisitedMap<durable::string_map&, sizeof(durable::string_map)>;
using ShardedMap = VisitedMap<durable::sharded_string_map, sizeof(durable::string_map_shard)>;

template <class Container>
class Work {
public:
    Work(Container& container, const Settings& settings)
        : container_(container), keys_(settings.number_from("keys", 1, 1u << 30)), value_(settings.number("value_bytes", 64))
    {
    }

    void fill()
    {
        const stillpoint::pronto::without_waiting batch;
        for (std::uint64_t number = container_.size(); number < keys_; ++number) {
            container_.put(number, value_.of(number));
        }
    }
    void update(std::uint64_t updates)
    {
        const stillpoint::pronto::without_waiting batch;
        Random random(updates);
        for (std::uint64_t i = 0; i < updates; ++i) {
            container_.put(random.below(keys_), value_.of(keys_ + i));
        }
    }
    void read(std::uint64_t slice_ns, std::size_t threads, Answer& answer)
    {
        while (threads_.size() < threads) {
            threads_.push_back(std::make_unique<SliceThreads>(static_cast<unsigned>(threads_.size()) + 1, true));
        }
        ++round_;
        Stopwatch watch;
        const SliceThreads::Slice slice = threads_[threads - 1]->run(
            slice_ns, [this](unsigned thread, std::uint64_t deadline_ns) { return read_until(deadline_ns, round_ * 64 + thread); });
        watch.lap();
        watch.add_to(answer, slice.operations, slice.wall_ns);
    }

private:
    [[nodiscard]] std::uint64_t read_until(std::uint64_t deadline_ns, std::uint64_t seed) const
    {
        constexpr std::uint64_t reads_between_looks = 64;
        Random random(seed);
        std::uint64_t reads = 0;
        std::uint64_t missing = 0;
        do {
            for (std::uint64_t i = 0; i < reads_between_looks; ++i) {
                missing += std::uint64_t{container_.read(random.below(keys_)) == 0};
            }
            reads += reads_between_looks;
        } while (monotonic_ns() < deadline_ns);
        if (missing != 0) {
            give_up(std::to_string(missing) + " keys are not there");
        }
        return reads;
    }

    Container& container_;
    std::uint64_t keys_;
    RecordValue value_;
    std::vector<std::unique_ptr<SliceThreads>> threads_;
    std::uint64_t round_ = 0;
};

template <class Container>
void serve(Container container, const Settings& settings)
{
    Work<Container> work(container, settings);
    work.fill();
    if (settings.number("settles", 1) != 0) {
        settle();
    }
    using Numbers = const Commands::Numbers&;
    Commands commands;
    commands.add("read", 2, [&](Numbers numbers, Answer& answer) { work.read(numbers[0], numbers[1], answer); });
    commands.add("update", 1, [&](Numbers numbers, Answer&) { work.update(numbers[0]); });
    commands.add("snapshot", 0, [](Numbers, Answer&) { settle(); });
    commands.serve(Answer().text("side", side_name).number("object_bytes", Container::object_bytes));
}

void run(const Settings& settings)
{
    const std::string name = "bench.reads";
    const std::string container = settings.text("container");
    if (container == "map") {
        serve(StandardMap<durable::map<std::string, std::string>>(name), settings);
    } else if (container == "unordered_map") {
        serve(StandardMap<durable::unordered_map<std::string, std::string>>(name), settings);
    } else if (container == "vector") {
        serve(Vector(name), settings);
    } else if (container == "string_map") {
        serve(StringMap(stillpoint::pronto::get_object<durable::string_map>(name)), settings);
    } else if (container == "sharded_string_map") {
        serve(ShardedMap(durable::sharded_string_map(name)), settings);
    } else {
        give_up("container=" + container + ": it has no such container");
    }
}

}  // namespace
}  // namespace bench

int main(int count, char** words) { return bench::worker_main(count, words, &bench::run); }
