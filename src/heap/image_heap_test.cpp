// A heap whose maximum is raised:
//   - Every block of the shorter heap is where it was, live, with its bytes, and can be freed; the longer one gives out more.
//   - A crash before the caller's unit has committed leaves the shorter heap, which is lengthened again, also where the image was grown.
//   - Tables that lie in spans are a run of their own, or the heap is refused.

#include "heap/image_heap.hpp"

#include <cstring>
#include <vector>

#include "heap/heap_state.hpp"
#include "heap/span_table_view.hpp"
#include "pool/image.hpp"
#include "support/test_image.hpp"

namespace stillpoint::heap {
namespace {

constexpr std::uint64_t first_max = 8 * mib;
constexpr std::uint64_t second_max = 24 * mib;
constexpr std::uint64_t third_max = 64 * mib;
constexpr std::size_t image_heap_sizes[] = {24, 640, 5000, 16384, 100000, 300000};

/// A heap of at most first_max in addresses for third_max.
class RaisedImage : public TestImage {
public:
    RaisedImage() : TestImage(4 * mib, third_max)
    {
        options.image_bytes_max = first_max;
        options.image_bytes_first_max = first_max;
    }
    Result<void> raise(std::uint64_t maximum)
    {
        detach();
        Heap::Options longer = options;
        auto done = lengthen_tables(longer, options.image_bytes, maximum);
        if (done) {
            options = longer;
        }
        return done;
    }
};

struct Filled {
    std::byte* block;
    std::size_t size;
    std::byte value;
};

void fill(Heap& heap, std::vector<Filled>& filled)
{
    for (std::size_t i = filled.size();; ++i) {
        const std::size_t size = image_heap_sizes[i % std::size(image_heap_sizes)];
        auto* const block = static_cast<std::byte*>(heap.allocate(size));
        if (block == nullptr) {
            EXPECT_EQ(Heap::last_failure().code, SP_E_POOL_FULL);
            return;
        }
        filled.push_back({block, size, static_cast<std::byte>(i)});
        std::memset(block, static_cast<int>(i & 0xff), size);
    }
}

void expect_kept(const Heap::Options& options, const std::vector<Filled>& filled)
{
    const auto checked = Heap::check(options);
    EXPECT_TRUE(checked) << checked.error().message;
    for (const Filled& one : filled) {
        ASSERT_TRUE(Heap::is_live_block(options, static_cast<std::uint64_t>(one.block - options.image_base), one.size));
        ASSERT_EQ(one.block[0], one.value);
        ASSERT_EQ(one.block[one.size - 1], one.value);
    }
}

TEST(RaisedHeap, KeepsEveryBlockAndGivesOutMore)
{
    RaisedImage image;
    std::vector<Filled> filled;
    fill(image.attach(), filled);
    const std::size_t before = filled.size();
    ASSERT_GT(before, 10U);
    for (const std::uint64_t maximum : {second_max, third_max}) {
        const auto raised = image.raise(maximum);
        ASSERT_TRUE(raised) << raised.error().message;
        Heap& heap = image.attach();
        const std::size_t had = filled.size();
        fill(heap, filled);
        EXPECT_GT(filled.size(), had * 2);
        expect_kept(image.options, filled);
    }
    image.detach();
    Heap& heap = image.attach();
    for (const Filled& one : filled) {
        heap.deallocate(one.block);
    }
    const auto checked = Heap::check(image.options);
    EXPECT_TRUE(checked) << checked.error().message;
    filled.clear();
    fill(heap, filled);
    EXPECT_GT(filled.size(), before * 4);
}

TEST(RaisedHeap, IsLengthenedAgainAfterACrashBeforeTheCommit)
{
    RaisedImage image;
    std::vector<Filled> filled;
    fill(image.attach(), filled);
    image.detach();
    const Heap::Options shorter = image.options;
    const std::vector<std::byte> snapshot = image.snapshot();
    ASSERT_TRUE(image.raise(second_max));
    const std::uint64_t grown_bytes = image.options.image_bytes;
    // The growth of the image stays; its bytes are those of the snapshot.
    std::memcpy(image.options.image_base, snapshot.data(), snapshot.size());
    std::memset(image.options.image_base + snapshot.size(), 0, grown_bytes - snapshot.size());
    image.options = shorter;
    ASSERT_TRUE(lengthen_tables(image.options, grown_bytes, second_max));
    EXPECT_EQ(image.options.image_bytes, grown_bytes);
    fill(image.attach(), filled);
    expect_kept(image.options, filled);
}

TEST(RaisedHeap, IsRefusedWithoutRoomForItsTables)
{
    RaisedImage image;
    std::vector<Filled> filled;
    fill(image.attach(), filled);
    const auto raised = image.raise(first_max + page_bytes);
    ASSERT_FALSE(raised);
    EXPECT_EQ(raised.error().code, SP_E_INVALID_ARGUMENT);
    EXPECT_EQ(image.options.span_table_offset, 0U);
    fill(image.attach(), filled);
    expect_kept(image.options, filled);
}

TEST(RaisedHeap, IsRefusedWhereItsTablesAreNoRunOfTheirOwn)
{
    RaisedImage image;
    ASSERT_TRUE(image.raise(third_max));
    const SpanTableView view(image.options);
    std::uint32_t& entry = view.plain_word(view.layout().first_table_span());
    const std::uint32_t sound = entry;
    for (const std::uint32_t wrong : {0U, SpanEntry::small(1).word, SpanEntry::large(1).word + sound}) {
        entry = wrong;
        EXPECT_FALSE(Heap::attach(image.options));
        EXPECT_FALSE(Heap::check(image.options));
    }
    entry = sound;
    const Heap::Options options = image.options;
    for (const std::uint64_t offset : {std::uint64_t{page_bytes}, options.span_table_offset + page_bytes, third_max - span_bytes,
                                       third_max + span_bytes, ~std::uint64_t{0} - 4095}) {
        image.options.span_table_offset = offset;
        EXPECT_FALSE(Heap::attach(image.options)) << offset;
    }
    image.options = options;
    image.attach();
}

}  // namespace
}  // namespace stillpoint::heap
