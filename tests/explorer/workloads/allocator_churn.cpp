// Blocks of all sizes come, grow, shrink and go, and objects and arrays of types of many sizes; each is filled with bytes of its own, so
// that an overlap shows. What is freed is asked for again at once.

#include <algorithm>
#include <cstring>

#include "workloads/entries.hpp"

namespace stillpoint::explorer {

namespace {

constexpr std::size_t slot_count = 48;

template <class Memory>
struct Slot {
    template <class T>
    using Field = typename Memory::template Field<T>;
    Field<std::byte*> block;
    Field<std::uint64_t> kind;  ///< index in AllocatorChurn::kinds
    Field<std::uint64_t> size;  ///< bytes of a block, elements of an array
    Field<std::uint64_t> fill;
};

template <class Memory>
struct Slots {
    typename Memory::template Field<std::uint64_t> next_fill;
    Slot<Memory> slots[slot_count];
};

/// An object whose body is filled once, and whose two marks change later.
template <class Memory, std::size_t body_bytes>
struct Filled {
    typename Memory::template Field<std::uint64_t> mark;
    std::uint64_t first_mark;
    unsigned char body[body_bytes];
    typename Memory::template Field<std::uint16_t> end_mark;
};

bool all_are(const unsigned char* bytes, std::size_t size, std::uint64_t fill)
{
    return std::all_of(bytes, bytes + size, [=](unsigned char byte) { return byte == (fill & 0xff); });
}

/// Objects of one type.
template <class Memory, class Object>
struct Objects {
    static std::byte* make(std::size_t, std::uint64_t fill)
    {
        auto* const object = Memory::template make<Object>();
        object->first_mark = fill;
        std::memset(object->body, static_cast<int>(fill & 0xff), sizeof object->body);
        object->mark = fill;
        object->end_mark = static_cast<std::uint16_t>(fill);
        Memory::filled(*object);
        return reinterpret_cast<std::byte*>(object);
    }
    static void change(std::byte* block, std::size_t, std::uint64_t fill)
    {
        auto& object = *reinterpret_cast<Object*>(block);
        object.mark = fill;
        object.end_mark = static_cast<std::uint16_t>(fill);
        Memory::stored(object.mark);
        Memory::stored(object.end_mark);
    }
    static bool holds(const std::byte* block, std::size_t, std::uint64_t fill)
    {
        const auto& object = *reinterpret_cast<const Object*>(block);
        return object.mark == fill && object.end_mark == static_cast<std::uint16_t>(fill) && object.first_mark <= fill &&
               all_are(object.body, sizeof object.body, object.first_mark);
    }
    static void destroy(std::byte* block) { Memory::destroy(reinterpret_cast<Object*>(block)); }
};

/// Arrays of zeroes, of which every 16th element is set.
template <class Memory>
struct Arrays {
    using Element = typename Memory::template Field<std::uint32_t>;
    static constexpr std::size_t step = 16;

    static std::byte* make(std::size_t count, std::uint64_t fill)
    {
        auto* const block = reinterpret_cast<std::byte*>(Memory::template make_zeroed<Element>(count));
        change(block, count, fill);
        return block;
    }
    static void change(std::byte* block, std::size_t count, std::uint64_t fill)
    {
        auto* const elements = reinterpret_cast<Element*>(block);
        for (std::size_t i = 0; i < count; i += step) {
            elements[i] = static_cast<std::uint32_t>(fill);
            Memory::stored(elements[i]);
        }
    }
    static bool holds(const std::byte* block, std::size_t count, std::uint64_t fill)
    {
        const auto* const elements = reinterpret_cast<const Element*>(block);
        for (std::size_t i = 0; i < count; ++i) {
            if (elements[i] != (i % step == 0 ? static_cast<std::uint32_t>(fill) : 0)) {
                return false;
            }
        }
        return true;
    }
    static void destroy(std::byte* block) { Memory::destroy(reinterpret_cast<Element*>(block)); }
};

/// Bytes without a type. They keep their fill for life, through every change of their size.
template <class Memory>
struct Bytes {
    /// At the beginning, as they were.
    static constexpr std::size_t kept_bytes(std::size_t size, std::uint64_t fill) { return size < 65'536 ? 0 : fill % 2 * 20'000; }

    static std::byte* make(std::size_t size, std::uint64_t fill)
    {
        std::byte* const block = Memory::allocate_bytes(size);
        change(block, size, fill);
        return block;
    }
    /// All of the block: bytes that were never written are not part of the state, and would look like it. Blocks of whole spans are the
    /// exception, for those are written with all they held when they are given out.
    static void change(std::byte* block, std::size_t size, std::uint64_t fill)
    {
        const std::size_t usable = sp_usable_size(block);
        const std::size_t begin = kept_bytes(size, fill);
        std::memset(block + begin, static_cast<int>(fill & 0xff), usable - begin);
        Memory::filled(block + begin, usable - begin);
    }
    static bool holds(const std::byte* block, std::size_t size, std::uint64_t fill)
    {
        const std::size_t begin = kept_bytes(size, fill);
        return all_are(reinterpret_cast<const unsigned char*>(block + begin), size - begin, fill);
    }
    static void destroy(std::byte* block) { Memory::free_bytes(block); }
};

template <class Memory>
class AllocatorChurn final : public WorkloadOn<Memory, Slots<Memory>> {
    using Root = Slots<Memory>;
    using Here = Slot<Memory>;

