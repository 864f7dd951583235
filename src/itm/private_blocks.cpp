#include "itm/private_blocks.hpp"

#include <algorithm>
#include <bit>

namespace stillpoint::itm {

void PrivateBlocks::add(const void* block, std::size_t bytes)
{
    const auto first = reinterpret_cast<std::uintptr_t>(block);
    const std::uintptr_t last = first + bytes;
    last_ = blocks_.empty() ? last : std::max(last_, last);
    first_ = std::min(first_, first);
    const std::size_t merged = std::size_t{1} << std::countr_one(blocks_.size());
    blocks_.push_back({first, last});
    std::sort(blocks_.end() - static_cast<std::ptrdiff_t>(merged), blocks_.end(),
              [](const Block& one, const Block& other) { return one.first < other.first; });
}

bool PrivateBlocks::is_in_run(std::uintptr_t address) const noexcept
{
    const Block* run = blocks_.data();
    for (std::size_t rest = blocks_.size(); rest != 0;) {
        const std::size_t length = std::bit_floor(rest);
        const Block* const after = std::upper_bound(run, run + length, address,
                                                    [](std::uintptr_t wanted, const Block& block) { return wanted < block.first; });
        if (after != run && address < after[-1].last) {
            return true;
        }
        run += length;
        rest -= length;
    }
    return false;
}

}  // namespace stillpoint::itm
