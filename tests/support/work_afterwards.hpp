#pragma once
// For tests and fuzzers only: the run after a damage that recovery accepted. Damage may lie where only later work looks, such as
// in the place of an older copy. So the run writes, makes two epochs durable, and a restart must find all of it.

#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "pool/commit_record.hpp"
#include "support/patched_medium.hpp"
#include "versions/epoch_writer.hpp"
#include "support/recovered_image.hpp"

namespace stillpoint::versions {

/// Pages and their bytes, as a restart must find them.
using ExpectedPages = std::map<std::uint64_t, RecoveredImage::Bytes>;

/// An open pool with what the engine knows of it.
struct OpenedImage {
    Pool pool;
    VersionTable table;
    LocationAllocator locations;
    std::unique_ptr<Deltas> deltas;  ///< nullptr: pools of the format have no log
    RecoveredImage image;
};

inline Result<std::unique_ptr<OpenedImage>> open_image(const std::shared_ptr<testing::PatchedFile>& file, const EngineFormat& format,
                                                       bool mapped, const RecoveredImage* known = nullptr)
{
    auto pool = Pool::open(std::make_unique<testing::PatchedMedium>(file, mapped), format);
    if (!pool) {
        return pass_on(pool.error());
    }
    auto opened = std::make_unique<OpenedImage>(OpenedImage{std::move(*pool), {}, {}, {}, {}});
    if (format.segment_file_pages == &segment_file_pages_with_deltas) {
        opened->deltas = std::make_unique<Deltas>();
    }
    auto image = recover_image(opened->pool, opened->table, opened->locations, known, opened->deltas.get());
    if (!image) {
        return pass_on(image.error());
    }
    opened->image = std::move(*image);
    return opened;
}

/// One epoch: every second page that there is, with a word changed, and one page that had no copy. Where there is a log, some of them give
/// one line to it.
inline Result<void> write_work_epoch(OpenedImage& opened, EpochWriter& writer, std::uint64_t epoch, ExpectedPages& pages)
{
    const std::uint64_t image_pages = opened.pool.facts().image_bytes / page_bytes;
    std::uint64_t added = 0;
    while (added < image_pages && pages.contains(added)) {
        ++added;
    }
    if (added < image_pages) {
        pages[added].resize(page_bytes);
    }
    alignas(page_bytes) static std::byte buffer[page_bytes];
    alignas(page_bytes) static std::byte lines[page_bytes];
    std::vector<std::uint32_t> pages_of_lines;
    std::vector<std::uint64_t> masks;
    DeltaLog* const log = opened.deltas ? &opened.deltas->log : nullptr;
    if (log != nullptr) {
        log->begin_epoch(epoch);
    }
    writer.begin(epoch);
    std::uint64_t index = 0;
    for (auto& [page, bytes] : pages) {
        if (page % 2 == epoch % 2 && page != added) {
            continue;
        }
        std::memcpy(bytes.data() + page % 64 * 64, &epoch, sizeof epoch);
        const std::uint64_t line = page % 64;
        if (log != nullptr && page % 3 == 0 && page != added && pages_of_lines.size() < page_bytes / cache_line_bytes &&
            log->has_room(pages_of_lines.size() + 1, pages_of_lines.size() + 1)) {
            std::memcpy(lines + pages_of_lines.size() * cache_line_bytes, bytes.data() + line * cache_line_bytes, cache_line_bytes);
            pages_of_lines.push_back(static_cast<std::uint32_t>(page));
            masks.push_back(std::uint64_t{1} << line);
            continue;
        }
        std::memcpy(buffer, bytes.data(), page_bytes);
        if (auto written = writer.write_page(index++, page, buffer, true); !written) {
            return pass_on(written.error());
        }
        if (auto flushed = writer.flush_gathered(); !flushed) {  // One buffer serves all pages.
            return flushed;
        }
    }
    return writer.commit({epoch, image_pages, 0, false, log, {pages_of_lines, masks, lines, pages_of_lines.size()}});
}

/// Two epochs of work on the pool in `file`, and a restart. Returns what is wrong, or "". What it writes stays until undo().
inline std::string work_and_restart(const std::shared_ptr<testing::PatchedFile>& file, const EngineFormat& format, bool mapped)
{
    const auto told = [](const char* when, const Failure& failure) { return std::string(when) + ": " + std::string(failure.text()); };
    auto opened = open_image(file, format, mapped);
    if (!opened) {
        return told("opening", opened.error());
    }
    RecoveredImage& before = (*opened)->image;
    ExpectedPages pages(before.pages.begin(), before.pages.end());
    write_back_what_was_recovered((*opened)->pool, (*opened)->table, before.after_crash);
    if (auto begun = begin_run((*opened)->pool); !begun) {
        return told("the first writes of the run", begun.error());
    }
    os::FutexLock lock;
    EpochWriter writer((*opened)->pool, (*opened)->table, (*opened)->locations, lock);
    if (auto reserved = writer.reserve((*opened)->pool.facts().image_bytes_max / page_bytes); !reserved) {
        return told("memory", reserved.error());
    }
    for (std::uint64_t epoch = before.next_epoch; epoch < before.next_epoch + 2; ++epoch) {
        if (auto written = write_work_epoch(**opened, writer, epoch, pages); !written) {
            return told("a checkpoint", written.error());
        }
    }
    const auto again = open_image(file, format, mapped);
    if (!again) {
        return told("the restart", again.error());
    }
    const RecoveredImage& after = (*again)->image;
    if (after.report.epoch != before.next_epoch + 1) {
        return "the restart is at epoch " + std::to_string(after.report.epoch) + ", not " + std::to_string(before.next_epoch + 1);
    }
    return ExpectedPages(after.pages.begin(), after.pages.end()) == pages ? "" : "the restart has other bytes than were made durable";
}

}  // namespace stillpoint::versions
