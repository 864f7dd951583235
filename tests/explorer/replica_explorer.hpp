#pragma once
// ReplicaExplorer: a program whose pool has a replica, crashed at moments of its trace. A crash takes the machine, and another goes on with
// the replica alone; or it takes the process or the power, and the next opening decides which side is newer. A machine whose pool another
// has taken over comes back, too.

#include <chrono>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "explorer.hpp"
#include "sides.hpp"

namespace stillpoint::explorer {

class ReplicaExplorer {
public:
    /// `is_sync`: an acknowledgement says that both sides have it.
    ReplicaExplorer(std::string name, ProgramPlan plan, bool is_sync, const Limits& limits, std::uint64_t seed, std::string scratch);

    /// Explores until the states or the seconds are used up, or a violation was found.
    void run();

    [[nodiscard]] const Figures& figures() const noexcept { return figures_; }
    [[nodiscard]] const std::vector<Violation>& violations() const noexcept { return violations_; }

private:
    /// The state that a run begins with.
    struct Start {
        Sides sides;
        History history;  ///< what the pool here must have, where there is one
        History replica_history;  ///< what the replica must have by itself
        bool on_replica_alone = false;
        bool was_taken_over = false;  ///< another machine has worked on the replica since the pool here was used
        bool only_opens = false;
        std::string text;
    };
    enum class Loss : std::uint8_t { process, power, machine, machine_for_a_while };

    void explore(const Start& start, unsigned generation);
    void check_refusal(const Start& start, const ProgramRun& run);
    void walk(const Start& start, const ProgramRun& run, unsigned generation, std::vector<Start>& next);
    /// Takes the next event of a run; `reached` is how far the run was, and ends with the event.
    void take(const sim::Event& event, Start& reached, unsigned& acknowledgements);
    void look(const Start& reached, bool is_open);
    [[nodiscard]] Start after(Loss loss, const Start& reached);
    [[nodiscard]] std::vector<std::size_t> crash_moments(const std::vector<sim::Event>& events, std::size_t count, bool in_opening);
    void judge_image(const sim::CrashImage& image, const History& history, const std::string& where);
    void report(const std::string& where, const std::string& what);
    [[nodiscard]] bool exhausted() const;
    [[nodiscard]] double elapsed_seconds() const;

    std::string name_;
    ProgramPlan plan_;
    bool is_sync_;
    Limits limits_;
    Random random_;
    ProgramRunner runner_;
    Figures figures_;
    std::vector<Violation> violations_;
    std::unordered_map<std::uint64_t, Recovered> recovered_;  ///< by image
    std::unordered_set<std::uint64_t> judged_;  ///< image and promises
    std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

}  // namespace stillpoint::explorer
