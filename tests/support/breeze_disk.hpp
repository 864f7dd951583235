#pragma once
// For the tests of breeze's journal: pools of lists on a disk that loses, tears and fails.

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "support/breeze_lists.hpp"
#include "support/fake_medium.hpp"

namespace stillpoint::breeze::testing {

using stillpoint::testing::Bytes;
using stillpoint::testing::FakeDisk;
using stillpoint::testing::FakeMedium;
using stillpoint::testing::sector_bytes;

inline Result<std::unique_ptr<BreezePool>> open_disk(const std::shared_ptr<FakeDisk>& disk, unsigned place_number,
                                                     std::uint64_t round_bytes = 0)
{
    auto pool = Pool::open(std::make_unique<FakeMedium>(disk), pool_format(true), false, true);
    if (!pool) {
        return pass_on(pool.error());
    }
    return BreezePool::open(
        std::move(*pool),
        {.base_address = place(place_number), .threads = 1, .journal_round_bytes = round_bytes, .counts_in_background = false});
}

inline const Bytes& new_disk()
{
    static const Bytes content = [] {
        const Pool::CreateOptions options{pool_format(true), image_bytes, image_bytes, place(0), &BreezePool::format};
        auto disk = std::make_shared<FakeDisk>(Pool::file_bytes_for(options).value());
        auto pool = Pool::create(std::make_unique<FakeMedium>(disk), options);
        EXPECT_TRUE(pool) << pool.error().message;
        return disk->durable;
    }();
    return content;
}

/// The file after a power cut: sectors that were not synced are old, new or garbage.
inline Bytes power_cut(const FakeDisk& disk, std::mt19937_64& random)
{
    Bytes left = disk.durable;
    left.resize(disk.cached.size());
    const std::uint64_t mostly = random() % 3;  // Some writes have nearly all of their sectors, and some nearly none.
    for (const auto* const sectors : {&disk.in_flight, &disk.lost}) {
        for (const std::uint64_t sector : *sectors) {
            const std::uint64_t kind = mostly < 2 && random() % 16 != 0 ? 4 * mostly : random() % 5;
            if (kind < 2) {
                std::memcpy(left.data() + sector, disk.cached.data() + sector, sector_bytes);
            } else if (kind == 2) {
                std::fill_n(left.begin() + static_cast<std::ptrdiff_t>(sector), sector_bytes, std::byte{0xee});
            }
        }
    }
    return left;
}

/// Where the records of the journal's newest epoch lie in the file.
struct PlaceOfRecord {
    std::uint64_t offset;
    std::uint64_t bytes;
};
inline std::vector<PlaceOfRecord> records_of(const std::shared_ptr<FakeDisk>& disk)
{
    const auto pool = Pool::open(std::make_unique<FakeMedium>(disk), pool_format(true), true);
    EXPECT_TRUE(pool) << pool.error().message;
    const Segment& segment = pool->segments().front();
    const std::uint64_t half_bytes = journal_half_pages(segment.image_pages) * page_bytes;
    const auto record_at = [&](std::uint64_t offset) {
        JournalRecord record{};
        std::memcpy(&record, disk->cached.data() + offset, sizeof record);
        return record;
    };
    const std::uint64_t first = (segment.first_file_page + segment.image_pages) * page_bytes;
    const std::uint64_t half = record_at(first).epoch > record_at(first + half_bytes).epoch ? first : first + half_bytes;
    const std::uint64_t epoch = record_at(half).epoch;
    std::vector<PlaceOfRecord> found;
    for (std::uint64_t at = half; at < half + half_bytes;) {
        const JournalRecord record = record_at(at);
        if (record.epoch != epoch || record.sequence != found.size() + 1) {
            break;
        }
        found.push_back({at, journal_record_bytes(record.pages, record.lines)});
        at += round_up(found.back().bytes, page_bytes);
    }
    return found;
}

/// A damaged record is noticed, but for the last one, which may be one that was being written. A complaint, if there is one.
inline std::optional<std::string> complaint_about_damage(std::uint64_t seed)
{
    std::mt19937_64 random(seed);
    const auto disk = std::make_shared<FakeDisk>(new_disk());
    Model model;
    {
        auto pool = open_disk(disk, 0);
        for (int i = 0; pool && i < 6; ++i) {
            EXPECT_TRUE(run_transaction(**pool, model, random));
        }
    }
    const bool opened_again = seed % 2 == 0;
    if (opened_again) {
        static_cast<void>(open_disk(disk, 0));
    }
    const auto records = records_of(disk);
    if (records.size() < 2 && !opened_again) {
        return "the journal has " + std::to_string(records.size()) + " records";
    }
    for (std::size_t i = 0; i < records.size(); ++i) {
        const auto damaged = std::make_shared<FakeDisk>(disk->cached);
        damaged->cached[records[i].offset + random() % records[i].bytes] ^= std::byte{0x10};
        const auto pool = open_disk(damaged, 0);
        if (const bool may_be_unfinished = i != 0 && i + 1 == records.size(); !may_be_unfinished) {
            if (pool || pool.error().code != SP_E_POOL_CORRUPT) {
                return "damage of record " + std::to_string(i + 1) + " of " + std::to_string(records.size()) + " is not noticed";
            }
        } else if (!pool) {
            return pool.error().message;
        } else if (const auto complaint = complaint_of_counts(**pool, objects_in(model_of(**pool)))) {
            return complaint;
        }
    }
    return std::nullopt;
}

/// One pool, opened by one program after the other. Each ends otherwise: closed, killed, by a power cut, with a disk that fails.
///   - A program finds the lists as after exactly one transaction, not older than the last one that committed.
///   - What one program has found is there for the next: a transaction that failed does not come and go.
class LifeOfAPool {
public:
    explicit LifeOfAPool(std::uint64_t seed) : random_(seed) {}

