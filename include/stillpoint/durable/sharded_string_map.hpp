#pragma once
// A map of strings to strings that survives, divided among durable objects of its own: each shard has its own log and order of operations.

#if __cplusplus < 202002L
#error "Stillpoint's C++ headers need C++20: compile with -std=c++20 or a later standard"
#else

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stillpoint/durable/string_map.hpp"

namespace stillpoint::durable {

/// Parts of a shard have locks of their own, so that threads seldom meet at one however few shards there are: a lock is held while an entry
/// becomes durable.
inline constexpr unsigned string_map_shard_part_bits = 3;

/// One shard of a sharded_string_map, which makes it: ask for that.
class string_map_shard : public strings_in_parts<string_map_shard, string_map_shard_part_bits> {
public:
    static constexpr char type_name[] = "durable::string_map_shard";
    using constructor = pronto::constructor<std::uint64_t, std::uint64_t>;
    static constexpr auto methods()
    {
        using pronto::method;
        return pronto::methods(method<&string_map_shard::put>("put"), method<&string_map_shard::erase>("erase"),
                               method<&string_map_shard::clear>("clear"), method<&string_map_shard::enter>("enter"));
    }

    /// The state of the whole map, which the first shard keeps.
    enum class phase : std::uint8_t {
        making = 0,  ///< some shards may not exist yet; the map was never given to the program
        whole = 1,  ///< a shard that does not exist was lost
        deleting = 2,  ///< some shards may not exist any more
    };

    string_map_shard(std::uint64_t place, std::uint64_t count) : place_(place), count_(count) {}

    /// Durable on return.
    void enter(phase next)
    {
        pronto::operation running = op_begin<&string_map_shard::enter>(next);
        const auto hold = this->hold(shards_[0].lock.word);
        phase_ = next;
        running.commit();
    }

    [[nodiscard]] std::uint64_t place() const noexcept { return place_; }
    [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
    [[nodiscard]] phase current_phase() const
    {
        const auto hold = this->hold_shared(shards_[0].lock.word);
        return phase_;
    }
    /// The caller keeps other threads from changing either shard.
    bool operator==(const string_map_shard& other) const
    {
        return place_ == other.place_ && count_ == other.count_ && phase_ == other.phase_ && strings_in_parts::operator==(other);
    }

private:
    std::uint64_t place_;
    std::uint64_t count_;
    phase phase_ = phase::making;
};

/// A string_map whose shards are durable objects, each with a log, an order of operations and locks of its own [Pronto §5.2].
///   durable::sharded_string_map visits("visits");                        // made the first time, then found
///   visits.put("index.html", "1");                                       // durable on return
/// It is a handle: copy it, make it again, keep it as long as the pool is open. The first shard is the durable object `name`, the others
/// are `name#1`, `name#2` and so on; they have a type of their own, so an object of yours is never taken for one: the names collide with
/// pronto::other_type.
///
/// Durability: a change of one key is atomic, and durable when it returns. Each shard's operations have one order; those of
///   different shards have none, and none is needed: no function on a key depends on another key. clear(), size() and for_each() go from
///   shard to shard, and are not one step. After a crash in the middle of clear() some shards are empty and the others are whole.
///   A start that was killed while it made the shards goes on at the next one.
/// Threads: all functions, from any; delete_map() while no thread uses the map.
/// Cost: making the map takes a snapshot for each shard. A shard that changed takes 256 KiB of the pool's log at least, until the next one.
/// Errors of functions on keys: pronto::not_durable, pronto::refused; see pronto::object::op_begin.
class sharded_string_map {
public:
    static constexpr std::size_t shards_by_default = 16;
    static constexpr std::size_t shards_max = 256;
    static constexpr std::size_t name_bytes_max = 75;  ///< the number of a shard fits after it

    /// Finds the map, with as many shards as it has, or makes it with shards_by_default. Not in an operation, and not while a lock is held.
    /// Errors: as the other constructor's.
    explicit sharded_string_map(const std::string& name) { open(name, 0); }
    /// Finds the map, or makes it with `shards` shards.
    /// Errors: pronto::error with SP_E_INVALID_ARGUMENT: the name or the number is out of bounds, or the map has another number of shards;
    ///   with SP_E_POOL_CORRUPT: a shard was deleted; pronto::other_type: a name has an object that is not such a shard; and
    ///   those of pronto::get_object().
    sharded_string_map(const std::string& name, std::size_t shards)
    {
        if (shards == 0 || shards > shards_max) {
            throw pronto::error(SP_E_INVALID_ARGUMENT,
                                "a sharded map has 1 to " + std::to_string(shards_max) + " shards, not " + std::to_string(shards));
        }
        open(name, shards);
    }

    /// Destroys the map with all its keys, durably; false: there is none. After a crash in the middle the next call, or the next
    /// sharded_string_map of that name, goes on. Cost: a snapshot for each shard.
    /// Errors: those of the constructor and of pronto::delete_object().
    static bool delete_map(const std::string& name)
    {
        check_name(name);
        string_map_shard* const first = pronto::find_object<string_map_shard>(name);
        if (first == nullptr) {
            return false;
        }
        check_shard(name, name, *first, 0, first->count());
        finish_deletion(name, *first);
        return true;
    }

    /// True: the key is new.
    bool put(std::string_view key, std::string_view value) { return shard_of(key).put(key, value); }
    /// False: there is no such key.
    bool erase(std::string_view key) { return shard_of(key).erase(key); }
    /// One shard after the other: keys that other threads put meanwhile may stay.
    void clear()
    {
        for (string_map_shard* const shard : shards_) {
            shard->clear();
        }
    }

