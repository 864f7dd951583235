// Alignment of durable memory, as stillpoint.h states it.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "open_pool.hpp"
#include "stillpoint/nvthreads.h"

namespace {

constexpr std::size_t promised = 16;
static_assert(promised == alignof(std::max_align_t));

bool is_aligned(const void* block, std::size_t alignment) { return reinterpret_cast<std::uintptr_t>(block) % alignment == 0; }

std::vector<std::size_t> sizes()
{
    std::vector<std::size_t> all;
    for (std::size_t size = 0; size <= 300; ++size) {
        all.push_back(size);
    }
    for (std::size_t size = 301; size < 300'000; size += size / 7) {
        all.push_back(size);
    }
    return all;
}

class Alignment : public ::testing::TestWithParam<const char*> {};

TEST_P(Alignment, every_block_and_every_root_is_aligned_to_16_bytes)
{
    const OpenPool pool(std::string("engine=") + GetParam());
    for (const std::size_t size : sizes()) {
        void* const blocks[] = {sp_malloc(size), sp_calloc(1, size), sp_realloc(sp_malloc(24), size + 1), nvmalloc(size, nullptr)};
        for (void* const block : blocks) {
            ASSERT_NE(block, nullptr) << size << ": " << sp_last_error();
            EXPECT_TRUE(is_aligned(block, promised)) << size;
            EXPECT_GE(sp_usable_size(block), size);
            sp_free(block);
        }
    }
    for (const std::size_t size : {std::size_t{1}, std::size_t{8}, std::size_t{24}, std::size_t{100}, std::size_t{70'000}}) {
        void* const root = sp_root(("root" + std::to_string(size)).c_str(), size);
        ASSERT_NE(root, nullptr) << sp_last_error();
        EXPECT_TRUE(is_aligned(root, promised)) << size;
    }
}

TEST_P(Alignment, aligned_alloc_gives_every_power_of_two_up_to_64_kib)
{
    const OpenPool pool(std::string("engine=") + GetParam());
    for (std::size_t alignment = 1; alignment <= 64 * 1024; alignment *= 2) {
        for (const std::size_t size : {std::size_t{1}, std::size_t{24}, std::size_t{4097}, std::size_t{70'000}}) {
            void* const block = sp_aligned_alloc(alignment, size);
            ASSERT_NE(block, nullptr) << alignment << ' ' << size << ": " << sp_last_error();
            EXPECT_TRUE(is_aligned(block, alignment)) << alignment << ' ' << size;
            sp_free(block);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Engines, Alignment, ::testing::Values("pmthreads", "respct", "pronto"));

}  // namespace
