#pragma once
// RocksDB: a log, and a table in memory that becomes files.
//
// Keys are big-endian, so that their order is that of the numbers. Each write goes to the log before it returns; whether
// the log is synced is BENCH_ROCKSDB_SYNC, 1 or 0. docs/internals/decisions/peers.md has the options.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>
#include <span>

#include "../worker/shape.hpp"
#include "engine.hpp"

namespace bench {

class RocksdbStore {
public:
    RocksdbStore(const Shape& shape, const char* name, std::uint64_t keys);
    RocksdbStore(const RocksdbStore&) = delete;
    RocksdbStore& operator=(const RocksdbStore&) = delete;
    ~RocksdbStore();

    [[nodiscard]] bool get(unsigned thread, std::uint64_t key, std::span<std::byte> out);
    void put(unsigned thread, std::uint64_t key, std::span<const std::byte> value);
    bool remove(unsigned thread, std::uint64_t key);
    /// Until no flush and no compaction is running or due: they are work of the slice that caused them.
    void settle();

    void begin_fill() noexcept { filling_ = true; }
    void end_fill();
    [[nodiscard]] std::optional<std::uint64_t> lowest_key_below(std::uint64_t limit);
    [[nodiscard]] std::optional<std::uint64_t> highest_key_below(std::uint64_t limit);

private:
    std::mutex& removal_lock(std::uint64_t key) noexcept;
    void write_batch();

    std::unique_ptr<rocksdb::DB> db_;
    rocksdb::WriteOptions write_;
    rocksdb::ReadOptions read_;
    /// A delete does not say whether there was something: it is looked up first, and two removals of a key must not both
    /// find it.
    std::array<std::mutex, 256> removals_;
    bool filling_ = false;
    rocksdb::WriteBatch batch_;
};
static_assert(OrderedStore<RocksdbStore> && FillsInBatches<RocksdbStore>);

}  // namespace bench
