// The medium's end of the conversation, with programs that are not its agent. Invariants: whatever the other end does, opening is an error
// with a message, never a hang or a crash.

#include "media/rados/agent_link.hpp"

#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/temporary_directory.hpp"

namespace stillpoint::rados {
namespace {

class AgentLinkTest : public testing::Test {
protected:
    Failure failure_with(const std::string& agent)
    {
        OpenRequest request{};
        request.magic = protocol_magic;
        request.version = protocol_version;
        request.mode = Mode::read;
        request.timeout_ms = 1000;
        request.lease_ms = 1000;
        request.process = getpid();
        OpenReply reply{};
        auto link = AgentLink::open(agent, request, reply);
        EXPECT_FALSE(link);
        return link ? Failure{} : link.error();
    }
    std::string script(const std::string& text)
    {
        const std::string path = folder_.path() + "/agent";
        std::ofstream(path) << "#!/bin/sh\n" << text << "\n";
        EXPECT_EQ(chmod(path.c_str(), 0700), 0);
        return path;
    }
    test::TemporaryDirectory folder_;
};

TEST_F(AgentLinkTest, AProgramThatIsNotThereIsUnsupported) { EXPECT_EQ(failure_with("/no/such/agent").code, SP_E_UNSUPPORTED); }

TEST_F(AgentLinkTest, AnAgentThatEndsAtOnceIsAnError)
{
    const Failure failure = failure_with("/bin/true");
    EXPECT_EQ(failure.code, SP_E_IO);
    EXPECT_NE(failure.text().find("has ended"), std::string_view::npos);
}

TEST_F(AgentLinkTest, AReplyOfAnotherLengthIsRefused)
{
    for (const char* const reply : {"printf x >&3; cat <&3 >/dev/null", "head -c 100000 /dev/zero >&3; cat <&3 >/dev/null"}) {
        const Failure failure = failure_with(script(reply));
        EXPECT_EQ(failure.code, SP_E_IO) << failure.text();
        EXPECT_NE(failure.text().find("install both from one version"), std::string_view::npos) << failure.text();
    }
}

TEST_F(AgentLinkTest, AReplyOfZeroesIsRefused)
{
    const Failure failure = failure_with(script("head -c 560 /dev/zero >&3; cat <&3 >/dev/null"));
    EXPECT_EQ(failure.code, SP_E_IO) << failure.text();
    EXPECT_NE(failure.text().find("another version"), std::string_view::npos) << failure.text();
}

/// The descriptors that a standby leaves to the program.
class InheritedLink : public testing::Test {
protected:
    void SetUp() override
    {
        ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends_), 0);
        memory_ = memfd_create("test", MFD_ALLOW_SEALING);
        ASSERT_EQ(ftruncate(memory_, memory_bytes), 0);
        ASSERT_EQ(fcntl(memory_, F_ADD_SEALS, F_SEAL_SHRINK), 0);
        state_ = static_cast<SharedState*>(mmap(nullptr, memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory_, 0));
        ASSERT_NE(static_cast<void*>(state_), MAP_FAILED);
        state_->magic = protocol_magic;
        state_->version = protocol_version;
    }
    void TearDown() override
    {
        unsetenv("STILLPOINT_RADOS_STANDBY");
        munmap(state_, memory_bytes);
        close(ends_[0]);
        close(ends_[1]);
        close(memory_);
    }
    [[nodiscard]] std::string text(const std::string& rest) const
    {
        return std::to_string(ends_[0]) + " " + std::to_string(memory_) + " " + rest;
    }
    static std::unique_ptr<AgentLink> link_of(const std::string& text, bool keep)
    {
        setenv("STILLPOINT_RADOS_STANDBY", text.c_str(), 1);
        OpenReply reply{};
        auto link = AgentLink::inherited("rados://data/bank", keep, reply);
        EXPECT_TRUE(!link || reply.size_bytes == 8192);
        return link;
    }
    int ends_[2] = {-1, -1};
    int memory_ = -1;
    SharedState* state_ = nullptr;
};

TEST_F(InheritedLink, IsUsedByAnyAndKeptByOne)
{
    const std::string sound = text("8192 3 0 rados://data/bank");
    for (int i = 0; i < 2; ++i) {
        const auto borrowed = link_of(sound, false);
        ASSERT_NE(borrowed, nullptr);
        EXPECT_TRUE(borrowed->is_borrowed());
    }
    const int socket = dup(ends_[0]);
    const int memory = dup(memory_);
    const auto kept = link_of(sound, true);
    ASSERT_NE(kept, nullptr);
    EXPECT_FALSE(kept->is_borrowed());
    EXPECT_EQ(state_->adopter.load(), static_cast<std::uint32_t>(getpid()));
    ends_[0] = socket;
    memory_ = memory;
    EXPECT_EQ(link_of(text("8192 3 0 rados://data/bank"), true), nullptr);
    EXPECT_EQ(link_of(text("8192 3 0 rados://data/bank"), false), nullptr);
}

TEST_F(InheritedLink, WhatIsNoLinkOfThisPoolIsPassedOver)
{
    const std::string numbers = std::to_string(memory_) + " " + std::to_string(ends_[0]);
    for (const std::string& wrong :
         {std::string(), std::string("x"), text("8192 3 0 rados://data/other"), text("8192 3 0"), text("8191 3 0 rados://data/bank"),
          text("8192 3 2 rados://data/bank"), numbers + " 8192 3 0 rados://data/bank", std::string("-1 -1 8192 3 0 rados://data/bank"),
          std::string("999 998 8192 3 0 rados://data/bank"), text("99999999999999999999 3 0 rados://data/bank")}) {
        EXPECT_EQ(link_of(wrong, true), nullptr) << wrong;
    }
    state_->version = protocol_version + 1;
    EXPECT_EQ(link_of(text("8192 3 0 rados://data/bank"), true), nullptr);
    EXPECT_EQ(state_->adopter.load(), 0u);
}

}  // namespace
}  // namespace stillpoint::rados
