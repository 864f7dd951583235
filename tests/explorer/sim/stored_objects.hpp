#pragma once
// The bytes of a simulated pool in RADOS: operations on objects that were handed over and are not acknowledged.
// docs/internals/crash-model.md states the rules.

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/units.hpp"
#include "sim/page_map.hpp"

namespace stillpoint::sim {

/// The real medium has objects of 4 MiB and operations of 512 KiB. Explored pools have a few hundred KiB in use: with these sizes they
/// span many objects, and a commit needs several operations. Smaller ones promise less, never more.
inline constexpr std::uint64_t object_bytes = 64 * kib;
inline constexpr std::uint64_t operation_bytes = 16 * kib;

class StoredObjects {
public:
    struct Object {
        std::uint64_t number;      ///< object n has the bytes from n * object_bytes
        std::uint64_t operations;  ///< under way: a crash leaves a prefix of them
        std::uint64_t newest;      ///< event that handed over the last one
    };

    /// Adds bytes to the operations that are being filled, one for each object.
    void fill(std::uint64_t offset, const std::byte* data, std::uint64_t size);
    /// Hands over the one that is being filled for the object; readers see it from here on.
    void hand_over(std::uint64_t object, std::uint64_t event, PageMap& visible);
    /// Acknowledged: all operations on the object, or on all objects.
    void settle(std::uint64_t object, PageMap& durable);
    void settle_all(PageMap& durable);

    /// Objects with operations under way.
    [[nodiscard]] std::vector<Object> under_way() const;
    /// Applies the first `operations` that are under way on the object.
    void put(std::uint64_t object, std::uint64_t operations, PageMap& content) const;

private:
    struct Extent {
        std::uint64_t offset;
        std::vector<std::byte> bytes;
    };
    using Operation = std::vector<Extent>;
    struct Pending {
        std::vector<std::shared_ptr<const Operation>> operations;
        std::uint64_t newest = 0;
    };
    std::map<std::uint64_t, Operation> filling_;
    std::map<std::uint64_t, Pending> pending_;
};

}  // namespace stillpoint::sim
