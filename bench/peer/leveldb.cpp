// LevelDB as a peer: a log that is synced for each write where power may fail, sorted tables below it. Build and run it with
//
//     c++ -std=c++20 -O2 -fPIC -shared leveldb.cpp -o libleveldb_peer.so -lleveldb
//     stillpoint bench --peer ./libleveldb_peer.so

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/filter_policy.h>
#include <memory>
#include <string>

#include "stillpoint_peer.h"

namespace {

constexpr std::size_t block_cache_bytes = std::size_t{512} << 20;
constexpr std::size_t write_buffer_bytes = std::size_t{64} << 20;
constexpr int filter_bits_per_key = 10;

thread_local std::string last_error;

int answer_of(const leveldb::Status& status)
{
    if (status.ok()) {
        return STILLPOINT_PEER_OK;
    }
    if (status.IsNotFound()) {
        return STILLPOINT_PEER_ABSENT;
    }
    last_error = status.ToString();
    return -1;
}

struct Store {
    std::unique_ptr<leveldb::Cache> cache;
    std::unique_ptr<const leveldb::FilterPolicy> filter;
    std::unique_ptr<leveldb::DB> database;
    leveldb::WriteOptions each_write;
    bool is_filling = false;

    [[nodiscard]] leveldb::WriteOptions write_options() const { return is_filling ? leveldb::WriteOptions() : each_write; }
};

Store& store_of(void* store) { return *static_cast<Store*>(store); }
leveldb::Slice slice_of(const std::uint64_t& key) { return {reinterpret_cast<const char*>(&key), sizeof key}; }

int open(const stillpoint_peer_settings* settings, void** made)
{
    auto store = std::make_unique<Store>();
    store->cache.reset(leveldb::NewLRUCache(block_cache_bytes));
    store->filter.reset(leveldb::NewBloomFilterPolicy(filter_bits_per_key));
    store->each_write.sync = settings->crash == STILLPOINT_PEER_POWER;
    leveldb::Options options;
    options.create_if_missing = true;
    options.compression = leveldb::kNoCompression;
    options.block_cache = store->cache.get();
    options.filter_policy = store->filter.get();
    options.write_buffer_size = write_buffer_bytes;
    leveldb::DB* database = nullptr;
    const int answer = answer_of(leveldb::DB::Open(options, std::string(settings->folder) + "/leveldb", &database));
    store->database.reset(database);
    *made = answer == STILLPOINT_PEER_OK ? store.release() : nullptr;
    return answer;
}

int close(void* store)
{
    Store* const closed = &store_of(store);
    closed->database.reset();  // Before its cache and its filter.
    delete closed;
    return STILLPOINT_PEER_OK;
}

int get(void* store, void*, std::uint64_t key, void* value, std::size_t value_bytes)
{
    thread_local std::string found;
    const int answer = answer_of(store_of(store).database->Get(leveldb::ReadOptions(), slice_of(key), &found));
    if (answer == STILLPOINT_PEER_OK) {
        if (found.size() != value_bytes) {
            last_error = "a value has another size than it was given";
            return -1;
        }
        std::memcpy(value, found.data(), value_bytes);
    }
    return answer;
}

int put(void* store, void*, std::uint64_t key, const void* value, std::size_t value_bytes)
{
    const Store& here = store_of(store);
    return answer_of(here.database->Put(here.write_options(), slice_of(key), {static_cast<const char*>(value), value_bytes}));
}

/// LevelDB's Delete does not say whether the key was there.
int remove(void* store, void*, std::uint64_t key)
{
    thread_local std::string found;
    const Store& here = store_of(store);
    const int answer = answer_of(here.database->Get(leveldb::ReadOptions(), slice_of(key), &found));
    return answer != STILLPOINT_PEER_OK ? answer : answer_of(here.database->Delete(here.write_options(), slice_of(key)));
}

/// The last write of the filling is durable with all before it: they are in one log, or in tables that were synced.
int fill(void* store, int is_beginning)
{
    Store& here = store_of(store);
    here.is_filling = is_beginning != 0;
    if (here.is_filling) {
        return STILLPOINT_PEER_OK;
    }
    leveldb::WriteOptions synced;
    synced.sync = true;
    return answer_of(here.database->Delete(synced, "the end of the filling"));
}

const char* message(int) { return last_error.c_str(); }

}  // namespace

extern "C" const stillpoint_peer_functions stillpoint_peer = {
    .version = STILLPOINT_PEER_VERSION,
    .loses = STILLPOINT_PEER_LOSES_NOTHING,
    .name = "leveldb",
    .summary = "LevelDB: a log-structured tree, its log synced at each write where power may fail.",
    .open = open,
    .close = close,
    .thread_begin = nullptr,
    .thread_end = nullptr,
    .get = get,
    .put = put,
    .remove = remove,
    .enqueue = nullptr,
    .dequeue = nullptr,
    .sync = nullptr,
    .fill = fill,
    .figures = nullptr,
    .message = message,
};
