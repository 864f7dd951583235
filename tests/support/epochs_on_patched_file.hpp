#pragma once
// For tests: a pool on a file that counts what is written where it has no room, and the writer of its epochs. The parameter says whether
// the medium is byte-addressable.

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <vector>

#include "pool/commit_record.hpp"
#include "support/patched_medium.hpp"
#include "versions/epoch_writer.hpp"
#include "versions/recovered_state.hpp"

namespace stillpoint::testing {

class EpochsOnPatchedFile : public ::testing::TestWithParam<bool> {
protected:
    explicit EpochsOnPatchedFile(const Pool::CreateOptions& options) : options_(options) {}

    void make(Room room)
    {
        file_ = std::make_shared<PatchedFile>(std::vector<std::byte>(*Pool::file_bytes_for(options_)));
        file_->is_memory = room == Room::in_memory;
        file_->leave_without_room(Pool::bytes_without_room(options_, room));
        ASSERT_TRUE(Pool::create(std::make_unique<PatchedMedium>(file_), options_));
    }
    void open()
    {
        writer_.reset();
        table_.emplace();
        locations_.emplace();
        auto pool = Pool::open(std::make_unique<PatchedMedium>(file_, GetParam()), options_.format);
        ASSERT_TRUE(pool);
        pool_.emplace(std::move(*pool));
        versions::Deltas* const deltas = before_recovery();
        const auto state = versions::recover_state(*pool_, *table_, *locations_, nullptr, deltas);
        ASSERT_TRUE(state) << state.error().text();
        epoch_ = state->next_epoch;
        after_recovery();
        writer_.emplace(*pool_, *table_, *locations_, lock_, rules_);
        ASSERT_TRUE(begin_run(*pool_));
        ASSERT_TRUE(writer_->reserve(options_.image_bytes_max / page_bytes));
    }
    /// Returns where the pool's delta log is, if it has one.
    virtual versions::Deltas* before_recovery() { return nullptr; }
    virtual void after_recovery() {}

    /// Begins an epoch in which each `step`-th page is written, with the epoch's number in it.
    Result<void> write_pages(std::uint64_t begin, std::uint64_t end, std::uint64_t step = 1)
    {
        copies_.resize(std::max<std::size_t>(copies_.size(), end - begin));
        writer_->begin(epoch_);
        std::uint64_t index = 0;
        for (std::uint64_t page = begin; page < end; page += step, ++index) {
            std::byte* const copy = copies_[index].bytes;
            std::memset(copy, static_cast<int>(epoch_ + 1), page_bytes);
            if (auto written = writer_->write_page(index, page, copy, true); !written) {
                return pass_on(written.error());
            }
        }
        return {};
    }
    Result<void> commit(versions::DeltaLog* log = nullptr, const versions::DeltaBatch& batch = {})
    {
        auto done = writer_->commit({epoch_, pool_->facts().image_bytes / page_bytes, 0, false, log, batch});
        ++epoch_;
        return done;
    }

    Pool::CreateOptions options_;
    versions::EpochWriter::WriteRules rules_;
    std::shared_ptr<PatchedFile> file_;
    std::optional<Pool> pool_;
    std::optional<versions::VersionTable> table_;
    std::optional<versions::LocationAllocator> locations_;
    os::FutexLock lock_;
    std::optional<versions::EpochWriter> writer_;
    std::uint64_t epoch_ = 0;

private:
    struct alignas(page_bytes) Copy {
        std::byte bytes[page_bytes];
    };
    std::vector<Copy> copies_;
};

}  // namespace stillpoint::testing
