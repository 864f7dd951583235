// The ring. Invariants: every queued write completes once, with its tag; a child leaves the
// parent's ring alone.

#include <cerrno>
#include <cstdlib>
#include <gtest/gtest.h>
#include <set>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include "os/descriptor.hpp"
#include "os/io_ring.hpp"

namespace stillpoint::os {
namespace {

class IoRingTest : public testing::Test {
protected:
    IoRingTest()
    {
        const char* const parent = std::getenv("TMPDIR");
        std::string path = std::string{parent != nullptr ? parent : "."} + "/io-ring-XXXXXX";
        file_ = Descriptor{mkstemp(path.data())};
        unlink(path.c_str());
    }

    void SetUp() override
    {
        int error = 0;
        ring_ = IoRing::open(8, error);
        if (ring_ == nullptr) {
            GTEST_SKIP() << "no io_uring here, errno " << error;
        }
    }

    /// Writes the same 100 bytes at `count` places and returns the tags that completed in full.
    std::set<std::uint64_t> write_at(unsigned count)
    {
        char text[100] = "text";
        const iovec vector{text, sizeof text};
        for (unsigned i = 0; i < count; ++i) {
            ring_->queue_write(file_.get(), &vector, 1, i * sizeof text, i + 10);
        }
        std::set<std::uint64_t> tags;
        for (unsigned rounds = 0; tags.size() < count && rounds < count; ++rounds) {
            EXPECT_EQ(ring_->submit_and_wait(), 0);
            std::uint64_t tag = 0;
            int result = 0;
            while (ring_->take_completion(tag, result)) {
                EXPECT_EQ(result, 100);
                EXPECT_TRUE(tags.insert(tag).second) << "completed twice";
            }
        }
        return tags;
    }

    Descriptor file_;
    std::unique_ptr<IoRing> ring_;
};

TEST_F(IoRingTest, CompletesEveryQueuedWriteOnce)
{
    EXPECT_EQ(write_at(8), (std::set<std::uint64_t>{10, 11, 12, 13, 14, 15, 16, 17}));
    EXPECT_EQ(lseek(file_.get(), 0, SEEK_END), 800);
    EXPECT_EQ(ring_->unsubmitted(), 0u);
}

TEST_F(IoRingTest, ReportsTheErrnoOfARefusedWrite)
{
    char byte = 0;
    const iovec vector{&byte, 1};
    ring_->queue_write(-1, &vector, 1, 0, 1);
    ASSERT_EQ(ring_->submit_and_wait(), 0);
    std::uint64_t tag = 0;
    int result = 0;
    ASSERT_TRUE(ring_->take_completion(tag, result));
    EXPECT_EQ(result, -EBADF);
}

TEST_F(IoRingTest, WorksOnAfterAChildAbandonedItsCopy)
{
    const pid_t child = fork();
    if (child == 0) {
        ring_->abandon_after_fork();
        ring_.reset();
        _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(write_at(3).size(), 3u);
}

}  // namespace
}  // namespace stillpoint::os
