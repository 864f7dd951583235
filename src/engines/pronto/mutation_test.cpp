// Mutations of what the engine keeps besides the snapshots: one bit after the other of the commit records, both headers of each chunk, and
// entries, their arguments included, of a run that was killed. A start is refused, or has every acknowledged operation; only the newest
// entry of a log may be missing, where it is the damaged one, since it looks like one that a crash has torn. A start that is not refused
// works on: operations, two snapshots and a kill in turn, and the next start has all of it. None ends by a signal. On each kind of media.
//
// A sample by default; STILLPOINT_MUTATIONS=all (`make mutations`) takes every bit, but of arguments a few.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <iterator>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

#include "engines/pronto/pronto_engine.hpp"
#include "engines/pronto/semantic_log_layout.hpp"
#include "pool/commit_record.hpp"
#include "stillpoint/pronto.h"
#include "support/cases.hpp"
#include "support/crashing_program.hpp"
#include "support/patched_medium.hpp"
#include "support/temporary_directory.hpp"

namespace stillpoint::pronto {
namespace {

using Bytes = std::vector<std::byte>;

constexpr int refused_object = 98;  ///< beside could_not_open: the object's log is refused
constexpr int lost_the_newest = 97;
constexpr int wrong = 96;

/// Operations of the run that is damaged: before its snapshot, and after it.
constexpr std::uint64_t before_snapshot = 3;
constexpr std::uint64_t after_snapshot = 5;
constexpr std::uint64_t operations = before_snapshot + after_snapshot;
/// The largest makes two entries, each with a chunk of its own.
constexpr std::size_t ballast_of(std::uint64_t number) { return number == 6 ? entry_argument_bytes_max : number * 40; }

/// A digest of the numbers, in their order, and how many they are.
struct Digest {
    std::uint64_t count;
    std::uint64_t sum;
};

void add_to_digest(Digest& digest, const void* arguments, std::size_t bytes)
{
    const auto* const bytes_of_arguments = static_cast<const std::uint8_t*>(arguments);
    ++digest.count;
    for (std::size_t i = 0; i < bytes; ++i) {
        digest.sum = digest.sum * 31 + bytes_of_arguments[i];
    }
}

int replay_digest_add(void* object, const void* arguments, std::size_t bytes)
{
    add_to_digest(*static_cast<Digest*>(object), arguments, bytes);
    return SP_OK;
}

void construct_digest(void* memory, const void*, std::size_t) { new (memory) Digest{}; }
void destroy_digest(void*) {}

constexpr sp_pronto_method digest_methods[] = {{"add", "(bytes)", 0, &replay_digest_add}};
constexpr sp_pronto_type digest_type{"digest",          sizeof(Digest),  alignof(Digest), digest_methods, std::size(digest_methods),
                                     &construct_digest, &destroy_digest, nullptr};

Bytes arguments_of(std::uint64_t number)
{
    Bytes bytes(sizeof number + ballast_of(number), std::byte(number));
    std::memcpy(bytes.data(), &number, sizeof number);
    return bytes;
}

/// The object after so many operations.
Digest digest_after(std::uint64_t count)
{
    Digest digest{};
    for (std::uint64_t number = 1; number <= count; ++number) {
        const Bytes arguments = arguments_of(number);
        add_to_digest(digest, arguments.data(), arguments.size());
    }
    return digest;
}

Digest& open_digest()
{
    static_cast<void>(sp_pronto_register(&digest_type));
    void* const object = sp_pronto_object(&digest_type, "digest", 0, nullptr, 0, nullptr);
    if (object == nullptr) {
        throw std::runtime_error(sp_last_error());
    }
    return *static_cast<Digest*>(object);
}

void do_add_to_digest(Digest& digest, std::uint64_t number)
{
    const Bytes arguments = arguments_of(number);
    sp_pronto_operation operation;
    int error = SP_OK;
    void* const place = sp_pronto_begin(&operation, &digest, 0, arguments.size(), &error);
    if (place == nullptr) {
        throw std::runtime_error(sp_last_error());
    }
    std::memcpy(place, arguments.data(), arguments.size());
    sp_pronto_start_logging(&operation);
    add_to_digest(digest, place, arguments.size());
    if (sp_pronto_commit(&operation) != SP_OK || sp_pronto_end(&operation, 0) != SP_OK) {
        throw std::runtime_error(sp_last_error());
    }
}

bool has_exactly(const Digest& digest, std::uint64_t count)
{
    const Digest expected = digest_after(count);
    return digest.count == expected.count && digest.sum == expected.sum;
}

/// An exit code: 0, all operations are there.
int judge(const Digest& digest)
{
    return has_exactly(digest, operations) ? 0 : has_exactly(digest, operations - 1) ? lost_the_newest : wrong;
}

int leave_a_log()
{
    Digest& digest = open_digest();
    for (std::uint64_t number = 1; number <= operations; ++number) {
        do_add_to_digest(digest, number);
        if (number == before_snapshot && sp_checkpoint() != SP_OK) {
            return 1;
        }
    }
    test::crash();
}

constexpr std::uint64_t done_afterwards = 6;

/// Two snapshots with operations between them and after them, and a kill.
int work_and_crash()
{
    Digest& digest = open_digest();
    const std::uint64_t found = digest.count;
    for (std::uint64_t i = 1; i <= done_afterwards; ++i) {
        do_add_to_digest(digest, found + i);
        if (i % 2 == 0 && i < done_afterwards && sp_checkpoint() != SP_OK) {
            return 1;
        }
    }
    test::crash();
}

Bytes bytes_of(const std::string& path)
{
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const auto* const begin = reinterpret_cast<const std::byte*>(text.data());
    return {begin, begin + text.size()};
}

struct BitRange {
    std::string of;
    std::uint64_t begin;
    std::uint64_t bits;
    bool newest = false;     ///< of the newest entry
    bool arguments = false;  ///< of an entry
};

class ProntoMutations : public ::testing::TestWithParam<const char*> {
protected:
    int run(const std::function<int()>& body) const
    {
        return test::run_with_pool(pool_,
                                   std::string("engine=pronto pool_size_mb=4 pool_max_mb=4 durability=process recovery=eager "
                                               "pronto_logging=sync interval_ms=3600000 ") +
                                       GetParam(),
                                   [&] {
                                       try {
                                           return body();
                                       } catch (const std::exception& error) {
                                           return refused_object;
                                       }
                                   });
    }

