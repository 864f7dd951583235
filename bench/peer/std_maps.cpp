// An example of a peer: the glue between the bench and striped_maps.hpp. Build and run it with
//
//     c++ -std=c++20 -O2 -fPIC -shared std_maps.cpp -o libstd_maps.so
//     stillpoint bench --peer ./libstd_maps.so

#include <cstdint>
#include <exception>

#include "stillpoint_peer.h"
#include "striped_maps.hpp"

namespace {

constexpr int out_of_memory = -1;

StripedMaps& maps_of(void* store) { return *static_cast<StripedMaps*>(store); }
int present_or_absent(bool is_present) { return is_present ? STILLPOINT_PEER_OK : STILLPOINT_PEER_ABSENT; }

/// No exception may leave a function of a peer.
template <class Work>
int guarded(Work work)
{
    try {
        work();
        return STILLPOINT_PEER_OK;
    } catch (const std::exception&) {
        return out_of_memory;
    }
}

int open(const stillpoint_peer_settings* settings, void** store)
{
    return guarded([&] { *store = new StripedMaps(settings->keys); });
}
int close(void* store)
{
    delete &maps_of(store);
    return STILLPOINT_PEER_OK;
}
int get(void* store, void*, std::uint64_t key, void* value, std::size_t) { return present_or_absent(maps_of(store).get(key, value)); }
int put(void* store, void*, std::uint64_t key, const void* value, std::size_t value_bytes)
{
    return guarded([&] { maps_of(store).put(key, value, value_bytes); });
}
int remove(void* store, void*, std::uint64_t key) { return present_or_absent(maps_of(store).remove(key)); }
int enqueue(void* store, void*, std::uint64_t number)
{
    return guarded([&] { maps_of(store).push(number); });
}
int dequeue(void* store, void*, std::uint64_t* number) { return present_or_absent(maps_of(store).pop(*number)); }
const char* message(int) { return "no memory is left"; }

}  // namespace

extern "C" const stillpoint_peer_functions stillpoint_peer = {
    .version = STILLPOINT_PEER_VERSION,
    .loses = STILLPOINT_PEER_LOSES_ALL,
    .name = "std-maps",
    .summary = "std::unordered_map in 1024 stripes with a std::mutex each, and a std::deque with one: keeps nothing.",
    .open = open,
    .close = close,
    .thread_begin = nullptr,
    .thread_end = nullptr,
    .get = get,
    .put = put,
    .remove = remove,
    .enqueue = enqueue,
    .dequeue = dequeue,
    .sync = nullptr,
    .fill = nullptr,
    .figures = nullptr,
    .message = message,
};
