#pragma once
// The loop of `stillpoint crashtest`: start, kill, check the pool, ask the user's checker, again.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "child.hpp"
#include "core/result.hpp"
#include "crash_moments.hpp"

namespace stillpoint::tool {

struct CrashPlan {
    std::vector<std::string> program;
    std::vector<std::string> checker;  ///< empty: none
    std::string pool;                  ///< empty: one in a temporary folder
    std::vector<std::pair<std::string, std::string>> environment;  ///< options of the runtime
    double kills = 100;
    double seconds = 0;  ///< 0: no limit
    std::uint64_t seed = 0;
    Moments moments = Moments::both;
    double min_ms = 0;
    double max_ms = 500;
    double check_seconds = 60;  ///< what a checker may take
    bool keep_going = false;
    bool progress = false;
};

struct CrashTestFigures {
    std::uint64_t rounds = 0;
    std::uint64_t kills = 0;
    std::uint64_t kills_at_points = 0;
    std::set<std::uint64_t> points;
    std::uint64_t ended_by_itself = 0;
    std::uint64_t killed_without_pool = 0;  ///< before the pool was made
    std::uint64_t recoveries = 0;           ///< by the program and by the checker
    std::uint64_t longest_recovery_ns = 0;
    std::uint64_t pool_checks = 0;
    std::uint64_t checker_runs = 0;
    std::uint64_t checker_failures = 0;
    std::uint64_t restart_failures = 0;
    std::uint64_t pool_failures = 0;
    std::uint64_t epochs_observed = 0;  ///< kills before which the durable epoch of the program was seen
    std::uint64_t epochs_lost = 0;
    std::uint64_t elapsed_ns = 0;
};

struct CrashFailure {
    std::uint64_t round;
    std::uint64_t kills;  ///< up to and with this one
    std::string what;     ///< one sentence, with the end of the output after it
    std::string kept_pool;
};

class CrashRounds {
public:
    /// `plan` outlives it.
    explicit CrashRounds(const CrashPlan& plan);
    /// Removes the temporary folder, unless the pool of a failure is there.
    ~CrashRounds();
    CrashRounds(const CrashRounds&) = delete;
    CrashRounds& operator=(const CrashRounds&) = delete;

    /// Makes the temporary folder. Errors: io, and those of a pool that was named and is not sound.
    [[nodiscard]] Result<void> prepare();
    /// Until the kills are done, the time is up, something fails (unless keep_going), or the user interrupts.
    void run();

    [[nodiscard]] const CrashTestFigures& figures() const noexcept { return figures_; }
    [[nodiscard]] const std::vector<CrashFailure>& failures() const noexcept { return failures_; }

private:
    [[nodiscard]] bool is_over() const;
    [[nodiscard]] ChildPlan run_of(const std::vector<std::string>& words, const std::string& pool, const std::string& fault) const;
    void round(const Moment& moment, bool counts_as_kill);
    /// Kills it when the deadline comes. Watches its statistics meanwhile.
    [[nodiscard]] bool ends_by_itself(Child& child, std::uint64_t deadline_ns);
    void count_kill(const Moment& moment, bool at_point);
    /// False: something failed; it is noted.
    [[nodiscard]] bool examine_pool();
    [[nodiscard]] bool ask_checker();
    [[nodiscard]] std::string path_of_output() const { return folder_ + "/output"; }
    void new_pool();
    void fail(const std::string& what);
    void show_progress();

    const CrashPlan& plan_;
    MomentChooser chooser_;
    std::string self_;    ///< this executable
    std::string folder_;  ///< temporary
    std::string pool_;
    bool pool_is_ours_ = true;  ///< it was not there before
    std::string moment_text_;   ///< of this round, for messages
    std::uint64_t acknowledged_ = 0;  ///< newest durable epoch that this pool's program was seen to have
    std::uint64_t begin_ns_ = 0;
    std::uint64_t shown_ns_ = 0;
    CrashTestFigures figures_;
    std::vector<CrashFailure> failures_;
};

/// Copies a file with its holes. Errors: io, no_space.
[[nodiscard]] Result<void> copy_sparse(const std::string& from, const std::string& to);

}  // namespace stillpoint::tool
