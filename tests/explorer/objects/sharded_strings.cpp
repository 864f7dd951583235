#include "objects/sharded_strings.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "objects/slot.hpp"
#include "objects/threads.hpp"
#include "stillpoint/durable/sharded_string_map.hpp"

namespace stillpoint::explorer {

namespace {

/// A part is a key: it has one order of states, since one thread changes it. Others read it, and what they have seen is durable.
class ShardedStrings final : public ObjectWorkload {
    using Map = durable::sharded_string_map;
    static constexpr char map_name[] = "strings";
    static constexpr std::size_t shards = 3;
    static constexpr std::uint64_t threads = 2;
    static constexpr std::uint64_t keys = 20;
    static constexpr std::uint64_t broken_part = keys;  ///< of a map that contradicts itself

    /// A map that is being made was given to no program, and one that is being deleted may be gone: neither has keys.
    void find_objects() override
    {
        const auto* const first = pronto::find_object<durable::string_map_shard>(map_name);
        if (first != nullptr && first->current_phase() == durable::string_map_shard::phase::whole) {
            map_.emplace(map_name);
        }
    }

    PartDigests digests() const override
    {
        PartDigests all;
        for (std::uint64_t key = 0; key < keys; ++key) {
            all[key] = absent;
        }
        if (map_) {
            std::size_t seen = 0;
            map_->for_each([&](std::string_view text, std::string_view value) {
                ++seen;
                all[key_in(text)] = digest_of(value);
            });
            std::size_t found = 0;
            for (std::uint64_t key = 0; key < keys; ++key) {
                map_->visit(text_of(key), [&](std::string_view value) { found += all[key] == digest_of(value) ? 1U : 0U; });
            }
            if (seen != found || map_->size() != found || map_->shard_count() != shards) {
                all[broken_part] = 1;
            }
        }
        return all;
    }

    void perform(Random& random) override
    {
        if (!map_) {
            map_.emplace(map_name, shards);
        }
        switch (random() % 10) {
        case 0: empty([this] { map_->clear(); }); break;
        case 1:
            empty([this] {
                map_.reset();
                Map::delete_map(map_name);
            });
            break;
        default: change_by_threads(*map_, random);
        }
        take_snapshot_sometimes(random);
    }

    template <class Work>
    static void empty(Work work)
    {
        for (std::uint64_t key = 0; key < keys; ++key) {
            ObjectNotes::state(key, absent);
        }
        work();
        for (std::uint64_t key = 0; key < keys; ++key) {
            ObjectNotes::acknowledged(key, absent);
        }
    }

    static void change_by_threads(Map& map, Random& random)
    {
        Threads others;
        for (std::uint64_t thread = 1; thread < threads; ++thread) {
            others.run([&map, thread, seed = random()] {
                Random own(seed);
                change(map, thread, own);
            });
        }
        change(map, 0, random);
        others.join();
    }

    static void change(Map& map, std::uint64_t thread, Random& random)
    {
        for (int i = 0; i < 4; ++i) {
            const std::uint64_t key = random() % (keys / threads) * threads + thread;
            switch (random() % 5) {
            case 0: erase(map, key); break;
            case 1: read(map, random() % keys); break;
            default: put(map, key, random);
            }
        }
    }

    /// A crash tears the entries of large values.
    static void put(Map& map, std::uint64_t key, Random& random)
    {
        const std::string value = std::to_string(random()) + std::string(random() % 3 == 0 ? random() % 1200 : random() % 100, 'v');
        ObjectNotes::state(key, digest_of(value));
        if (random() % 3 == 0) {
            map.update(text_of(key), [&](const std::optional<std::string>&) { return std::optional(value); });
        } else {
            map.put(text_of(key), value);
        }
        ObjectNotes::acknowledged(key, digest_of(value));
    }
    static void erase(Map& map, std::uint64_t key)
    {
        if (map.contains(text_of(key))) {
            ObjectNotes::state(key, absent);
        }
        map.erase(text_of(key));
        ObjectNotes::acknowledged(key, absent);
    }
    /// A key that is not there says nothing: it may have been put and erased since.
    static void read(const Map& map, std::uint64_t key)
    {
        if (const std::optional<std::string> value = map.get(text_of(key)); value) {
            ObjectNotes::acknowledged(key, digest_of(*value));
        }
    }

    static std::string text_of(std::uint64_t key) { return "key " + std::to_string(key); }
    static std::uint64_t key_in(std::string_view text)
    {
        std::uint64_t key = 0;
        while (key < keys && text != text_of(key)) {
            ++key;
        }
        return key;  // One that was never put is the broken part.
    }
    static std::uint64_t digest_of(std::string_view value) noexcept { return std::hash<std::string_view>()(value); }

    std::optional<Map> map_;
};

}  // namespace

std::unique_ptr<ObjectWorkload> make_sharded_strings() { return std::make_unique<ShardedStrings>(); }

}  // namespace stillpoint::explorer
