#include "media/rados/agent_protocol.hpp"

#include <algorithm>

namespace stillpoint::rados {

namespace {

constexpr std::uint32_t lease_ms_min = 1000;
constexpr std::uint32_t lease_ms_max = 3'600'000;

bool is_size_of_pool(std::uint64_t size_bytes) noexcept
{
    return size_bytes != 0 && size_bytes % page_bytes == 0 && size_bytes <= file_bytes_max;
}

const char* fault_in_extents(const SlotRequest& request, std::uint64_t size_bytes) noexcept
{
    const bool is_read = request.operation == Operation::read;
    if (request.extent_count == 0 || request.extent_count > (is_read ? 1 : extents_max)) {
        return "the number of extents is wrong";
    }
    if (request.object >= (size_bytes + object_bytes - 1) / object_bytes) {
        return "the object lies outside of the pool";
    }
    const std::uint64_t begin = request.object * object_bytes;
    std::uint64_t sum = 0;
    for (const Extent& extent : std::span(request.extents).first(request.extent_count)) {
        if (extent.size == 0 || extent.size > slot_bytes || extent.offset > object_bytes - extent.size ||
            begin + extent.offset + extent.size > size_bytes) {
            return "an extent lies outside of its object or of the pool";
        }
        if (!is_read && (extent.offset % page_bytes != 0 || extent.size % page_bytes != 0)) {
            return "an extent is not of whole pages";
        }
        sum += extent.size;
    }
    return sum > slot_bytes ? "the extents are larger than a slot" : nullptr;
}

}  // namespace

Failure failure_in(const Outcome& outcome) noexcept
{
    Failure failure;
    const bool is_known = outcome.code >= SP_E_INVALID_ARGUMENT && outcome.code <= SP_E_DIVERGED;
    failure.code = is_known ? static_cast<sp_error>(outcome.code) : SP_E_IO;
    failure.os_error = outcome.os_error;
    const std::string_view text = text_in(outcome.message);
    text.copy(failure.message, std::min(text.size(), Failure::message_bytes_max));
    return failure;
}

const char* fault_in(const OpenRequest& request) noexcept
{
    if (request.magic != protocol_magic || request.version != protocol_version) {
        return "it comes from another version of Stillpoint";
    }
    if (request.mode < Mode::create || request.mode > Mode::standby || request.take_over > 1 || request.zero != 0) {
        return "its mode is unknown";
    }
    if (request.lease_ms < lease_ms_min || request.lease_ms > lease_ms_max || request.timeout_ms == 0 || request.process <= 0) {
        return "its lease, time-out or process is out of bounds";
    }
    if (request.mode == Mode::create && !is_size_of_pool(request.size_bytes)) {
        return "the size of the new pool is out of bounds";
    }
    if (request.mode == Mode::standby && (request.size_bytes < object_bytes || request.take_over != 0)) {
        return "a standby has no memory, or takes over from an owner whose lease runs";
    }
    const bool ends = is_terminated(request.ceph_pool) && is_terminated(request.name) && is_terminated(request.user) &&
                      is_terminated(request.configuration);
    return ends && request.ceph_pool[0] != '\0' && request.name[0] != '\0' ? nullptr : "a name is missing or too long";
}

const char* fault_in(const OpenReply& reply) noexcept
{
    if (reply.magic != protocol_magic || reply.version != protocol_version) {
        return "it is of another version";
    }
    if (!is_terminated(reply.outcome.message) || reply.owner_process < 0 || reply.is_erasure_coded > 1 || reply.zero != 0) {
        return "its reply is malformed";
    }
    return reply.outcome.code != 0 || reply.size_bytes == 0 || is_size_of_pool(reply.size_bytes) ? nullptr
                                                                                                 : "its reply has an impossible size";
}

void copy_request(const Slot& slot, SlotRequest& request) noexcept
{
    request.operation = slot.operation;
    request.object = slot.object;
    request.size_bytes = slot.size_bytes;
    request.extent_count = slot.extent_count;
    const std::size_t count = std::min<std::size_t>(request.extent_count, extents_max);
    std::copy_n(slot.extents.begin(), count, request.extents.begin());
}

const char* fault_in(const SlotRequest& request, std::uint32_t slot, std::uint64_t size_bytes) noexcept
{
    switch (request.operation) {
    case Operation::read:
    case Operation::write: return slot < control_slot ? fault_in_extents(request, size_bytes) : "the slot has no data";
    case Operation::resize:
        if (slot != control_slot) {
            return "another slot is for this";
        }
        return is_size_of_pool(request.size_bytes) && request.size_bytes >= size_bytes ? nullptr : "the size is out of bounds";
    case Operation::publish:
    case Operation::claim:
    case Operation::close: return slot == control_slot ? nullptr : "another slot is for this";
    case Operation::none: break;
    }
    return "the operation is unknown";
}

}  // namespace stillpoint::rados
