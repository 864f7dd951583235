#pragma once
// Engine: decides which stores become durable together. What every engine obeys (the
// conformance suite checks each):
//   1. After start(), memory is the state at exactly one epoch, no older than the newest that
//      durable_epoch() ever returned, no newer than the newest begun.
//   2. start() may itself crash, and be run again, any number of times.
//   3. noexcept members never call malloc: they run inside intercepted calls.
// An engine is listed in src/api/registry.cpp. No other code names it, except the files that NAMED_HERE in
// scripts/check_includes.py lists with their reasons.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/findings.hpp"
#include "core/result.hpp"
#include "pool/image_layout.hpp"
#include "pool/pool.hpp"
#include "runtime/engine_facts.hpp"
#include "runtime/lint_rules.hpp"
#include "runtime/object_view.hpp"
#include "runtime/options.hpp"
#include "runtime/pool_compaction.hpp"
#include "runtime/pool_conversion.hpp"
#include "runtime/salvage.hpp"
#include "runtime/statistics.hpp"

namespace stillpoint {

struct RecoveryReport {
    std::uint64_t epoch = 0;              ///< the durable point the image was returned to; 0: fresh
    bool clean = true;                    ///< the previous run ended normally
    const char* rolled_back = "unfinished page copies discarded";  ///< what that number counts
    std::uint64_t pages_rolled_back = 0;  ///< page copies of an unfinished epoch that were discarded
    std::uint64_t pages_present = 0;      ///< image pages that have a durable copy
    bool lazy = false;                    ///< pages are loaded at their first touch
    std::uint64_t recovery_ns = 0;        ///< from opening to the program's first operation
    bool free_memory_is_unknown = false;  ///< Heap::Options has it
    std::uint64_t captured_unix_ns = 0;   ///< wall clock at which that point was captured; 0: fresh
};

/// Ordinary memory of the program that the engine keeps durable too (SP_PERSISTENT sections).
struct MirroredRange {
    std::byte* program_memory;
    std::byte* image_copy;  ///< inside the image
    std::size_t size;
};

/// How a program ended whose threads are processes.
struct ProgramEnd {
    int status;                ///< as waitpid has it
    bool sections_are_whole;  ///< no thread has left a section of which others have seen a part
};

/// Made and started inside the StatisticsScope of its pool.
class Engine {
public:
    virtual ~Engine() = default;

    /// Maps the image at the pool's base address and recovers it. Threads of the program are not running yet
    /// or do not touch durable memory. Checkpoints do not begin before run().
    [[nodiscard]] virtual Result<RecoveryReport> start(Pool pool, const Options& options) = 0;
    /// Gives a new pool its name, records the opening in the pool, which start() left as it was, and begins
    /// periodic checkpoints: after the image is formatted and the heap attached.
    virtual Result<void> run() = 0;
    /// After run(), before main: an engine whose threads are processes makes the program a process of its own. There it returns nothing,
    /// and main is to begin; in the calling process it returns when the program has ended.
    /// Errors: no_memory; unsupported.
    [[nodiscard]] virtual Result<std::optional<ProgramEnd>> divide_program() { return std::nullopt; }
    /// Whether it will: the session then begins before main.
    [[nodiscard]] virtual bool divides_program() const noexcept { return false; }
    /// Last checkpoint (marked as a normal end if `clean` and quiescence is reached), then stops
    /// and closes. The mapping stays readable.
    [[nodiscard]] virtual Result<void> stop(bool clean) = 0;
    /// The calling thread ends, or closes the session: it is done with durable memory, unless it holds a lock.
    virtual void thread_ends() noexcept {}
    /// The calling thread waits for a checkpoint, or ends the program: it leaves the section that the engine keeps it in between the
    /// program's own, if it is in that one only. True: it was, and end_rest() must follow.
    [[nodiscard]] virtual bool begin_rest() noexcept { return false; }
    virtual void end_rest() noexcept {}
    /// In the parent, before fork: whatever a child's copy of the memory needs.
    virtual void before_fork() noexcept = 0;
    /// In a child after fork: forget threads and descriptors; memory stays as a private copy.
    virtual void detach_after_fork() noexcept = 0;

    [[nodiscard]] virtual std::byte* image_base() const noexcept = 0;
    [[nodiscard]] virtual std::uint64_t image_bytes() const noexcept = 0;
    [[nodiscard]] virtual const PoolFacts& pool_facts() const noexcept = 0;
    /// New size of the image, at least `wanted`.
    [[nodiscard]] virtual Result<std::uint64_t> grow(std::uint64_t wanted) = 0;
    /// At each stop, bytes of `range` that changed are copied into the image before it is
    /// collected. Call before run().
    [[nodiscard]] virtual Result<void> mirror(const MirroredRange& range) = 0;

