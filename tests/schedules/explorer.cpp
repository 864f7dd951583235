#include "tests/schedules/explorer.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>
#include <unordered_map>

namespace stillpoint::schedules {

namespace {

using Clock = std::chrono::steady_clock;
using Agents = std::uint32_t;  ///< a set of agents, a bit for each

Agents bit(int agent) { return Agents{1} << agent; }

/// A state on the path that is being explored.
struct Node {
    std::vector<Move> moves;      ///< those still worth trying, agent by agent
    std::size_t next = 0;
    Agents asleep = 0;            ///< agents whose moves here lead to what was explored already
    std::array<Footprint, agents_max> prints;
};

std::string to_text(const std::vector<Move>& path)
{
    std::string text;
    for (const Move move : path) {
        text += (text.empty() ? "" : ",") + std::to_string(move.agent);
        if (move.choice != 0) {
            text += "." + std::to_string(move.choice);
        }
    }
    return text;
}

/// Depth first over all schedules. Each path is run from the start of the program (threads cannot be copied); a state
/// that was seen is not explored again (Godefroid: sleep sets with state matching); agents asleep are left out.
class Search {
public:
    Search(const Scenario& scenario, Model model, const Mutant* mutant, const Bounds& bounds)
        : scenario_(scenario), model_(model), mutant_(mutant), bounds_(bounds), begun_(Clock::now())
    {
    }

    Outcome run()
    {
        bool bounded = false;
        do {
            operations_ = 0;
            restart();
            bounded = !run_all();
            outcome_.states += seen_.size();
        } while (!bounded && !violated() && ++signal_at_ < operations_);
        outcome_.complete = !bounded && !violated();
        if (bounded && bounds_.random_seconds > 0) {
            run_randomly();
        }
        outcome_.seconds = seconds();
        return outcome_;
    }

private:
    /// All schedules with the signal where it is now. False: cut off by the bounds.
    bool run_all()
    {
        while (true) {
            if (!run_one_path()) {
                restart();
                continue;
            }
            ++outcome_.schedules;
            operations_ = std::max(operations_, execution().interruptible());
            if (violated() || !back_track()) {
                return true;
            }
            if (outcome_.states + seen_.size() >= bounds_.states_max || seconds() > bounds_.seconds) {
                return false;
            }
        }
    }

    [[nodiscard]] double seconds() const { return std::chrono::duration<double>(Clock::now() - begun_).count(); }
    [[nodiscard]] bool violated() const { return !outcome_.violation.empty(); }

    void restart()
    {
        path_.clear();
        nodes_.clear();
        seen_.clear();
    }

    void note_violation()
    {
        outcome_.violation = execution().violated();
        outcome_.schedule = to_text(path_);
        outcome_.signal_at = signal_at_;
    }

    /// False: a word turned out to be shared, and all must begin again.
    bool run_one_path()
    {
        Execution& here = execution();
        here.begin(scenario_, model_, mutant_, signal_at_);
        for (std::size_t i = 0; i < path_.size() && here.violated() == nullptr && !here.must_restart(); ++i) {
            here.step(path_[i]);
        }
        while (true) {
            if (here.must_restart()) {
                return false;
            }
            if (here.violated() != nullptr) {
                note_violation();
                return true;
            }
            here.moves(scratch_);
            if (scratch_.empty()) {
                here.finish();
                if (here.violated() != nullptr) {
                    note_violation();
                }
                return true;
            }
            if (!descend()) {
                return true;
            }
            here.step(path_.back());
        }
    }

    /// Enters the state that the execution is in. False: nothing new lies after it.
    bool descend()
    {
        Execution& here = execution();
        Agents enabled = 0;
        Node node;
        for (const Move move : scratch_) {
            if ((enabled & bit(move.agent)) == 0) {
                node.prints[move.agent] = here.footprint(move.agent);
                enabled |= bit(move.agent);
            }
        }
        node.asleep = sleepers_after_last_move(enabled);
        const auto [place, is_new] = seen_.try_emplace(here.hash(), node.asleep);
        Agents wanted = enabled & ~node.asleep;
        if (!is_new) {
            wanted = place->second & ~node.asleep & enabled;
            const Agents explored = enabled & ~place->second;
            place->second &= node.asleep;
            node.asleep |= explored;
        }
        if (wanted == 0) {
            return false;
        }
        for (const Move move : scratch_) {
            if ((wanted & bit(move.agent)) != 0) {
                node.moves.push_back(move);
            }
        }
        path_.push_back(node.moves.front());
        nodes_.push_back(std::move(node));
        return true;
    }

