#pragma once
// A hash map with chains in a libpmemobj pool, with transactions by hand. It has as many buckets as it will have elements from the
// start, so it never grows: a program whose maps grow pays for that besides what is measured here.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <libpmemobj.h>
#include <string_view>

#include "pmemobj_map_pool.hpp"
#include "records.hpp"

namespace bench {

/// Keys of key_bytes.
class PmemobjHashMap {
public:
    /// The part in the pool; zeroes are a map that has no buckets yet.
    struct Root {
        PMEMoid buckets;
        std::uint64_t bucket_count;
        std::uint64_t count;
    };

    PmemobjHashMap(MapPool& pool, Root& root, std::uint64_t elements) : pool_(pool), root_(root)
    {
        if (root_.bucket_count == 0) {
            const MapTransaction transaction(pool_);
            MapPool::snapshot(&root_, sizeof root_);
            root_.buckets = MapPool::allocate_in_transaction(elements * sizeof(PMEMoid), type_buckets);
            std::memset(pmemobj_direct(root_.buckets), 0, elements * sizeof(PMEMoid));
            root_.bucket_count = elements;
        }
    }

    /// Inserts the key, or gives it another value, as one transaction.
    void put(std::string_view key, std::string_view value)
    {
        const MapTransaction transaction(pool_);
        const std::uint64_t hash = std::hash<std::string_view>()(key);
        PMEMoid& first = bucket(hash);
        PMEMoid* const old = find(first, hash, key);
        PMEMoid& link = old != nullptr ? *old : first;
        const PMEMoid replaced = link;
        const PMEMoid made = MapPool::allocate_in_transaction(sizeof(Entry) + value.size(), type_entry);
        Entry& entry = *entry_at(made);
        entry.hash = hash;
        entry.next = old != nullptr ? entry_at(replaced)->next : first;
        std::memcpy(entry.key, key.data(), key_bytes);
        entry.value_bytes = value.size();
        std::memcpy(entry.value(), value.data(), value.size());
        MapPool::snapshot(&link, sizeof link);
        link = made;
        if (old != nullptr) {
            MapPool::free_in_transaction(replaced);
        } else {
            MapPool::snapshot(&root_.count, sizeof root_.count);
            ++root_.count;
        }
    }
    /// Empty: there is no such key.
    [[nodiscard]] std::string_view get(std::string_view key) const
    {
        const std::uint64_t hash = std::hash<std::string_view>()(key);
        const PMEMoid* const found = find(bucket(hash), hash, key);
        return found != nullptr ? entry_at(*found)->whole_value() : std::string_view();
    }
    [[nodiscard]] std::uint64_t size() const noexcept { return root_.count; }

    /// Not atomic.
    void clear()
    {
        auto* const buckets = static_cast<PMEMoid*>(pmemobj_direct(root_.buckets));
        for (std::uint64_t at = 0; at < root_.bucket_count; ++at) {
            while (!OID_IS_NULL(buckets[at])) {
                PMEMoid entry = buckets[at];
                buckets[at] = entry_at(entry)->next;
                pmemobj_free(&entry);
            }
        }
        pool_.persist(buckets, root_.bucket_count * sizeof(PMEMoid));
        root_.count = 0;
        pool_.persist(&root_.count, sizeof root_.count);
    }

private:
    static constexpr std::uint64_t type_entry = 3;
    static constexpr std::uint64_t type_buckets = 4;

    struct Entry {
        std::uint64_t hash;
        PMEMoid next;
        char key[key_bytes];
        std::uint64_t value_bytes;

        /// The value lies after the node.
        [[nodiscard]] char* value() noexcept { return reinterpret_cast<char*>(this + 1); }
        [[nodiscard]] std::string_view whole_value() const noexcept { return {reinterpret_cast<const char*>(this + 1), value_bytes}; }
    };

    static Entry* entry_at(PMEMoid entry) noexcept { return static_cast<Entry*>(pmemobj_direct(entry)); }
    [[nodiscard]] PMEMoid& bucket(std::uint64_t hash) const noexcept
    {
        return static_cast<PMEMoid*>(pmemobj_direct(root_.buckets))[hash % root_.bucket_count];
    }
    /// The link to the entry of that key; nullptr: there is none.
    static PMEMoid* find(PMEMoid& first, std::uint64_t hash, std::string_view key) noexcept
    {
        for (PMEMoid* link = &first; !OID_IS_NULL(*link); link = &entry_at(*link)->next) {
            const Entry& entry = *entry_at(*link);
            if (entry.hash == hash && std::memcmp(entry.key, key.data(), key_bytes) == 0) {
                return link;
            }
        }
        return nullptr;
    }

    MapPool& pool_;
    Root& root_;
};

}  // namespace bench
