#include "engines/respct/recovery.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

#include "core/logged_words.hpp"
#include "core/pool_part.hpp"
#include "engines/respct/file_place.hpp"
#include "heap/layout_table.hpp"
#include "heap/logged_recovery.hpp"
#include "pool/image.hpp"
#include "runtime/sync_object_reset.hpp"
#include "stillpoint/respct.h"

namespace stillpoint::respct {

namespace {

/// Spans that a worker takes at a time: 4 MiB.
constexpr std::uint64_t spans_at_a_time = 64;

static_assert(sizeof(sp_respct_mutex) == sizeof(sp_respct_condition));

void reset_lock(void* lock, unsigned kind) noexcept
{
    switch (kind) {
    case SP_RESPCT_PTHREAD_MUTEX: static_cast<void>(reset_sync_object(lock, SyncObjectKind::mutex)); break;
    case SP_RESPCT_PTHREAD_CONDITION: static_cast<void>(reset_sync_object(lock, SyncObjectKind::condition)); break;
    case SP_RESPCT_PTHREAD_RWLOCK: static_cast<void>(reset_sync_object(lock, SyncObjectKind::rwlock)); break;
    default: std::memset(lock, 0, sizeof(sp_respct_mutex));
    }
}

/// The changes that one thread of recovery makes, or would make.
struct Found {
    std::vector<Change> changes;
    std::vector<std::uintptr_t> lines;
    bool leaves_locks = false;
};

void keep_change(void* found, std::byte* variable, unsigned kind, bool rolled_back)
{
    auto& here = *static_cast<Found*>(found);
    here.lines.push_back(reinterpret_cast<std::uintptr_t>(variable) & ~std::uintptr_t{cache_line_bytes - 1});
    if (rolled_back) {
        here.changes.push_back({variable, kind});
    }
}

/// A lock that is free already, as nearly all are, is not a change. In a private copy of the medium the lock stays as it is,
/// and what would come of it is seen in a copy of its own.
void reset_and_keep_lock(void* found, std::byte* lock, unsigned kind)
{
    auto& here = *static_cast<Found*>(found);
    if (!here.leaves_locks) {
        reset_lock(lock, kind);
        return;
    }
    alignas(cache_line_bytes) std::array<std::byte, cache_line_bytes> copy;
    const std::size_t bytes = heap::member_bytes(kind);
    std::memcpy(copy.data(), lock, bytes);
    reset_lock(copy.data(), kind);
    if (std::memcmp(copy.data(), lock, bytes) != 0) {
        here.changes.push_back({lock, kind});
    }
}

/// Reads image bytes from the medium, where they are not mapped.
class ImageReader {
public:
    explicit ImageReader(const RecoveryPlan& plan) noexcept : plan_(plan) {}

    /// [begin, end) in image bytes, both multiples of a page.
    [[nodiscard]] Result<void> read(std::uint64_t begin, std::uint64_t end)
    {
        end = std::min(end, plan_.pool->facts().image_bytes);
        if (plan_.image_is_loaded) {
            return {};
        }
        for (const Segment& segment : plan_.pool->segments()) {
            const std::uint64_t first = std::max(begin, segment.first_image_page * page_bytes);
            const std::uint64_t last = std::min(end, (segment.first_image_page + segment.image_pages) * page_bytes);
            if (first >= last) {
                continue;
            }
            pages_read_.fetch_add((last - first) / page_bytes, std::memory_order_relaxed);
            const std::uint64_t offset = file_offset_of(*plan_.pool, first / page_bytes);
            if (auto done = plan_.pool->medium().read(offset, {plan_.image + first, last - first}); !done) {
                return done;
            }
        }
        return {};
    }
    [[nodiscard]] std::uint64_t pages_read() const noexcept { return pages_read_.load(std::memory_order_relaxed); }

private:
    const RecoveryPlan& plan_;
    std::atomic<std::uint64_t> pages_read_{0};
};

/// Several threads work on ranges of spans; each keeps the lines that it changed.
class SpanWork {
public:
    SpanWork(const RecoveryPlan& plan, heap::HeapRollback& rollback, ImageReader& reader, const heap::SpanTableView& table)
        : plan_(plan), rollback_(rollback), reader_(reader), table_(table)
    {
    }

    [[nodiscard]] Result<void> run(Recovered& recovered)
    {
        constexpr unsigned threads_max = 8;
        const std::uint64_t shares = (rollback_.spans() + spans_at_a_time - 1) / spans_at_a_time;
        const auto helpers =
            static_cast<unsigned>(std::min<std::uint64_t>({shares, std::max(1U, std::thread::hardware_concurrency()), threads_max}));
        std::vector<std::thread> threads;
        try {
            for (unsigned i = 1; i < helpers; ++i) {
                threads.emplace_back([this, &recovered] { share_work(recovered, false); });
            }
        } catch (const std::system_error&) {  // The existing threads do the work.
        }
        share_work(recovered, true);
        for (std::thread& thread : threads) {
            thread.join();
        }
        return outcome_;
    }

private:
    void share_work(Recovered& recovered, bool reports) noexcept
    {
        try {
            take_shares(recovered, reports);
        } catch (const std::bad_alloc&) {
            const std::lock_guard hold(lock_);
            outcome_ = fail(SP_E_NO_MEMORY, 0, "no memory to list the variables that recovery rolls back");
        }
    }

