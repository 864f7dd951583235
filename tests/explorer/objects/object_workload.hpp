#pragma once
// ObjectWorkload: a program whose operations are durable on return, one by one: over durable objects of the engine pronto, or in
// transactions of spht. The trace is told each state that a part gets, before its operation is committed, and each that the program learnt
// is durable.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "part_history.hpp"
#include "workload.hpp"

namespace stillpoint::explorer {

/// Parts of one object have numbers from part_of(object) on.
inline constexpr std::uint64_t parts_of_an_object = 16;

/// Into the trace of this process; nothing before they are begun: operations are run again until then.
class ObjectNotes {
public:
    static void begin() noexcept;
    [[nodiscard]] static bool are_begun() noexcept;
    /// The part's next state. Called inside the lock that orders its operations.
    static void state(std::uint64_t part, std::uint64_t digest) noexcept;
    static void acknowledged(std::uint64_t part, std::uint64_t digest) noexcept;
    /// The operation that would have made this state was rolled back.
    static void withdrawn(std::uint64_t part, std::uint64_t digest) noexcept;
    /// The newest commit number of the object. `is_new`: no other thread commits on it.
    static void number(std::uint64_t part, const void* object, bool is_new) noexcept;
};

class ObjectWorkload {
public:
    virtual ~ObjectWorkload() = default;
    /// Finds every object that there is; the first one that is asked for lets the runtime recover all. Makes none.
    virtual void find_objects() = 0;
    /// Digests of every part that the program may have.
    [[nodiscard]] virtual PartDigests digests() const = 0;
    /// Operations, one after the other or on several threads; acknowledges what was told to be durable. Throws what the engine does.
    virtual void perform(Random& random) = 0;

    /// As find_objects() and digests(), of an image that no engine runs on: what is broken, or "". `blocks`: live ones that it must have.
    [[nodiscard]] virtual std::string look_at_image(const FindObject& /*find*/, PartDigests& /*digests*/, std::uint64_t& /*blocks*/) const
    {
        return "";
    }
};

struct ObjectWorkloadEntry {
    std::string_view name;
    std::unique_ptr<ObjectWorkload> (*make)();
    std::uint64_t operations;  ///< of one run
    /// The engine's own options for a program with that seed: " option=value …".
    std::string (*options)(std::uint64_t seed);
    /// Whether ObjectWorkload::look_at_image() can be asked, so that not every image needs a process that opens it.
    bool reads_images = false;
};

/// Every one (objects/registry.cpp).
[[nodiscard]] const std::vector<ObjectWorkloadEntry>& object_workloads();

}  // namespace stillpoint::explorer