    [[nodiscard]] std::optional<std::string> get(std::string_view key) const
    {
        std::optional<std::string> found;
        shard_of(key).visit(key, [&](std::string_view value) { found.emplace(value); });
        return found;
    }
    [[nodiscard]] bool contains(std::string_view key) const
    {
        return shard_of(key).visit(key, [](std::string_view) {});
    }
    /// As string_map::visit().
    template <class Visit>
    bool visit(std::string_view key, Visit visit) const
    {
        return shard_of(key).visit(key, visit);
    }
    /// As string_map::update().
    template <class Change>
    std::optional<std::string> update(std::string_view key, Change change)
    {
        string_map_shard& shard = shard_of(key);
        for (;;) {
            const std::optional<std::string> before = get(key);
            std::optional<std::string> after = change(before);
            if (before == after || shard.replace(key, before, after)) {
                return after;
            }
        }
    }

    /// Calls visit(std::string_view key, std::string_view value) for each, in no order, one part of a shard after the other
    /// under its lock: `visit` calls nothing of the map. Other threads may change parts that are not being visited.
    template <class Visit>
    void for_each(Visit visit) const
    {
        for (const string_map_shard* const shard : shards_) {
            shard->for_each(visit);
        }
    }
    [[nodiscard]] std::size_t size() const
    {
        std::size_t count = 0;
        for (const string_map_shard* const shard : shards_) {
            count += shard->size();
        }
        return count;
    }
    [[nodiscard]] bool empty() const { return size() == 0; }
    [[nodiscard]] std::size_t shard_count() const noexcept { return shards_.size(); }

private:
    using Phase = string_map_shard::phase;

    static std::string name_of(const std::string& name, std::size_t place)
    {
        return place == 0 ? name : name + "#" + std::to_string(place);
    }
    static void check_name(const std::string& name)
    {
        if (name.empty() || name.size() > name_bytes_max) {
            throw pronto::error(SP_E_INVALID_ARGUMENT, "the name of a sharded map has 1 to " + std::to_string(name_bytes_max) +
                                                           " bytes, not " + std::to_string(name.size()));
        }
    }
    /// The shard's place and number of shards were stored when it was made.
    static void check_shard(const std::string& map, const std::string& name, const string_map_shard& shard, std::size_t place,
                            std::size_t count)
    {
        if (shard.place() != place || shard.count() != count || count == 0 || count > shards_max) {
            throw pronto::error(SP_E_INVALID_ARGUMENT, "the durable object \"" + name + "\" is shard " + std::to_string(shard.place()) +
                                                           " of " + std::to_string(shard.count()) + ", not shard " + std::to_string(place) +
                                                           " of " + std::to_string(count) + " of the sharded map \"" + map +
                                                           "\": give the map another name");
        }
    }

    void open(const std::string& name, std::size_t wanted)
    {
        check_name(name);
        string_map_shard* first = pronto::find_object<string_map_shard>(name);
        if (first != nullptr && first->place() == 0 && first->current_phase() == Phase::deleting) {
            finish_deletion(name, *first);
            first = nullptr;
        }
        if (first == nullptr) {
            first = &pronto::get_object<string_map_shard>(name, 0U, wanted == 0 ? shards_by_default : wanted);
        }
        const std::size_t count = first->count();
        check_shard(name, name, *first, 0, count);
        if (wanted != 0 && wanted != count) {
            throw pronto::error(SP_E_INVALID_ARGUMENT, "the sharded map \"" + name + "\" was made with " + std::to_string(count) +
                                                           " shards, not " + std::to_string(wanted) +
                                                           ": open it without a number, or copy its keys to a map of another name");
        }
        shards_.reserve(count);
        shards_.push_back(first);
        const bool is_whole = first->current_phase() == Phase::whole;
        for (std::size_t place = 1; place < count; ++place) {
            shards_.push_back(&shard(name, place, count, is_whole));
        }
        if (!is_whole) {
            first->enter(Phase::whole);
        }
    }

    static string_map_shard& shard(const std::string& map, std::size_t place, std::size_t count, bool must_exist)
    {
        const std::string name = name_of(map, place);
        string_map_shard* const found = must_exist ? pronto::find_object<string_map_shard>(name)
                                                   : &pronto::get_object<string_map_shard>(name, place, count);
        if (found == nullptr) {
            throw pronto::error(SP_E_POOL_CORRUPT, "the sharded map \"" + map + "\" has lost the shard \"" + name +
                                                       "\", which was deleted by its name: restore a backup of the pool, or give up all "
                                                       "keys with sharded_string_map::delete_map");
        }
        check_shard(map, name, *found, place, count);
        return *found;
    }

    static void finish_deletion(const std::string& name, string_map_shard& first)
    {
        const std::size_t count = first.count();
        first.enter(Phase::deleting);
        for (std::size_t place = count; place-- > 1;) {
            const std::string shard_name = name_of(name, place);
            if (const string_map_shard* const shard = pronto::find_object<string_map_shard>(shard_name); shard != nullptr) {
                check_shard(name, shard_name, *shard, place, count);
                pronto::delete_object(shard_name);
            }
        }
        pronto::delete_object(name);
    }

    /// Other bits of the hash than those that choose a part of the shard, or a bucket, whose numbers are primes.
    [[nodiscard]] string_map_shard& shard_of(std::string_view key) const noexcept
    {
        return *shards_[(hash<std::string>()(key) >> (sizeof(std::size_t) * 4)) % shards_.size()];
    }

    std::vector<string_map_shard*> shards_;
};

}  // namespace stillpoint::durable

#endif
