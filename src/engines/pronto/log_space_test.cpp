// When a snapshot is due: logs in proportion to what one copies, and snapshots that take little of the time.

#include "engines/pronto/log_space.hpp"

#include <gtest/gtest.h>

#include "core/units.hpp"

namespace stillpoint::pronto {
namespace {

/// Takes snapshots that take `snapshot_ns`, `between_ns` apart.
class SnapshotClock {
public:
    explicit SnapshotClock(LogSpace& space) : space_(space) {}

    void take(unsigned count, std::uint64_t between_ns, std::uint64_t snapshot_ns, std::uint64_t pages)
    {
        while (count-- != 0) {
            now_ns_ += between_ns;
            space_.note_capture(now_ns_);
            space_.note_snapshot(pages, now_ns_ + snapshot_ns);
        }
    }

private:
    LogSpace& space_;
    std::uint64_t now_ns_ = 1;
};

TEST(LogSpace, GrowsByWhatTheLastSnapshotHasCopied)
{
    LogSpace space;
    SnapshotClock snapshots(space);
    snapshots.take(1, 1'000'000'000, 1'000'000, 64 * mib / page_bytes);
    EXPECT_EQ(space.bytes_between_snapshots(), 64 * mib);
    snapshots.take(1, 1'000'000'000, 1'000'000, 1);
    EXPECT_EQ(space.bytes_between_snapshots(), mib);
}

TEST(LogSpace, HasSmallLogsWhereSnapshotsTakeLittleOfTheTime)
{
    LogSpace space;
    SnapshotClock snapshots(space);
    EXPECT_EQ(space.bytes_between_snapshots(), mib);
    snapshots.take(20, 60'000'000, 1'000'000, 1);
    EXPECT_EQ(space.bytes_between_snapshots(), mib);
    snapshots.take(1, 40'000'000, 1'000'000, 1);
    EXPECT_EQ(space.bytes_between_snapshots(), 2 * mib);
    snapshots.take(20, 1'000'000, 1'000'000, 1);
    EXPECT_EQ(space.bytes_between_snapshots(), 16 * mib);
    snapshots.take(1, 60'000'000, 1'000'000, 1);  // Neither too often nor seldom.
    EXPECT_EQ(space.bytes_between_snapshots(), 16 * mib);
    snapshots.take(2, 1'000'000'000, 1'000'000, 1);
    EXPECT_EQ(space.bytes_between_snapshots(), 4 * mib);
}

}  // namespace
}  // namespace stillpoint::pronto
