#include "lmdb_store.hpp"

#include <cstring>
#include <string>

#include "../harness/ending.hpp"

namespace bench {

namespace {

/// Operations in one filling transaction: its dirty pages are kept in memory until it commits.
constexpr std::uint64_t fill_batch = 100'000;

/// The library takes both without const and leaves them alone.
MDB_val value_of(const void* data, std::size_t size_bytes) { return {size_bytes, const_cast<void*>(data)}; }

}  // namespace

LmdbStore::LmdbStore(const Shape& shape, const char* name, std::uint64_t) : pool_mib_(shape.pool_mib)
{
    const std::string path = shape.folder + "/" + name + ".lmdb";
    check(mdb_env_create(&env_), "cannot make an environment");
    check(mdb_env_set_mapsize(env_, shape.pool_mib << 20), "cannot set the size of the map");
    check(mdb_env_set_maxreaders(env_, shape.threads + 8), "cannot set the number of readers");
    // NOTLS: read transactions belong to our threads by number, not to the calling thread. NOSYNC under "process": commits are
    // written to the page cache in their order, and that outlives the process.
    const unsigned sync = shape.durability == "process" ? MDB_NOSYNC : 0;
    check(mdb_env_open(env_, path.c_str(), MDB_NOSUBDIR | MDB_NOTLS | MDB_NORDAHEAD | sync, 0600), path.c_str());
    int dead = 0;
    check(mdb_reader_check(env_, &dead), "cannot clear the readers of a process that was killed");

    MDB_txn* making = begin_write();
    check(mdb_dbi_open(making, nullptr, MDB_CREATE | MDB_INTEGERKEY, &table_), "cannot open the table");
    check(mdb_txn_commit(making), "cannot commit");
    readers_.resize(shape.threads);
    for (MDB_txn*& reader : readers_) {
        check(mdb_txn_begin(env_, nullptr, MDB_RDONLY, &reader), "cannot begin a read transaction");
        mdb_txn_reset(reader);
    }
}

LmdbStore::~LmdbStore()
{
    for (MDB_txn* reader : readers_) {
        mdb_txn_abort(reader);
    }
    mdb_env_close(env_);
}

void LmdbStore::check(int result, const char* what) const
{
    if (result == MDB_MAP_FULL) {
        out_of_memory("LMDB: the map of " + std::to_string(pool_mib_) + " MiB is full: ask for a larger pool_mib");
    }
    if (result != 0) {
        give_up(std::string("LMDB: ") + what + ": " + mdb_strerror(result));
    }
}

MDB_txn* LmdbStore::begin_write()
{
    MDB_txn* transaction = nullptr;
    check(mdb_txn_begin(env_, nullptr, 0, &transaction), "cannot begin a transaction");
    return transaction;
}

bool LmdbStore::get(unsigned thread, std::uint64_t key, std::span<std::byte> out)
{
    MDB_txn* const reader = readers_[thread];
    check(mdb_txn_renew(reader), "cannot renew a read transaction");
    MDB_val wanted = value_of(&key, sizeof key);
    MDB_val found{};
    const int result = mdb_get(reader, table_, &wanted, &found);
    if (result == 0) {
        if (found.mv_size != out.size()) {
            give_up("LMDB: a value has " + std::to_string(found.mv_size) + " bytes, not " + std::to_string(out.size()));
        }
        std::memcpy(out.data(), found.mv_data, out.size());  // before the reset: the page may then be used again
    }
    mdb_txn_reset(reader);
    if (result != MDB_NOTFOUND) {
        check(result, "cannot read");
    }
    return result == 0;
}

void LmdbStore::put_in(MDB_txn* transaction, std::uint64_t key, std::span<const std::byte> value)
{
    MDB_val place = value_of(&key, sizeof key);
    MDB_val bytes = value_of(value.data(), value.size());
    check(mdb_put(transaction, table_, &place, &bytes, 0), "cannot write");
}

void LmdbStore::put(unsigned, std::uint64_t key, std::span<const std::byte> value)
{
    if (filling_ != nullptr) {
        put_in(filling_, key, value);
        if (++filled_ % fill_batch == 0) {
            check(mdb_txn_commit(filling_), "cannot commit");
            filling_ = begin_write();
        }
        return;
    }
    MDB_txn* transaction = begin_write();
    put_in(transaction, key, value);
    check(mdb_txn_commit(transaction), "cannot commit");
}

bool LmdbStore::remove(unsigned, std::uint64_t key)
{
    MDB_txn* transaction = begin_write();
    MDB_val place = value_of(&key, sizeof key);
    const int result = mdb_del(transaction, table_, &place, nullptr);
    if (result == MDB_NOTFOUND) {
        mdb_txn_abort(transaction);
        return false;
    }
    check(result, "cannot remove");
    check(mdb_txn_commit(transaction), "cannot commit");
    return true;
}

void LmdbStore::begin_fill() { filling_ = begin_write(); }

void LmdbStore::end_fill()
{
    check(mdb_txn_commit(filling_), "cannot commit");
    filling_ = nullptr;
}

std::optional<std::uint64_t> LmdbStore::key_at(MDB_cursor_op first, std::uint64_t limit, MDB_cursor_op second)
{
    MDB_txn* const reader = readers_[0];
    check(mdb_txn_renew(reader), "cannot renew a read transaction");
    MDB_cursor* cursor = nullptr;
    check(mdb_cursor_open(reader, table_, &cursor), "cannot open a cursor");
    MDB_val key = value_of(&limit, sizeof limit);
    MDB_val value{};
    int result = mdb_cursor_get(cursor, &key, &value, first);
    if (second != first) {
        // On the first key at or above the limit: one back. None: the last of all.
        result = mdb_cursor_get(cursor, &key, &value, result == MDB_NOTFOUND ? MDB_LAST : second);
    }
    std::uint64_t found = limit;
    if (result == 0) {
        std::memcpy(&found, key.mv_data, sizeof found);
    } else if (result != MDB_NOTFOUND) {
        check(result, "cannot look for a key");
    }
    mdb_cursor_close(cursor);
    mdb_txn_reset(reader);
    return found < limit ? std::optional(found) : std::nullopt;
}

std::optional<std::uint64_t> LmdbStore::lowest_key_below(std::uint64_t limit) { return key_at(MDB_FIRST, limit, MDB_FIRST); }

std::optional<std::uint64_t> LmdbStore::highest_key_below(std::uint64_t limit) { return key_at(MDB_SET_RANGE, limit, MDB_PREV); }

}  // namespace bench
