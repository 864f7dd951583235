// Handle directory: agrees with std::map after any sequence of operations, and check() holds
// after each; check() finds every kind of damage.

#include "pool/directory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <sys/mman.h>
#include <vector>

#include "core/units.hpp"
#include "pool/image_layout.hpp"
#include "support/undo_log.hpp"

namespace stillpoint {
namespace {

constexpr std::uint64_t image_size = 4 * mib;

/// A formatted image in ordinary memory.
struct TestImage {
    TestImage() { format_image(base, image_size); }

    std::uintptr_t address(std::uint64_t offset) const { return reinterpret_cast<std::uintptr_t>(base) + offset; }
    layout::DirectoryRecord& record(std::uint64_t slot)
    {
        return reinterpret_cast<layout::DirectoryRecord*>(base + geometry.directory_offset)[slot];
    }
    std::uint64_t slot_of(std::string_view handle)
    {
        for (std::uint64_t slot = 0;; ++slot) {
            if (handle == record(slot).handle) {
                return slot;
            }
        }
    }

    std::vector<std::uint64_t> memory = std::vector<std::uint64_t>(image_size / 8);
    std::byte* base = reinterpret_cast<std::byte*>(memory.data());
    ImageGeometry geometry = ImageGeometry::for_image(image_size);
    Directory directory{base, geometry};
    std::uintptr_t heap = address(geometry.heap_offset);
};

/// A formatted image in the window, where stores are announced.
struct WindowImage {
    WindowImage()
        : base(static_cast<std::byte*>(mmap(reinterpret_cast<void*>(SP_WINDOW_INDEX << SP_WINDOW_SHIFT), image_size, PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0)))
    {
        format_image(base, image_size);
    }
    ~WindowImage() { munmap(base, image_size); }
    WindowImage(const WindowImage&) = delete;
    WindowImage& operator=(const WindowImage&) = delete;

