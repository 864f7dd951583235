// Blocks of all sizes come, grow, shrink and go; each is filled with bytes of its own, so that an overlap shows.

#include <cstring>

#include "stillpoint/stillpoint.h"
#include "workloads/entries.hpp"

namespace stillpoint::explorer {

namespace {

class AllocatorChurn final : public Workload {
    static constexpr std::size_t slot_count = 48;
    struct Slot {
        unsigned char* block;
        std::uint64_t size;
        std::uint64_t fill;
    };
    struct Root {
        std::uint64_t next_fill;
        Slot slots[slot_count];
    };

    std::size_t root_bytes() const override { return sizeof(Root); }

    static std::size_t draw_size(Random& random)
    {
        const std::uint64_t kind = random() % 16;
        const std::uint64_t limit = kind == 0 ? 90'000 : kind < 4 ? 6000 : 200;
        return static_cast<std::size_t>(1 + random() % limit);
    }

    void perform(void* memory, Random& random) override
    {
        auto& root = *static_cast<Root*>(memory);
        for (int i = 0; i < 4; ++i) {
            Slot& slot = root.slots[random() % slot_count];
            const std::size_t size = draw_size(random);
            const std::uint64_t what = random() % 3;
            if (slot.block == nullptr) {
                slot.block = static_cast<unsigned char*>(sp_malloc(size));
                slot.fill = ++root.next_fill;
                stored(root.next_fill);
            } else if (what == 0) {
                slot.block = static_cast<unsigned char*>(sp_realloc(slot.block, size));
            } else {
                sp_free(slot.block);
                slot = {};
                stored(slot);
                continue;
            }
            slot.size = size;
            std::memset(slot.block, static_cast<int>(slot.fill & 0xff), size);
            stored(slot);
            sp_mark_written(slot.block, size);
        }
    }

    std::string check(const void* memory, const FindObject&) const override
    {
        const auto& root = *static_cast<const Root*>(memory);
        for (const Slot& slot : root.slots) {
            if (slot.block == nullptr) {
                continue;
            }
            if (!may_be_followed(slot.block, 1) || slot.size > 90'000) {
                return "a slot is broken";
            }
            for (std::uint64_t i = 0; i < slot.size; ++i) {
                if (slot.block[i] != (slot.fill & 0xff)) {
                    return "block " + std::to_string(slot.fill) + " was overwritten at byte " + std::to_string(i);
                }
            }
        }
        return "";
    }

    std::uint64_t digest(const void* memory, const FindObject&) const override
    {
        Digest digest;
        for (const Slot& slot : static_cast<const Root*>(memory)->slots) {
            digest.add(slot.size);
            digest.add(slot.fill);
        }
        return digest.value();
    }
};

}  // namespace

std::unique_ptr<Workload> make_allocator_churn() { return std::make_unique<AllocatorChurn>(); }

}  // namespace stillpoint::explorer
