// The file medium. Invariants:
//   - what write() took is what read() gives, also in another process;
//   - a failed write or sync freezes the medium: nothing later can look durable;
//   - neighbouring pages are one system call.

#include <cerrno>
#include <cstring>
#include <gtest/gtest.h>
#include <vector>

#include "media/open.hpp"
#include "media/temporary_directory.hpp"

namespace stillpoint {
namespace {

struct alignas(page_bytes) Page {
    std::byte bytes[page_bytes];
};

Page page_of(unsigned char value)
{
    Page page;
    std::memset(page.bytes, value, sizeof page.bytes);
    return page;
}

std::vector<Page> pages_of(std::initializer_list<unsigned char> values)
{
    std::vector<Page> pages;
    for (const unsigned char value : values) {
        pages.push_back(page_of(value));
    }
    return pages;
}

unsigned char first_byte(const Medium& medium, std::uint64_t page)
{
    std::byte byte{};
    EXPECT_TRUE(medium.read(page * page_bytes, {&byte, 1}));
    return static_cast<unsigned char>(byte);
}

class FileMediumTest : public testing::Test {
protected:
    std::unique_ptr<Medium> create(std::uint64_t pages, const std::string& faults = {})
    {
        options_.path = directory_.file("pool");
        options_.kind = MediumKind::file;
        options_.faults = faults;
        auto medium = create_medium(options_, pages * page_bytes);
        EXPECT_TRUE(medium) << medium.error().message;
        return std::move(*medium);
    }

    test::TemporaryDirectory directory_;
    MediumOptions options_;
};

TEST_F(FileMediumTest, ReadsBackWhatWasWritten)
{
    const auto medium = create(8);
    const auto pages = pages_of({1, 2, 3});
    const BlockWrite batch[] = {{0, pages[0].bytes, page_bytes},
                                {3 * page_bytes, pages[1].bytes, page_bytes},
                                {7 * page_bytes, pages[2].bytes, page_bytes}};
    ASSERT_TRUE(medium->write(batch));
    ASSERT_TRUE(medium->sync());
    EXPECT_EQ(first_byte(*medium, 0), 1);
    EXPECT_EQ(first_byte(*medium, 1), 0);
    EXPECT_EQ(first_byte(*medium, 3), 2);
    EXPECT_EQ(first_byte(*medium, 7), 3);
}

}  // namespace
}  // namespace stillpoint
