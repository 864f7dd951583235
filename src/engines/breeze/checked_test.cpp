// The checked form, STILLPOINT_BREEZE_CHECKED=1:
//   - A freed object's bytes are overwritten, no new object lies there, and each use of it is refused, with its type.
//   - Blocks that are kept are used when the others do not suffice, and are free after the next opening.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>

#include "engines/breeze/zones.hpp"
#include "stillpoint/breeze.h"
#include "support/breeze_lists.hpp"
#include "support/temporary_directory.hpp"

namespace stillpoint::breeze::testing {
namespace {

struct Sheet {
    char bytes[8];  ///< and more
};
NVM_TYPE(Sheet, NVM_HAS_TAIL(Sheet, bytes));

class BreezeChecked : public ::testing::TestWithParam<const char*> {
protected:
    BreezeChecked()
    {
        options_.medium = GetParam();
        options_.durability = "process";
        setenv("STILLPOINT_BREEZE_CHECKED", "1", 1);
        pool_ = nvm_pool_create_with(path_.c_str(), 4 << 20, &options_);
        EXPECT_NE(pool_, nullptr) << sp_last_error();
    }
    ~BreezeChecked() override
    {
        EXPECT_EQ(nvm_pool_close(pool_), SP_OK);
        unsetenv("STILLPOINT_BREEZE_CHECKED");
    }

    template <class T>
    T* make(std::uint32_t type, std::size_t bytes = sizeof(T))
    {
        return static_cast<T*>(nvm_alloc(pool_, type, bytes));
    }
    /// Makes an object in a transaction of its own, and frees it in the next.
    template <class T>
    T* make_and_free(std::uint32_t type, std::size_t bytes = sizeof(T))
    {
        EXPECT_EQ(nvm_tx_begin(pool_), SP_OK);
        T* const made = make<T>(type, bytes);
        EXPECT_NE(made, nullptr) << sp_last_error();
        EXPECT_EQ(nvm_tx_commit(pool_), SP_OK);
        EXPECT_EQ(nvm_tx_begin(pool_), SP_OK);
        EXPECT_EQ(nvm_free(pool_, made), SP_OK) << sp_last_error();
        EXPECT_EQ(nvm_tx_commit(pool_), SP_OK);
        EXPECT_EQ(nvm_drain(pool_), SP_OK);
        return made;
    }
    [[nodiscard]] std::uint64_t objects() const
    {
        nvm_pool_facts facts{};
        EXPECT_EQ(nvm_facts(pool_, &facts), SP_OK);
        return facts.objects;
    }

    test::TemporaryDirectory directory_;
    std::string path_ = directory_.file("pool");
    nvm_options options_{};
    NVM_POOL* pool_ = nullptr;
};

bool is_overwritten(const void* object, std::size_t bytes)
{
    return std::ranges::all_of(std::span(static_cast<const std::byte*>(object), bytes),
                               [](std::byte byte) { return byte == Zones::freed_byte; });
}

TEST_P(BreezeChecked, RefusesEachUseOfAFreedObject)
{
    auto* const freed = make_and_free<Node>(NVM_TYPE_ID(Node));
    EXPECT_TRUE(is_overwritten(freed, sizeof *freed));
    for (int i = 0; i < 3000; ++i) {
        ASSERT_NE(make_and_free<Node>(NVM_TYPE_ID(Node)), freed);
    }
    nvm_object_facts facts;
    EXPECT_EQ(nvm_object(pool_, freed, &facts), SP_E_INVALID_ARGUMENT);
    EXPECT_NE(std::strstr(sp_last_error(), "of type Node"), nullptr) << sp_last_error();
    EXPECT_NE(std::strstr(sp_last_error(), "was freed"), nullptr) << sp_last_error();
    ASSERT_EQ(nvm_tx_begin(pool_), SP_OK);
    EXPECT_EQ(nvm_log(&freed->value, sizeof freed->value), SP_E_OBJECT_REFUSED);
    EXPECT_NE(std::strstr(sp_last_error(), "of type Node"), nullptr) << sp_last_error();
    EXPECT_EQ(nvm_tx_commit(pool_), SP_E_OBJECT_REFUSED);
    ASSERT_EQ(nvm_tx_begin(pool_), SP_OK);
    auto* const other = make<Node>(NVM_TYPE_ID(Node));
    other->next = freed;
    EXPECT_EQ(nvm_tx_commit(pool_), SP_E_OBJECT_REFUSED);
    EXPECT_TRUE(is_overwritten(other, sizeof *other));  // As the transaction was rolled back.
    EXPECT_EQ(objects(), 0u);
}

TEST_P(BreezeChecked, UsesKeptBlocksWhereNoOthersAreLeft)
{
    for (int i = 0; i < 40; ++i) {
        for (const std::size_t bytes : {100ul, 5000ul, 300'000ul}) {
            auto* const freed = make_and_free<Sheet>(NVM_TYPE_ID(Sheet), bytes);
            ASSERT_TRUE(is_overwritten(freed, bytes));
        }
    }
    EXPECT_EQ(objects(), 0u);
    ASSERT_EQ(nvm_pool_close(pool_), SP_OK);
    unsetenv("STILLPOINT_BREEZE_CHECKED");
    pool_ = nvm_pool_open_with(path_.c_str(), &options_);
    ASSERT_NE(pool_, nullptr) << sp_last_error();
    nvm_pool_facts facts{};
    ASSERT_EQ(nvm_facts(pool_, &facts), SP_OK);
    EXPECT_EQ(facts.objects, 0u);
    EXPECT_EQ(facts.damaged_objects, 0u);
}

INSTANTIATE_TEST_SUITE_P(Media, BreezeChecked, ::testing::Values("file", "memory"));

}  // namespace
}  // namespace stillpoint::breeze::testing
