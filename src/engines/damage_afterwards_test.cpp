// Damage that a start accepts must not hurt the run either: one bit of a page's version entry is flipped, and the program works on
// through two checkpoints and starts again. With every engine that keeps page versions, on each kind of medium.

#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <string>
#include <unistd.h>
#include <vector>

#include "media/temporary_directory.hpp"
#include "versions/crashing_program.hpp"
#include "versions/page_layout.hpp"

namespace stillpoint {
namespace {

using test::could_not_open;
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

TEST_P(DamageAfterwards, OfABitOfAVersionEntryIsRefusedOrHarmless)
{
    ASSERT_EQ(run([] { return write_round(1) + write_round(2); }), 0);
    const std::vector<std::byte> sound = bytes_of(pool_);
    constexpr std::uint64_t table_page = 6;
    // The entry of the last page that has two copies: a page of the marks.
    std::uint64_t place = 0;
    versions::VersionEntry entry{};
    for (std::uint64_t at = table_page * page_bytes; at < (table_page + 8) * page_bytes; at += sizeof entry) {
        std::memcpy(&entry, sound.data() + at, sizeof entry);
        place = entry.slots[0].epoch != 0 && entry.slots[1].epoch != 0 ? at : place;
    }
    ASSERT_NE(place, 0U);
    const char* const wish = std::getenv("STILLPOINT_MUTATIONS");
    const std::uint64_t step = wish != nullptr && std::string_view(wish) == "all" ? 1 : 7;
    unsigned refused = 0;
    for (std::uint64_t bit = 0; bit < sizeof entry * 8; bit += step) {
        SCOPED_TRACE("bit " + std::to_string(bit));
        std::vector<std::byte> damaged = sound;
        damaged[place + bit / 8] ^= std::byte(1U << (bit % 8));
        write_back(damaged);
        const int outcome = run([] { return compare_round(2) != 0 ? 1 : write_round(3) + write_round(4) + compare_round(4); });
        if (outcome == could_not_open) {
            ++refused;
            continue;
        }
        EXPECT_EQ(outcome, 0);
        EXPECT_EQ(run([] { return compare_round(4); }), 0);
    }
    EXPECT_GT(refused, 0U);
}

}  // namespace
}  // namespace stillpoint
