// The conversation of the medium and its agent. Invariants: a message of another version, of another length or with a field out of
// bounds is refused, whatever the other fields are; a request that is accepted touches only bytes of the pool and of its slot.

#include "media/rados/agent_protocol.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <random>

namespace stillpoint::rados {
namespace {

constexpr std::uint64_t pool_bytes = 3 * object_bytes + 64 * page_bytes;

OpenRequest sound_request()
{
    OpenRequest request{};
    request.magic = protocol_magic;
    request.version = protocol_version;
    request.mode = Mode::create;
    request.lease_ms = 10'000;
    request.timeout_ms = 20'000;
    request.process = 12;
    request.size_bytes = pool_bytes;
    EXPECT_TRUE(put_text(request.ceph_pool, "data"));
    EXPECT_TRUE(put_text(request.name, "bank"));
    return request;
}

TEST(AgentProtocol, ASoundRequestToOpenIsTaken) { EXPECT_EQ(fault_in(sound_request()), nullptr); }

TEST(AgentProtocol, EveryFieldOfARequestToOpenIsChecked)
{
    const std::function<void(OpenRequest&)> faults[] = {
        [](OpenRequest& r) { r.magic ^= 1; },
        [](OpenRequest& r) { ++r.version; },
        [](OpenRequest& r) { r.mode = static_cast<Mode>(0); },
        [](OpenRequest& r) { r.mode = static_cast<Mode>(7); },
        [](OpenRequest& r) { r.mode = Mode::standby, r.size_bytes = object_bytes - 1; },
        [](OpenRequest& r) { r.mode = Mode::standby, r.take_over = 1; },
        [](OpenRequest& r) { r.take_over = 2; },
        [](OpenRequest& r) { r.zero = 1; },
        [](OpenRequest& r) { r.lease_ms = 999; },
        [](OpenRequest& r) { r.lease_ms = 3'600'001; },
        [](OpenRequest& r) { r.timeout_ms = 0; },
        [](OpenRequest& r) { r.process = 0; },
        [](OpenRequest& r) { r.process = -1; },
        [](OpenRequest& r) { r.size_bytes = 0; },
        [](OpenRequest& r) { r.size_bytes = pool_bytes + 1; },
        [](OpenRequest& r) { r.size_bytes = file_bytes_max + page_bytes; },
        [](OpenRequest& r) { r.ceph_pool = {}; },
        [](OpenRequest& r) { r.name = {}; },
        [](OpenRequest& r) { r.name.fill('a'); },
        [](OpenRequest& r) { r.user.fill('a'); },
        [](OpenRequest& r) { r.configuration.fill('a'); },
    };
    for (std::size_t i = 0; i < std::size(faults); ++i) {
        OpenRequest request = sound_request();
        faults[i](request);
        EXPECT_NE(fault_in(request), nullptr) << i;
    }
}

TEST(AgentProtocol, EveryFieldOfAReplyIsChecked)
{
    OpenReply sound{};
    sound.magic = protocol_magic;
    sound.version = protocol_version;
    sound.size_bytes = pool_bytes;
    EXPECT_EQ(fault_in(sound), nullptr);
    OpenReply reply = sound;
    reply.magic = 0;
    EXPECT_NE(fault_in(reply), nullptr);
    reply = sound;
    reply.version = 0;
    EXPECT_NE(fault_in(reply), nullptr);
    reply = sound;
    reply.outcome.message.fill('x');
    EXPECT_NE(fault_in(reply), nullptr);
    reply = sound;
    reply.is_erasure_coded = 2;
    EXPECT_NE(fault_in(reply), nullptr);
    reply = sound;
    reply.zero = 1;
    EXPECT_NE(fault_in(reply), nullptr);
    reply = sound;
    reply.owner_process = -1;
    EXPECT_NE(fault_in(reply), nullptr);
    reply = sound;
    reply.size_bytes = 1;
    EXPECT_NE(fault_in(reply), nullptr);
}

SlotRequest write_of(std::uint64_t object, std::initializer_list<Extent> extents)
{
    SlotRequest request;
    request.operation = Operation::write;
    request.object = object;
    for (const Extent& extent : extents) {
        request.extents[request.extent_count++] = extent;
    }
    return request;
}

TEST(AgentProtocol, WritesOfPagesInsideThePoolAreTaken)
{
    EXPECT_EQ(fault_in(write_of(0, {{0, 4096}}), 0, pool_bytes), nullptr);
    EXPECT_EQ(fault_in(write_of(2, {{object_bytes - 4096, 4096}, {0, 8192}}), 0, pool_bytes), nullptr);
    EXPECT_EQ(fault_in(write_of(3, {{63 * 4096, 4096}}), 31, pool_bytes), nullptr);
    EXPECT_EQ(fault_in(write_of(1, {{0, slot_bytes}}), 0, pool_bytes), nullptr);
}

TEST(AgentProtocol, WritesOfAnythingElseAreRefused)
{
    const SlotRequest refused[] = {
        write_of(0, {}),
        write_of(4, {{0, 4096}}),
        write_of(UINT64_MAX, {{0, 4096}}),
        write_of(0, {{0, 0}}),
        write_of(0, {{1, 4096}}),
        write_of(0, {{0, 4095}}),
        write_of(0, {{object_bytes - 4096, 8192}}),
        write_of(0, {{UINT32_MAX - 4095, 4096}}),
        write_of(3, {{64 * 4096, 4096}}),
        write_of(0, {{0, slot_bytes + 4096}}),
        write_of(0, {{0, slot_bytes}, {slot_bytes, 4096}}),
    };
    for (const SlotRequest& request : refused) {
        EXPECT_NE(fault_in(request, 0, pool_bytes), nullptr);
    }
    EXPECT_NE(fault_in(write_of(0, {{0, 4096}}), control_slot, pool_bytes), nullptr);
    SlotRequest many = write_of(0, {{0, 4096}});
    many.extent_count = extents_max + 1;
    EXPECT_NE(fault_in(many, 0, pool_bytes), nullptr);
    many.extent_count = UINT32_MAX;
    EXPECT_NE(fault_in(many, 0, pool_bytes), nullptr);
}

TEST(AgentProtocol, AReadHasOneExtentOfAnyBytes)
{
    SlotRequest read = write_of(3, {{5, 1}});
    read.operation = Operation::read;
    EXPECT_EQ(fault_in(read, write_slots, pool_bytes), nullptr);
    read.extent_count = 2;
    EXPECT_NE(fault_in(read, write_slots, pool_bytes), nullptr);
}

TEST(AgentProtocol, ControlRequestsHaveASlotOfTheirOwn)
{
    SlotRequest request;
    request.operation = Operation::resize;
    request.size_bytes = pool_bytes + page_bytes;
    EXPECT_EQ(fault_in(request, control_slot, pool_bytes), nullptr);
    EXPECT_NE(fault_in(request, 0, pool_bytes), nullptr);
    request.size_bytes = pool_bytes - page_bytes;
    EXPECT_NE(fault_in(request, control_slot, pool_bytes), nullptr);
    request.size_bytes = file_bytes_max + page_bytes;
    EXPECT_NE(fault_in(request, control_slot, pool_bytes), nullptr);
    for (const Operation operation : {Operation::publish, Operation::claim, Operation::close}) {
        request.operation = operation;
        EXPECT_EQ(fault_in(request, control_slot, pool_bytes), nullptr);
        EXPECT_NE(fault_in(request, 0, pool_bytes), nullptr);
    }
    for (const std::uint32_t unknown : {0u, 7u, UINT32_MAX}) {
        request.operation = static_cast<Operation>(unknown);
        EXPECT_NE(fault_in(request, control_slot, pool_bytes), nullptr);
    }
}

TEST(AgentProtocol, RandomRequestsThatAreTakenStayInside)
{
    std::mt19937_64 random(20);
    const auto near = [&](std::uint64_t most) { return random() % 8 == 0 ? random() : random() % most; };
    unsigned taken = 0;
    for (unsigned round = 0; round < 200'000; ++round) {
        SlotRequest request;
        request.operation = static_cast<Operation>(near(7));
        request.object = near(6);
        request.size_bytes = near(2 * pool_bytes);
        request.extent_count = static_cast<std::uint32_t>(near(4));
        for (Extent& extent : std::span(request.extents).first(4)) {
            extent = {static_cast<std::uint32_t>(near(1025) * page_bytes), static_cast<std::uint32_t>(near(130) * page_bytes)};
        }
        const auto slot = static_cast<std::uint32_t>(random() % slot_count);
        if (fault_in(request, slot, pool_bytes) != nullptr) {
            continue;
        }
        ++taken;
        if (request.operation != Operation::read && request.operation != Operation::write) {
            continue;
        }
        std::uint64_t data_bytes = 0;
        for (const Extent& extent : std::span(request.extents).first(request.extent_count)) {
            EXPECT_LE(request.object * object_bytes + extent.offset + extent.size, pool_bytes);
            EXPECT_LE(std::uint64_t{extent.offset} + extent.size, object_bytes);
            data_bytes += extent.size;
        }
        EXPECT_LE(data_bytes, slot_bytes);
    }
    EXPECT_GT(taken, 1000u);
}

TEST(AgentProtocol, FailuresCrossWhole)
{
    const Failure sent = fail(SP_E_NO_SPACE, 28, "the pool {} is full", "data").value();
    Outcome outcome{};
    put_outcome(outcome, sent);
    const Failure received = failure_in(outcome);
    EXPECT_EQ(received.code, SP_E_NO_SPACE);
    EXPECT_EQ(received.os_error, 28);
    EXPECT_EQ(received.text(), sent.text());
    outcome.code = 9999;
    outcome.message.fill('y');
    EXPECT_EQ(failure_in(outcome).code, SP_E_IO);
    EXPECT_EQ(failure_in(outcome).text().size(), Failure::message_bytes_max);
}

}  // namespace
}  // namespace stillpoint::rados
