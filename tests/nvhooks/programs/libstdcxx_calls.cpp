// Objects of the standard library in durable memory: what its precompiled parts write must be hooked (described_calls_test.py). Their
// memory is from a resource over durable memory where that can be chosen, or from operator new, which is not durable.
#include <list>
#include <new>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

#include "recorder.h"

namespace {

/// Durable blocks that are never given back.
template <class T>
struct DurableAllocator {
    using value_type = T;
    DurableAllocator() = default;
    template <class U>
    explicit DurableAllocator(const DurableAllocator<U> &)
    {
    }
    T *allocate(std::size_t n) { return static_cast<T *>(recorder_allocate(n * sizeof(T))); }
    void deallocate(T *, std::size_t) {}
    friend bool operator==(const DurableAllocator &, const DurableAllocator &) { return true; }
};

template <class T, class... Arguments>
T *make(void *at, Arguments &&...arguments)
{
    return new (at) T(static_cast<Arguments &&>(arguments)...);
}

// Each epoch makes its objects again, since boundary() changes durable memory.
void strings(void *durable, void *)
{
    auto *short_one = make<std::string>(durable, "short");
    short_one->append(" text");
    short_one->push_back('!');
    boundary(__LINE__);
    auto *grown = make<std::string>(durable, "short");
    *grown += " and then so long that it needs a buffer of its own";
    grown->~basic_string();
    boundary(__LINE__);
    auto *other = make<std::string>(static_cast<char *>(durable) + 64, "other");
    auto *copy = make<std::string>(durable, *other);
    copy->assign("twelve bytes");
    copy->insert(3, "abc");
    copy->erase(1, 2);
    copy->replace(0, 2, "xyz");
    copy->resize(9, 'q');
    boundary(__LINE__);
    other = make<std::string>(static_cast<char *>(durable) + 64, "other");
    auto *moved = make<std::string>(durable, std::move(*other));
    moved->swap(*other);
    *moved = std::move(*other);
    boundary(__LINE__);
    auto *read = make<std::string>(durable, "");
    std::istringstream in("word 17");
    int *number = make<int>(static_cast<char *>(durable) + 128, 0);
    in >> *read >> *number;
    boundary(__LINE__);
    read = make<std::string>(durable, "");
    std::istringstream line("a whole line");
    std::getline(line, *read);
    boundary(__LINE__);
}

template <class T>
using DurableList = std::list<T, DurableAllocator<T>>;

void lists(void *durable, void *)
{
    auto *list = make<DurableList<u64>>(durable);
    for (u64 i = 0; i < 5; ++i) {
        list->push_back(i);
        list->push_front(i * 3);
    }
    list->erase(++list->begin());
    boundary(__LINE__);
    list = make<DurableList<u64>>(durable);
    auto *from = make<DurableList<u64>>(static_cast<char *>(durable) + 64);
    for (u64 i = 0; i < 5; ++i) {
        list->push_back(i);
        from->push_back(i * 7);
    }
    list->splice(++list->begin(), *from, ++from->begin(), --from->end());
    boundary(__LINE__);
}

template <class K, class V>
using DurableMap = std::unordered_map<K, V, std::hash<K>, std::equal_to<K>, DurableAllocator<std::pair<const K, V>>>;

void maps(void *durable, void *)
{
    auto *map = make<DurableMap<u64, u64>>(durable);
    for (u64 i = 0; i < 40; ++i) {
        (*map)[i * 17] = i;
    }
    map->erase(17);
    boundary(__LINE__);
}

void vectors(void *durable, void *)
{
    auto *vector = make<std::vector<u32, DurableAllocator<u32>>>(durable);
    for (u32 i = 0; i < 40; ++i) {
        vector->push_back(i * 7);
    }
    vector->insert(vector->begin() + 3, 9);
    vector->resize(60);
    vector->erase(vector->begin(), vector->begin() + 10);
    boundary(__LINE__);
}

constexpr u64 bytes = 4096;

}  // namespace

extern "C" const struct program programs[] = {{strings, bytes, 0}, {lists, bytes, 0}, {maps, bytes, 0}, {vectors, bytes, 0}};
extern "C" const u32 program_count = sizeof programs / sizeof programs[0];
