#include "sqlite_store.hpp"

#include <cstring>

#include "../harness/ending.hpp"

namespace bench {

namespace {

/// SQLite's integers have a sign; this keeps the order.
sqlite3_int64 signed_key(std::uint64_t key) noexcept { return static_cast<sqlite3_int64>(key ^ (std::uint64_t{1} << 63)); }
std::uint64_t unsigned_key(sqlite3_int64 key) noexcept { return static_cast<std::uint64_t>(key) ^ (std::uint64_t{1} << 63); }

}  // namespace

SqliteStore::SqliteStore(const Shape& shape, const char* name, std::uint64_t) : pool_mib_(shape.pool_mib), connections_(shape.threads)
{
    const std::string path = shape.folder + "/" + name + ".sqlite";
    for (Connection& connection : connections_) {
        connect(connection, path, shape);
    }
}

SqliteStore::~SqliteStore()
{
    for (Connection& connection : connections_) {
        sqlite3_finalize(connection.get);
        sqlite3_finalize(connection.put);
        sqlite3_finalize(connection.remove);
        sqlite3_close(connection.database);
    }
}

void SqliteStore::connect(Connection& connection, const std::string& path, const Shape& shape) const
{
    // NOMUTEX: a connection is used by one thread at a time.
    if (sqlite3_open_v2(path.c_str(), &connection.database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr) !=
        SQLITE_OK) {
        failed(connection, path.c_str());
    }
    sqlite3_busy_timeout(connection.database, 60'000);
    execute(connection, "PRAGMA journal_mode = WAL");
    // OFF under "process": commits are written to the page cache in their order, and that outlives the process.
    execute(connection, shape.durability == "process" ? "PRAGMA synchronous = OFF" : "PRAGMA synchronous = FULL");
    execute(connection, "PRAGMA cache_size = -65536");
    execute(connection, "PRAGMA mmap_size = " + std::to_string(shape.pool_mib << 20));
    execute(connection, "PRAGMA max_page_count = " + std::to_string(shape.pool_mib * 256));
    execute(connection, "CREATE TABLE IF NOT EXISTS kept(key INTEGER PRIMARY KEY, value BLOB NOT NULL)");
    prepare(connection, "SELECT value FROM kept WHERE key = ?1", connection.get);
    prepare(connection, "INSERT INTO kept VALUES(?1, ?2) ON CONFLICT(key) DO UPDATE SET value = excluded.value", connection.put);
    prepare(connection, "DELETE FROM kept WHERE key = ?1", connection.remove);
}

void SqliteStore::failed(const Connection& connection, const char* what) const
{
    if (sqlite3_errcode(connection.database) == SQLITE_FULL) {
        out_of_memory("SQLite: the database of at most " + std::to_string(pool_mib_) + " MiB is full: ask for a larger pool_mib");
    }
    give_up(std::string("SQLite: ") + what + ": " + sqlite3_errmsg(connection.database));
}

void SqliteStore::execute(const Connection& connection, const std::string& statement) const
{
    if (sqlite3_exec(connection.database, statement.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
        failed(connection, statement.c_str());
    }
}

void SqliteStore::prepare(const Connection& connection, const char* text, sqlite3_stmt*& statement) const
{
    if (sqlite3_prepare_v3(connection.database, text, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr) != SQLITE_OK) {
        failed(connection, text);
    }
}

int SqliteStore::step(const Connection& connection, sqlite3_stmt* statement) const
{
    const int result = sqlite3_step(statement);
    if (result != SQLITE_DONE && result != SQLITE_ROW) {
        failed(connection, sqlite3_sql(statement));
    }
    return result;
}

bool SqliteStore::get(unsigned thread, std::uint64_t key, std::span<std::byte> out)
{
    const Connection& connection = connections_[thread];
    sqlite3_bind_int64(connection.get, 1, signed_key(key));
    const bool found = step(connection, connection.get) == SQLITE_ROW;
    if (found) {
        const void* bytes = sqlite3_column_blob(connection.get, 0);
        const auto size_bytes = static_cast<std::size_t>(sqlite3_column_bytes(connection.get, 0));
        if (size_bytes != out.size()) {
            give_up("SQLite: a value has " + std::to_string(size_bytes) + " bytes, not " + std::to_string(out.size()));
        }
        std::memcpy(out.data(), bytes, out.size());
    }
    sqlite3_reset(connection.get);  // ends the read: a snapshot that is held keeps the log from being reused
    return found;
}

void SqliteStore::put(unsigned thread, std::uint64_t key, std::span<const std::byte> value)
{
    const std::lock_guard locked(writing_);
    // Filling is one transaction of the first connection.
    const Connection& connection = connections_[filling_ ? 0 : thread];
    sqlite3_bind_int64(connection.put, 1, signed_key(key));
    sqlite3_bind_blob(connection.put, 2, value.data(), static_cast<int>(value.size()), SQLITE_STATIC);
    step(connection, connection.put);
    if (sqlite3_reset(connection.put) != SQLITE_OK) {
        failed(connection, "cannot write");
    }
}

bool SqliteStore::remove(unsigned thread, std::uint64_t key)
{
    const std::lock_guard locked(writing_);
    const Connection& connection = connections_[thread];
    sqlite3_bind_int64(connection.remove, 1, signed_key(key));
    step(connection, connection.remove);
    const bool was_there = sqlite3_changes(connection.database) != 0;
    if (sqlite3_reset(connection.remove) != SQLITE_OK) {
        failed(connection, "cannot remove");
    }
    return was_there;
}

void SqliteStore::begin_fill()
{
    execute(connections_[0], "BEGIN IMMEDIATE");
    filling_ = true;
}

void SqliteStore::end_fill()
{
    execute(connections_[0], "COMMIT");
    // The log of the filling is as long as the table: it is moved there now, or every later read would look in it first.
    execute(connections_[0], "PRAGMA wal_checkpoint(TRUNCATE)");
    filling_ = false;
}

std::optional<std::uint64_t> SqliteStore::key_of(const char* query, std::uint64_t limit)
{
    const Connection& connection = connections_[0];
    sqlite3_stmt* statement = nullptr;
    prepare(connection, query, statement);
    sqlite3_bind_int64(statement, 1, signed_key(limit));
    std::optional<std::uint64_t> key;
    if (step(connection, statement) == SQLITE_ROW) {
        key = unsigned_key(sqlite3_column_int64(statement, 0));
    }
    sqlite3_finalize(statement);
    return key;
}

std::optional<std::uint64_t> SqliteStore::lowest_key_below(std::uint64_t limit)
{
    return key_of("SELECT key FROM kept WHERE key < ?1 ORDER BY key LIMIT 1", limit);
}

std::optional<std::uint64_t> SqliteStore::highest_key_below(std::uint64_t limit)
{
    return key_of("SELECT key FROM kept WHERE key < ?1 ORDER BY key DESC LIMIT 1", limit);
}

}  // namespace bench
