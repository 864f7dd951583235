#pragma once
// A test that runs in ordinary memory, and in a pool of its own with each executor of transactions.

#include <string>

#include <gtest/gtest.h>

#include "stillpoint/stillpoint.h"
#include "support/temporary_directory.hpp"

/// The executors are those of durable memory. The CPU's own is left out: what it does is up to the machine, and `simulated` has its rules.
enum class Memory { ordinary, software, norec, tinystm, simulated };

inline const char* name_of(Memory memory)
{
    constexpr const char* names[] = {"ordinary", "software", "norec", "tinystm", "simulated"};
    return names[static_cast<int>(memory)];
}

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
    [[nodiscard]] bool is_durable() const { return GetParam() != Memory::ordinary; }
    /// In hardware a transaction is announced before its body, and tinystm locks what a body writes: commits of other threads that come
    /// later, or write the same, wait until the body has ended.
    [[nodiscard]] bool body_keeps_others_from_committing() const
    {
        return GetParam() == Memory::tinystm || GetParam() == Memory::simulated;
    }
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
            const std::string options = std::string("engine=spht quiet durability=process pool_size_mb=16 executor=") + name_of(GetParam());
            ASSERT_EQ(sp_open(folder_.file("pool").c_str(), options.c_str()), SP_OK) << sp_last_error();
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
    INSTANTIATE_TEST_SUITE_P(Memories, suite,                                                                                              \
                             ::testing::Values(Memory::ordinary, Memory::software, Memory::norec, Memory::tinystm, Memory::simulated),     \
                             [](const auto& memory) { return std::string(name_of(memory.param)); })
