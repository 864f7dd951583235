// `stillpoint check` of pools of lists:
//   - A sound pool has no finding, in whatever state a crash has left it, and its file stays as it was.
//   - A damaged object is named; the others can be read.
//   - Wrong counts, pointers that lead to no object, and damaged tables are found.
//   - Flipped bits and random bytes anywhere never make a check or an opening fail in another way than by an error.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engines/breeze/object_headers.hpp"
#include "engines/breeze/offline.hpp"
#include "os/log.hpp"
#include "support/breeze_lists.hpp"

namespace stillpoint::breeze::testing {
namespace {

using test::CrashMemory;
using Bytes = std::vector<std::byte>;

class CollectedFindings final : public Findings {
public:
    std::vector<std::string> damaged;
    std::vector<std::string> remarks;

    [[nodiscard]] bool mention(const std::string& text) const
    {
        return std::ranges::any_of(damaged, [&](const std::string& finding) { return finding.find(text) != std::string::npos; });
    }

private:
    void tell(const Failure& failure, bool is_damage) override { (is_damage ? damaged : remarks).emplace_back(failure.text()); }
};

struct Checked {
    CollectedFindings findings;
    std::string error;  ///< "": everything was examined
    RecoveryReport report;
    [[nodiscard]] bool is_sound() const { return error.empty() && findings.damaged.empty(); }
    [[nodiscard]] std::string first() const { return !error.empty() ? error : findings.damaged.empty() ? "" : findings.damaged.front(); }
};

Checked check(const Bytes& content)
{
    Checked checked;
    const auto memory = std::make_shared<CrashMemory>(content);
    const auto pool = Pool::open(std::make_unique<test::CrashMedium>(memory), EngineFormat{}, true);
    if (!pool) {
        checked.error = pool.error().text();
        return checked;
    }
    const auto report = check_pool(*pool, &checked.findings, nullptr, nullptr, nullptr);
    if (!report) {
        checked.error = report.error().text();
    } else {
        checked.report = *report;
    }
    const Bytes after(memory->now(), memory->now() + memory->size());
    EXPECT_TRUE(after == content) << "a check has changed the pool";
    return checked;
}

/// A pool of lists after some transactions, and where its image begins in the file.
struct Made {
    Bytes content;
    Model model;
    std::uint64_t image = 0;
    std::vector<std::uint64_t> blocks;  ///< of all objects