    /// A move that slept before the last one, or was explored there first, and is independent of it.
    [[nodiscard]] Agents sleepers_after_last_move(Agents enabled) const
    {
        if (nodes_.empty()) {
            return 0;
        }
        const Node& last = nodes_.back();
        const int mover = path_.back().agent;
        Agents candidates = last.asleep;
        for (std::size_t i = 0; i < last.next; ++i) {
            candidates |= bit(last.moves[i].agent);
        }
        candidates &= enabled & ~bit(mover);
        Agents asleep = 0;
        for (int agent = 0; agent < agents_max; ++agent) {
            if ((candidates & bit(agent)) != 0 &&
                commute(last.prints[static_cast<std::size_t>(agent)], last.prints[static_cast<std::size_t>(mover)])) {
                asleep |= bit(agent);
            }
        }
        return asleep;
    }

    /// To the next path. False: there is none.
    bool back_track()
    {
        while (!nodes_.empty()) {
            Node& node = nodes_.back();
            path_.resize(nodes_.size());
            if (++node.next < node.moves.size()) {
                path_.back() = node.moves[node.next];
                return true;
            }
            nodes_.pop_back();
        }
        path_.clear();
        return false;
    }

    void run_randomly()
    {
        std::mt19937_64 random{bounds_.seed};
        Execution& here = execution();
        const double end = seconds() + bounds_.random_seconds;
        while (!violated() && seconds() < end) {
            path_.clear();
            signal_at_ = operations_ == 0 ? 0 : static_cast<unsigned>(random() % operations_);
            here.begin(scenario_, model_, mutant_, signal_at_);
            while (here.violated() == nullptr && !here.must_restart()) {
                here.moves(scratch_);
                if (scratch_.empty()) {
                    here.finish();
                    break;
                }
                path_.push_back(scratch_[random() % scratch_.size()]);
                here.step(path_.back());
            }
            ++outcome_.random_schedules;
            if (here.violated() != nullptr && !here.must_restart()) {
                note_violation();
            }
        }
    }

    const Scenario& scenario_;
    Model model_;
    const Mutant* mutant_;
    Bounds bounds_;
    Clock::time_point begun_;
    Outcome outcome_;
    unsigned signal_at_ = 0;
    unsigned operations_ = 0;  ///< of the interrupted thread, in its longest run
    std::vector<Move> path_;
    std::vector<Node> nodes_;
    std::vector<Move> scratch_;
    std::unordered_map<std::uint64_t, Agents> seen_;
};

}  // namespace

Outcome explore(const Scenario& scenario, Model model, const Mutant* mutant, const Bounds& bounds)
{
    return Search{scenario, model, mutant, bounds}.run();
}

std::string replay(const Scenario& scenario, Model model, const Mutant* mutant, unsigned signal_at, const std::string& schedule)
{
    Execution& here = execution();
    here.begin(scenario, model, mutant, signal_at);
    std::vector<Move> possible;
    const char* at = schedule.c_str();
    while (*at != '\0' && here.violated() == nullptr && !here.must_restart()) {
        char* end = nullptr;
        Move move{static_cast<std::uint8_t>(std::strtoul(at, &end, 10)), 0};
        if (*end == '.') {
            move.choice = static_cast<std::uint8_t>(std::strtoul(end + 1, &end, 10));
        }
        here.moves(possible);
        if (std::none_of(possible.begin(), possible.end(),
                         [move](Move other) { return other.agent == move.agent && other.choice == move.choice; })) {
            return "the schedule does not fit this scenario from here on: " + std::string{at};
        }
        std::printf("%s\n", here.describe(move).c_str());
        here.step(move);
        at = *end == ',' ? end + 1 : end;
    }
    if (here.must_restart()) {
        return "the schedule does not fit this scenario: another word is shared";
    }
    if (here.violated() == nullptr && (here.moves(possible), possible.empty())) {
        here.finish();
    }
    return here.violated() == nullptr ? "" : here.violated();
}

}  // namespace stillpoint::schedules
