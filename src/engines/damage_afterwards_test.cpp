// Damage that a start accepts must not hurt the run either: one bit of a version table is flipped, and the program works on
// through two checkpoints and starts again. With every engine that keeps page versions, on each kind of medium.

#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <string>
#include <unistd.h>
#include <vector>

#include "support/cases.hpp"
#include "support/temporary_directory.hpp"
#include "support/crashing_program.hpp"
#include "versions/page_layout.hpp"

namespace stillpoint {
namespace {

using test::run_with_pool;
using test::stored;

constexpr std::uint64_t mark = 0x6b72614d6b72614d;
constexpr std::size_t marked_words = 16 * page_bytes / sizeof mark;
constexpr std::size_t words_apart = 64;

/// Another value for each word and each round.
std::uint64_t mark_of(std::size_t word, std::uint64_t round) { return (mark ^ (round << 32)) + word; }

/// One round: every page gets another content, and is made durable.
int write_round(std::uint64_t round)
{
    std::uint64_t* const words = test::durable_words(marked_words);
    sp_fase_begin();
    for (std::size_t i = 0; i < marked_words; i += words_apart) {
        words[i] = mark_of(i, round);
        stored(words[i]);
    }
    sp_fase_end();
    return sp_checkpoint();
}

int compare_round(std::uint64_t round)
{
    const std::uint64_t* const words = test::durable_words(marked_words);
    for (std::size_t i = 0; i < marked_words; i += words_apart) {
        if (words[i] != mark_of(i, round)) {
            return 1;
        }
    }
    return 0;
}

std::vector<std::byte> bytes_of(const std::string& path)
{
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const auto* const begin = reinterpret_cast<const std::byte*>(text.data());
    return {begin, begin + text.size()};
}

class DamageAfterwards : public testing::TestWithParam<const char*> {
protected:
    int run(const std::function<int()>& body)
    {
        return run_with_pool(pool_, std::string("pool_size_mb=4 pool_max_mb=4 durability=process interval_ms=3600000 ") + GetParam(), body);
    }

    void write_back(const std::vector<std::byte>& bytes)
    {
        const int file = open(pool_.c_str(), O_RDWR);
        ASSERT_EQ(pwrite(file, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
        close(file);
    }

    test::TemporaryDirectory directory_;
    std::string pool_ = directory_.file("test.pool");
};

INSTANTIATE_TEST_SUITE_P(Configurations, DamageAfterwards,
                         testing::Values("medium=file", "medium=memory", "engine=pronto medium=file", "engine=pronto medium=memory"),
                         [](const auto& configuration) {
                             std::string name = configuration.param;
                             for (char& letter : name) {
                                 letter = std::isalnum(static_cast<unsigned char>(letter)) != 0 ? letter : '_';
                             }
                             return name;
                         });

/// Damages a table page that has been written in both of its places: its header, and the last slot in use, a page of the marks.
TEST_P(DamageAfterwards, OfABitOfATablePageIsHarmless)
{
    ASSERT_EQ(run([] { return write_round(1) + write_round(2); }), 0);
    const std::vector<std::byte> sound = bytes_of(pool_);
    constexpr std::uint64_t table_page = 6;
    constexpr std::uint64_t second_place = table_page + versions::table_copies * versions::table_pages_for(4 * mib / page_bytes);
    const char* const wish = std::getenv("STILLPOINT_MUTATIONS");
    const std::uint64_t step = wish != nullptr && std::string_view(wish) == "all" ? 1 : test::case_step(29, 113);
    for (const std::uint64_t file_page : {table_page, table_page + 1, second_place, second_place + 1}) {
        versions::TablePage page;
        std::memcpy(&page, sound.data() + file_page * page_bytes, sizeof page);
        ASSERT_NE(page.epoch, 0U);
        std::uint64_t used = 0;
        for (std::uint64_t slot = 0; slot < page.slots.size(); ++slot) {
            used = page.slots[slot].epoch != 0 ? slot : used;
        }
        const std::uint64_t slot_bits = 8 * sizeof(versions::VersionSlot);
        for (std::uint64_t number = 0; number < 2 * slot_bits; number += step) {
            const std::uint64_t in_page = number < slot_bits
                                              ? number
                                              : 8 * offsetof(versions::TablePage, slots) + used * slot_bits + number - slot_bits;
            SCOPED_TRACE("file page " + std::to_string(file_page) + " bit " + std::to_string(in_page));
            std::vector<std::byte> damaged = sound;
            damaged[file_page * page_bytes + in_page / 8] ^= std::byte(1U << (in_page % 8));
            write_back(damaged);
            EXPECT_EQ(run([] { return compare_round(2) != 0 ? 1 : write_round(3) + write_round(4) + compare_round(4); }), 0);
            EXPECT_EQ(run([] { return compare_round(4); }), 0);
        }
    }
}

}  // namespace
}  // namespace stillpoint
