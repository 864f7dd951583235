// The medium's end of the conversation, with programs that are not its agent. Invariants: whatever the other end does, opening is an error
// with a message, never a hang or a crash.

#include "media/rados/agent_link.hpp"

#include <fstream>
#include <gtest/gtest.h>
#include <sys/stat.h>

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
    const Failure failure = failure_with(script("head -c 544 /dev/zero >&3; cat <&3 >/dev/null"));
    EXPECT_EQ(failure.code, SP_E_IO) << failure.text();
    EXPECT_NE(failure.text().find("another version"), std::string_view::npos) << failure.text();
}

}  // namespace
}  // namespace stillpoint::rados
