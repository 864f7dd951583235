// Named objects that the program frees or reallocates by their address: a name never leads to memory that is free or another's.

#include <cerrno>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <vector>

#include "api/registry.hpp"
#include "runtime/engine.hpp"
#include "stillpoint/nvthreads.h"
#include "stillpoint/stillpoint.h"
#include "support/crashing_program.hpp"
#include "support/temporary_directory.hpp"

namespace stillpoint {
namespace {

/// Runs the programs one after the other on a pool of each engine.
void with_every_engine(const std::vector<std::function<int()>>& programs)
{
    for (const EngineDriver& driver : engine_drivers()) {
        const std::string engine(driver.format.name);
        if (driver.programs == Programs::transactions || driver.programs == Programs::critical_sections) {
            continue;  // The programs store to memory themselves, and no compiler tells of it.
        }
        SCOPED_TRACE(engine);
        const test::TemporaryDirectory directory;
        for (const auto& program : programs) {
            EXPECT_EQ(test::run_with_pool(directory.file("test.pool"),
                                          "pool_size_mb=4 pool_max_mb=8 durability=process interval_ms=3600000 engine=" + engine, program),
                      0);
        }
    }
}

int free_by_address()
{
    auto* const first = static_cast<std::uint64_t*>(sp_root("first", 64));
    void* const second = sp_root("second", 200);
    if (first == nullptr || second == nullptr) {
        return 1;
    }
    *first = 7;
    sp_free(first);
    if (sp_root_find("first", nullptr) != nullptr || errno != ENOENT) {
        return 2;
    }
    void* const other = sp_malloc(64);  // Nearly always the same block.
    auto* const again = static_cast<std::uint64_t*>(sp_root("first", 128));
    if (again == nullptr || again == other || *again != 0) {
        return 3;
    }
    nvfree(second);
    if (sp_root_find("second", nullptr) != nullptr) {
        return 4;
    }
    sp_free(other);
    *again = 9;
    return sp_checkpoint();
}

TEST(NamedObjects, ThatAreFreedLoseTheirNames)
{
    with_every_engine({&free_by_address, [] {
                           std::size_t bytes = 0;
                           const auto* const first = static_cast<const std::uint64_t*>(sp_root_find("first", &bytes));
                           if (first == nullptr || *first != 9 || bytes != 128) {
                               return 1;
                           }
                           return sp_root_find("second", nullptr) == nullptr && sp_root_delete("first") == SP_OK ? 0 : 2;
                       }});
}

int reallocate_by_address()
{
    auto* const object = static_cast<char*>(sp_root("object", 64));
    std::strcpy(object, "kept");
    for (const std::size_t bytes : {50'000U, 200'000U, 100U}) {
        void* const old = sp_root_find("object", nullptr);
        void* const moved = sp_realloc(old, bytes);
        std::size_t found_bytes = 0;
        if (moved == nullptr || sp_root_find("object", &found_bytes) != moved || found_bytes != bytes ||
            std::strcmp(static_cast<char*>(moved), "kept") != 0) {
            return 1;
        }
    }
    if (sp_realloc(sp_malloc(100), 5000) == nullptr) {
        return 2;
    }
    return sp_checkpoint();
}

TEST(NamedObjects, ThatAreReallocatedKeepTheirNames)
{
    with_every_engine({&reallocate_by_address, [] {
                           const auto* const object = static_cast<const char*>(sp_root("object", 100));
                           return object != nullptr && std::strcmp(object, "kept") == 0 ? 0 : 1;
                       }});
}

/// Names come and go while other threads free blocks of the same size.
TEST(NamedObjects, AreFoundWhileOthersFreeBlocks)
{
    with_every_engine({[] {
        std::thread frees([] {
            for (int i = 0; i < 3000; ++i) {
                void* const block = sp_malloc(64);
                sp_free(block);
            }
        });
        int wrong = 0;
        for (int i = 0; i < 3000; ++i) {
            const std::string name = "object " + std::to_string(i % 40);
            void* const object = sp_root(name.c_str(), 64);
            wrong += object == nullptr ? 1 : 0;
            if (i % 3 != 0) {
                sp_free(object);
                wrong += sp_root_find(name.c_str(), nullptr) != nullptr ? 1 : 0;
            }
        }
        frees.join();
        return wrong;
    }});
}

TEST(NamedObjectsWithoutAPool, ThatAreFreedOrReallocatedDoNotDangle)
{
    auto* const first = static_cast<std::uint64_t*>(sp_root("freed", 64));
    ASSERT_NE(first, nullptr);
    *first = 7;
    sp_free(first);
    auto* const again = static_cast<std::uint64_t*>(sp_root("freed", 128));
    ASSERT_NE(again, nullptr);
    EXPECT_EQ(*again, 0U);
    void* const moved = sp_realloc(again, 1 << 20);
    std::size_t bytes = 0;
    EXPECT_EQ(sp_root_find("freed", &bytes), moved);
    EXPECT_EQ(bytes, std::size_t{1} << 20);
    EXPECT_EQ(sp_root_delete("freed"), SP_OK);
}

}  // namespace
}  // namespace stillpoint
