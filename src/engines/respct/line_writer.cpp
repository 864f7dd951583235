#include "engines/respct/line_writer.hpp"

#include <algorithm>
#include <bit>

#include "core/canary.hpp"
#include "core/sanitizers.hpp"
#include "engines/respct/file_place.hpp"

namespace stillpoint::respct {

namespace {

/// The number of lines that one flusher takes at a time.
std::size_t run_lines_max() noexcept { return shares_are_small() ? 4 : 1024; }
constexpr std::size_t staging_pages = 512;

/// Copies a page that the program may be writing to, so that each logged variable in the copy is one that a crash may leave: if its
/// value is of an epoch, so are its epoch word and its backup. The program stores backup, epoch word, value, in this order. Here a line
/// is read twice until both readings agree: each word then had its value at its first reading and at its second, and every second
/// reading comes after every first one; so where the value was new at its first reading, epoch word and backup were new at their
/// second.
STILLPOINT_NO_THREAD_SANITIZER void copy_page_in_use(std::byte* to, const std::byte* from) noexcept
{
    constexpr std::size_t words = cache_line_bytes / sizeof(std::uint64_t);
    const auto* source = reinterpret_cast<const std::uint64_t*>(from);
    auto* target = reinterpret_cast<std::uint64_t*>(to);
    for (std::size_t line = 0; line < page_bytes / cache_line_bytes; ++line, source += words, target += words) {
        std::uint64_t changed = 0;
        do {
            changed = 0;
            for (std::size_t i = 0; i < words; ++i) {
                target[i] = __atomic_load_n(source + i, __ATOMIC_RELAXED);
            }
            std::atomic_thread_fence(std::memory_order_acquire);
            for (std::size_t i = 0; i < words; ++i) {
                changed |= target[i] ^ __atomic_load_n(source + i, __ATOMIC_RELAXED);
            }
        } while (changed != 0);
    }
}

}  // namespace

Result<void> LineWriter::prepare(const ImageMemory& memory, const Pool& pool)
{
    memory_ = &memory;
    const std::uint64_t image_pages_max = pool.facts().image_bytes_max / page_bytes;
    // A chunk of a list is at most so many runs; lists may name a line more than once.
    const std::uint64_t runs_max = 4 * image_pages_max + 1024;
    if (auto done = runs_.reserve(runs_max, "the lists of written lines"); !done) {
        return done;
    }
    if (memory.in_place()) {
        return {};
    }
    if (auto done = pages_.reserve(image_pages_max, "the set of written pages"); !done) {
        return done;
    }
    if (auto done = staged_pages_.reserve(staging_pages, "pages that are being written"); !done) {
        return done;
    }
    return staging_.reserve(staging_pages * page_bytes, "pages that are being written");
}

Result<std::uint64_t> LineWriter::write(const Pool& pool, const CollectedLines& lines)
{
    run_count_ = 0;
    std::uint64_t line_count = 0;
    bool all = lines.incomplete();
    const std::size_t lines_max = run_lines_max();
    const auto add = [&](Run run) {
        line_count += run.size();
        for (std::size_t at = 0; at < run.size(); at += lines_max) {
            if (run_count_ == runs_.capacity()) {
                all = true;
                return;
            }
            runs_[run_count_++] = run.subspan(at, std::min(lines_max, run.size() - at));
        }
    };
    if (!is_removed(Canary::recovered_lines)) {
        add(recovered_);
    }
    lines.for_each_run([&](std::span<const std::uintptr_t> run) { add(run); });
    if (is_removed(Canary::line_flush)) {
        return line_count;
    }
    Result<void> done;
    if (!memory_->in_place()) {
        done = write_pages(pool, all);
    } else if (all) {
        const auto begin = reinterpret_cast<std::uintptr_t>(memory_->base());
        for (std::uint64_t at = memory_->private_bytes(); at < memory_->bytes(); at += cache_line_bytes) {
            const std::uintptr_t line = begin + at;
            pool.medium().write_back_lines({&line, 1});
        }
    } else {
        write_back(pool.medium());
    }
    if (!done) {
        return pass_on(done.error());
    }
    recovered_.clear();
    return line_count;
}

void LineWriter::write_back(Medium& medium) noexcept
{
    struct Job {
        LineWriter* writer;
        Medium* medium;
    } job{this, &medium};
    const CopyTeam::Work flush = [](void* context, std::uint64_t begin, std::uint64_t end) {
        const Job& here = *static_cast<const Job*>(context);
        for (std::uint64_t i = begin; i < end; ++i) {
            here.medium->write_back_lines(here.writer->runs_[i]);
        }
        // A fence waits for its own thread's write backs only.
        if (!is_removed(Canary::flusher_fence)) {
            here.medium->fence();
        }
    };
    const std::uint64_t alone_up_to = shares_are_small() ? 1 : 4;
    const std::uint64_t runs_at_a_time = shares_are_small() ? 1 : 8;
    if (run_count_ <= alone_up_to) {
        flush(&job, 0, run_count_);
    } else {
        team_.share(run_count_, runs_at_a_time, flush, &job);
    }
}

Result<void> LineWriter::write_pages(const Pool& pool, bool all)
{
    const std::uint64_t image_pages = memory_->bytes() / page_bytes;
    const auto base = reinterpret_cast<std::uintptr_t>(memory_->base());
    for (std::uint64_t i = 0; i < run_count_; ++i) {
        for (const std::uintptr_t line : runs_[i]) {
            pages_.set((line - base) / page_bytes);
        }
    }
    std::size_t staged = 0;
    const std::uint64_t first_page = memory_->private_bytes() / page_bytes;  // The tables in front have their own copies.
    for (std::uint64_t w = first_page / 64; w <= (image_pages - 1) / 64; ++w) {
        std::uint64_t set = all ? ~std::uint64_t{0} : pages_.word(w);
        for (; set != 0; set &= set - 1) {
            const std::uint64_t page = w * 64 + static_cast<unsigned>(std::countr_zero(set));
            if (page < first_page) {
                continue;
            }
            if (page >= image_pages) {
                break;
            }
            copy_page_in_use(staging_.data() + staged * page_bytes, memory_->base() + page * page_bytes);
            staged_pages_[staged++] = page;
            if (staged == staging_pages) {
                if (auto written = write_staged(pool, staged); !written) {
                    return written;
                }
                staged = 0;
            }
        }
        pages_.word(w) = 0;
    }
    return write_staged(pool, staged);
}

Result<void> LineWriter::write_staged(const Pool& pool, std::size_t pages)
{
    BlockWrite writes[staging_pages];
    for (std::size_t i = 0; i < pages; ++i) {
        writes[i] = {file_offset_of(pool, staged_pages_[i]), staging_.data() + i * page_bytes, page_bytes};
    }
    return pages == 0 ? Result<void>{} : pool.medium().write({writes, pages});
}

}  // namespace stillpoint::respct
