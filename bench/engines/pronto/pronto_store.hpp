#pragma once
// Pronto: the bench's structures inside durable objects, whose updates are operations; and maps of strings as stores.

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "../../structures/btree.hpp"
#include "../../structures/hash_map.hpp"
#include "../../structures/queue.hpp"
#include "../../worker/shape.hpp"
#include "../engine.hpp"
#include "pronto_memory.hpp"
#include "stillpoint/durable/sharded_string_map.hpp"
#include "stillpoint/durable/string_map.hpp"
#include "stillpoint/pronto.hpp"

namespace bench {

namespace pronto = stillpoint::pronto;

/// The names of the classes that lie in the pool, and how a structure is made for `size` keys.
struct ProntoHashMap : HashMap<ProntoMemory> {
    static constexpr char object_name[] = "bench.hash_map_object";
    ProntoHashMap(std::uint64_t size, std::size_t value_bytes) : HashMap("", std::bit_ceil(size / 2 + (size < 2 ? 1 : 0)), value_bytes) {}
};
struct ProntoTree : BTree<ProntoMemory> {
    static constexpr char object_name[] = "bench.btree_object";
    ProntoTree(std::uint64_t, std::size_t value_bytes) : BTree("", value_bytes) {}
};

/// A structure of the bench as a durable object: its updates are operations, which the structure commits inside its locks.
template <class Structure>
class ProntoObject : public pronto::object<ProntoObject<Structure>> {
public:
    static constexpr auto& type_name = Structure::object_name;
    using constructor = pronto::constructor<std::uint64_t, std::uint64_t>;
    static constexpr auto methods()
    {
        return pronto::methods(pronto::method<&ProntoObject::put>("put"), pronto::method<&ProntoObject::remove>("remove"));
    }

    ProntoObject(std::uint64_t size, std::uint64_t value_bytes) : structure_(size, value_bytes) {}

    void put(std::uint64_t key, std::span<const std::byte> value)
    {
        const auto operation = this->template op_begin<&ProntoObject::put>(key, value);
        tell_run();
        structure_.put(thread_, key, value);
    }
    bool remove(std::uint64_t key)
    {
        const auto operation = this->template op_begin<&ProntoObject::remove>(key);
        tell_run();
        return structure_.remove(thread_, key);
    }
    Structure& of_thread(unsigned thread) noexcept
    {
        thread_ = thread;
        tell_run();
        return structure_;
    }

private:
    void tell_run() const noexcept
    {
        if (ProntoMutex::run_number.load(std::memory_order_relaxed) != this->run_number()) {
            ProntoMutex::run_number.store(this->run_number(), std::memory_order_relaxed);
        }
    }

    Structure structure_;
    /// Which of the locks of a structure that has one for each thread is the caller's; it is not an argument, and a replay has one thread.
    inline static thread_local constinit unsigned thread_ = 0;
};

template <class Structure>
class ProntoStructureStore {
public:
    ProntoStructureStore(const Shape& shape, const char* name, std::uint64_t keys)
        : object_(pronto::get_object<ProntoObject<Structure>>(name, keys, std::uint64_t{shape.value_bytes}))
    {
    }
    [[nodiscard]] bool get(unsigned thread, std::uint64_t key, std::span<std::byte> out)
    {
        return object_.of_thread(thread).get(thread, key, out);
    }
    void put(unsigned thread, std::uint64_t key, std::span<const std::byte> value)
    {
        object_.of_thread(thread);
        object_.put(key, value);
    }
    bool remove(unsigned thread, std::uint64_t key)
    {
        object_.of_thread(thread);
        return object_.remove(key);
    }
    void settle() { ProntoMemory::settle(); }

protected:
    Structure& structure() noexcept { return object_.of_thread(0); }

private:
    ProntoObject<Structure>& object_;
};

class ProntoHashStore : public ProntoStructureStore<ProntoHashMap> {
public:
    using ProntoStructureStore::ProntoStructureStore;
};
class ProntoTreeStore : public ProntoStructureStore<ProntoTree> {
public:
    using ProntoStructureStore::ProntoStructureStore;
};

/// The map that a row of rows.json measures: environment variable BENCH_PRONTO_MAP.
enum class ProntoMap { structures, strings, shards };
inline ProntoMap chosen_pronto_map()
{
    const char* const word = std::getenv("BENCH_PRONTO_MAP");
    const std::string_view chosen = word != nullptr ? word : "";
    return chosen == "strings" ? ProntoMap::strings : chosen == "shards" ? ProntoMap::shards : ProntoMap::structures;
}

/// durable::string_map with keys of 8 bytes, or durable::sharded_string_map.
template <class Map>
class ProntoTexts {
public:
    explicit ProntoTexts(Map map) : map_(map) {}

