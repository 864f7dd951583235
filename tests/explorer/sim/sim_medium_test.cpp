// The simulated medium keeps the contract of a medium, and records all that it is asked.

#include <cstring>
#include <gtest/gtest.h>

#include "sim/sim_medium.hpp"
#include "support/test_pages.hpp"

namespace stillpoint::sim {
namespace {

class SimMediumTest : public ::testing::Test {
protected:
    SimMediumTest() : trace_(std::size_t{1} << 24)
    {
        recording.store(&trace_);
        options_.path = "simulated";
    }
    ~SimMediumTest() override
    {
        recording.store(nullptr);
        set_stage(nullptr);
    }
    std::unique_ptr<Medium> create(bool byte_addressable)
    {
        stage_ = std::make_unique<Stage>(byte_addressable, CrashImage{PageMap{}, false});
        set_stage(stage_.get());
        auto medium = create_medium(options_, 4 * page_bytes);
        EXPECT_TRUE(medium) << medium.error().message;
        return std::move(*medium);
    }
    /// The images that a crash may leave after all that was recorded.
    CrashModel model(Profile profile) const
    {
        CrashModel model(profile, CrashImage{PageMap{}, false});
        for (const Event& event : trace_.events()) {
            model.apply(event);
        }
        return model;
    }

    Trace trace_;
    MediumOptions options_;
    std::unique_ptr<Stage> stage_;
};

TEST_F(SimMediumTest, TakesThePlaceOfAPathWhileAStageIsSet)
{
    EXPECT_EQ(create(false)->mechanism(), "simulated");
    EXPECT_EQ(create_medium(options_, 4 * page_bytes).error().code, SP_E_POOL_EXISTS);
    EXPECT_TRUE(open_medium(options_));
}

TEST_F(SimMediumTest, LeavesNothingOpenAfterASync)
{
    for (const bool bytes : {false, true}) {
        trace_.clear();
        const auto medium = create(bytes);
        const auto pages = test::numbered_pages(2);
        const BlockWrite writes[] = {test::write_of(pages[0], 0), test::write_of(pages[1], 3)};
        ASSERT_TRUE(medium->write(writes));
        if (bytes) {
            medium->store(page_bytes, pages[1].bytes, 100);
            EXPECT_FALSE(model(Profile::cache_line).units().empty());
            medium->write_back(page_bytes, 100);
        }
        ASSERT_TRUE(medium->sync());
        EXPECT_TRUE(model(bytes ? Profile::cache_line : Profile::page).units().empty());
        EXPECT_EQ(test::page_value(*medium, 3), 2u);
    }
}

TEST_F(SimMediumTest, TakesNothingAfterASyncThatFailed)
{
    const auto medium = create(false);
    stage_->failing_sync = 0;
    const auto pages = test::numbered_pages(1);
    const BlockWrite write = test::write_of(pages[0], 0);
    ASSERT_TRUE(medium->write({&write, 1}));
    EXPECT_EQ(medium->sync().error().code, SP_E_IO);
    EXPECT_EQ(medium->sync().error().code, SP_E_POOL_READ_ONLY);
    EXPECT_EQ(medium->write({&write, 1}).error().code, SP_E_POOL_READ_ONLY);
}

TEST_F(SimMediumTest, FaultsAStoreThatItHasNotSeen)
{
    const auto medium = create(true);
    auto* const byte = const_cast<volatile std::byte*>(medium->mapping());
    // By SIGSEGV, or as a sanitizer reports it.
    EXPECT_EXIT(*byte = std::byte{1}, [](int status) { return status != 0; }, "");
}

}  // namespace
}  // namespace stillpoint::sim