    [[nodiscard]] virtual std::uint64_t epoch() const noexcept = 0;
    [[nodiscard]] virtual std::uint64_t durable_epoch() const noexcept = 0;
    /// deadline_ns on the monotonic clock; UINT64_MAX waits forever.
    [[nodiscard]] virtual Result<void> wait_durable(std::uint64_t epoch, std::uint64_t deadline_ns) = 0;
    [[nodiscard]] virtual Result<void> checkpoint_now() = 0;

    /// A page fault on tracked memory that the engine's tracker raised on purpose: true if
    /// handled, false if the fault is the program's own. Async-signal-safe.
    [[nodiscard]] virtual bool handle_fault(void* address) noexcept = 0;
    /// Memory at `address` is gone (SIGBUS): true if it was the medium's and the engine continues without it: nothing later is
    /// acknowledged. Async-signal-safe.
    [[nodiscard]] virtual bool absorb_lost_page(void* address) noexcept
    {
        static_cast<void>(address);
        return false;
    }
    /// True if the tracker relies on SIGSEGV: the program's own handler must then be chained.
    [[nodiscard]] virtual bool needs_fault_handler() const noexcept = 0;
    /// Makes [address, +size) writable for the kernel before a system call stores into it: trackers
    /// whose protection the kernel would answer with EFAULT.
    virtual void prepare_kernel_write(void* address, std::size_t size) noexcept = 0;
    /// A system call has stored into [address, + size), perhaps by a device, which no tracker sees. Async-signal-safe.
    virtual void note_kernel_write(void* address, std::size_t size) noexcept = 0;
    /// Calls `work`, and stores `value` into a word of the image's tables if it returns 0: all that both store is one failure-atomic unit.
    /// Any other result: nothing of it becomes durable, and the process must end, since memory may have it. On a thread of the program,
    /// which holds no lock, after run(). Errors: those of the engine's own units.
    [[nodiscard]] virtual Result<int> run_as_one(int (*work)(), std::uint64_t& word, std::uint64_t value);

