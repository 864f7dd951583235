#pragma once
// A test that runs in ordinary memory, and in a pool of its own.

#include <string>

#include <gtest/gtest.h>

#include "stillpoint/stillpoint.h"
#include "support/temporary_directory.hpp"

enum class Memory { ordinary, durable };

class InBothMemories : public ::testing::TestWithParam<Memory> {
protected:
    void SetUp() override { open(); }
    void TearDown() override { close(); }

    /// Ends what a program does with its pool, and begins again. In ordinary memory nothing happens.
    void restart()
    {
        if (is_durable()) {
            close();
            open();
        }
    }
    [[nodiscard]] bool is_durable() const { return GetParam() == Memory::durable; }
    template <class T>
    [[nodiscard]] T& root(const char* name)
    {
        auto* const found = static_cast<T*>(sp_root(name, sizeof(T)));
        EXPECT_NE(found, nullptr) << sp_last_error();
        return *found;
    }

private:
    void open()
    {
        if (is_durable()) {
            ASSERT_EQ(sp_open(folder_.file("pool").c_str(), "engine=spht quiet durability=process pool_size_mb=16"), SP_OK)
                << sp_last_error();
        }
    }
    void close()
    {
        if (is_durable()) {
            EXPECT_EQ(sp_close(), SP_OK) << sp_last_error();
        } else {
            sp_root_delete("state");
        }
    }

    stillpoint::test::TemporaryDirectory folder_;
};

#define STILLPOINT_IN_BOTH_MEMORIES(suite)                                                                                                 \
    INSTANTIATE_TEST_SUITE_P(Memories, suite, ::testing::Values(Memory::ordinary, Memory::durable),                                        \
                             [](const auto& memory) { return memory.param == Memory::durable ? "durable" : "ordinary"; })