    [[nodiscard]] bool get(unsigned, std::uint64_t key, std::span<std::byte> out) const
    {
        bool fits = false;
        map_.visit(text_of(key).view(), [&](std::string_view value) {
            fits = value.size() == out.size();
            if (fits) {
                std::memcpy(out.data(), value.data(), out.size());
            }
        });
        return fits;
    }
    void put(unsigned, std::uint64_t key, std::span<const std::byte> value)
    {
        if (filling_) {
            filled_.emplace_back(key, std::string(reinterpret_cast<const char*>(value.data()), value.size()));
            return;
        }
        map_.put(text_of(key).view(), {reinterpret_cast<const char*>(value.data()), value.size()});
    }
    bool remove(unsigned, std::uint64_t key) { return map_.erase(text_of(key).view()); }

    void begin_fill() noexcept { filling_ = true; }
    /// By many threads, whose puts share their syncs where the pool lies on a disk.
    void end_fill()
    {
        filling_ = false;
        std::atomic<std::size_t> next{0};
        std::vector<std::thread> clients;
        for (unsigned client = 0; client < filling_clients; ++client) {
            clients.emplace_back([&] {
                for (std::size_t at = next++; at < filled_.size(); at = next++) {
                    map_.put(text_of(filled_[at].first).view(), filled_[at].second);
                }
            });
        }
        for (std::thread& client : clients) {
            client.join();
        }
        filled_ = {};
    }

private:
    static constexpr unsigned filling_clients = 64;

    struct Text {
        std::array<char, sizeof(std::uint64_t)> bytes;
        [[nodiscard]] std::string_view view() const noexcept { return {bytes.data(), bytes.size()}; }
    };
    static Text text_of(std::uint64_t key) noexcept { return std::bit_cast<Text>(key); }

    Map map_;
    bool filling_ = false;
    std::vector<std::pair<std::uint64_t, std::string>> filled_;
};

/// The store that is chosen: the bench's structure, where `Structure` is one, or a map of strings.
template <class Structure>
class ProntoChosenStore {
    using Strings = ProntoTexts<stillpoint::durable::string_map&>;
    using Shards = ProntoTexts<stillpoint::durable::sharded_string_map>;
    static constexpr bool has_structure = !std::is_void_v<Structure>;
    using Store = std::conditional_t<has_structure, std::variant<Strings, Shards, std::conditional_t<has_structure, Structure, int>>,
                                     std::variant<Strings, Shards>>;

public:
    ProntoChosenStore(const Shape& shape, const char* name, std::uint64_t keys) : store_(chosen(shape, name, keys)) {}

    [[nodiscard]] bool get(unsigned thread, std::uint64_t key, std::span<std::byte> out)
    {
        return std::visit([&](auto& store) { return store.get(thread, key, out); }, store_);
    }
    void put(unsigned thread, std::uint64_t key, std::span<const std::byte> value)
    {
        std::visit([&](auto& store) { store.put(thread, key, value); }, store_);
    }
    bool remove(unsigned thread, std::uint64_t key)
    {
        return std::visit([&](auto& store) { return store.remove(thread, key); }, store_);
    }
    void settle() { ProntoMemory::settle(); }

