#pragma once
// Reference counts, and the objects that nothing points to [Breeze, thesis §3.2.7, second phase]. A thread in the background applies the
// activation records of committed transactions in passes.
//
// A pass takes the records of all logs at one moment. A record may be missing that committed before one that is there, so a count of zero
// is not believed at once: an object is freed in a later pass that does not mention it while its count is still zero. Records that
// committed before the first pass's are in the later one at the latest, and nothing can point to the object again.

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "core/result.hpp"
#include "engines/breeze/activation_log.hpp"
#include "engines/breeze/redo_batch.hpp"
#include "engines/breeze/reserved_list.hpp"
#include "engines/breeze/types.hpp"
#include "engines/breeze/zones.hpp"
#include "os/futex.hpp"
#include "os/reserved_array.hpp"
#include "os/service_thread.hpp"

namespace stillpoint::breeze {

class ReferenceCounts {
public:
    struct Parts {
        PoolMemory* memory;
        PoolTypes* types;
        Zones* zones;
        std::array<ActivationLog, logs_max>* logs;
        std::uint64_t key;
    };
    /// Applies what a crash has left in the redo record. Errors: no_memory, pool_corrupt.
    [[nodiscard]] Result<void> prepare(const Parts& parts, const Geometry& geometry);
    /// Starts the thread, which calls after_pass(context) after each pass. Errors: no_memory.
    [[nodiscard]] Result<void> start(void (*after_pass)(void* context) noexcept, void* context);
    /// Ends the thread, if there is one.
    void stop() noexcept;
    void forget_thread() noexcept { thread_.forget(); }

    /// One more record waits. Any thread.
    void note_record() noexcept;
    /// The block was freed by a transaction that has committed: it may be used again when all older records are applied. Any thread.
    void release_later(std::uint64_t offset) noexcept;
    /// The object has no references, as far as is known: a pass will look. Any thread with lock().
    void suspect(std::uint64_t offset) noexcept { suspects_.push_back({offset, pass_}); }

    /// Nothing is freed any more: what points to what is not known for certain.
    void keep_all() noexcept { keeps_all_ = true; }

    /// At opening, before the program begins: the records that a run has left. A free block that one of them names must not be an object
    /// again before. Frees nothing.
    void apply_recovered();
    /// One pass.
    void pass();
    /// Passes until nothing waits.
    void drain();
    /// As drain(), with lock() held.
    void drain_locked();

    [[nodiscard]] std::uint64_t freed() const noexcept { return freed_.load(std::memory_order_relaxed); }
    [[nodiscard]] os::FutexLock& lock() noexcept { return lock_; }

    /// With lock() held: frees the object, durably, and takes its pointers from the counts of others. `held`: gets the block, which must
    /// not be used yet; nullptr: it may be. False: it is not allocated.
    bool free_object(std::uint64_t offset, ReservedList<std::uint64_t>* held);
    /// With lock() held: what free_object() did is durable.
    void finish_frees();

private:
    struct Suspect {
        std::uint64_t offset;
        std::uint64_t pass;  ///< in which its count became zero
    };
    static void run(void* self);
    void pass_locked();
    void apply_records();
    void fetch_ahead(std::span<const PointerChange> changes) const noexcept;
    void add(std::uint64_t offset, std::uint32_t difference);
    /// Each object that this one points to loses a reference.
    void take_pointers(std::uint64_t offset, ObjectHeader& header, const Type& type);
    [[nodiscard]] std::uintptr_t base_address() const noexcept { return reinterpret_cast<std::uintptr_t>(parts_.memory->base()); }
    void make_room(std::uint64_t words);
    void commit_batch();
    void look_at_suspects();
    [[nodiscard]] bool is_pinned(std::uint32_t id) const noexcept;
    [[nodiscard]] bool is_object(std::uint64_t offset) const noexcept;
    [[nodiscard]] std::uint32_t& touched(std::uint64_t offset) noexcept { return touched_[offset / granule_bytes]; }

    Parts parts_{};
    os::FutexLock lock_;  ///< passes, counts; taken inside no other
    RedoBatch batch_;
    std::uint64_t pass_ = 1;
    os::ReservedArray<std::uint32_t> touched_;  ///< by granule of the header: the pass that changed the count last
    ReservedList<Suspect> suspects_;  ///< one that finds no room is found at the next opening
    ReservedList<Suspect> older_suspects_;
    ReservedList<CommittedRecord> records_;
    ReservedList<std::uint64_t> freed_in_batch_;
    ReservedList<std::uint64_t> released_;
    os::FutexLock later_lock_;
    ReservedList<std::uint64_t> later_;
    bool keeps_all_ = false;
    std::atomic<std::uint64_t> freed_{0};
    void (*after_pass_)(void* context) noexcept = nullptr;
    void* context_ = nullptr;
    os::ServiceThread thread_;
    sync::Atomic<std::uint32_t> wanted_{0};  ///< records since the last pass
    std::atomic<bool> ending_{false};
};

}  // namespace stillpoint::breeze
