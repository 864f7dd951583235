// The programs over durable objects.

#include <exception>
#include <string>
#include <thread>

#include "objects/changed_methods.hpp"
#include "objects/object_workload.hpp"
#include "objects/sequential_objects.hpp"
#include "objects/sharded_map.hpp"

namespace stillpoint::explorer {

namespace {

/// One object of a class, found or made.
template <class Object>
class Slot {
public:
    Slot(std::string name, std::uint64_t number) : name_(std::move(name)), part_(number * parts_of_an_object) {}

    void find() { object_ = pronto::find_object<Object>(name_.c_str()); }
    [[nodiscard]] bool exists() const noexcept { return object_ != nullptr; }
    /// Made where there is none.
    [[nodiscard]] Object& get(Random& random)
    {
        if (object_ == nullptr) {
            object_ = &pronto::get_object<Object>(name_.c_str(), part_, random());
            object_->acknowledge();
        }
        return *object_;
    }
    void remove()
    {
        ObjectNotes::state(part_, absent);
        object_ = nullptr;
        pronto::delete_object(name_.c_str());
        ObjectNotes::acknowledged(part_, absent);
    }
    void add_to(PartDigests& digests) const { digests[part_] = object_ != nullptr ? object_->digest() : absent; }

private:
    std::string name_;
    std::uint64_t part_;
    Object* object_ = nullptr;
};

/// Two snapshots of nine operations.
void take_snapshot_sometimes(Random& random)
{
    if (random() % 9 < 2 && sp_pronto_snapshot() != SP_OK) {
        throw std::runtime_error(sp_last_error());
    }
}

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

/// Two threads: on a map with a lock for each shard, where they read what the other has not yet been told to be durable; or one of them
/// on another object, beside snapshots. Entries are larger than a sector, so that a crash may leave any of them out.
class Concurrent final : public ObjectWorkload {
    void find_objects() override
    {
        map_ = pronto::find_object<ShardedMap>("sharded");
        list_.find();
    }
    PartDigests digests() const override
    {
        PartDigests all;
        for (std::uint64_t shard = 0; shard < ShardedMap::shard_count; ++shard) {
            all[shard] = map_ != nullptr ? map_->digest(shard) : absent;
        }
        list_.add_to(all);
        return all;
    }
    void perform(Random& random) override
    {
        ExploredList& list = list_.get(random);
        make_map(random);
        const std::uint64_t key = random();  // Alone, so that its number is known.
        acknowledge(key, map_->put(key, text(random)));
        ObjectNotes::number(0, map_, true);
        std::exception_ptr failure;
        std::thread other([this, &list, alone = random() % 2 == 0, seed = random(), &failure] {
            try {
                alone ? work_on_list(list, Random(seed)) : work_on_map(Random(seed));
            } catch (...) {
                failure = std::current_exception();
            }
        });
        try {
            work_on_map(Random(random()));
        } catch (...) {
            other.join();
            throw;
        }
        other.join();
        if (failure != nullptr) {
            std::rethrow_exception(failure);
        }
        ObjectNotes::number(0, map_, false);
        take_snapshot_sometimes(random);
    }

    void make_map(Random& random)
    {
        if (map_ == nullptr) {
            map_ = &pronto::get_object<ShardedMap>("sharded", std::uint64_t{0}, random());
            for (std::uint64_t shard = 0; shard < ShardedMap::shard_count; ++shard) {
                ObjectNotes::acknowledged(shard, map_->digest(shard));
            }
        }
    }

    void work_on_map(Random random)
    {
        for (int i = 0; i < 4; ++i) {
            const std::uint64_t key = random() % 16;
            switch (random() % 4) {
            case 0: acknowledge(key, map_->erase(key)); break;
            case 1: acknowledge(key, map_->read(key % ShardedMap::shard_count)); break;
            default: acknowledge(key, map_->put(key, text(random))); break;
            }
        }
    }

    static void work_on_list(ExploredList& list, Random random)
    {
        for (int i = 0; i < 4; ++i) {
            take_snapshot_sometimes(random);
            list.append(std::vector<std::uint64_t>(random() % 40, random()));
            list.acknowledge();
        }
    }

    static std::string text(Random& random) { return std::string(random() % 1200, static_cast<char>('a' + random() % 26)); }
    static void acknowledge(std::uint64_t key, std::uint64_t digest) { ObjectNotes::acknowledged(key % ShardedMap::shard_count, digest); }

    ShardedMap* map_ = nullptr;
    Slot<ExploredList> list_{"list", 1};
};

template <class Workload>
std::unique_ptr<ObjectWorkload> make()
{
    return std::make_unique<Workload>();
}

}  // namespace

const std::vector<ObjectWorkloadEntry>& object_workloads()
{
    static const std::vector<ObjectWorkloadEntry> entries = {
        {"map", &make<Map>, 14},
        {"several", &make<Several>, 24},
        {"long-arguments", &make<LongArguments>, 20},
        {"concurrent", &make<Concurrent>, 3},
        {"changed-methods", &make_changed_methods, 10},
    };
    return entries;
}

}  // namespace stillpoint::explorer
