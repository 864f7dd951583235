/* Standard containers in durable memory, for the programs of container_generator.py. All their memory is durable: the
 * allocators, the resource and operator new take it from an arena. That is the recorder's memory after the objects, or
 * with CONTAINERS_IN_A_POOL what sp_malloc gives. */
#ifndef STILLPOINT_TESTS_NVHOOKS_CONTAINERS_H
#define STILLPOINT_TESTS_NVHOOKS_CONTAINERS_H

#include <cstdlib>
#include <deque>
#include <forward_list>
#include <functional>
#include <list>
#include <map>
#include <memory_resource>
#include <new>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#ifdef CONTAINERS_IN_A_POOL
#include <cstdint>

#include <stillpoint/stillpoint.h>
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
#else
#include "recorder.h"
#endif

namespace containers {

#ifdef CONTAINERS_IN_A_POOL
struct Arena {
    void *take(u64 bytes) { return sp_malloc(bytes); }
    void give_back(void *block, u64) { sp_free(block); }
};
#else

constexpr u64 objects_bytes = 4096;
constexpr u64 memory_bytes = 28672;

/// The free list lies outside of durable memory, whose contents the recorder changes.
struct Arena {
    u8 *memory = nullptr;
    u64 used = 0;
    u8 *free_blocks[64][64] = {};
    u32 free_count[64] = {};

    void begin(void *durable)
    {
        *this = Arena();
        memory = static_cast<u8 *>(durable);
        used = objects_bytes;
    }
    void *take(u64 bytes)
    {
        const u64 units = (bytes + 15) / 16;
        if (units < 64 && free_count[units] != 0) {
            return free_blocks[units][--free_count[units]];
        }
        if (memory == nullptr || used + units * 16 > memory_bytes) {
            return std::malloc(bytes);
        }
        used += units * 16;
        return memory + used - units * 16;
    }
    void give_back(void *block, u64 bytes)
    {
        const u64 units = (bytes + 15) / 16;
        const bool is_durable = static_cast<u8 *>(block) >= memory && static_cast<u8 *>(block) < memory + memory_bytes;
        if (is_durable && units < 64 && free_count[units] < 64) {
            free_blocks[units][free_count[units]++] = static_cast<u8 *>(block);
        }
    }
};
#endif
inline Arena arena;

template <class T>
struct Allocator {
    using value_type = T;
    Allocator() = default;
    template <class U>
    explicit Allocator(const Allocator<U> &)
    {
    }
    T *allocate(std::size_t n) { return static_cast<T *>(arena.take(n * sizeof(T))); }
    void deallocate(T *block, std::size_t n) { arena.give_back(block, n * sizeof(T)); }
    friend bool operator==(const Allocator &, const Allocator &) { return true; }
    friend bool operator!=(const Allocator &, const Allocator &) { return false; }
};

struct Resource : std::pmr::memory_resource {
    void *do_allocate(std::size_t bytes, std::size_t) override { return arena.take(bytes); }
    void do_deallocate(void *block, std::size_t bytes, std::size_t) override { arena.give_back(block, bytes); }
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override { return this == &other; }
};
inline Resource resource;

template <class K, class V>
using Pairs = Allocator<std::pair<const K, V>>;

struct World {
    std::map<u32, u64, std::less<>, Pairs<u32, u64>> map, other_map;
    std::multimap<u32, u64, std::less<>, Pairs<u32, u64>> multimap;
    std::set<u64, std::less<>, Allocator<u64>> set, other_set;
    std::multiset<u16, std::less<>, Allocator<u16>> multiset;
    std::map<u32, u64> plain_map;
    std::list<u64, Allocator<u64>> list, other_list;
    std::list<u64> plain_list;
    std::forward_list<u32, Allocator<u32>> forward, other_forward;
    std::unordered_map<u64, u64, std::hash<u64>, std::equal_to<>, Pairs<u64, u64>> hashed, other_hashed;
    std::unordered_multimap<u64, u64, std::hash<u64>, std::equal_to<>, Pairs<u64, u64>> multihashed;
    std::unordered_set<std::string> strings;
    std::deque<u32, Allocator<u32>> deque;
    std::vector<u32, Allocator<u32>> vector;
    std::vector<bool, Allocator<bool>> bits;
    std::string string, other_string;
    std::wstring wide;
    std::basic_string<char, std::char_traits<char>, Allocator<char>> text;
    std::pmr::map<u32, u32> pmr_map{&resource};
    std::pmr::set<std::pmr::string> pmr_strings{&resource};
    std::pmr::list<u32> pmr_list{&resource};
    std::pmr::unordered_map<u32, u32> pmr_hashed{&resource};
    std::pmr::vector<std::pmr::string> pmr_vector{&resource};
    std::pmr::deque<u16> pmr_deque{&resource};
    u64 sum = 0;
};
static_assert(sizeof(World) <= 4096);

inline u32 key(u64 x, u32 range) { return static_cast<u32>(((x ^ 0x5851f42d4c957f2dul) * 0x9e3779b97f4a7c15ul >> 17) % range); }

/// A text whose length has to do with x: inside the object up to 15 characters, or in a buffer of its own.
inline std::string name(u64 x) { return std::string(key(x, 40), static_cast<char>('a' + x % 26)); }

}  // namespace containers

void *operator new(std::size_t bytes) { return containers::arena.take(bytes); }
void operator delete(void *block) noexcept { containers::arena.give_back(block, 0); }
void operator delete(void *block, std::size_t bytes) noexcept { containers::arena.give_back(block, bytes); }

#endif