    [[nodiscard]] ObjectHeader& header(std::uint64_t block) { return *reinterpret_cast<ObjectHeader*>(content.data() + image + block); }
    template <class T>
    [[nodiscard]] T& object(std::uint64_t block)
    {
        return *reinterpret_cast<T*>(content.data() + image + block + object_header_bytes);
    }
};

Made make_pool(std::uint64_t seed, int transactions)
{
    std::mt19937_64 random(seed);
    auto memory = new_memory(0);
    auto pool = open_memory(memory, 0);
    EXPECT_TRUE(pool) << pool.error().message;
    Made made;
    for (int i = 0; i < transactions; ++i) {
        EXPECT_TRUE(run_transaction(**pool, made.model, random));
    }
    PoolParts& parts = (*pool)->parts();
    parts.counts.drain();
    for (std::uint64_t number = 0; number < parts.zones.count(); ++number) {
        parts.zones.visit_blocks(number, [&](std::uint64_t block) {
            if (parts.allocated(block)) {
                made.blocks.push_back(block);
            }
        });
    }
    EXPECT_TRUE((*pool)->close());
    const auto closed = Pool::open(std::make_unique<test::CrashMedium>(memory), EngineFormat{}, true);
    EXPECT_TRUE(closed);
    made.image = closed->segments().front().first_file_page * page_bytes;
    made.content.assign(memory->now(), memory->now() + memory->size());
    return made;
}

std::uint64_t node_of(Made& made)
{
    const auto found = std::ranges::find_if(made.blocks, [&](std::uint64_t block) {
        return type_in(made.header(block).counts) == NVM_TYPE_ID(Node) && made.object<Node>(block).next != nullptr;
    });
    EXPECT_NE(found, made.blocks.end());
    return *found;
}

TEST(BreezeCheck, FindsNothingInPoolsThatCrashed)
{
    std::mt19937_64 random(11);
    auto memory = new_memory(0);
    std::vector<Bytes> crashes;
    {
        auto pool = open_memory(memory, 0);
        ASSERT_TRUE(pool) << pool.error().message;
        Model model;
        memory->before_fence = [&] {
            if (random() % 12 == 0) {
                crashes.push_back(memory->crash(random() % 2 == 0 ? CrashMemory::Lines::none : CrashMemory::Lines::some, random));
            }
        };
        for (int i = 0; i < 40; ++i) {
            ASSERT_TRUE(run_transaction(**pool, model, random));
            if (i % 4 == 3) {
                (*pool)->parts().counts.pass();
            }
        }
        memory->before_fence = nullptr;
    }
    ASSERT_GT(crashes.size(), 5u);
    std::uint64_t epoch = 0;
    for (const Bytes& content : crashes) {
        const Checked checked = check(content);
        ASSERT_TRUE(checked.is_sound()) << checked.first();
        EXPECT_TRUE(checked.findings.remarks.empty()) << checked.findings.remarks.front();
        EXPECT_FALSE(checked.report.clean);
        EXPECT_GE(checked.report.epoch, epoch);
        epoch = checked.report.epoch;
    }
}

TEST(BreezeCheck, TellsOfACleanEnd)
{
    const Checked checked = check(make_pool(1, 20).content);
    ASSERT_TRUE(checked.is_sound()) << checked.first();
    EXPECT_TRUE(checked.report.clean);
}

TEST(BreezeCheck, NamesTheObjectWhoseHeaderIsDamaged)
{
    Made made = make_pool(2, 40);
    const std::uint64_t block = node_of(made);
    for (std::size_t byte : {std::size_t{1}, offsetof(ObjectHeader, counts) + 5, offsetof(ObjectHeader, version) + 1,
                             offsetof(ObjectHeader, size), offsetof(ObjectHeader, generation) + 6}) {
        Made damaged = made;
        damaged.content[made.image + block + byte] ^= std::byte{0x10};
        const Checked checked = check(damaged.content);
        EXPECT_TRUE(checked.error.empty()) << checked.error;
        EXPECT_TRUE(checked.findings.mention("byte " + std::to_string(block) + " of the image")) << byte << ": " << checked.first();
    }
}

TEST(BreezeCheck, FindsWrongCountsPointersAndGenerations)
{
    Made made = make_pool(3, 40);
    const std::uint64_t block = node_of(made);
    {
        Made damaged = made;
        ++damaged.header(block).counts;
        EXPECT_TRUE(check(damaged.content).findings.mention("has the reference count")) << check(damaged.content).first();
    }
    {
        Made damaged = made;
        damaged.object<Node>(block).next = reinterpret_cast<Node*>(place(0) + made.image);  // In the tables.
        const Checked checked = check(damaged.content);
        EXPECT_TRUE(checked.findings.mention("leads to no object")) << checked.first();
        EXPECT_TRUE(checked.findings.mention("pointer next at its byte 0")) << checked.first();
    }
    {
        Made damaged = made;
        damaged.header(block).generation ^= 2;
        EXPECT_TRUE(check(damaged.content).findings.mention("generation")) << check(damaged.content).first();
    }
    {
        Made damaged = made;
        auto& header = *reinterpret_cast<PoolHeader*>(damaged.content.data() + damaged.image);
        header.root += granule_bytes;
        EXPECT_TRUE(check(damaged.content).findings.mention("the root leads to")) << check(damaged.content).first();
    }
}

TEST(BreezeCheck, FindsDamagedTables)
{
    const Made made = make_pool(4, 30);
    const Geometry geometry = Geometry::of(image_bytes);
    const auto damaged_at = [&](std::uint64_t offset) {
        Bytes content = made.content;
        content[made.image + offset] ^= std::byte{0x80};
        return check(content);
    };
    EXPECT_FALSE(damaged_at(offsetof(PoolHeader, image_bytes) + 1).is_sound());
    EXPECT_FALSE(damaged_at(offsetof(PoolHeader, oldest_generation) + 3).is_sound());
    EXPECT_FALSE(damaged_at(types_offset + 20).is_sound());
    EXPECT_FALSE(damaged_at(geometry.log_headers_offset + offsetof(LogHeader, reserved)).is_sound());
    EXPECT_FALSE(damaged_at(geometry.log_headers_offset + offsetof(LogHeader, applied_end) + 7).is_sound());
}

TEST(BreezeCheck, RemarksOnWhatCannotBeReached)
{
    auto memory = new_memory(0);
    {
        auto pool = open_memory(memory, 0);
        ASSERT_TRUE(pool) << pool.error().message;
        Transaction& transaction = (*pool)->begin();
        auto* const first = reinterpret_cast<Node*>(transaction.allocate(NVM_TYPE_ID(Node), sizeof(Node), {}).value());
        auto* const second = reinterpret_cast<Node*>(transaction.allocate(NVM_TYPE_ID(Node), sizeof(Node), {}).value());
        first->next = second;
        second->next = first;
        ASSERT_TRUE(transaction.commit());
        (*pool)->end(transaction);
        ASSERT_TRUE((*pool)->close());
    }
    const Checked checked = check({memory->now(), memory->now() + memory->size()});
    EXPECT_TRUE(checked.is_sound()) << checked.first();
    ASSERT_EQ(checked.findings.remarks.size(), 1u);
    EXPECT_NE(checked.findings.remarks.front().find("2 objects"), std::string::npos) << checked.findings.remarks.front();
}

/// A place in the parts of the image that have something.
std::uint64_t used_place(const Made& made, std::mt19937_64& random)
{
    const Geometry geometry = Geometry::of(image_bytes);
    switch (random() % 6) {
    case 0: return random() % page_bytes;
    case 1: return types_offset + random() % 1024;
    case 2: return geometry.log_headers_offset + random() % (4 * sizeof(LogHeader));
    case 3: return geometry.logs_offset + random() % 1024;
    case 4: return (random() % 2 == 0 ? geometry.activations_offset : geometry.redo_offset) + random() % 512;
    default: return made.blocks[random() % made.blocks.size()] + random() % 160;
    }
}

TEST(BreezeCheck, SurvivesFlippedBitsAndRandomBytes)
{
    os::set_least_severity(os::Severity::error);
    const Made made = make_pool(5, 40);
    std::mt19937_64 random(6);
    for (int round = 0; round < 60; ++round) {
        Bytes content = made.content;
        for (std::uint64_t count = 1 + random() % 3; count > 0; --count) {
            const std::uint64_t offset = made.image + used_place(made, random);
            if (random() % 2 == 0) {
                content[offset] ^= std::byte{static_cast<unsigned char>(1u << random() % 8)};
            } else {
                for (std::uint64_t i = 0; i < 16; ++i) {
                    content[offset + i] = static_cast<std::byte>(random());
                }
            }
        }
        static_cast<void>(check(content));
        auto memory = std::make_shared<CrashMemory>(content);
        if (auto pool = open_memory(memory, static_cast<unsigned>(1 + random() % 4)); pool) {
            (*pool)->parts().counts.drain();
            static_cast<void>((*pool)->collect());
        }
    }
    os::set_least_severity(os::Severity::note);
}

}  // namespace
}  // namespace stillpoint::breeze::testing