    /// The sizes that a slot may hold.
    struct Kind {
        std::byte* (*make)(std::size_t size, std::uint64_t fill);
        void (*change)(std::byte* block, std::size_t size, std::uint64_t fill);
        bool (*holds)(const std::byte* block, std::size_t size, std::uint64_t fill);
        void (*destroy)(std::byte* block);
        std::size_t sizes[3];  ///< up to each: seldom, sometimes, mostly
    };
    template <class Of>
    static constexpr Kind kind(std::size_t seldom, std::size_t sometimes, std::size_t mostly)
    {
        return {&Of::make, &Of::change, &Of::holds, &Of::destroy, {seldom, sometimes, mostly}};
    }
    template <std::size_t body_bytes>
    static constexpr Kind objects()
    {
        return kind<Objects<Memory, Filled<Memory, body_bytes>>>(1, 1, 1);
    }
    static constexpr Kind kinds[] = {
        kind<Bytes<Memory>>(90'000, 6000, 200),
        kind<Arrays<Memory>>(3000, 200, 12),
        objects<1>(),
        objects<170>(),
        objects<1900>(),
        objects<70'000>(),
    };
    static constexpr std::size_t kind_count = std::size(kinds);
    static constexpr std::uint64_t bytes_kind = 0;

    static std::uint64_t draw_kind(Random& random)
    {
        const std::uint64_t draw = random() % 32;
        return draw < 16 ? bytes_kind : draw == 16 ? kind_count - 1 : 1 + draw % (kind_count - 2);
    }
    static std::size_t draw_size(const Kind& kind, Random& random)
    {
        const std::uint64_t draw = random() % 16;
        return static_cast<std::size_t>(1 + random() % kind.sizes[draw == 0 ? 0 : draw < 4 ? 1 : 2]);
    }

    void change(Root& root, Random& random) override
    {
        for (int i = 0; i < 4; ++i) {
            Here& slot = root.slots[random() % slot_count];
            const std::uint64_t what = random() % 4;
            if (slot.block == nullptr) {
                make(root, slot, draw_kind(random), random);
            } else if (what == 0 && slot.kind == bytes_kind) {
                resize(slot, draw_size(kinds[bytes_kind], random));
            } else if (what == 0) {
                const std::uint64_t fill = next_fill(root);
                kinds[slot.kind].change(slot.block, slot.size, fill);
                slot.fill = fill;
            } else {
                kinds[slot.kind].destroy(slot.block);
                slot.block = nullptr;
                slot.size = 0;
                if (what == 1) {
                    make(root, slot, slot.kind, random);
                }
            }
            Memory::stored(slot);
        }
    }

    static std::uint64_t next_fill(Root& root)
    {
        ++root.next_fill;
        Memory::stored(root.next_fill);
        return root.next_fill;
    }
    static void make(Root& root, Here& slot, std::uint64_t kind, Random& random)
    {
        slot.kind = kind;
        slot.size = draw_size(kinds[kind], random);
        slot.fill = next_fill(root);
        slot.block = kinds[kind].make(slot.size, slot.fill);
    }
    static void resize(Here& slot, std::size_t size)
    {
        slot.block = Memory::resize_bytes(slot.block, size);
        slot.size = size;
        kinds[bytes_kind].change(slot.block, size, slot.fill);
    }

    std::string problem_of(const Root& root, const FindObject&) const override
    {
        for (const Here& slot : root.slots) {
            if (slot.block == nullptr) {
                continue;
            }
            if (!may_be_followed(slot.block, 1) || slot.kind >= kind_count || slot.size > kinds[slot.kind].sizes[0]) {
                return "a slot is broken";
            }
            if (!kinds[slot.kind].holds(slot.block, slot.size, slot.fill)) {
                return "block " + std::to_string(slot.fill) + " of kind " + std::to_string(slot.kind) + " was overwritten";
            }
        }
        return "";
    }

    std::uint64_t digest_of(const Root& root, const FindObject&) const override
    {
        Digest digest;
        for (const Here& slot : root.slots) {
            digest.add(slot.size);
            digest.add(slot.fill);
        }
        return digest.value();
    }
};

}  // namespace

WorkloadMakers allocator_churn() { return over_each_memory<AllocatorChurn>(); }

}  // namespace stillpoint::explorer