    void take_shares(Recovered& recovered, bool reports)
    {
        Found found{{}, {}, plan_.image_is_loaded};
        std::uint64_t rolled_back = 0;
        Result<void> outcome;
        while (outcome) {
            const std::uint64_t first = next_.fetch_add(spans_at_a_time, std::memory_order_relaxed);
            if (first >= rollback_.spans()) {
                break;
            }
            const std::uint64_t end = std::min(first + spans_at_a_time, rollback_.spans());
            outcome = load_used(first, end);
            rolled_back += rollback_.roll_back_spans(first, end, {&keep_change, &found, &reset_and_keep_lock, plan_.image_is_loaded});
            if (reports && plan_.progress != nullptr) {
                plan_.progress(end, rollback_.spans());
            }
        }
        const std::lock_guard hold(lock_);
        recovered.changes.insert(recovered.changes.end(), found.changes.begin(), found.changes.end());
        recovered.changed_lines.insert(recovered.changed_lines.end(), found.lines.begin(), found.lines.end());
        recovered.variables_rolled_back += rolled_back;
        if (!outcome) {
            outcome_ = outcome;
        }
    }

    /// The spans in use that begin in [first, end): a large run whole.
    Result<void> load_used(std::uint64_t first, std::uint64_t end)
    {
        for (std::uint64_t span = first; span < end; ++span) {
            const heap::SpanEntry entry = table_.word(span).entry();
            if (entry.word == 0) {
                continue;
            }
            const std::uint64_t spans = entry.kind() == heap::SpanKind::large ? entry.payload() : 1;
            const std::uint64_t begin = table_.layout().spans_offset + span * heap::span_bytes;
            if (auto done = reader_.read(begin, begin + spans * heap::span_bytes); !done) {
                return done;
            }
        }
        return {};
    }

    const RecoveryPlan& plan_;
    heap::HeapRollback& rollback_;
    ImageReader& reader_;
    const heap::SpanTableView& table_;
    std::atomic<std::uint64_t> next_{0};
    std::mutex lock_;
    Result<void> outcome_;
};

}  // namespace

ImageGeometry geometry_of(const PoolFacts& facts) noexcept
{
    return ImageGeometry::for_image(facts.image_bytes_max, layout::TableFormat::logged);
}

Heap::Options heap_options(const PoolFacts& facts, std::byte* image) noexcept
{
    Heap::Options options{};
    options.image_base = image;
    options.heap_offset = geometry_of(facts).heap_offset;
    options.image_bytes = facts.image_bytes;
    options.image_bytes_max = facts.image_bytes_max;
    options.table_format = layout::TableFormat::logged;
    return options;
}

void make_changes(const std::vector<Change>& changes, std::uint64_t durable_epoch) noexcept
{
    for (const Change& change : changes) {
        if (change.kind < logged::kinds) {
            logged::roll_back(change.place, change.kind, durable_epoch);
        } else {
            reset_lock(change.place, change.kind);
        }
    }
}

Result<Recovered> recover_image(const RecoveryPlan& plan, TableCopies& tables)
{
    const Pool& pool = *plan.pool;
    const PoolFacts& facts = pool.facts();
    const Heap::Options options = heap_options(facts, plan.image);
    const heap::SpanTableView table(options);
    if (auto room = table.check_room(); !room) {
        return pass_on(room.error());
    }
    auto record = load_commit_record(pool, plan.findings);
    if (!record) {
        return pass_on(record.error());
    }
    look_at(plan.findings, PoolPart::tables);
    Recovered recovered;
    recovered.runs = facts_of_runs(pool, *record);
    const std::uint64_t durable = recovered.runs.epoch;
    const TableCopies::Committed committed{durable, *record ? (*record)->table_digest : 0};
    if (auto loaded = tables.load(pool, geometry_of(facts), committed, plan.image, plan.findings); !loaded) {
        return pass_on(loaded.error());
    }
    ImageReader reader(plan);
    const std::uint64_t tables_end = round_up(table.layout().span_table_offset + table.spans() * sizeof(logged::Word), page_bytes);
    if (auto read = reader.read(options.heap_offset, tables_end); !read) {
        return pass_on(read.error());
    }
    heap::HeapRollback rollback(options, durable, recovered.runs.after_crash);
    Found found;
    auto words = rollback.roll_back_tables({&keep_change, &found, nullptr});
    if (!words) {
        return pass_on(words.error());
    }
    recovered.variables_rolled_back += *words;
    recovered.changes = std::move(found.changes);
    recovered.changed_lines = std::move(found.lines);
    if (auto done = SpanWork(plan, rollback, reader, table).run(recovered); !done) {
        return pass_on(done.error());
    }
    recovered.pages_read = reader.pages_read();
    return recovered;
}

}  // namespace stillpoint::respct
