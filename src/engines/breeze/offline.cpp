#include "engines/breeze/offline.hpp"

#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "core/pool_part.hpp"
#include "engines/breeze/journaled_image.hpp"
#include "engines/breeze/overlay_medium.hpp"

namespace stillpoint::breeze {

namespace {

/// The pool once more, on a copy in memory. Errors: as Pool::open and Pool::check_engine.
Result<Pool> copy_of(const Pool& pool, OverlayMedium::Progress progress)
{
    const bool has_journal = is_journaled(pool);
    auto copy = Pool::open(std::make_unique<OverlayMedium>(pool.medium(), !has_journal, progress), EngineFormat{}, false, true);
    if (!copy) {
        return copy;
    }
    if (auto fits = copy->check_engine(pool_format(has_journal)); !fits) {
        return pass_on(fits.error());
    }
    return copy;
}

struct LogHeaders {
    LogHeader logs[logs_max];
};

/// The pool's header and those of its logs, as the file has them.
struct Head {
    PoolHeader pool;
    LogHeaders logs;

    /// Grows with each transaction that ends, and with each opening; 0: there was neither.
    [[nodiscard]] std::uint64_t transactions() const noexcept
    {
        std::uint64_t sum = 0;
        for (const LogHeader& log : logs.logs) {
            sum += log.finished;
        }
        return sum;
    }
};

/// Errors: io, pool_corrupt, no_memory.
Result<void> read_journaled(Pool& copy, Head& head)
{
    JournaledImage image;
    if (auto read = image.read(copy, 0); !read) {
        return read;
    }
    std::memcpy(&head.pool, image.content(), sizeof head.pool);
    std::memcpy(&head.logs, image.content() + Geometry::of(copy.facts().image_bytes).log_headers_offset, sizeof head.logs);
    return {};
}

/// Errors: io.
Result<void> read_mapped(Pool& copy, Head& head)
{
    const std::uint64_t begin = copy.segments().front().first_file_page * page_bytes;
    const Geometry geometry = Geometry::of(copy.facts().image_bytes);
    if (auto read = copy.medium().read(begin, std::as_writable_bytes(std::span(&head.pool, 1))); !read) {
        return read;
    }
    return copy.medium().read(begin + geometry.log_headers_offset, std::as_writable_bytes(std::span(&head.logs, 1)));
}

/// From a copy of the pool. Errors: those of copy_of(), io, pool_corrupt, no_memory.
Result<std::unique_ptr<Head>> read_head(const Pool& pool)
{
    auto copy = copy_of(pool, nullptr);
    if (!copy) {
        return pass_on(copy.error());
    }
    auto head = std::make_unique<Head>();
    if (auto read = is_journaled(*copy) ? read_journaled(*copy, *head) : read_mapped(*copy, *head); !read) {
        return pass_on(read.error());
    }
    if (auto checked = BreezePool::check_header(head->pool, *copy); !checked) {
        return pass_on(checked.error());
    }
    return head;
}

RecoveryReport report_of(const Head& head, const Pool& pool)
{
    RecoveryReport report;
    report.epoch = head.transactions();
    report.clean = head.pool.clean == 1;
    report.rolled_back = "unfinished transactions undone";
    report.pages_present = pool.facts().image_bytes / page_bytes;
    return report;
}

/// Headers of logs, as recovery finds them.
void check_logs(const Head& head, const Pool& pool, Findings& findings)
{
    const Geometry geometry = Geometry::of(pool.facts().image_bytes);
    constexpr std::uint64_t id_end = std::uint64_t{1} << owner_log_shift;
    for (std::size_t number = 0; number < logs_max; ++number) {
        const LogHeader& log = head.logs.logs[number];
        bool is_sound = log.finished < id_end - 1 && log.applied <= log.finished && log.applied_end <= geometry.activation_bytes &&
                        log.applied_end % sizeof(std::uint64_t) == 0;
        for (const std::uint64_t word : log.reserved) {
            is_sound = is_sound && word == 0;
        }
        for (const std::uint64_t word : log.reserved_too) {
            is_sound = is_sound && word == 0;
        }
        if (!is_sound) {
            findings.damage(fail(SP_E_POOL_CORRUPT, 0,
                                 "{}: the header of log {}, at byte {} of the image, is damaged: it has {} as its newest "
                                 "transaction, and {} as the newest one that is counted",
                                 pool.medium().path(), number, geometry.log_headers_offset + number * sizeof log, log.finished, log.applied)
                                .value());
        }
    }
    if (head.pool.clean > 1 || head.pool.collecting > 1) {
        findings.damage(fail(SP_E_POOL_CORRUPT, 0,
                             "{}: the header of the image is damaged: its marks of an orderly end and of a collection "
                             "are {:#x} and {:#x}",
                             pool.medium().path(), head.pool.clean, head.pool.collecting)
                            .value());
    }
}

}  // namespace

Result<RecoveryReport> inspect_pool(const Pool& pool)
{
    const auto head = read_head(pool);
    if (!head) {
        return pass_on(head.error());
    }
    return report_of(**head, pool);
}

namespace {

Result<std::unique_ptr<BreezePool>> open_in_memory(const Pool& pool, Findings& findings, OverlayMedium::Progress progress,
                                                   OpenOptions options)
{
    auto copy = copy_of(pool, progress);
    if (!copy) {
        return pass_on(copy.error());
    }
    constexpr std::uint64_t large_bytes = 64 * mib;
    options.threads = pool.facts().image_bytes < large_bytes ? 1 : 0;  // A caller may have no other threads.
    options.counts_in_background = false;
    options.findings = &findings;
    return BreezePool::open(std::move(*copy), options);
}

/// The words that say where pointers lead have no checksum. Errors: pool_corrupt.
Result<void> check_addresses(const PoolHeader& header, const Pool& pool)
{
    const std::uint64_t base = header.bases[header.generation % bases_max];
    const bool is_place = base % (2 * mib) == 0 && base >= window_base && base - window_base <= window_bytes - pool.facts().image_bytes;
    if (!is_place || (header.generation == 1 && base != pool.facts().base_address)) {
        return fail(
            SP_E_POOL_CORRUPT, 0,
            "{}: the address that the pool's pointers were made for is damaged: it says {:#x}; without it no pointer can be followed: "
            "restore the pool from a copy",
            pool.medium().path(), base);
    }
    return {};
}

}  // namespace

Result<std::unique_ptr<BreezePool>> open_copy(const Pool& pool, Findings& findings, OverlayMedium::Progress progress,
                                              std::uintptr_t base_address)
{
    OpenOptions options;
    options.base_address = base_address;
    return open_in_memory(pool, findings, progress, options);
}

Result<std::unique_ptr<BreezePool>> open_damaged_copy(const Pool& pool, Findings& findings, OverlayMedium::Progress progress)
{
    findings.look_at(PoolPart::image_header);
    const auto head = read_head(pool);
    if (!head) {
        return pass_on(head.error());
    }
    if (auto known = check_addresses((*head)->pool, pool); !known) {
        return pass_on(known.error());
    }
    findings.look_at(PoolPart::logs);
    check_logs(**head, pool, findings);
    OpenOptions options;
    options.salvages = true;
    return open_in_memory(pool, findings, progress, options);
}

Result<std::unique_ptr<BreezePool>> open_sound_copy(const Pool& pool, OverlayMedium::Progress progress)
{
    FirstFinding first;
    const auto head = read_head(pool);
    if (!head) {
        return pass_on(head.error());
    }
    check_logs(**head, pool, first);
    auto opened = open_copy(pool, first, progress);
    if (opened) {
        if (auto examined = examine_objects(**opened, first); !examined) {
            return pass_on(examined.error());
        }
    }
    if (first.first) {
        return pass_on(*first.first);
    }
    return opened;
}

Result<RecoveryReport> check_pool(const Pool& pool, Findings* findings,
                                  Result<void> (* /*visit_image*/)(void* context, std::byte* base, std::uint64_t image_bytes),
                                  void* /*context*/, void (*progress)(std::uint64_t done, std::uint64_t total))
{
    FirstFinding first;
    Findings& told = findings != nullptr ? *findings : first;
    look_at(&told, PoolPart::image_header);
    const auto head = read_head(pool);
    if (!head) {
        return pass_on(head.error());
    }
    RecoveryReport report = report_of(**head, pool);
    look_at(&told, PoolPart::logs);
    check_logs(**head, pool, told);
    if (first.first) {
        return pass_on(*first.first);
    }
    look_at(&told, PoolPart::objects);
    auto opened = open_copy(pool, told, progress);
    if (!opened) {
        if (auto ended = found(findings, pass_on(opened.error())); !ended) {
            return pass_on(ended.error());
        }
        return report;
    }
    report.pages_rolled_back = (*opened)->figures().transactions_undone;
    if (auto examined = examine_objects(**opened, told); !examined) {
        return pass_on(examined.error());
    }
    if (first.first) {
        return pass_on(*first.first);
    }
    return report;
}

}  // namespace stillpoint::breeze
