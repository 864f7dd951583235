// Reads and updates of uniformly random keys: the hash map and the B+tree of [PMThreads §6] and [ResPCT §5.1].

#include "key_value.hpp"
#include "makers.hpp"

namespace bench {
namespace {

/// Half of the key range is there; an update inserts or removes, so the size stays.
class HashMapMix final : public KeyValueWorkload<CurrentHashStore> {
public:
    HashMapMix(const Shape& shape, std::uint64_t keys) : KeyValueWorkload(shape, "bench.hash_map", keys) {}

    void perform(Context& context, unsigned count) override
    {
        for (unsigned i = 0; i < count; ++i) {
            const std::uint64_t key = key_number(context.random.below(keys_));
            if (context.random.below(100) < shape_.read_percent) {
                (void)get(context, key);
            } else if (context.random.below(2) == 0) {
                put(context, key);
            } else if (store_.remove(context.thread, key)) {
                context.changed_bytes += sizeof key;
            }
        }
    }

private:
    void fill() override
    {
        Context context;
        for (std::uint64_t i = 0; i < keys_; i += 2) {
            put(context, key_number(i));
        }
    }
};

/// Every key is there; an update overwrites.
class TreeMix final : public KeyValueWorkload<CurrentTreeStore> {
public:
    TreeMix(const Shape& shape, std::uint64_t keys) : KeyValueWorkload(shape, "bench.btree", keys) {}

    void perform(Context& context, unsigned count) override
    {
        for (unsigned i = 0; i < count; ++i) {
            const std::uint64_t key = key_number(context.random.below(keys_));
            if (context.random.below(100) >= shape_.read_percent) {
                put(context, key);
            } else if (!get(context, key)) {
                found_wrong();
            }
        }
    }
    std::string fault() override
    {
#if BENCH_HAS_MEMORY
        if (!store_.ordered()) {
            return "the keys of the tree are not in order";
        }
#endif
        return KeyValueWorkload::fault();
    }

private:
    void fill() override
    {
        Context context;
        for (std::uint64_t i = 0; i < keys_; ++i) {
            put(context, key_number(i));
        }
    }
};

}  // namespace

Work make_hash_map(const Shape& shape) { return {std::make_unique<HashMapMix>(shape, shape.size_or(2'000'000, 2000)), nullptr}; }

Work make_btree(const Shape& shape) { return {std::make_unique<TreeMix>(shape, shape.size_or(1'000'000, 2000)), nullptr}; }

}  // namespace bench
