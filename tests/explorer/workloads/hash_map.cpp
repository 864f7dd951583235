// A chained hash map that doubles its table: the doubling moves every node in one operation.

#include "workloads/entries.hpp"

namespace stillpoint::explorer {

namespace {

template <class Memory>
struct MapNode {
    typename Memory::template Field<MapNode*> next;
    std::uint64_t key;
    typename Memory::template Field<std::uint64_t> value;
};

template <class Memory>
struct Map {
    using Link = typename Memory::template Field<MapNode<Memory>*>;
    typename Memory::template Field<Link*> table;
    typename Memory::template Field<std::uint64_t> buckets;
    typename Memory::template Field<std::uint64_t> count;
};

template <class Memory>
class HashMap final : public WorkloadOn<Memory, Map<Memory>> {
    using Root = Map<Memory>;
    using Node = MapNode<Memory>;
    using Link = typename Root::Link;
    static constexpr std::uint64_t keys = 200;
    static constexpr std::uint64_t first_buckets = 4;

    static std::uint64_t bucket_of(std::uint64_t key, std::uint64_t buckets) { return (key * 0x9e3779b97f4a7c15u >> 32) & (buckets - 1); }

    void change(Root& root, Random& random) override
    {
        if (root.table == nullptr) {
            root.table = Memory::template make_zeroed<Link>(first_buckets);
            root.buckets = first_buckets;
            Memory::stored(root);
        }
        for (int i = 0; i < 3; ++i) {  // Several keys in one operation: all or none.
            const std::uint64_t key = random() % keys;
            Link* table = root.table;
            Link* link = &table[bucket_of(key, root.buckets)];
            while (*link != nullptr && (*link)->key != key) {
                link = &(*link)->next;
            }
            if (*link == nullptr) {
                insert(root, key, random());
            } else if (random() % 3 == 0) {
                Node* const node = *link;
                *link = node->next;
                Memory::stored(*link);
                Memory::destroy(node);
                --root.count;
                Memory::stored(root.count);
            } else {
                (*link)->value = random();
                Memory::stored((*link)->value);
            }
        }
    }

    static void insert(Root& root, std::uint64_t key, std::uint64_t value)
    {
        if (root.count == 2 * root.buckets) {
            grow(root);
        }
        auto* const node = Memory::template make<Node>();
        Link* const table = root.table;
        Link& first = table[bucket_of(key, root.buckets)];
        node->next = first;
        node->key = key;
        node->value = value;
        Memory::filled(*node);
        first = node;
        ++root.count;
        Memory::stored(first);
        Memory::stored(root.count);
    }

    static void grow(Root& root)
    {
        const std::uint64_t buckets = 2 * root.buckets;
        Link* const old_table = root.table;
        Link* const table = Memory::template make_zeroed<Link>(buckets);
        for (std::uint64_t i = 0; i < root.buckets; ++i) {
            for (Node* node = old_table[i]; node != nullptr;) {
                Node* const next = node->next;
                Link& first = table[bucket_of(node->key, buckets)];
                node->next = first;
                first = node;
                Memory::stored(node->next);
                Memory::stored(first);
                node = next;
            }
        }
        Memory::destroy(old_table);
        root.table = table;
        root.buckets = buckets;
        Memory::stored(root);
    }

    std::string problem_of(const Root& root, const FindObject&) const override
    {
        const Link* const table = root.table;
        if (table == nullptr) {
            return root.count == 0 ? "" : "a count without a table";
        }
        if (!may_be_followed(table) || root.buckets > keys) {
            return "the table is broken";
        }
        std::uint64_t count = 0;
        for (std::uint64_t i = 0; i < root.buckets; ++i) {
            for (const Node* node = table[i]; node != nullptr; node = node->next) {
                if (!may_be_followed(node) || ++count > keys || bucket_of(node->key, root.buckets) != i) {
                    return "bucket " + std::to_string(i) + " is broken";
                }
            }
        }
        return count == root.count ? "" : "the count is " + std::to_string(root.count);
    }

    std::uint64_t digest_of(const Root& root, const FindObject&) const override
    {
        std::uint64_t sum = root.count;
        const Link* const table = root.table;
        for (std::uint64_t i = 0; i < root.buckets; ++i) {
            for (const Node* node = table[i]; node != nullptr; node = node->next) {
                Digest one;
                one.add(node->key);
                one.add(node->value);
                sum += one.value();  // Order within a bucket is not part of the state.
            }
        }
        return sum;
    }
};

}  // namespace

WorkloadMakers hash_map() { return over_each_memory<HashMap>(); }

}  // namespace stillpoint::explorer
