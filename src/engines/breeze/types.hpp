#pragma once
// Types: what the program has registered, and what a pool says of its own objects. A pool's records suffice to find every pointer in it,
// so recovery and tools need no program [Breeze, thesis §3.1.1].

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/findings.hpp"
#include "core/result.hpp"
#include "engines/breeze/pool_memory.hpp"
#include "os/futex.hpp"
#include "stillpoint/breeze.h"

namespace stillpoint::breeze {

enum class PointerKind : std::uint8_t { strong, weak };

/// Pointers of a type, nested structures resolved: a run of them in each element of an object.
struct PointerRun {
    std::uint64_t offset;      ///< of the first one, in the element
    std::uint64_t count;       ///< 0: as many as reach the object's end
    std::uint32_t stride;      ///< bytes from one to the next
    PointerKind kind;
    std::uint8_t tag_bytes;    ///< 0: they are always there
    std::uint64_t tag_offset;  ///< in the element
    std::uint64_t tag_value;
    std::string name;          ///< of the field, as the program would write it
};

class Type;

/// A field as it was described; arrays of structures are not resolved.
struct Field {
    std::string name;
    std::uint32_t kind;           ///< nvm_field_kind
    std::uint64_t offset;         ///< in the element
    std::uint64_t count;          ///< of a tail 0
    std::uint64_t element_bytes;  ///< of one pointer, structure or value
    std::uint32_t encoding;       ///< kinds data and tail: see nvm_encoding
    std::uint8_t tag_bytes;       ///< 0: the field is always there
    std::uint64_t tag_offset;
    std::uint64_t tag_value;
    std::shared_ptr<const Type> nested;  ///< kind structure

    [[nodiscard]] bool is_tail() const noexcept { return count == 0; }
};

class Type {
public:
    std::uint32_t id = 0;
    std::uint64_t size = 0;
    bool has_tail = false;  ///< objects have one element and then more bytes
    bool is_pinned = false; ///< objects live until the program frees them
    bool is_complete = false; ///< what no field describes is padding; else it may be data
    std::string name;
    std::vector<Field> fields;      ///< in the order of the description
    std::size_t leaves = 0;         ///< fields, those of nested structures once
    std::vector<PointerRun> runs;   ///< all pointers of the fields
    std::vector<std::byte> record;  ///< as pools have it, for comparison

    [[nodiscard]] bool allows_size(std::uint64_t size_bytes) const noexcept
    {
        return size_bytes >= size && (has_tail || size_bytes % size == 0);
    }

    /// Calls visit(offset in the object, run) for each pointer that lies in [begin, end) of the object, a whole word of it. `object`: its
    /// first byte, for tags.
    template <class Visit>
    void visit_pointers(const std::byte* object, std::uint64_t size_bytes, std::uint64_t begin, std::uint64_t end, Visit&& visit) const
    {
        const std::uint64_t first = has_tail ? 0 : begin / size;
        for (std::uint64_t element = first * size; element + size <= size_bytes && element < end; element += size) {
            for (const PointerRun& run : runs) {
                visit_run(object, element, has_tail ? size_bytes : element + size, begin, end, run, visit);
            }
            if (has_tail) {
                return;
            }
        }
    }
    template <class Visit>
    void visit_pointers(const std::byte* object, std::uint64_t size_bytes, Visit&& visit) const
    {
        visit_pointers(object, size_bytes, 0, size_bytes, visit);
    }

    /// Calls visit(offset in the object, offset of its tag, run) for each place that has a pointer if its tag says so.
    template <class Visit>
    void visit_tagged(std::uint64_t size_bytes, Visit&& visit) const
    {
        for (std::uint64_t element = 0; element + size <= size_bytes; element += has_tail ? size_bytes : size) {
            for (const PointerRun& run : runs) {
                const std::uint64_t end = has_tail ? size_bytes : element + size;
                std::uint64_t place = element + run.offset;
                for (std::uint64_t i = 0; run.tag_bytes != 0 && (run.count != 0 ? i < run.count : place + sizeof place <= end); ++i) {
                    visit(place, element + run.tag_offset, run);
                    place += run.stride;
                }
            }
        }
    }