    /// For the start line: what finds the stores, e.g. "uffd", "hooks (3 instrumented units)".
    [[nodiscard]] virtual std::string_view tracker_name() const noexcept = 0;

protected:
    /// The number of the pool's page of statistics, for a StatisticsScope in threads of the program.
    const unsigned statistics_number = StatisticsScope::current();
};

/// How the programs of an engine say what is failure-atomic: which programs test and measure it, too.
enum class Programs : std::uint8_t {
    locks,  ///< by their locks
    critical_sections,  ///< by their locks, and each section becomes durable by itself
    restart_points,  ///< by restart points; locks are counted
    operations,  ///< by the operations of durable objects; no lock is counted
    transactions,  ///< by transactions; no lock is counted
    typed_objects,  ///< by transactions on objects whose types the pool knows, through functions of the engine's own
};

/// Locks are counted as sections.
[[nodiscard]] constexpr bool locks_delimit(Programs programs) noexcept
{
    return programs != Programs::operations && programs != Programs::transactions && programs != Programs::typed_objects;
}

/// Plain stores between sp_fase_begin and sp_fase_end survive as a whole or not at all.
[[nodiscard]] constexpr bool sections_are_atomic(Programs programs) noexcept
{
    return programs == Programs::locks || programs == Programs::critical_sections || programs == Programs::operations;
}

/// The functions of an engine that offline tools call, without starting it.
struct EngineDriver {
    EngineFormat format;
    std::unique_ptr<Engine> (*make)();
    /// Reads the durable epoch and its facts for `info`. Errors: pool_corrupt, io.
    Result<RecoveryReport> (*inspect)(const Pool& pool);
    /// Verifies every checksum and invariant of the engine's areas, then the whole recovered image is
    /// handed to `visit_image` (mapped read-only at another address) for the layers above to check.
    /// `progress(done, total)` may be null. Damage is told to `findings`, and the check continues; null: it is an error. Errors: io;
    /// pool_corrupt where nothing more can be examined.
    Result<RecoveryReport> (*check)(const Pool& pool, Findings* findings,
                                    Result<void> (*visit_image)(void* context, std::byte* base, std::uint64_t image_bytes), void* context,
                                    void (*progress)(std::uint64_t done, std::uint64_t total));
    /// Format of the tables of new images.
    layout::TableFormat table_format;
    /// Time between checkpoints where interval_ms is 0, its default.
    std::uint64_t interval_ms;
    /// The end of a sentence for users: what happens once in an interval, and whether a crash loses what came since.
    std::string_view interval_means = "checkpoints: what a crash can lose";
    /// Names of what finds the program's stores, as option `tracker` has them. Empty: the program itself tells what it stores.
    std::span<const std::string_view> trackers = {};
    /// A changed byte anywhere in the durable image is noticed; else only in what the engine keeps beside the program's bytes.
    bool sums_program_bytes = false;
    /// The engine's own options (its options.inc), and what must hold between several of them; nullptr: nothing. Errors: invalid_argument.
    std::span<const OptionRow> options = {};
    Result<void> (*check_options)(const Options& options) = nullptr;
    /// The engine's own statistics (its statistics.inc): Statistics::engine_words has their words, in this order.
    std::span<const StatisticRow> statistics = {};
    /// A sentence that says why the run with these figures is slower than it need be, and what would help; empty: they show no reason.
    std::string (*advice)(const Statistics& page) = nullptr;
    /// With these options the program needs malloc in shared memory (src/shared_heap): `stillpoint run` preloads it. nullptr: never.
    bool (*wants_shared_heap)(const Options& options) = nullptr;
    /// For `stillpoint lint`, where the engine's programs have rules of their own. Empty: they have not.
    lint::EngineRules lint = {};
    Programs programs = Programs::locks;
    /// Operations are durable on return, and no quiescent state of the whole program is relied on: pools of such engines may be open beside
    /// each other in a process.
    bool shares_process = false;
    /// The facts that the engine keeps besides the program's memory, for `info` and `check`; nullptr: none to show.
    const EngineFacts* facts = nullptr;
    /// The functions that make and open the engine's pools, for the end of a sentence, where neither sp_open nor `stillpoint run` does.
    /// There is no Engine then: `make` is null, and `visit_image` of check() is not called. Empty: the engine serves sessions.
    std::string_view opened_by = {};
    /// The other formats that its pools may have.
    std::span<const EngineFormat> more_formats = {};
    /// Shows the pool's objects, for `stillpoint dump`, where the engine knows their types; nullptr: it does not. Errors: pool_corrupt, io,
    /// no_memory; invalid_argument (no object is where the request begins).
    Result<ObjectFigures> (*show_objects)(const Pool& pool, const ObjectRequest& request, Findings& findings,
                                          void (*show)(void* context, const ShownObject& object), void* context) = nullptr;
    /// Shows the memory that a program would find when it opens the pool, for `stillpoint debug`; nullptr: programs of the engine have a
    /// session, and check() shows the image. `memory` lies where its pointers lead to it, until `show` returns. Damaged objects go to
    /// `findings`. Errors: pool_corrupt (nothing can be shown), io, no_memory.
    Result<void> (*show_memory)(const Pool& pool, Findings& findings, void (*show)(void* context, std::span<const std::byte> memory),
                                void* context, void (*progress)(std::uint64_t done, std::uint64_t total)) = nullptr;
    /// Copies the objects that a program can reach into a new pool, for `stillpoint compact`, where the engine knows their types; nullptr:
    /// it does not. The new file gets its name when it is whole and was checked; on a file system without unnamed files it has it at once,
    /// and a failure leaves it. Errors: pool_corrupt (the first finding of a check), pool_exists, no_space, io, no_memory, unsupported;
    /// invalid_argument (the size does not hold the objects).
    Result<CompactionFigures> (*compact)(const Pool& pool, const CompactionRequest& request,
                                         void (*progress)(std::uint64_t done, std::uint64_t total)) = nullptr;
    /// Copies them into a new pool for a program whose types have changed, for `stillpoint convert`; nullptr: as for `compact`. Where data
    /// would be lost the report says so, and no pool is made. Errors: those of `compact`; invalid_argument (the program describes no types,
    /// or a field to drop is not gone), object_type (it describes one twice, and differently), pool_full (too many types).
    Result<ConversionReport> (*convert)(const Pool& pool, const ConversionRequest& request,
                                        void (*progress)(std::uint64_t done, std::uint64_t total)) = nullptr;
    /// Makes a private copy of a damaged pool, opened for writing, one that opens, with all that its checksums prove; for `stillpoint
    /// salvage`. nullptr: the engine cannot prove parts. Errors: pool_corrupt (nothing can be proved), io, no_space, no_memory.
    Result<SalvageReport> (*salvage)(Pool& pool) = nullptr;
    /// Copies every object that a damaged pool proves into a new pool, for `stillpoint salvage`, where the engine knows the objects;
    /// nullptr: it does not. The old pool is only read, and the new file is as for `compact`. Errors: pool_corrupt (nothing can be
    /// proved), pool_full (no room for the description of one more type), and as `compact`.
    Result<ObjectSalvage> (*salvage_objects)(const Pool& pool, const CompactionRequest& request,
                                             void (*progress)(std::uint64_t done, std::uint64_t total)) = nullptr;
    /// Gives the disk back what the pool's durable state does not need, for `stillpoint trim`. `pool` is open for writing, and no program
    /// has it; a crash at any moment leaves it as it was. nullptr: the engine's pools have no such room. Errors: pool_corrupt, io,
    /// no_memory.
    Result<void> (*trim)(Pool& pool) = nullptr;
};

/// The format of a pool of that layout version; nullptr: the engine has none.
[[nodiscard]] inline const EngineFormat* format_of(const EngineDriver& driver, std::uint32_t layout_version) noexcept
{
    if (driver.format.layout_version == layout_version) {
        return &driver.format;
    }
    for (const EngineFormat& format : driver.more_formats) {
        if (format.layout_version == layout_version) {
            return &format;
        }
    }
    return nullptr;
}

}  // namespace stillpoint