    static bool take_all()
    {
        const char* const wish = std::getenv("STILLPOINT_MUTATIONS");
        return wish != nullptr && std::string_view(wish) == "all";
    }

    /// From one damaged bit of it to the next.
    static std::uint64_t step_for(const BitRange& range)
    {
        if (!take_all()) {
            return std::max<std::uint64_t>(range.bits, 256);
        }
        return range.arguments ? std::max<std::uint64_t>(range.bits / 64, 61) : 1;
    }

    void write_back(std::uint64_t bit) const
    {
        const int file = open(pool_.c_str(), O_RDWR | O_CLOEXEC);
        const std::byte value = sound_[bit / 8] ^ std::byte(1U << (bit % 8));
        ASSERT_EQ(pwrite(file, sound_.data(), sound_.size(), 0), static_cast<ssize_t>(sound_.size()));
        ASSERT_EQ(pwrite(file, &value, 1, static_cast<off_t>(bit / 8)), 1);
        ASSERT_EQ(ftruncate(file, static_cast<off_t>(sound_.size())), 0);
        close(file);
    }

    template <class T>
    [[nodiscard]] T at(std::uint64_t offset) const
    {
        T value;
        std::memcpy(&value, sound_.data() + offset, sizeof value);
        return value;
    }

    /// Bits of the file that the engine reads besides the page versions.
    [[nodiscard]] std::vector<BitRange> ranges() const
    {
        const auto patched = std::make_shared<stillpoint::testing::PatchedFile>(sound_);
        const auto pool = Pool::open(std::make_unique<stillpoint::testing::PatchedMedium>(patched), driver().format, true);
        const Segment segment = pool->segments()[0];
        std::vector<BitRange> ranges;
        for (std::uint64_t page = 0; page < engine_area_pages; ++page) {
            ranges.push_back({"commit record", (pool->facts().engine_area_first_page + page) * page_bytes * 8, sizeof(CommitRecord) * 8});
        }
        const std::uint64_t log = LogPart::first_page(segment) * page_bytes;
        for (std::uint64_t chunk = log; chunk < log + LogPart::pages_of(segment) * page_bytes; chunk += chunk_bytes) {
            if (std::memcmp(sound_.data() + chunk, chunk_magic, sizeof chunk_magic) != 0) {
                continue;
            }
            ranges.push_back({"chunk header", chunk * 8, sizeof(ChunkHeader) * 8});
            ranges.push_back({"copy of a chunk header", (chunk + header_copy_offset) * 8, sizeof(ChunkHeader) * 8});
            std::uint64_t entry = chunk + sizeof(ChunkHeader);
            for (auto header = at<EntryHeader>(entry); header.number != 0 && entry < chunk + header_copy_offset;) {
                const std::string name = "entry " + std::to_string(header.number);
                const bool newest = header.number == operations;
                ranges.push_back({name, entry * 8, sizeof header * 8, newest});
                ranges.push_back({name, (entry + sizeof header) * 8, header.argument_bytes * std::uint64_t{8}, newest, true});
                entry += entry_bytes_for(header.argument_bytes);
                header = at<EntryHeader>(std::min(entry, chunk + header_copy_offset));
            }
        }
        return ranges;
    }

