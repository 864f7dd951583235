// A chained hash map that doubles its table: the doubling moves every node in one operation.

#include "stillpoint/stillpoint.h"
#include "workloads/entries.hpp"

namespace stillpoint::explorer {

namespace {

class HashMap final : public Workload {
    struct Node {
        Node* next;
        std::uint64_t key;
        std::uint64_t value;
    };
    struct Root {
        Node** table;
        std::uint64_t buckets;
        std::uint64_t count;
    };
    static constexpr std::uint64_t keys = 200;
    static constexpr std::uint64_t first_buckets = 4;

    std::size_t root_bytes() const override { return sizeof(Root); }

    static std::uint64_t bucket_of(std::uint64_t key, std::uint64_t buckets)
    {
        return (key * 0x9e3779b97f4a7c15u >> 32) & (buckets - 1);
    }

    void perform(void* memory, Random& random) override
    {
        auto& root = *static_cast<Root*>(memory);
        if (root.table == nullptr) {
            root.table = static_cast<Node**>(sp_calloc(first_buckets, sizeof(Node*)));
            root.buckets = first_buckets;
            stored(root);
        }
        for (int i = 0; i < 3; ++i) {  // Several keys in one operation: all or none.
            const std::uint64_t key = random() % keys;
            Node** link = &root.table[bucket_of(key, root.buckets)];
            while (*link != nullptr && (*link)->key != key) {
                link = &(*link)->next;
            }
            if (*link == nullptr) {
                insert(root, key, random());
            } else if (random() % 3 == 0) {
                Node* const node = *link;
                *link = node->next;
                stored(*link);
                sp_free(node);
                --root.count;
                stored(root.count);
            } else {
                (*link)->value = random();
                stored((*link)->value);
            }
        }
    }

    static void insert(Root& root, std::uint64_t key, std::uint64_t value)
    {
        if (root.count == 2 * root.buckets) {
            grow(root);
        }
        auto* const node = static_cast<Node*>(sp_malloc(sizeof(Node)));
        Node*& first = root.table[bucket_of(key, root.buckets)];
        *node = {first, key, value};
        first = node;
        ++root.count;
        stored(*node);
        stored(first);
        stored(root.count);
    }

    static void grow(Root& root)
    {
        const std::uint64_t buckets = 2 * root.buckets;
        auto** const table = static_cast<Node**>(sp_calloc(buckets, sizeof(Node*)));
        for (std::uint64_t i = 0; i < root.buckets; ++i) {
            for (Node* node = root.table[i]; node != nullptr;) {
                Node* const next = node->next;
                Node*& first = table[bucket_of(node->key, buckets)];
                node->next = first;
                first = node;
                stored(node->next);
                stored(first);
                node = next;
            }
        }
        sp_free(root.table);
        root.table = table;
        root.buckets = buckets;
        stored(root);
    }

    std::string check(const void* memory, const FindObject&) const override
    {
        const auto& root = *static_cast<const Root*>(memory);
        if (root.table == nullptr) {
            return root.count == 0 ? "" : "a count without a table";
        }
        if (!may_be_followed(root.table) || root.buckets > keys) {
            return "the table is broken";
        }
        std::uint64_t count = 0;
        for (std::uint64_t i = 0; i < root.buckets; ++i) {
            for (const Node* node = root.table[i]; node != nullptr; node = node->next) {
                if (!may_be_followed(node) || ++count > keys || bucket_of(node->key, root.buckets) != i) {
                    return "bucket " + std::to_string(i) + " is broken";
                }
            }
        }
        return count == root.count ? "" : "the count is " + std::to_string(root.count);
    }

    std::uint64_t digest(const void* memory, const FindObject&) const override
    {
        const auto& root = *static_cast<const Root*>(memory);
        std::uint64_t sum = root.count;
        for (std::uint64_t i = 0; i < root.buckets; ++i) {
            for (const Node* node = root.table[i]; node != nullptr; node = node->next) {
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

std::unique_ptr<Workload> make_hash_map() { return std::make_unique<HashMap>(); }

}  // namespace stillpoint::explorer
