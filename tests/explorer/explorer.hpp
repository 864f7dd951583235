#pragma once
// Explorer: runs a program, crashes it at every moment of its trace, recovers what each crash may leave, asks the
// oracle, and continues from some of those crashes with another run, which it crashes in turn.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "sim/crash_images.hpp"
#include "program.hpp"
#include "recovery.hpp"

namespace stillpoint::explorer {

struct Limits {
    std::uint64_t states = 3000;         ///< of a campaign, roughly: judged images
    std::uint64_t program_states = 3000; ///< of one program and the runs that follow its crashes
    std::uint64_t exhaustive_max = 4096; ///< images of one moment that are all looked at
    double seconds = 600;                ///< a campaign that takes longer ends early, and says so
    unsigned generations = 3;            ///< runs in a row, each but the last cut off by a crash
    unsigned kills = 4;                  ///< crashes of the process that each run of generation 1 is followed from
    unsigned power_cuts = 4;             ///< crashes of the machine, likewise
};

struct Violation {
    std::string campaign;
    std::string history;  ///< the crashes and runs that lead to it
    std::string what;
};

struct Figures {
    std::uint64_t states = 0;       ///< images judged: distinct for the crash they come from
    std::uint64_t recoveries = 0;   ///< distinct images
    std::uint64_t moments = 0;
    std::uint64_t exhausted = 0;    ///< moments of which every image was judged
    std::uint64_t runs = 0;         ///< programs
    std::uint64_t violations = 0;
    double seconds = 0;
    bool cut_short = false;         ///< by Limits::seconds
    void add(const Figures& other) noexcept;
};

/// A history for programs of that plan, without any run.
[[nodiscard]] History history_for(const ProgramPlan& plan);

class Explorer {
public:
    /// `name` is the campaign's, for messages.
    Explorer(std::string name, ProgramPlan plan, const Limits& limits, std::uint64_t seed, std::string scratch);

    /// Explores until the states or the seconds are used up, or a violation was found.
    void run();
    /// Explores programs that go on with this file, which is durable, and whose promises are those of `history`.
    void run_from(const sim::CrashImage& file, const History& history);

    [[nodiscard]] const Figures& figures() const noexcept { return figures_; }
    [[nodiscard]] const std::vector<Violation>& violations() const noexcept { return violations_; }

private:
    /// A crash from which a next run starts.
    struct Crash {
        std::shared_ptr<sim::CrashModel> model;
        History history;
        std::string text;
    };

    void go_round(const sim::CrashImage& file, const History& history, unsigned generation);
    void explore(const Crash& start, unsigned generation);
    void explore_trace(const Crash& start, const ProgramRun& run, unsigned generation, std::vector<Crash>& next);
    [[nodiscard]] std::vector<std::size_t> moments_of(const std::vector<sim::Event>& events) const;
    [[nodiscard]] std::vector<std::size_t> some_of(const std::vector<std::size_t>& moments, std::size_t most);
    [[nodiscard]] std::vector<std::size_t> kill_moments(const std::vector<sim::Event>& events, unsigned kills, unsigned generation);
    void look_at_moment(const sim::CrashModel& model, const History& history, const std::string& where, std::uint64_t budget,
                        std::ptrdiff_t starts, std::vector<Crash>& next);
    /// Kept by image: many crashes leave the same bytes. Without the digests of its pages.
    [[nodiscard]] const Recovered& recovered_from(const sim::CrashImage& image);
    bool judge_image(const sim::CrashImage& image, const History& history, const std::string& where);
    void report(const std::string& where, const std::string& what);
    [[nodiscard]] bool exhausted() const;
    [[nodiscard]] double elapsed_seconds() const;

    std::string name_;
    ProgramPlan plan_;
    Limits limits_;
    Random random_;
    ProgramRunner runner_;
    Figures figures_;
    std::vector<Violation> violations_;
    std::unordered_map<std::uint64_t, Recovered> recovered_;  ///< by image
    std::unordered_set<std::uint64_t> judged_;                ///< image and history
    std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

}  // namespace stillpoint::explorer