    /// The pointer of that run at that place is there, as the tag of its element says.
    [[nodiscard]] bool has(const std::byte* object, std::uint64_t place, const PointerRun& run) const noexcept
    {
        const std::uint64_t element = has_tail ? 0 : place / size * size;
        return run.tag_bytes == 0 || tag_at(object + element + run.tag_offset, run.tag_bytes) == run.tag_value;
    }

    /// The integer at a tag's place.
    [[nodiscard]] static std::uint64_t tag_at(const std::byte* place, std::uint8_t bytes) noexcept;

private:
    template <class Visit>
    static void visit_run(const std::byte* object, std::uint64_t element, std::uint64_t element_end, std::uint64_t begin, std::uint64_t end,
                          const PointerRun& run, Visit&& visit)
    {
        if (run.tag_bytes != 0 && tag_at(object + element + run.tag_offset, run.tag_bytes) != run.tag_value) {
            return;
        }
        const std::uint64_t base = element + run.offset;
        std::uint64_t index = begin > base ? (begin - base) / run.stride : 0;
        for (;; ++index) {
            const std::uint64_t place = base + index * run.stride;
            const bool is_there = run.count != 0 ? index < run.count : place + sizeof(std::uint64_t) <= element_end;
            if (!is_there || place >= end) {
                return;
            }
            if (place + sizeof(std::uint64_t) > begin) {
                visit(place, run);
            }
        }
    }
};

/// The process's types. Two descriptions of a type that agree count as one, the more complete of them.
namespace registered_types {
/// Errors: invalid_argument, object_type.
[[nodiscard]] Result<void> add(nvm_type& type);
/// nullptr: none has this number.
[[nodiscard]] std::shared_ptr<const Type> find(std::uint32_t id);
[[nodiscard]] std::vector<std::shared_ptr<const Type>> all();
}  // namespace registered_types

/// The types of a pool.
class PoolTypes {
public:
    /// Reads the pool's records, and compares them with the program's. Errors: pool_corrupt, object_type.
    [[nodiscard]] Result<void> load(PoolMemory& memory);
    /// For a salvage: takes every whole record, wherever it lies, and tells of the others. Errors: none yet.
    [[nodiscard]] Result<void> load_whole(PoolMemory& memory, Findings& findings);
    /// Where the program describes a type of the pool more completely, the pool gets its description, if there is room. While the pool is
    /// being opened, by one thread, after recovery: objects have the pointers that they had.
    void adopt_complete_descriptions();
    [[nodiscard]] const std::vector<std::shared_ptr<const Type>>& all() const noexcept { return types_; }
    /// nullptr: the pool has no object of it. Any thread.
    [[nodiscard]] const Type* find(std::uint32_t id) const noexcept;
    /// The records that load_whole() took, one after the other.
    [[nodiscard]] const std::vector<std::byte>& whole_records() const noexcept { return whole_records_; }
    /// Objects of some type are pinned.
    [[nodiscard]] bool has_pinned() const noexcept { return has_pinned_.load(std::memory_order_acquire); }
    /// The type of that number, with a record in the pool from here on. Any thread. Errors: object_type (unknown), pool_full.
    [[nodiscard]] Result<const Type*> find_or_add(std::uint32_t id);

private:
    [[nodiscard]] Result<std::uint64_t> load_record(std::uint64_t place, std::uint64_t used);
    [[nodiscard]] Result<void> add_with_nested(const std::shared_ptr<const Type>& type);
    [[nodiscard]] Result<void> append(const Type& type);
    void insert(std::shared_ptr<const Type> type);
    [[nodiscard]] std::shared_ptr<const Type> shared(std::uint32_t id) const noexcept;

    static constexpr std::size_t places = 4096;  ///< of which at most types_max are taken
    static constexpr std::size_t types_max = 1024;
    PoolMemory* memory_ = nullptr;
    std::vector<std::byte> whole_records_;
    os::FutexLock lock_;
    std::atomic<bool> has_pinned_{false};
    std::vector<std::shared_ptr<const Type>> types_;  ///< one for each number
    std::vector<std::shared_ptr<const Type>> replaced_;  ///< by more complete descriptions; a reader may still have them
    std::array<std::atomic<const Type*>, places> by_id_{};
};

}  // namespace stillpoint::breeze