    void judge_one(const BitRange& range, std::uint64_t bit)
    {
        ++images_;
        write_back(bit);
        const int outcome = run([] { return judge(open_digest()); });
        if (outcome == test::could_not_open || outcome == refused_object) {
            ++refused_;
            EXPECT_TRUE(range.of.starts_with("entry")) << "what there are two of was refused";
            return;
        }
        if (outcome == lost_the_newest) {
            ++cut_;
            EXPECT_TRUE(range.newest) << "an older operation is missing";
        } else {
            ASSERT_EQ(outcome, 0);
        }
        // The next start of the same pool: what a recovery has left out stays out.
        const std::uint64_t there = operations - (outcome == lost_the_newest ? 1 : 0) + done_afterwards;
        write_back(bit);
        ASSERT_EQ(run(&work_and_crash), test::killed);
        ASSERT_EQ(run([&] { return has_exactly(open_digest(), there) ? 0 : wrong; }), 0);
    }

    test::TemporaryDirectory directory_;
    std::string pool_ = directory_.file("test.pool");
    Bytes sound_;
    std::uint64_t images_ = 0;
    std::uint64_t refused_ = 0;
    std::uint64_t cut_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Media, ProntoMutations, ::testing::Values("medium=file", "medium=memory"),
                         [](const auto& medium) { return std::string(medium.param).substr(sizeof "medium=" - 1); });

TEST_P(ProntoMutations, OfOneBitAreRefusedOrLeaveAPoolThatHasAllAndGoesOn)
{
    ASSERT_EQ(run(&leave_a_log), test::killed);
    sound_ = bytes_of(pool_);
    ASSERT_EQ(run([] { return judge(open_digest()); }), 0);
    const std::vector<BitRange> all = ranges();
    // Both entries of the large operation, one of each other one since the snapshot and before it, and at least two chunks.
    ASSERT_GE(all.size(), engine_area_pages + 2 * 2 + operations);
    const std::uint64_t ranges_apart = take_all() ? 1 : test::case_step(1, 3);
    std::uint64_t first = 0;  // In a sample of each range another bit.
    for (std::uint64_t number = 0; number < all.size(); number += ranges_apart) {
        const BitRange& range = all[number];
        const std::uint64_t step = step_for(range);
        first = (first + 97) % step;
        for (std::uint64_t bit = range.begin + first % range.bits; bit < range.begin + range.bits; bit += step) {
            SCOPED_TRACE(range.of + ": byte " + std::to_string(bit / 8) + " of the file, bit " + std::to_string(bit % 8));
            ASSERT_NO_FATAL_FAILURE(judge_one(range, bit));
        }
    }
    std::printf("mutations, pronto, %s: %llu images: %llu refused, %llu without the newest operation\n", GetParam(),
                static_cast<unsigned long long>(images_), static_cast<unsigned long long>(refused_), static_cast<unsigned long long>(cut_));
    EXPECT_GT(images_, refused_ + cut_);
    EXPECT_GT(refused_, 0U);
}

}  // namespace
}  // namespace stillpoint::pronto
