#pragma once
// For this layer's tests only: a disk in memory that loses and tears what was not synced.
//
// FakeDisk outlives the FakeMedium that a "process" has open. It keeps what is durable, and
// apart from it what the kernel holds: a kill loses nothing, a power cut leaves any set of the
// 512-byte sectors written since the last sync, or garbage where they were: a sector that was being
// written when the power went may read as anything. Operations (write, sync, resize) are counted, and a
// crash can be put inside any of them. A sync that fails may leave sectors clean in the page cache that the disk
// does not have: no later sync writes them.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "media/block_medium.hpp"

namespace stillpoint::testing {

inline constexpr std::size_t sector_bytes = 512;
using Bytes = std::vector<std::byte>;

class FakeDisk {
public:
    static constexpr std::uint64_t never = UINT64_MAX;

    explicit FakeDisk(std::uint64_t size = 0) : durable(size), cached(size) {}
    explicit FakeDisk(Bytes content) : durable(content), cached(std::move(content)) {}

    /// Calls `visit` with each content that a power cut may leave now: every subset of the
    /// unsynced sectors while there are at most 8, otherwise none, all, and each one alone or missing;
    /// then garbage in each sector that was under way, and in all of them.
    void for_each_power_cut(const std::function<void(const Bytes&)>& visit) const
    {
        const std::vector<std::uint64_t> sectors = differing_sectors();
        std::set<std::vector<bool>> choices;
        if (sectors.size() <= 8) {
            for (unsigned mask = 0; mask < (1U << sectors.size()); ++mask) {
                std::vector<bool> keep(sectors.size());
                for (std::size_t i = 0; i < sectors.size(); ++i) {
                    keep[i] = ((mask >> i) & 1U) != 0;
                }
                choices.insert(keep);
            }
        } else {
            choices.insert(std::vector<bool>(sectors.size(), false));
            choices.insert(std::vector<bool>(sectors.size(), true));
            for (std::size_t i = 0; i < sectors.size(); ++i) {
                std::vector<bool> alone(sectors.size(), false);
                alone[i] = true;
                choices.insert(alone);
                alone.flip();
                choices.insert(alone);
            }
        }
        for (const auto& keep : choices) {
            Bytes image = durable;
            for (std::size_t i = 0; i < sectors.size(); ++i) {
                if (keep[i]) {
                    std::memcpy(image.data() + sectors[i], cached.data() + sectors[i],
                                std::min<std::size_t>(sector_bytes, image.size() - sectors[i]));
                }
            }
            visit(image);
        }
        Bytes all = durable;
        for (const std::uint64_t at : in_flight) {
            Bytes one = cached;
            for (Bytes* image : {&one, &all}) {
                std::fill_n(image->begin() + static_cast<long>(at), sector_bytes, std::byte{0xee});
            }
            visit(one);
        }
        visit(all);
    }

    Bytes durable;
    Bytes cached;  ///< what read() sees; the same size as `durable`
    std::set<std::uint64_t> in_flight;  ///< offsets of sectors written since the last sync
    std::uint64_t operations = 0;
    std::uint64_t syncs = 0;
    std::uint64_t crash_at = never;      ///< the operation with this number does not return
    std::uint64_t ignored_sync = never;  ///< canary: the sync with this number does nothing
    std::uint64_t failing_sync = never;  ///< the sync with this number fails, and its medium is read-only from then on
    std::set<std::uint64_t> lost;        ///< sectors that a failed sync has left in the page cache alone
    std::uint64_t fail_at = never;       ///< the operation with this number fails with io
    std::uint64_t size_limit = never;    ///< resize beyond it is no_space
    std::uint64_t unreadable_page = never;
    bool read_only = false;
    std::string path = "fake.pool";
    bool named = true;          ///< publish() has returned, where that was asked for
    std::uint64_t writer = 0;   ///< Medium::claim()

private:
    std::vector<std::uint64_t> differing_sectors() const
    {
        std::vector<std::uint64_t> offsets;
        for (std::uint64_t at = 0; at < durable.size(); at += sector_bytes) {
            const auto size = std::min<std::size_t>(sector_bytes, durable.size() - at);
            if (std::memcmp(durable.data() + at, cached.data() + at, size) != 0) {
                offsets.push_back(at);
            }
        }
        return offsets;
    }
};

class FakeMedium final : public BlockMedium {
public:
    explicit FakeMedium(std::shared_ptr<FakeDisk> disk, Durability durability = Durability::power)
        : disk_(std::move(disk)), durability_(durability), last_writer_(disk_->writer)
    {
    }