    std::byte* base;
    ImageGeometry geometry = ImageGeometry::for_image(image_size);
    Directory directory{base, geometry};
};

TEST(Directory, IsRolledBackByAnUndoLogOfTheStoresThatItAnnounces)
{
    WindowImage image;
    const auto heap = reinterpret_cast<std::uintptr_t>(image.base) + image.geometry.heap_offset;
    std::mt19937 random(7);
    const auto change = [&](int operations) {
        for (int i = 0; i < operations; ++i) {
            const std::string handle = "object " + std::to_string(random() % image.geometry.directory_capacity);
            if (!image.directory.find(handle)) {
                ASSERT_TRUE(image.directory.insert(handle, heap + random() % 1000, 64));
            } else if (random() % 2 == 0) {
                ASSERT_TRUE(image.directory.replace(handle, heap + random() % 1000, 32));
            } else {
                ASSERT_TRUE(image.directory.erase(handle));
            }
        }
    };
    change(400);
    const std::vector<std::byte> before(image.base, image.base + image.geometry.heap_offset);
    test::UndoLog log;
    change(1000);
    EXPECT_GE(log.entries(), 1000U);
    EXPECT_NE(std::memcmp(image.base, before.data(), before.size()), 0);
    log.roll_back();
    EXPECT_EQ(std::memcmp(image.base, before.data(), before.size()), 0);
}

TEST(Directory, FindsWhatWasInsertedAndNothingElse)
{
    TestImage image;
    EXPECT_FALSE(image.directory.find("index"));
    ASSERT_TRUE(image.directory.insert("index", image.heap, 100));
    const auto found = image.directory.find("index");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->handle, "index");
    EXPECT_EQ(found->address, image.heap);
    EXPECT_EQ(found->size_bytes, 100U);
    EXPECT_FALSE(image.directory.find("inde"));
    EXPECT_FALSE(image.directory.find("index2"));
    EXPECT_EQ(image.directory.find_by_address(image.heap)->handle, "index");
    EXPECT_FALSE(image.directory.find_by_address(image.heap + 1));
}

TEST(Directory, TakesNamesOfOneToSeventyNineBytes)
{
    TestImage image;
    const std::string longest(79, 'x');
    EXPECT_EQ(image.directory.insert("", image.heap, 1).error().code, SP_E_INVALID_ARGUMENT);
    EXPECT_EQ(image.directory.insert(std::string(80, 'x'), image.heap, 1).error().code, SP_E_INVALID_ARGUMENT);
    EXPECT_EQ(image.directory.insert(std::string_view("a\0b", 3), image.heap, 1).error().code, SP_E_INVALID_ARGUMENT);
    EXPECT_FALSE(image.directory.find(""));
    EXPECT_FALSE(image.directory.find(std::string(80, 'x')));
    ASSERT_TRUE(image.directory.insert("x", image.heap, 1));
    ASSERT_TRUE(image.directory.insert(longest, image.heap, 1));
    ASSERT_TRUE(image.directory.insert("\xff\n", image.heap, 1)) << "any bytes but 0";
    EXPECT_EQ(image.directory.find(longest)->handle, longest);
    EXPECT_TRUE(image.directory.check(image_size));
    EXPECT_EQ(image.directory.erase(std::string(80, 'x')).error().code, SP_E_HANDLE_MISSING);
}

TEST(Directory, RefusesANameThatExistsAndReplacesOnlyOneThatDoes)
{
    TestImage image;
    ASSERT_TRUE(image.directory.insert("a", image.heap, 1));
    EXPECT_EQ(image.directory.insert("a", image.heap + 8, 2).error().code, SP_E_INVALID_ARGUMENT);
    EXPECT_EQ(image.directory.find("a")->address, image.heap);
    ASSERT_TRUE(image.directory.replace("a", image.heap + 16, 3));
    EXPECT_EQ(image.directory.find("a")->address, image.heap + 16);
    EXPECT_EQ(image.directory.replace("b", image.heap, 1).error().code, SP_E_HANDLE_MISSING);
    EXPECT_EQ(image.directory.erase("b").error().code, SP_E_HANDLE_MISSING);
}

TEST(Directory, SaysThatItIsFullAndWorksOnAfterADeletion)
{
    TestImage image;
    const std::uint64_t capacity = image.geometry.directory_capacity;
    for (std::uint64_t i = 0; i < capacity; ++i) {
        ASSERT_TRUE(image.directory.insert(std::to_string(i), image.heap + i, 1));
    }
    EXPECT_EQ(image.directory.insert("more", image.heap, 1).error().code, SP_E_DIRECTORY_FULL);
    EXPECT_FALSE(image.directory.find("more"));
    ASSERT_TRUE(image.directory.check(image_size));
    // From a full table, delete and insert in every position.
    for (std::uint64_t i = 0; i < capacity; ++i) {
        ASSERT_TRUE(image.directory.erase(std::to_string(i)));
        ASSERT_TRUE(image.directory.check(image_size)) << i;
        ASSERT_TRUE(image.directory.insert("new" + std::to_string(i), image.heap, 1));
        ASSERT_TRUE(image.directory.check(image_size)) << i;
    }
    for (std::uint64_t i = 0; i < capacity; ++i) {
        ASSERT_TRUE(image.directory.erase("new" + std::to_string(i)));
    }
    ASSERT_TRUE(image.directory.check(image_size));
    EXPECT_TRUE(std::all_of(image.memory.begin() + static_cast<long>(image.geometry.directory_offset / 8), image.memory.end(),
                            [](std::uint64_t word) { return word == 0; }))
        << "an empty table is all zero again: no tombstones";
}

TEST(Directory, AgreesWithAMapAfterEveryRandomOperation)
{
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
        TestImage image;
        std::map<std::string, std::pair<std::uintptr_t, std::uint64_t>, std::less<>> model;
        std::mt19937 random(seed);
        const std::uint64_t names = seed % 2 == 0 ? 100 : 160;  // Below and above the capacity.
        for (int step = 0; step < 1500; ++step) {
            const std::string name = "object-" + std::to_string(random() % names);
            const std::uintptr_t address = image.heap + random() % 1000;
            const std::uint64_t size = random() % 100;
            const bool known = model.contains(name);
            const bool full = model.size() == image.geometry.directory_capacity;
            switch (random() % 4) {
            case 0:
            case 1: {
                ASSERT_EQ(image.directory.insert(name, address, size).has_value(), !known && !full);
                if (!known && !full) {
                    model[name] = {address, size};
                }
                break;
            }
            case 2:
                ASSERT_EQ(image.directory.erase(name).has_value(), known);
                model.erase(name);
                break;
            default:
                ASSERT_EQ(image.directory.replace(name, address, size).has_value(), known);
                if (known) {
                    model[name] = {address, size};
                }
            }
            const auto checked = image.directory.check(image_size);
            ASSERT_TRUE(checked) << "seed " << seed << " step " << step << ": " << checked.error().message;
            const auto found = image.directory.find(name);
            ASSERT_EQ(found.has_value(), model.contains(name));
            if (found) {
                ASSERT_EQ(std::make_pair(found->address, found->size_bytes), model[name]);
            }
        }
        std::size_t visited = 0;
        image.directory.for_each([&](const DirectoryEntry& entry) {
            const auto known = model.find(entry.handle);
            ASSERT_NE(known, model.end());
            EXPECT_EQ(known->second, std::make_pair(entry.address, entry.size_bytes));
            ++visited;
        });
        EXPECT_EQ(visited, model.size());
    }
}

