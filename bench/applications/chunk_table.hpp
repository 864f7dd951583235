#pragma once
// The chunks that a deduplicating program has met: a durable hash table with a mutex for each bucket.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "../engines/engine.hpp"
#include "chunking.hpp"

namespace bench {

template <MemoryEngine E>
class ChunkTable {
public:
    struct Entry {
        Fingerprint print;
        std::uint64_t first_chunk;  ///< the chunk whose finder made the entry, and whose compressor sets its bytes
        typename E::template Durable<std::byte*> bytes;  ///< compressed; null before that, and once they are in the output
        typename E::template Durable<std::uint64_t> size_bytes;
        typename E::template Durable<std::uint64_t> stored_as;  ///< 0: not in the output yet
        typename E::template Durable<Entry*> next;
    };

    /// `buckets`: a power of two.
    ChunkTable(const std::string& name, std::uint64_t buckets)
        : buckets_(E::template named<Bucket>(name.c_str(), buckets)), bucket_count_(buckets)
    {
    }

    /// The entry of a fingerprint; made, with `chunk` as its first one, where there is none.
    Entry* find_or_make(const Fingerprint& print, std::uint64_t chunk)
    {
        Bucket& bucket = bucket_of(print);
        typename E::template Operation<1> operation;
        operation.lock(bucket.mutex);
        Entry* const first = bucket.value;
        for (Entry* entry = first; entry != nullptr; entry = entry->next) {
            if (entry->print == print) {
                return entry;
            }
        }
        Entry* const entry = E::template make<Entry>();
        entry->print = print;
        entry->first_chunk = chunk;
        E::init(entry->bytes, static_cast<std::byte*>(nullptr));
        E::init(entry->size_bytes, std::uint64_t{0});
        E::init(entry->stored_as, std::uint64_t{0});
        E::init(entry->next, first);
        bucket.value = entry;
        return entry;
    }

    /// Keeps a copy of the compressed bytes.
    void keep(Entry& entry, std::span<const std::byte> compressed)
    {
        typename E::template Operation<1> operation;
        operation.lock(lock_of(entry));
        auto* bytes = static_cast<std::byte*>(E::allocate(compressed.size()));
        std::memcpy(bytes, compressed.data(), compressed.size());
        entry.bytes = bytes;
        entry.size_bytes = compressed.size();
    }

    /// Guards the entry, but for print and first_chunk, which do not change.
    typename E::Mutex& lock_of(const Entry& entry) { return bucket_of(entry.print).mutex; }

    /// Frees every entry and its bytes. No thread is at work.
    void clear()
    {
        for (std::uint64_t i = 0; i < bucket_count_; ++i) {
            typename E::template Operation<1> operation;
            operation.lock(buckets_[i].mutex);
            Entry* entry = buckets_[i].value;
            if (entry != nullptr) {
                buckets_[i].value = static_cast<Entry*>(nullptr);
            }
            while (entry != nullptr) {
                Entry* const next = entry->next;
                if (entry->bytes != nullptr) {
                    E::deallocate(entry->bytes);
                }
                E::deallocate(entry);
                entry = next;
            }
        }
    }

private:
    /// The value is the first entry.
    using Bucket = typename E::template Guarded<Entry*>;

    Bucket& bucket_of(const Fingerprint& print) const noexcept { return buckets_[print.low & (bucket_count_ - 1)]; }

    Bucket* buckets_;
    std::uint64_t bucket_count_;
};

}  // namespace bench
