#include "sim/stored_objects.hpp"

#include <algorithm>

namespace stillpoint::sim {

void StoredObjects::fill(std::uint64_t offset, const std::byte* data, std::uint64_t size)
{
    for (std::uint64_t done = 0; done < size;) {
        const std::uint64_t at = offset + done;
        const std::uint64_t piece = std::min(size - done, object_bytes - at % object_bytes);
        filling_[at / object_bytes].push_back({at, {data + done, data + done + piece}});
        done += piece;
    }
}

void StoredObjects::hand_over(std::uint64_t object, std::uint64_t event, PageMap& visible)
{
    const auto filled = filling_.find(object);
    if (filled == filling_.end()) {
        return;
    }
    for (const Extent& extent : filled->second) {
        visible.write(extent.offset, extent.bytes.data(), extent.bytes.size());
    }
    Pending& pending = pending_[object];
    pending.operations.push_back(std::make_shared<const Operation>(std::move(filled->second)));
    pending.newest = event;
    filling_.erase(filled);
}

void StoredObjects::settle(std::uint64_t object, PageMap& durable)
{
    put(object, UINT64_MAX, durable);
    pending_.erase(object);
}

void StoredObjects::settle_all(PageMap& durable)
{
    while (!pending_.empty()) {
        settle(pending_.begin()->first, durable);
    }
}

std::vector<StoredObjects::Object> StoredObjects::under_way() const
{
    std::vector<Object> objects;
    for (const auto& [number, pending] : pending_) {
        objects.push_back({number, pending.operations.size(), pending.newest});
    }
    return objects;
}

void StoredObjects::put(std::uint64_t object, std::uint64_t operations, PageMap& content) const
{
    const auto found = pending_.find(object);
    if (found == pending_.end()) {
        return;
    }
    for (const auto& operation : found->second.operations) {
        if (operations-- == 0) {
            return;
        }
        for (const Extent& extent : *operation) {
            content.write(extent.offset, extent.bytes.data(), extent.bytes.size());
        }
    }
}

}  // namespace stillpoint::sim
