#include "engines/pmthreads/capture.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>

namespace stillpoint::pmthreads {

Result<void> Capture::reserve(std::uint64_t image_pages_max, std::uint64_t staging_pages)
{
    staging_pages_ = std::min(staging_pages, image_pages_max);
    if (auto done = index_of_.reserve(image_pages_max, "the pages of an epoch"); !done) {
        return done;
    }
    if (auto done = pages_.reserve(image_pages_max, "the pages of an epoch"); !done) {
        return done;
    }
    if (auto done = unstaged_.reserve(image_pages_max, "the pages of an epoch"); !done) {
        return done;
    }
    if (auto done = copies_.reserve(staging_pages_, "the pages of an epoch"); !done) {
        return done;
    }
    if (auto done = staging_.reserve(staging_pages_ * page_bytes, "page copies"); !done) {
        return done;
    }
    madvise(staging_.data(), staging_pages_ * page_bytes, MADV_HUGEPAGE);
    return {};
}

void Capture::add(std::uint64_t image_page, bool certain, const Shadow& shadow) noexcept
{
    std::uint32_t index = index_of_[image_page];
    if (index == 0) {
        pages_[page_count_] = {static_cast<std::uint32_t>(image_page), certain};
        index = static_cast<std::uint32_t>(++page_count_);
        index_of_[image_page] = index;
    } else {
        ++found_again_;
        pages_[index - 1].certain |= certain;
    }
    --index;
    if (index < staging_pages_) {
        copies_[copy_count_++] = {staging_.data() + std::uint64_t{index} * page_bytes,
                                  shadow.page(image_page)};
    } else {
        unstaged_[unstaged_count_++] = index;
    }
}

Result<std::uint64_t> Capture::collect(Tracker& tracker, const Shadow& shadow, Look look,
                                       CopyTeam* team) noexcept
{
    constexpr std::size_t runs_max = 256;
    WrittenRun runs[runs_max];
    const auto base = reinterpret_cast<std::uintptr_t>(shadow.base());
    const auto end = base + shadow.bytes();
    copy_count_ = 0;
    unstaged_count_ = 0;
    found_again_ = 0;
    std::uint64_t found = 0;
    for (std::uintptr_t at = base; at < end;) {
        std::size_t run_count = 0;
        at = tracker.collect(at, end, look, runs, runs_max, run_count);
        if (at == 0) {
            return fail(SP_E_IO, errno, "the {} tracker cannot find written pages: {}",
                        tracker.name(), std::strerror(errno));
        }
        for (std::size_t i = 0; i < run_count; ++i) {
            const std::uint64_t last = (runs[i].end - base) / page_bytes;
            for (std::uint64_t page = (runs[i].begin - base) / page_bytes; page < last; ++page) {
                add(page, runs[i].certain, shadow);
                ++found;
            }
        }
    }
    if (team != nullptr) {
        team->copy(copies_.data(), copy_count_);
    } else {
        for (std::uint64_t i = 0; i < copy_count_; ++i) {
            std::memcpy(copies_[i].destination, copies_[i].source, page_bytes);
        }
    }
    return found;
}

void Capture::clear() noexcept
{
    for (std::uint64_t i = 0; i < page_count_; ++i) {
        index_of_[pages_[i].image_page] = 0;
    }
    const std::uint64_t used = staged_count();
    staging_peak_ = std::max(staging_peak_, used);
    // A slow decay: a program that writes in bursts keeps its staging memory between them.
    staging_recent_ = std::max(used, staging_recent_ - staging_recent_ / 64);
    staging_held_ = std::max(staging_held_, used);
    constexpr std::uint64_t worth_returning_pages = 16 * mib / page_bytes;
    if (staging_held_ > 2 * staging_recent_ + worth_returning_pages) {
        staging_.discard_from(staging_recent_ * page_bytes);
        staging_held_ = staging_recent_;
    }
    page_count_ = 0;
    unstaged_count_ = 0;
    copy_count_ = 0;
}

}  // namespace stillpoint::pmthreads