    std::string_view path() const noexcept override { return disk_->path; }
    Durability durability() const noexcept override { return durability_; }
    void set_durability(Durability durability) noexcept override { durability_ = durability; }
    std::uint64_t size_bytes() const noexcept override { return disk_->cached.size(); }
    std::string_view mechanism() const noexcept override { return "memory of a test"; }
    MediumCounters counters() const noexcept override { return {}; }

    Result<void> resize(std::uint64_t size) override
    {
        if (size > disk_->size_limit) {
            return fail(SP_E_NO_SPACE, ENOSPC, "fake.pool: no space for {} bytes", size);
        }
        const Step step = next_step();
        if (step != Step::dead && step != Step::fails) {  // A crash inside: done, but not told.
            disk_->durable.resize(size);
            disk_->cached.resize(size);
        }
        return outcome(step);
    }

    Result<void> read(std::uint64_t offset, std::span<std::byte> destination) const override
    {
        if (offset / page_bytes == disk_->unreadable_page) {
            return fail(SP_E_IO, EIO, "fake.pool: read at {}", offset);
        }
        if (offset > disk_->cached.size() || destination.size() > disk_->cached.size() - offset) {
            return fail(SP_E_POOL_TRUNCATED, 0, "fake.pool: read at {} beyond the end", offset);
        }
        std::memcpy(destination.data(), disk_->cached.data() + offset, destination.size());
        return {};
    }

    Result<void> write(std::span<const BlockWrite> batch) override
    {
        if (disk_->read_only) {
            return fail(SP_E_POOL_READ_ONLY, EACCES, "fake.pool: read-only");
        }
        const Step step = next_step();
        for (const BlockWrite& one : batch) {
            if (one.offset % page_bytes != 0 || one.size % page_bytes != 0 ||
                reinterpret_cast<std::uintptr_t>(one.data) % page_bytes != 0) {
                return fail(SP_E_INVALID_ARGUMENT, 0, "fake.pool: unaligned write at {}", one.offset);
            }
            if (step == Step::works || step == Step::crashes) {
                if (one.offset + one.size > disk_->cached.size()) {
                    disk_->durable.resize(one.offset + one.size);
                    disk_->cached.resize(one.offset + one.size);
                }
                std::memcpy(disk_->cached.data() + one.offset, one.data, one.size);
                for (std::uint64_t at = 0; at < one.size; at += sector_bytes) {
                    disk_->in_flight.insert(one.offset + at);
                    disk_->lost.erase(one.offset + at);
                }
            }
        }
        return outcome(step);
    }

    Result<void> sync() override
    {
        const Step step = next_step();
        const std::uint64_t number = step == Step::works ? disk_->syncs++ : FakeDisk::never;
        if (step == Step::works && number == disk_->failing_sync) {
            disk_->lost.insert(disk_->in_flight.begin(), disk_->in_flight.end());
            disk_->in_flight.clear();
            is_frozen_ = true;
            return outcome(Step::fails);
        }
        if (step == Step::works && number != disk_->ignored_sync) {
            for (const std::uint64_t sector : disk_->in_flight) {
                std::memcpy(disk_->durable.data() + sector, disk_->cached.data() + sector, sector_bytes);
            }
            disk_->in_flight.clear();
        }
        return outcome(step);
    }

    Result<void> publish() override
    {
        const bool is_dead = !disk_->named && disk_->operations > disk_->crash_at;
        disk_->named = disk_->named || !is_dead;
        return outcome(is_dead ? Step::dead : Step::works);
    }

    /// Durable at once, also where a crash strikes inside.
    Result<void> claim(std::uint64_t writer) override
    {
        const Step step = next_step();
        if (step == Step::works || step == Step::crashes) {
            disk_->writer = writer;
        }
        return outcome(step);
    }
    std::uint64_t last_writer() const noexcept override { return last_writer_; }

private:
    enum class Step { works, crashes, dead, fails };

    Step next_step()
    {
        const std::uint64_t number = disk_->operations++;
        if (is_frozen_ || number == disk_->fail_at) {
            return Step::fails;
        }
        if (number < disk_->crash_at) {
            return Step::works;
        }
        return number == disk_->crash_at ? Step::crashes : Step::dead;
    }

    /// A crashed process is played by errors from then on.
    static Result<void> outcome(Step step)
    {
        if (step == Step::works) {
            return {};
        }
        return fail(SP_E_IO, EIO, "fake.pool: {}", step == Step::fails ? "refused" : "crashed");
    }

    std::shared_ptr<FakeDisk> disk_;
    Durability durability_;
    std::uint64_t last_writer_;
    bool is_frozen_ = false;  ///< a sync has failed
};

inline std::unique_ptr<Medium> attach(const std::shared_ptr<FakeDisk>& disk, Durability durability = Durability::power)
{
    return std::make_unique<FakeMedium>(disk, durability);
}

}  // namespace stillpoint::testing
