#pragma once
// LMDB: one file, one writer at a time, readers that never wait.
//
// A put or a remove is a transaction; a get renews the thread's own read transaction, which costs no lock. Keys are
// machine words (MDB_INTEGERKEY). docs/internals/decisions/peers.md has the options.

#include <cstddef>
#include <cstdint>
#include <lmdb.h>
#include <optional>
#include <span>
#include <vector>

#include "../worker/shape.hpp"
#include "engine.hpp"

namespace bench {

class LmdbStore {
public:
    LmdbStore(const Shape& shape, const char* name, std::uint64_t keys);
    LmdbStore(const LmdbStore&) = delete;
    LmdbStore& operator=(const LmdbStore&) = delete;
    ~LmdbStore();

    [[nodiscard]] bool get(unsigned thread, std::uint64_t key, std::span<std::byte> out);
    void put(unsigned thread, std::uint64_t key, std::span<const std::byte> value);
    bool remove(unsigned thread, std::uint64_t key);
    /// A commit has returned only when its operation is durable.
    void settle() noexcept {}

    void begin_fill();
    void end_fill();
    [[nodiscard]] std::optional<std::uint64_t> lowest_key_below(std::uint64_t limit);
    [[nodiscard]] std::optional<std::uint64_t> highest_key_below(std::uint64_t limit);

private:
    void check(int result, const char* what) const;
    MDB_txn* begin_write();
    void put_in(MDB_txn* transaction, std::uint64_t key, std::span<const std::byte> value);
    std::optional<std::uint64_t> key_at(MDB_cursor_op first, std::uint64_t limit, MDB_cursor_op second);

    MDB_env* env_ = nullptr;
    MDB_dbi table_ = 0;
    std::vector<MDB_txn*> readers_;  ///< of each thread; reset between its reads
    MDB_txn* filling_ = nullptr;
    std::uint64_t filled_ = 0;  ///< puts in that transaction
    std::uint64_t pool_mib_;
};
static_assert(OrderedStore<LmdbStore> && FillsInBatches<LmdbStore>);

}  // namespace bench
