#pragma once
// The image of a pool at rest as the commands that look inside see it: handles, durable globals, live blocks. Nothing in it is trusted.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "heap/heap.hpp"
#include "pool_access.hpp"

namespace stillpoint::tool {

/// A live block of the heap; bytes 0: none.
struct LiveBlock {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    std::uint16_t layout = 0;  ///< number of its layout; 0: it is not typed

    explicit operator bool() const noexcept { return bytes != 0; }
};

/// A durable global, as the pool keeps it.
struct KeptGlobal {
    std::string name;    ///< with its namespaces
    std::string scope;   ///< source file; may be empty
    std::string type;    ///< as the source spells it; may be empty
    std::string module;
    std::uint64_t address;  ///< of the pool's copy
    std::uint64_t size_bytes;
    bool retired;        ///< the program that ran last no longer has it
};

/// An object that the engine itself knows the class of.
struct NamedObject {
    std::string name;
    std::string class_name;
    std::uint64_t address;
    std::uint64_t to_replay;  ///< logged operations that the image does not have yet
};

/// Addresses are those that the program sees.
class PoolImage {
public:
    PoolImage(const OpenedPool& opened, const RecoveredImage& image, std::vector<HandleFacts> handles);

    [[nodiscard]] std::uint64_t base_address() const noexcept { return base_address_; }
    [[nodiscard]] std::uint64_t size_bytes() const noexcept { return bytes_.size(); }
    [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }
    [[nodiscard]] bool holds(std::uint64_t address) const noexcept { return address - base_address_ < bytes_.size(); }
    /// Empty where not all of them lie in the image.
    [[nodiscard]] std::span<const std::byte> at(std::uint64_t address, std::uint64_t bytes) const noexcept;
    /// The live block that the address lies in.
    [[nodiscard]] LiveBlock block_of(std::uint64_t address) const noexcept;
    /// In the order of their addresses.
    void for_each_block(const std::function<void(const LiveBlock&)>& visit) const;
    /// The program's name of the type whose objects the block holds; empty: not known.
    [[nodiscard]] std::string layout_name(const LiveBlock& block) const;

    [[nodiscard]] const std::vector<HandleFacts>& handles() const noexcept { return handles_; }
    [[nodiscard]] const std::vector<KeptGlobal>& globals() const noexcept { return globals_; }
    [[nodiscard]] const std::vector<NamedObject>& objects() const noexcept { return objects_; }

private:
    /// Spans that one entry of the table covers.
    struct Run {
        std::uint64_t first;
        std::uint64_t spans;
    };

    void read_globals();
    void read_objects(const OpenedPool& opened, const std::vector<FactRow>& rows);
    void read_runs();

    std::uint64_t base_address_;
    std::span<const std::byte> bytes_;
    Heap::Options heap_;
    std::vector<HandleFacts> handles_;
    std::vector<KeptGlobal> globals_;
    std::vector<NamedObject> objects_;
    std::vector<Run> runs_;  ///< in use, and sound, by their first spans
};

/// Verifies the pool and shows its image. Damage is in the result; `visit` is not called where the image's header is damaged.
/// Errors: as verify_all(); unsupported: the engine's pools have no image of this kind.
[[nodiscard]] Result<Verification> visit_pool_image(const OpenedPool& opened, bool progress,
                                                    const std::function<void(const PoolImage&)>& visit);

}  // namespace stillpoint::tool
