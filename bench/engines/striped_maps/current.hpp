#pragma once
// The worker of the example of a peer, called directly: what the door for peers costs is the difference.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "../../peer/striped_maps.hpp"
#include "../engine.hpp"

#define BENCH_HAS_MEMORY 0
#define BENCH_HAS_OWN_STORES 1

namespace bench {

class StripedStore {
public:
    StripedStore(const Shape&, const char*, std::uint64_t keys = 0) : maps_(keys) {}

    [[nodiscard]] bool get(unsigned, std::uint64_t key, std::span<std::byte> out) { return maps_.get(key, out.data()); }
    void put(unsigned, std::uint64_t key, std::span<const std::byte> value) { maps_.put(key, value.data(), value.size()); }
    bool remove(unsigned, std::uint64_t key) { return maps_.remove(key); }
    void push(unsigned, std::uint64_t number) { maps_.push(number); }
    [[nodiscard]] bool pop(unsigned, std::uint64_t& number) { return maps_.pop(number); }
    void settle() noexcept {}
    static std::optional<std::uint64_t> statistic(std::string_view) noexcept { return std::nullopt; }

private:
    StripedMaps maps_;
};
static_assert(KeyValueStore<StripedStore> && FifoQueue<StripedStore>);

using CurrentHashStore = StripedStore;
using CurrentTreeStore = StripedStore;
using CurrentYcsbStore = StripedStore;
using CurrentQueue = StripedStore;
using CurrentStatistics = StripedStore;
inline constexpr const char* why_no_program = "containers of the standard library give no memory for a structure of the program's own";

template <class Store>
class CurrentProgress : public StoreProgress<Store> {
public:
    CurrentProgress(Store& store, const Shape& shape) : StoreProgress<Store>(store, shape.value_bytes) {}
};

}  // namespace bench
