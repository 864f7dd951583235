// The programs over durable objects.

#include <string>

#include "objects/changed_methods.hpp"
#include "objects/concurrent_programs.hpp"
#include "objects/sequential_objects.hpp"
#include "objects/sharded_strings.hpp"
#include "objects/slot.hpp"

namespace stillpoint::explorer {

namespace {

void change(ExploredMap& map, Random& random)
{
    const std::uint64_t key = random() % 12;
    if (random() % 3 == 0) {
        map.erase(key);
    } else {
        map.insert(key, std::string(random() % 150, static_cast<char>('a' + random() % 26)));
    }
}

/// True: something is acknowledged.
bool change(ExploredQueue& queue, Random& random)
{
    if (random() % 5 < 3) {
        queue.push(random());
        return true;
    }
    try {
        queue.pop();
        return true;
    } catch (const std::out_of_range&) {
        return false;
    }
}

void change(ExploredList& list, Random& random)
{
    switch (random() % 6) {
    case 0: list.keep_last(random() % 8); break;
    case 1: list.append_twice(random()); break;
    case 2: list.refrain(random()); [[fallthrough]];
    default: {
        std::vector<std::uint64_t> values(random() % 40);
        for (std::uint64_t& value : values) {
            value = random();
        }
        list.append(values);
    }
    }
}

class Map final : public ObjectWorkload {
    void find_objects() override { map_.find(); }
    PartDigests digests() const override
    {
        PartDigests all;
        map_.add_to(all);
        return all;
    }
    void perform(Random& random) override
    {
        ExploredMap& map = map_.get(random);
        const std::uint64_t before = map.digest();
        change(map, random);
        if (map.digest() != before) {
            map.acknowledge();
        }
        take_snapshot_sometimes(random);
    }
    Slot<ExploredMap> map_{"map", 0};
};

/// Several objects, which come and go; operations that throw, refrain, or call each other.
class Several final : public ObjectWorkload {
    void find_objects() override
    {
        map_.find();
        queue_.find();
        list_.find();
    }
    PartDigests digests() const override
    {
        PartDigests all;
        map_.add_to(all);
        queue_.add_to(all);
        list_.add_to(all);
        return all;
    }
    void perform(Random& random) override
    {
        switch (random() % 4) {
        case 0: perform_on(map_, random); break;
        case 1: perform_on(queue_, random); break;
        default: perform_on(list_, random); break;
        }
        if (random() % 4 == 0) {
            take_snapshot_sometimes(random);
        }
    }

    template <class Object>
    static void perform_on(Slot<Object>& slot, Random& random)
    {
        if (slot.exists() && random() % 9 == 0) {
            slot.remove();
            return;
        }
        Object& object = slot.get(random);
        const std::uint64_t before = object.digest();
        change(object, random);
        if (object.digest() != before) {
            object.acknowledge();
        }
    }

    Slot<ExploredMap> map_{"map", 0};
    Slot<ExploredQueue> queue_{"queue", 1};
    Slot<ExploredList> list_{"list", 2};
};

/// Arguments as large as a chunk of the log, so that it wraps; snapshots come as it asks for them.
class LongArguments final : public ObjectWorkload {
    void find_objects() override { list_.find(); }
    PartDigests digests() const override
    {
        PartDigests all;
        list_.add_to(all);
        return all;
    }
    void perform(Random& random) override
    {
        ExploredList& list = list_.get(random);
        const std::vector<std::uint64_t> values(random() % 6 == 0 ? random() % 40'000 : random() % 9'000, random());
        list.append(values);
        list.acknowledge();
        list.keep_last(random() % 100);
        list.acknowledge();
    }
    Slot<ExploredList> list_{"list", 0};
};

/// Which threads log.
std::string pronto_options(std::uint64_t seed)
{
    constexpr const char* loggings[] = {"sync", "async", "auto"};
    return std::string(" staging_max_mb=64 pronto_logging=") + loggings[seed % std::size(loggings)];
}

template <class Workload>
std::unique_ptr<ObjectWorkload> make()
{
    return std::make_unique<Workload>();
}

}  // namespace

const std::vector<ObjectWorkloadEntry>& object_workloads()
{
    static const std::vector<ObjectWorkloadEntry> entries = {
        {"map", &make<Map>, 14, &pronto_options},
        {"several", &make<Several>, 24, &pronto_options},
        {"long-arguments", &make<LongArguments>, 20, &pronto_options},
        {"concurrent", &make_concurrent, 3, &pronto_options},
        {"overtaking", &make_overtaking, 5, &pronto_options},
        {"combining", &make_combining, 4, &pronto_options},
        {"changed-methods", &make_changed_methods, 10, &pronto_options},
        {"sharded-strings", &make_sharded_strings, 6, &pronto_options},
    };
    return entries;
}

}  // namespace stillpoint::explorer
