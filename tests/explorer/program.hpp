#pragma once
// One run of a program over one file: a process of its own, which opens the pool, works, and leaves a trace.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/crash_model.hpp"
#include "sim/sim_medium.hpp"
#include "sim/trace.hpp"
#include "workload.hpp"

namespace stillpoint::explorer {

/// Where a program's file is.
enum class Place : std::uint8_t {
    simulated,    ///< a stage
    real_file,    ///< the file medium, on a real file
    real_memory,  ///< the memory medium, on a real file
};

struct ObjectWorkloadEntry;
struct TypedProgramEntry;

struct ProgramPlan {
    const WorkloadEntry* workload = nullptr;
    const ObjectWorkloadEntry* objects = nullptr;  ///< in place of a workload: a program over durable objects
    const TypedProgramEntry* typed = nullptr;      ///< in place of both: a program over typed objects
    std::string engine;
    std::string tracker;
    sim::Profile profile = sim::Profile::page;
    sim::CutSector cut_sector = sim::CutSector::old_or_new;
    Place place = Place::simulated;
    std::uint64_t seed = 1;
    std::uint64_t run = 0;          ///< another number: other operations after the same recovery
    std::uint64_t operations = 12;  ///< of this run
    bool timed = false;             ///< checkpoints by the engine's own clock
    bool ends_normally = false;     ///< else it stops dead after its last operation
    std::uint64_t failing_sync = UINT64_MAX;  ///< UINT64_MAX: none; otherwise another one in each run
    std::uint32_t sync_us = 0;     ///< see sim::Stage::sync_us
    std::uint32_t fence_us_max = 0;  ///< see sim::Stage::fence_us_max
    sim::Stage::SyncWaitsFor sync_waits_for = sim::Stage::SyncWaitsFor::everything;  ///< see there; of the profile rados
    bool primitive_files = false;  ///< see sim::Stage::primitive
    bool checkpoint_each = false;  ///< after each operation, not after two of five
    bool power_cuts_only = false;  ///< go on from many power cuts, each with a few images
    bool kill_around_commits = false;  ///< kill only around the fences that commit records wait for
    bool kill_in_openings = false;  ///< kill only before write backs of an opening
    bool torn_words = false;       ///< look at ImageChoice::torn_words_only
    /// Stores past the medium, as a defect would: the explorer must notice.
    bool stray_store = false;
    std::string more_options;  ///< of the engine: " option=value"
    bool has_replica = false;  ///< it asks now and then what its replica has too, and rests until both sides are recorded as equal
};

/// A machine whose pool has a replica, and the cluster.
struct ReplicatedFiles {
    sim::CrashImage here;
    sim::CrashImage replica;
    std::vector<std::byte> record;     ///< beside the pool here; empty: there is none
    std::uint64_t writer = 0;          ///< Medium::last_writer() of the replica
    std::uint64_t here_number = 0;     ///< file_number_of() the pool here
    std::uint64_t incoming_number = 0;  ///< that of one that takes its place
};

struct ProgramRun {
    std::vector<sim::Event> events;  ///< their data live until the next run
    std::string problem;             ///< why the program failed, or ""
};

/// Runs programs one after the other. Threads: one; the calling process has no threads of its own.
class ProgramRunner {
public:
    /// `scratch`: a directory for real files and messages.
    explicit ProgramRunner(std::string scratch);

    /// Runs `plan` on `file`. The trace's offsets are those of the file.
    [[nodiscard]] ProgramRun run(const ProgramPlan& plan, const sim::CrashImage& file);
    /// As run(), on a pool and its replica, or on the replica alone, as another machine.
    [[nodiscard]] ProgramRun run_replicated(const ProgramPlan& plan, const ReplicatedFiles& files, bool on_replica_alone);

    static constexpr const char* replica_name = "rados://simulated/replica";

private:
    /// Runs the program on `path` in a process of its own, after `prepare`.
    [[nodiscard]] ProgramRun run_child(const ProgramPlan& plan, const std::string& path, bool is_first,
                                       const std::function<void()>& prepare);
    [[nodiscard]] std::string check_unseen_bytes(const ProgramRun& run, const sim::CrashImage& before) const;

    std::string scratch_;
    std::unique_ptr<sim::Trace> trace_;
    char* message_;  ///< shared with the child
};

[[nodiscard]] bool byte_addressable(const ProgramPlan& plan) noexcept;
[[nodiscard]] bool works_in_transactions(const ProgramPlan& plan) noexcept;
/// Each operation is durable on return; checkpoints show in no state.
[[nodiscard]] bool operations_are_durable(const ProgramPlan& plan) noexcept;
/// The program's memory is the file itself: its ordinary stores are stores of the medium.
[[nodiscard]] bool maps_its_file(const ProgramPlan& plan) noexcept;

}  // namespace stillpoint::explorer