    void begin_fill() noexcept
    {
        std::visit(
            [](auto& store) {
                if constexpr (requires { store.begin_fill(); }) {
                    store.begin_fill();
                }
            },
            store_);
    }
    void end_fill()
    {
        std::visit(
            [](auto& store) {
                if constexpr (requires { store.end_fill(); }) {
                    store.end_fill();
                }
            },
            store_);
    }

private:
    static Store chosen(const Shape& shape, const char* name, std::uint64_t keys)
    {
        const ProntoMap map = chosen_pronto_map();
        if (map == ProntoMap::shards) {
            return Store(std::in_place_type<Shards>, stillpoint::durable::sharded_string_map(name));
        }
        if constexpr (has_structure) {
            if (map == ProntoMap::structures) {
                return Store(std::in_place_type<Structure>, shape, name, keys);
            }
        }
        return Store(std::in_place_type<Strings>, pronto::get_object<stillpoint::durable::string_map>(name));
    }

    Store store_;
};

/// The bench's queue, and what its threads have noted, as one object.
class ProntoQueueObject : public pronto::object<ProntoQueueObject> {
public:
    static constexpr char type_name[] = "bench.queue_object";
    static constexpr unsigned threads_max = 64;
    static constexpr auto methods()
    {
        return pronto::methods(pronto::method<&ProntoQueueObject::push>("push"), pronto::method<&ProntoQueueObject::pop>("pop"),
                               pronto::method<&ProntoQueueObject::note>("note"));
    }

    ProntoQueueObject() : queue_("") {}

    void push(std::uint64_t number)
    {
        combine<&ProntoQueueObject::push>(number, [&] { queue_.push(0, number); });
    }
    std::optional<std::uint64_t> pop()
    {
        return combine_if<&ProntoQueueObject::pop>([&] {
            std::uint64_t number = 0;
            return queue_.pop(0, number) ? std::optional(number) : std::nullopt;
        });
    }
    /// Notes of different threads commute.
    void note(std::uint64_t slot, std::uint64_t operations)
    {
        run<&ProntoQueueObject::note>(slot, operations, [&] { noted_[slot] = operations; });
    }
    [[nodiscard]] std::uint64_t noted(std::uint64_t slot) const noexcept { return noted_[slot]; }

private:
    SingleLockQueue<ProntoCombinedMemory> queue_;
    std::array<std::uint64_t, threads_max> noted_{};
};

class ProntoQueue {
public:
    ProntoQueue(const Shape&, const char* name) : object_(pronto::get_object<ProntoQueueObject>(name)) {}
    void push(unsigned, std::uint64_t number) { object_.push(number); }
    bool pop(unsigned, std::uint64_t& number)
    {
        const std::optional<std::uint64_t> found = object_.pop();
        number = found.value_or(0);
        return found.has_value();
    }
    void settle() { ProntoMemory::settle(); }
    [[nodiscard]] ProntoQueueObject& object() noexcept { return object_; }

private:
    ProntoQueueObject& object_;
};

class ProntoQueueProgress {
public:
    static constexpr unsigned loaded_slot = ProntoQueueObject::threads_max - 1;

    ProntoQueueProgress(ProntoQueue& queue, const Shape&) : object_(queue.object()) {}
    void note(unsigned thread, std::uint64_t operations) { object_.note(thread, operations); }
    [[nodiscard]] std::uint64_t noted(unsigned thread) const noexcept { return object_.noted(thread); }

private:
    ProntoQueueObject& object_;
};

static_assert(KeyValueStore<ProntoHashStore> && KeyValueStore<ProntoTreeStore> && KeyValueStore<ProntoChosenStore<void>>);
static_assert(FillsInBatches<ProntoChosenStore<ProntoHashStore>> && FillsInBatches<ProntoChosenStore<void>>);
static_assert(FifoQueue<ProntoQueue>);

}  // namespace bench
