// Tkrzw's hash table in a mapped file as a peer. Records are appended, never overwritten, so that a crash leaves whole ones; where power
// may fail each update is synced. Build and run it with
//
//     c++ -std=c++20 -O2 -fPIC -shared tkrzw.cpp -o libtkrzw_peer.so -ltkrzw
//     stillpoint bench --peer ./libtkrzw_peer.so

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <tkrzw_dbm_hash.h>
#include <tkrzw_file_mmap.h>

#include "stillpoint_peer.h"

namespace {

constexpr std::int64_t buckets_min = 1 << 16;
/// A file of records that are appended is rebuilt when so many times as much is in it as is live.
constexpr std::int64_t garbage_factor = 4;
constexpr std::int64_t rebuilt_bytes_min = std::int64_t{256} << 20;

thread_local std::string last_error;

int answer_of(const tkrzw::Status& status)
{
    if (status == tkrzw::Status::SUCCESS) {
        return STILLPOINT_PEER_OK;
    }
    if (status == tkrzw::Status::NOT_FOUND_ERROR) {
        return STILLPOINT_PEER_ABSENT;
    }
    last_error = tkrzw::ToString(status);
    return -1;
}

struct Store {
    tkrzw::HashDBM database{std::make_unique<tkrzw::MemoryMapParallelFile>()};
    bool syncs_updates = false;
    bool is_filling = false;
    std::int64_t live_bytes = 0;  ///< of the file after it was filled

    [[nodiscard]] int ended(const tkrzw::Status& update)
    {
        const int answer = answer_of(update);
        return answer == STILLPOINT_PEER_OK && syncs_updates && !is_filling ? answer_of(database.Synchronize(true)) : answer;
    }
};

Store& store_of(void* store) { return *static_cast<Store*>(store); }
std::string_view view_of(const std::uint64_t& key) { return {reinterpret_cast<const char*>(&key), sizeof key}; }

int open(const stillpoint_peer_settings* settings, void** made)
{
    auto store = std::make_unique<Store>();
    store->syncs_updates = settings->crash == STILLPOINT_PEER_POWER;
    tkrzw::HashDBM::TuningParameters tuning;
    tuning.update_mode = tkrzw::HashDBM::UPDATE_APPENDING;
    tuning.record_crc_mode = tkrzw::HashDBM::RECORD_CRC_32;
    tuning.num_buckets = std::max(buckets_min, 2 * static_cast<std::int64_t>(settings->keys));
    const int answer =
        answer_of(store->database.OpenAdvanced(std::string(settings->folder) + "/table.tkh", true, tkrzw::File::OPEN_DEFAULT, tuning));
    *made = answer == STILLPOINT_PEER_OK ? store.release() : nullptr;
    return answer;
}

int close(void* store)
{
    const int answer = answer_of(store_of(store).database.Close());
    delete &store_of(store);
    return answer;
}

int get(void* store, void*, std::uint64_t key, void* value, std::size_t value_bytes)
{
    thread_local std::string found;
    const int answer = answer_of(store_of(store).database.Get(view_of(key), &found));
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
    Store& here = store_of(store);
    return here.ended(here.database.Set(view_of(key), {static_cast<const char*>(value), value_bytes}));
}

int remove(void* store, void*, std::uint64_t key)
{
    Store& here = store_of(store);
    return here.ended(here.database.Remove(view_of(key)));
}

/// Old versions of records pile up: the file is rebuilt, as a program would from time to time, in the slice that made them.
int sync(void* store)
{
    Store& here = store_of(store);
    const std::int64_t bytes = here.database.GetFileSizeSimple();
    if (bytes > std::max(rebuilt_bytes_min, garbage_factor * here.live_bytes)) {
        return answer_of(here.database.Rebuild());
    }
    return STILLPOINT_PEER_OK;
}

int fill(void* store, int is_beginning)
{
    Store& here = store_of(store);
    here.is_filling = is_beginning != 0;
    if (here.is_filling) {
        return STILLPOINT_PEER_OK;
    }
    here.live_bytes = here.database.GetFileSizeSimple();
    return answer_of(here.database.Synchronize(true));
}

const char* message(int) { return last_error.c_str(); }

}  // namespace

extern "C" const stillpoint_peer_functions stillpoint_peer = {
    .version = STILLPOINT_PEER_VERSION,
    .loses = STILLPOINT_PEER_LOSES_NOTHING,
    .name = "tkrzw",
    .summary = "Tkrzw: a hash table in a mapped file, records appended, synced at each update where power may fail.",
    .open = open,
    .close = close,
    .thread_begin = nullptr,
    .thread_end = nullptr,
    .get = get,
    .put = put,
    .remove = remove,
    .enqueue = nullptr,
    .dequeue = nullptr,
    .sync = sync,
    .fill = fill,
    .figures = nullptr,
    .message = message,
};