TEST(Directory, StopsAWalkWhenTheVisitorSaysFalse)
{
    TestImage image;
    ASSERT_TRUE(image.directory.insert("a", image.heap, 1));
    ASSERT_TRUE(image.directory.insert("b", image.heap, 1));
    int visited = 0;
    image.directory.for_each([&](const DirectoryEntry&) { return ++visited < 1; });
    EXPECT_EQ(visited, 1);
}

TEST(Directory, CheckFindsEverySingleBitFlipInAnEntryButInItsAddressAndSize)
{
    TestImage image;
    ASSERT_TRUE(image.directory.insert("a", image.heap, 1));
    ASSERT_TRUE(image.directory.insert(std::string(79, 'z'), image.heap, 1));
    for (const std::uint64_t slot : {image.slot_of("a"), image.slot_of(std::string(79, 'z'))}) {
        auto* bytes = reinterpret_cast<std::uint8_t*>(&image.record(slot));
        for (std::size_t bit = 0; bit < sizeof(layout::DirectoryRecord) * 8; ++bit) {
            const std::size_t at = bit / 8;
            bytes[at] = static_cast<std::uint8_t>(bytes[at] ^ (1U << (bit % 8)));
            if (at < offsetof(layout::DirectoryRecord, address) || at >= offsetof(layout::DirectoryRecord, handle)) {
                EXPECT_FALSE(image.directory.check(image_size)) << "slot " << slot << " bit " << bit;
            }
            (void)image.directory.find("a");  // Never undefined behaviour, whatever is there.
            bytes[at] = static_cast<std::uint8_t>(bytes[at] ^ (1U << (bit % 8)));
        }
    }
    EXPECT_TRUE(image.directory.check(image_size));
}

TEST(Directory, CheckFindsAddressesOutsideTheHeap)
{
    struct Case {
        std::uint64_t offset;
        std::uint64_t size;
        bool good;
    };
    TestImage image;
    const std::uint64_t heap = image.geometry.heap_offset;
    const Case cases[] = {
        {heap, 1, true},
        {heap, image_size - heap, true},
        {heap, image_size - heap + 1, false},
        {heap - 1, 1, false},
        {0, 1, false},
        {image_size, 1, false},
        {image_size, 0, true},
        {heap, UINT64_MAX, false},
        {image_size - 1, 1, true},
        {UINT64_MAX, 1, false},
        {image_size + 1, 0, false},
    };
    for (const Case& one : cases) {
        ASSERT_TRUE(image.directory.insert("a", image.address(one.offset), one.size));
        EXPECT_EQ(image.directory.check(image_size).has_value(), one.good) << one.offset << " " << one.size;
        ASSERT_TRUE(image.directory.erase("a"));
    }
}

TEST(Directory, CheckFindsANameThatIsThereTwiceAndABrokenProbeRun)
{
    TestImage image;
    ASSERT_TRUE(image.directory.insert("a", image.heap, 1));
    const std::uint64_t slot = image.slot_of("a");
    const std::uint64_t next = (slot + 1) % image.geometry.directory_capacity;
    image.record(next) = image.record(slot);
    EXPECT_FALSE(image.directory.check(image_size)) << "twice";
    image.record(slot) = {};
    EXPECT_FALSE(image.directory.check(image_size)) << "cut off from its home slot";
}

TEST(Directory, EndsEveryProbeInATableThatIsFullOfGarbage)
{
    TestImage image;
    std::mt19937_64 random(7);
    for (std::uint64_t slot = 0; slot < image.geometry.directory_capacity; ++slot) {
        auto* words = reinterpret_cast<std::uint64_t*>(&image.record(slot));
        for (std::size_t i = 0; i < sizeof(layout::DirectoryRecord) / 8; ++i) {
            words[i] = random() | 0x0101010101010101;
        }
    }
    EXPECT_FALSE(image.directory.find("a"));
    EXPECT_FALSE(image.directory.insert("a", image.heap, 1));
    EXPECT_FALSE(image.directory.erase("a"));
    EXPECT_FALSE(image.directory.check(image_size));
    std::size_t visited = 0;
    image.directory.for_each([&](const DirectoryEntry& entry) { visited += entry.handle.size() > 0; });
    EXPECT_EQ(visited, image.geometry.directory_capacity);
}

}  // namespace
}  // namespace stillpoint
