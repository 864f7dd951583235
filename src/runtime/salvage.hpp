#pragma once
// The result of a salvage: which pages of the image a damaged pool still proves, and which it does not.

#include <cstdint>
#include <string>
#include <vector>

namespace stillpoint {

/// Neighbouring pages of the image that are not proved to be as the durable epoch left them.
struct UnsoundPages {
    std::uint64_t first_page;
    std::uint64_t pages;
    /// They are kept as this epoch left them, and a later one may have changed them. 0: they are lost, and zero.
    std::uint64_t epoch;
};

struct SalvageReport {
    std::uint64_t epoch = 0;        ///< the durable one; 0: none was ever committed
    std::uint64_t pages_sound = 0;  ///< that have a copy, and are as the epoch left them
    std::uint64_t pages_older = 0;
    std::uint64_t pages_lost = 0;
    /// Other pages, in use or not, of an engine whose checksums cover tables only: they are as the file has them.
    std::uint64_t pages_unproved = 0;
    /// The tables in force are those that the commit record speaks of. Else a table page in force is lost.
    bool tables_proved = true;
    /// Every line that the delta log had is there.
    bool lines_whole = true;
    std::vector<UnsoundPages> unsound;  ///< in ascending order
};

/// The result of a salvage of a pool whose objects the engine knows. Places are bytes of an image where an object's header begins; those
/// that end with `before` are of the damaged pool, and serve `stillpoint check` and `dump`.
struct ObjectSalvage {
    struct LostObject {
        std::uint64_t place_before;
        std::uint64_t references;  ///< pointers of kept objects that led to it: they are null now
        std::string why;  ///< "its header is damaged"
    };
    /// A pointer of a kept object that led to no object that is kept: it is null now.
    struct ClearedReference {
        std::uint64_t object_before;
        std::uint64_t object;
        std::string type;
        std::string field;  ///< as `dump` has it
        std::uint64_t offset;  ///< in the object
    };
    /// A kept object whose count of references is another one than that of the pointers that lead to it: one of them may be damaged.
    struct DoubtfulReferences {
        std::uint64_t object_before;
        std::uint64_t object;
        std::string type;
        std::uint64_t counted;
        std::uint64_t pointers;
    };

    std::uint64_t objects_kept = 0;
    std::uint64_t bytes_kept = 0;  ///< of objects
    bool was_closed = false;  ///< the damaged pool was closed in an orderly way: no transaction was unfinished
    bool root_is_lost = false;  ///< it has one, which leads to no object that is proved to be the root: the new pool has none
    std::uint64_t root_before = 0;  ///< 0: there was none
    std::uint64_t holder = 0;  ///< object that keeps those alive which nothing else leads to; 0: there are none such
    std::uint64_t held = 0;  ///< its pointers
    std::vector<LostObject> lost;
    std::vector<ClearedReference> cleared;
    std::vector<DoubtfulReferences> doubtful;
    std::vector<std::string> findings;  ///< what else is damaged: descriptions of types, headers of logs

    [[nodiscard]] bool is_whole() const noexcept
    {
        return !root_is_lost && holder == 0 && lost.empty() && cleared.empty() && doubtful.empty() && findings.empty();
    }
};

}  // namespace stillpoint
