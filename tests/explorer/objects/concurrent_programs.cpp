#include "objects/concurrent_programs.hpp"

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "objects/combined_queue.hpp"
#include "objects/sequential_objects.hpp"
#include "objects/sharded_map.hpp"
#include "objects/slot.hpp"
#include "objects/threads.hpp"

namespace stillpoint::explorer {

namespace {

/// The sharded map, found or made.
class MapSlot {
public:
    MapSlot(std::string name, std::uint64_t number) : name_(std::move(name)), part_(number * parts_of_an_object) {}

    void find() { map_ = pronto::find_object<ShardedMap>(name_); }
    [[nodiscard]] ShardedMap& get(Random& random)
    {
        if (map_ == nullptr) {
            map_ = &pronto::get_object<ShardedMap>(name_, part_, random());
            for (std::uint64_t shard = 0; shard < ShardedMap::shard_count; ++shard) {
                ObjectNotes::acknowledged(map_->part_of(shard), map_->digest(shard));
            }
        }
        return *map_;
    }
    void add_to(PartDigests& digests) const
    {
        for (std::uint64_t shard = 0; shard < ShardedMap::shard_count; ++shard) {
            digests[part_ + shard] = map_ != nullptr ? map_->digest(shard) : absent;
        }
    }

private:
    std::string name_;
    std::uint64_t part_;
    ShardedMap* map_ = nullptr;
};

/// Two threads: on the map, where they read what the other has not yet been told to be durable; or one of them on another object, beside
/// snapshots. Entries are larger than a sector, so that a crash may leave any of them out.
class Concurrent final : public ObjectWorkload {
    void find_objects() override
    {
        map_.find();
        list_.find();
    }
    PartDigests digests() const override
    {
        PartDigests all;
        map_.add_to(all);
        list_.add_to(all);
        return all;
    }
    void perform(Random& random) override
    {
        ExploredList& list = list_.get(random);
        ShardedMap& map = map_.get(random);
        put(map, random(), random);  // Alone, so that its number is known.
        ObjectNotes::number(map.part_of(0), &map, true);
        Threads threads;
        threads.run([&map, &list, alone = random() % 2 == 0, seed = random()] {
            alone ? work_on_list(list, Random(seed)) : work_on_map(map, Random(seed));
        });
        work_on_map(map, Random(random()));
        threads.join();
        ObjectNotes::number(map.part_of(0), &map, false);
        take_snapshot_sometimes(random);
    }

    static void put(ShardedMap& map, std::uint64_t key, Random& random)
    {
        const std::string text(random() % 1200, static_cast<char>('a' + random() % 26));
        ObjectNotes::acknowledged(map.part_of(key), map.put(key, text));
    }
    static void work_on_map(ShardedMap& map, Random random)
    {
        for (int i = 0; i < 4; ++i) {
            const std::uint64_t key = random() % 16;
            switch (random() % 4) {
            case 0: ObjectNotes::acknowledged(map.part_of(key), map.erase(key)); break;
            case 1: ObjectNotes::acknowledged(map.part_of(key), map.read(key % ShardedMap::shard_count)); break;
            default: put(map, key, random);
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

    MapSlot map_{"sharded", 0};
    Slot<ExploredList> list_{"list", 1};
};

/// A burst begins at the same moment in a thread for each shard: the one that starts a chunk of the log may be overtaken by the others.
class Overtaking final : public ObjectWorkload {
    void find_objects() override
    {
        map_.find();
        list_.find();
    }
    PartDigests digests() const override
    {
        PartDigests all;
        map_.add_to(all);
        list_.add_to(all);
        return all;
    }
    void perform(Random& random) override
    {
        ShardedMap& map = map_.get(random);
        ExploredList& list = list_.get(random);
        if (random() % 2 == 0) {
            put(map, random() % 16, random);
        } else {
            burst(map, list, random);
        }
        if (random() % 5 == 0) {
            pronto::snapshot();
        }
        if (random() % 3 == 0) {
            append(list, random);
        }
    }

    static void put(ShardedMap& map, std::uint64_t key, Random& random)
    {
        const std::string text(600 + random() % 400, static_cast<char>('a' + random() % 26));
        ObjectNotes::acknowledged(map.part_of(key), map.put(key, text));
    }
    static void append(ExploredList& list, Random& random)
    {
        list.append(std::vector<std::uint64_t>(random() % 40, random()));
        list.acknowledge();
    }

    static void burst(ShardedMap& map, ExploredList& list, Random& random)
    {
        const bool is_snapshot_taken = random() % 4 == 0;
        std::atomic<int> waiting{ShardedMap::shard_count};
        Threads threads;
        for (std::uint64_t shard = 0; shard < ShardedMap::shard_count; ++shard) {
            threads.run([&map, &waiting, shard, seed = random()] {
                Random own(seed);
                waiting.fetch_sub(1);
                while (waiting.load() > 0) {
                    std::this_thread::yield();
                }
                put(map, shard, own);
            });
        }
        if (is_snapshot_taken) {
            pronto::snapshot();
            append(list, random);
        }
        threads.join();
    }

    MapSlot map_{"sharded", 0};
    Slot<ExploredList> list_{"list", 1};
};

/// Some arguments have lines of their own, so that a crash may leave any of a group's entries out, whole or torn.
class Combining final : public ObjectWorkload {
    static constexpr const char* queue_name = "combined";
    static constexpr int threads = 3;

    void find_objects() override { queue_ = pronto::find_object<CombinedQueue>(queue_name); }
    PartDigests digests() const override
    {
        return {{0, queue_ != nullptr ? queue_->queue_digest() : absent}, {1, queue_ != nullptr ? queue_->count_digest() : absent}};
    }
    void perform(Random& random) override
    {
        if (queue_ == nullptr) {
            queue_ = &pronto::get_object<CombinedQueue>(queue_name, std::uint64_t{0}, random());
            ObjectNotes::acknowledged(0, queue_->queue_digest());
            ObjectNotes::acknowledged(1, queue_->count_digest());
        }
        ObjectNotes::acknowledged(1, queue_->count());  // Alone, so that its number is known.
        ObjectNotes::number(0, queue_, true);
        Threads others;
        for (int thread = 1; thread < threads; ++thread) {
            others.run([queue = queue_, seed = random()] { work_on(*queue, Random(seed)); });
        }
        work_on(*queue_, Random(random()));
        others.join();
        ObjectNotes::number(0, queue_, false);
        take_snapshot_sometimes(random);
    }

    static void work_on(CombinedQueue& queue, Random random)
    {
        for (int i = 0; i < 4; ++i) {
            switch (random() % 8) {
            case 0: ObjectNotes::acknowledged(0, queue.read()); break;
            case 1: ObjectNotes::acknowledged(1, queue.count()); break;
            case 2:
            case 3:
                if (const std::uint64_t sum = queue.pop(); sum != 0) {
                    ObjectNotes::acknowledged(0, sum);
                }
                break;
            default: ObjectNotes::acknowledged(0, queue.push(random(), std::string(random() % 3 == 0 ? random() % 300 : 0, 'c')));
            }
        }
    }

    CombinedQueue* queue_ = nullptr;
};

}  // namespace

std::unique_ptr<ObjectWorkload> make_concurrent() { return std::make_unique<Concurrent>(); }
std::unique_ptr<ObjectWorkload> make_combining() { return std::make_unique<Combining>(); }
std::unique_ptr<ObjectWorkload> make_overtaking() { return std::make_unique<Overtaking>(); }

}  // namespace stillpoint::explorer
