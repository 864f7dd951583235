// A std::map in durable memory that is changed without end, two insertions and one removal in each section; `verify` says
// whether the tree is whole: containers_test.py kills the program, with the tracker hooks.
#include <cstdio>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <new>

#include <stillpoint/stillpoint.h>

namespace {

template <class T>
struct Durable {
    using value_type = T;
    Durable() = default;
    template <class U>
    explicit Durable(const Durable<U>&)
    {
    }
    T* allocate(std::size_t n) { return static_cast<T*>(sp_malloc(n * sizeof(T))); }
    void deallocate(T* block, std::size_t) { sp_free(block); }
    friend bool operator==(const Durable&, const Durable&) { return true; }
};

using Map = std::map<std::uint64_t, std::uint64_t, std::less<>, Durable<std::pair<const std::uint64_t, std::uint64_t>>>;

constexpr std::uint64_t keys = 20000;

struct State {
    bool made;
    std::uint64_t seed;
    std::uint64_t size;
    Map map;
};

std::uint64_t next(std::uint64_t& seed)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % keys;
}

/// 0 where walking, searching and the counts agree; else says what is wrong.
int verify(State& state)
{
    std::uint64_t count = 0;
    std::uint64_t last = 0;
    for (auto at = state.map.begin(); at != state.map.end(); ++at) {
        if (++count > keys || (count > 1 && at->first <= last) || at->second != at->first * 3) {
            std::fprintf(stderr, "entry %lu has the key %lu after %lu\n", count, at->first, last);
            return 1;
        }
        last = at->first;
    }
    std::uint64_t found = 0;
    for (std::uint64_t key = 0; key < keys; ++key) {
        found += state.map.count(key);
    }
    if (count != state.map.size() || count != state.size || found != count) {
        std::fprintf(stderr, "the map has %lu entries in order, %lu by search; its size is %lu, and should be %lu\n", count, found,
                     state.map.size(), state.size);
        return 1;
    }
    return 0;
}

void change(State& state)
{
    for (int i = 0; i < 2; ++i) {
        const std::uint64_t key = next(state.seed);
        state.map.emplace(key, key * 3);
    }
    state.map.erase(next(state.seed));
    state.size = state.map.size();
}

}  // namespace

int main(int count, char** words)
{
    static std::mutex lock;
    auto* state = static_cast<State*>(sp_root("map", sizeof(State)));
    {
        const std::lock_guard held(lock);
        if (!state->made) {
            new (&state->map) Map;
            state->made = true;
        }
    }
    if (count > 1 && std::strcmp(words[1], "verify") == 0) {
        return verify(*state);
    }
    while (true) {
        const std::lock_guard held(lock);
        change(*state);
    }
}
