// Announcements of stores: come before the store, for durable memory only, and are not made where no engine wants them.

#include "core/store_marks.hpp"

#include <gtest/gtest.h>

namespace stillpoint {
namespace {

struct Seen {
    const void* address = nullptr;
    std::size_t size_bytes = 0;
    int count = 0;
};
Seen before;
Seen after;

void note(Seen& seen, const void* address, std::size_t size_bytes) { seen = {address, size_bytes, seen.count + 1}; }

class StoreMarks : public testing::Test {
protected:
    StoreMarks() { before = after = {}; }
    ~StoreMarks() override { store_marks::want_nothing(); }

    const void* durable_ = reinterpret_cast<const void*>((SP_WINDOW_INDEX << SP_WINDOW_SHIFT) + 40);
    int volatile_ = 0;
};

TEST_F(StoreMarks, TellsOfADurableStoreBeforeItAndAfterIt)
{
    store_marks::want_calls([](const void* address, std::size_t size) noexcept { note(after, address, size); });
    store_marks::want_calls_before([](const void* address, std::size_t size) noexcept { note(before, address, size); });
    announce_store(durable_, 8);
    EXPECT_EQ(before.address, durable_);
    EXPECT_EQ(before.size_bytes, 8U);
    EXPECT_EQ(after.count, 0);
    note_store(durable_, 8);
    EXPECT_EQ(before.count, 1);
    EXPECT_EQ(after.count, 1);
}

TEST_F(StoreMarks, AnnounceNoStoreToVolatileMemoryAndNoneOfNothing)
{
    store_marks::want_calls_before([](const void* address, std::size_t size) noexcept { note(before, address, size); });
    announce_store(&volatile_, sizeof volatile_);
    announce_store(durable_, 0);
    EXPECT_EQ(before.count, 0);
}

TEST_F(StoreMarks, AreToldToNobodyOnceNothingIsWanted)
{
    store_marks::want_calls_before([](const void* address, std::size_t size) noexcept { note(before, address, size); });
    store_marks::want_nothing();
    announce_store(durable_, 8);
    EXPECT_EQ(before.count, 0);
}

}  // namespace
}  // namespace stillpoint
