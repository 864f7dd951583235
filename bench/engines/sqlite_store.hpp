#pragma once
// SQLite: one table with an INTEGER PRIMARY KEY, WAL mode, a connection for each thread.
//
// A put or a remove is a prepared statement that commits by itself. Writers of this process take turns at a mutex: SQLite's own
// way to wait for another connection is to sleep and try again. docs/internals/decisions/peers.md has the options.

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <sqlite3.h>
#include <string>
#include <vector>

#include "../worker/shape.hpp"
#include "engine.hpp"

namespace bench {

class SqliteStore {
public:
    SqliteStore(const Shape& shape, const char* name, std::uint64_t keys);
    SqliteStore(const SqliteStore&) = delete;
    SqliteStore& operator=(const SqliteStore&) = delete;
    ~SqliteStore();

    [[nodiscard]] bool get(unsigned thread, std::uint64_t key, std::span<std::byte> out);
    void put(unsigned thread, std::uint64_t key, std::span<const std::byte> value);
    bool remove(unsigned thread, std::uint64_t key);
    /// A commit has returned only when its operation is durable; the thread that fills the log moves it into the table itself.
    void settle() noexcept {}

    void begin_fill();
    void end_fill();
    [[nodiscard]] std::optional<std::uint64_t> lowest_key_below(std::uint64_t limit);
    [[nodiscard]] std::optional<std::uint64_t> highest_key_below(std::uint64_t limit);

private:
    struct Connection {
        sqlite3* database = nullptr;
        sqlite3_stmt* get = nullptr;
        sqlite3_stmt* put = nullptr;
        sqlite3_stmt* remove = nullptr;
    };

    void connect(Connection& connection, const std::string& path, const Shape& shape) const;
    void execute(const Connection& connection, const std::string& statement) const;
    void prepare(const Connection& connection, const char* text, sqlite3_stmt*& statement) const;
    int step(const Connection& connection, sqlite3_stmt* statement) const;
    [[noreturn]] void failed(const Connection& connection, const char* what) const;
    std::optional<std::uint64_t> key_of(const char* query, std::uint64_t limit);

    std::uint64_t pool_mib_;
    std::vector<Connection> connections_;  ///< of each thread
    std::mutex writing_;
    bool filling_ = false;
};
static_assert(OrderedStore<SqliteStore> && FillsInBatches<SqliteStore>);

}  // namespace bench