    /// A complaint, if there is one.
    std::optional<std::string> live(unsigned programs)
    {
        for (unsigned i = 0; i < programs; ++i) {
            if (auto complaint = run_program()) {
                return *complaint + ", in program " + std::to_string(i) + " after\n" + story_;
            }
        }
        return std::nullopt;
    }

private:
    enum class End { closed, killed, crashed, sync_failed };

    std::optional<std::string> run_program()
    {
        End end = std::array{End::closed, End::killed, End::crashed, End::crashed, End::sync_failed}[random_() % 5];
        // Many within the opening.
        std::uint64_t steps = random_() % 2 == 0 ? random_() % 16 : random_() % 100;
        // The page cache may have more than the disk: whether the next opening counts on that shows when the power fails within it.
        const bool crashes_soon = !disk_->lost.empty() && random_() % 2 == 0;
        if (crashes_soon) {
            end = End::crashed;
            steps = 3 + random_() % 8;
        }
        if (end == End::crashed) {
            disk_->crash_at = disk_->operations + steps;
        } else if (end == End::sync_failed) {
            disk_->failing_sync = disk_->syncs + steps / 2;
        }
        tell(end, steps);
        auto complaint = use_pool(end);
        if (complaint) {
            return complaint;
        }
        disk_->crash_at = FakeDisk::never;
        disk_->failing_sync = FakeDisk::never;
        if (crashes_soon || random_() % 2 == 0) {
            disk_ = std::make_shared<FakeDisk>(power_cut(*disk_, random_));
            story_ += " and the power fails;";
        }
        return std::nullopt;
    }

    std::optional<std::string> use_pool(End end)
    {
        // Rounds of few transactions, in half of the programs.
        const std::uint64_t round_bytes = random_() % 2 == 0 ? 0 : page_bytes << random_() % 6;
        auto pool = open_disk(disk_, static_cast<unsigned>(random_() % 3), round_bytes);
        if (!pool) {
            return is_disk_dead() ? std::nullopt : std::optional(pool.error().message);
        }
        const Model found = model_of(**pool);
        if (found != before_ && found != after_) {
            return "the lists are as after no transaction, or an older one";
        }
        before_ = found;
        after_ = found;
        if ((*pool)->parts().damaged_objects != 0) {
            return "objects are damaged";
        }
        if (random_() % 4 == 0) {
            if (auto complaint = complaint_of_counts(**pool, objects_in(found))) {
                return complaint;
            }
        }
        const std::uint64_t rounds_every = 1 + random_() % 12;
        for (std::uint64_t i = random_() % 40; i-- != 0;) {
            after_ = before_;
            if (!run_transaction(**pool, after_, random_)) {
                return is_disk_dead() ? std::nullopt : std::optional<std::string>("a transaction has failed");
            }
            before_ = after_;
            if (random_() % 5 == 0) {
                (*pool)->parts().counts.pass();
            }
            // Pages are brought up to date, and the journal begins again.
            if (random_() % rounds_every == 0 && !(*pool)->parts().memory.close()) {
                return is_disk_dead() ? std::nullopt : std::optional<std::string>("pages could not be brought up to date");
            }
        }
        if (end == End::closed && !(*pool)->close()) {
            return "the pool could not be closed";
        }
        return std::nullopt;
    }

    [[nodiscard]] bool is_disk_dead() const { return disk_->operations > disk_->crash_at || disk_->syncs > disk_->failing_sync; }

    void tell(End end, std::uint64_t steps)
    {
        constexpr const char* names[] = {"is closed", "is killed", "crashes", "has a sync that fails"};
        story_ += " one " + std::string(names[static_cast<std::size_t>(end)]) + " (" + std::to_string(steps) + ")";
    }

    std::mt19937_64 random_;
    std::shared_ptr<FakeDisk> disk_ = std::make_shared<FakeDisk>(new_disk());
    Model before_;  ///< the last committed state
    Model after_;  ///< that of the transaction under way
    std::string story_;
};

}  // namespace stillpoint::breeze::testing
