#include "itm/undo_log.hpp"

namespace stillpoint::itm {

void UndoLog::keep_value(void* place, const void* old, std::size_t size, Kind kind)
{
    auto* next = static_cast<std::byte*>(place);
    const auto* const bytes = static_cast<const std::byte*>(old);
    constexpr std::size_t size_max = std::size_t{1} << 31;
    for (std::size_t done = 0; done < size;) {
        const std::size_t part = size - done < size_max ? size - done : size_max;
        entries_.push_back({next + done, bytes_.size(), static_cast<std::uint32_t>(part), kind});
        bytes_.insert(bytes_.end(), bytes + done, bytes + done + part);
        done += part;
    }
}

void UndoLog::keep(void* place, std::size_t size, Kind kind) { keep_value(place, place, size, kind); }

void UndoLog::shrink(std::size_t size) noexcept
{
    if (size < entries_.size()) {
        bytes_.resize(entries_[size].at);
        entries_.resize(size);
    }
}

}  // namespace stillpoint::itm
