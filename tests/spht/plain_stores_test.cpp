// Plain stores of a transaction that runs alone are durable with it, and no others: in roots, in new and freed blocks, in program
// memory, and where the pool has grown meanwhile.

#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "stillpoint/spht.h"
#include "stillpoint/stillpoint.h"
#include "support/temporary_directory.hpp"

SP_PERSISTENT long durable_number = 3;
SP_PERSISTENT char durable_text[5000] = "before";

namespace {

struct State {
    long numbers[3000];
    char* block;
    char* other;
};

class PlainStores : public ::testing::TestWithParam<const char*> {
protected:
    void SetUp() override
    {
        open();
        if (sp_spht_run([](sp_spht_transaction* /*transaction*/, void* /*argument*/) -> int { return SP_OK; }, nullptr, flags) ==
            SP_E_UNSUPPORTED) {
            GTEST_SKIP() << sp_last_error();
        }
    }
    void TearDown() override { EXPECT_EQ(sp_close(), SP_OK) << sp_last_error(); }
    void open()
    {
        const std::string options = std::string("engine=spht quiet durability=process pool_size_mb=8 pool_max_mb=128 executor=") +
                                    GetParam();
        ASSERT_EQ(sp_open(folder_.file("pool").c_str(), options.c_str()), SP_OK) << sp_last_error();
        state_ = static_cast<State*>(sp_root("state", sizeof(State)));
        ASSERT_NE(state_, nullptr);
    }
    void restart()
    {
        ASSERT_EQ(sp_close(), SP_OK) << sp_last_error();
        durable_number = -1;
        std::memset(durable_text, '?', sizeof durable_text);
        open();
    }
    static constexpr unsigned flags = SP_SPHT_IRREVOCABLE | SP_SPHT_PLAIN_STORES;
    /// Runs body(transaction), which stores plainly.
    template <class Body>
    void run_alone(Body body)
    {
        const auto call = [](sp_spht_transaction* transaction, void* argument) -> int {
            return (*static_cast<Body*>(argument))(transaction);
        };
        EXPECT_EQ(sp_spht_run(call, &body, flags), SP_OK) << sp_last_error();
    }
    [[nodiscard]] static std::uint64_t live_blocks()
    {
        sp_heap_statistics heap{};
        EXPECT_EQ(sp_heap_stats(&heap), SP_OK);
        return heap.live_blocks;
    }

    State* state_ = nullptr;

private:
    stillpoint::test::TemporaryDirectory folder_;
};

INSTANTIATE_TEST_SUITE_P(Executors, PlainStores, testing::Values("software", "norec", "simulated"),
                         [](const auto& executor) { return std::string(executor.param); });

TEST_P(PlainStores, AreDurableBesideThoseOfFunctions)
{
    run_alone([&](sp_spht_transaction* transaction) {
        state_->numbers[0] = 1;
        state_->numbers[2999] = 2;
        const long seven = 7;
        EXPECT_EQ(sp_spht_write(transaction, &state_->numbers[1], &seven, sizeof seven), SP_OK);
        return SP_OK;
    });
    restart();
    EXPECT_EQ(state_->numbers[0], 1);
    EXPECT_EQ(state_->numbers[1], 7);
    EXPECT_EQ(state_->numbers[2999], 2);
}

TEST_P(PlainStores, AreFoundInEachTransactionAgain)
{
    for (long i = 0; i < 20; ++i) {
        run_alone([&](sp_spht_transaction* /*transaction*/) {
            state_->numbers[i * 100] = i;
            return SP_OK;
        });
        const auto add = [](sp_spht_transaction* transaction, void* place) {
            std::uint64_t value = 0;
            static_cast<void>(sp_spht_read_word(transaction, static_cast<std::uint64_t*>(place), &value));
            return sp_spht_write_word(transaction, static_cast<std::uint64_t*>(place), value + 1, UINT64_MAX);
        };
        EXPECT_EQ(sp_spht_run(add, &state_->numbers[1], 0), SP_OK);
    }
    restart();
    for (long i = 1; i < 20; ++i) {
        EXPECT_EQ(state_->numbers[i * 100], i);
    }
    EXPECT_EQ(state_->numbers[1], 20);
}

TEST_P(PlainStores, ReachProgramMemory)
{
    run_alone([&](sp_spht_transaction* /*transaction*/) {
        durable_number += 4;
        std::strcpy(durable_text + 4000, "after");
        return SP_OK;
    });
    EXPECT_EQ(durable_number, 7);
    restart();
    EXPECT_EQ(durable_number, 7);
    EXPECT_STREQ(durable_text, "before");
    EXPECT_STREQ(durable_text + 4000, "after");
    durable_number = 3;
    std::memset(durable_text + 4000, 0, 6);
}

TEST_P(PlainStores, FillNewBlocksAndOutliveFreedOnes)
{
    const std::uint64_t before = live_blocks();
    run_alone([&](sp_spht_transaction* transaction) {
        state_->block = static_cast<char*>(sp_spht_malloc(transaction, 5000));
        state_->other = static_cast<char*>(sp_spht_malloc(transaction, 40));
        std::memset(state_->block, 'b', 5000);
        return SP_OK;
    });
    restart();
    EXPECT_EQ(live_blocks(), before + 2);
    EXPECT_EQ(state_->block[4999], 'b');
    run_alone([&](sp_spht_transaction* transaction) {
        auto* const short_lived = static_cast<char*>(sp_spht_malloc(transaction, 40));
        std::strcpy(short_lived, "short");
        EXPECT_EQ(sp_spht_free(transaction, short_lived), SP_OK);
        EXPECT_EQ(sp_spht_free(transaction, state_->other), SP_OK);
        state_->other = nullptr;
        state_->block[0] = 'c';
        return SP_OK;
    });
    EXPECT_EQ(live_blocks(), before + 1);
    restart();
    EXPECT_EQ(live_blocks(), before + 1);
    EXPECT_EQ(state_->block[0], 'c');
    EXPECT_EQ(state_->other, nullptr);
}

TEST_P(PlainStores, AreFoundWhereThePoolHasGrown)
{
    constexpr std::size_t large = std::size_t{16} << 20;
    run_alone([&](sp_spht_transaction* transaction) {
        state_->block = static_cast<char*>(sp_spht_malloc(transaction, large));
        EXPECT_NE(state_->block, nullptr) << sp_last_error();
        state_->block[0] = 'f';
        state_->block[large - 1] = 'l';
        return SP_OK;
    });
    restart();
    EXPECT_EQ(state_->block[0], 'f');
    EXPECT_EQ(state_->block[large - 1], 'l');
}

TEST_P(PlainStores, OutsideOfSuchTransactionsAreLost)
{
    run_alone([&](sp_spht_transaction* /*transaction*/) {
        state_->numbers[0] = 1;
        return SP_OK;
    });
    state_->numbers[1000] = 5;
    restart();
    EXPECT_EQ(state_->numbers[0], 1);
    EXPECT_EQ(state_->numbers[1000], 0);
}

TEST_P(PlainStores, NeedATransactionThatRunsAlone)
{
    const auto nothing = [](sp_spht_transaction* /*transaction*/, void* /*argument*/) -> int { return SP_OK; };
    EXPECT_EQ(sp_spht_run(nothing, nullptr, SP_SPHT_PLAIN_STORES), SP_E_INVALID_ARGUMENT);
    EXPECT_NE(std::string(sp_last_error()).find("irrevocable"), std::string::npos);
    EXPECT_EQ(sp_spht_run(nothing, nullptr, SP_SPHT_PRIVATIZES), SP_OK);
}

}  // namespace
