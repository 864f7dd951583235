#pragma once
// One schedule of one scenario, step by step: threads are fibers that stop before each operation others can see.

#include <csetjmp>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <ucontext.h>

#include "tests/schedules/memory.hpp"
#include "tests/schedules/mutant.hpp"
#include "tests/schedules/scenario.hpp"

namespace stillpoint {
struct ThreadRecord;
}

namespace stillpoint::schedules {

/// The kinds of movers: threads, then their store buffers (tso), then time.
inline constexpr int agents_max = 2 * threads_max + 1;
inline constexpr int clock_agent = 2 * threads_max;

struct Move {
    std::uint8_t agent;
    std::uint8_t choice;  ///< which store a load sees: 0 the latest
};

/// The objects that a move touches: moves of two agents that touch nothing in common commute.
struct Footprint {
    enum Effect : std::uint8_t { none, reads, writes };
    int word = -1;
    Effect effect = none;
    bool fences = false;      ///< joins what all full fences know (weak)
    bool everywhere = false;  ///< membarrier
    bool time = false;
};
[[nodiscard]] bool commute(const Footprint& a, const Footprint& b) noexcept;

class Execution {
public:
    Execution();
    Execution(const Execution&) = delete;
    Execution& operator=(const Execution&) = delete;

    /// Sets everything back to the start of the process and the threads to their first operation.
    /// `signal_at`: before which of its operations the interrupted thread runs the scenario's handler.
    void begin(const Scenario& scenario, Model model, const Mutant* mutant, unsigned signal_at) noexcept;
    /// How many operations the interrupted thread has come to.
    [[nodiscard]] unsigned interruptible() const noexcept { return interruptible_; }
    /// Fills `moves` with what can happen next, agent by agent.
    void moves(std::vector<Move>& moves) noexcept;
    [[nodiscard]] Footprint footprint(int agent) const noexcept;
    void step(Move move) noexcept;
    /// After no move is left: a deadlock, or all threads ended and the scenario's last check is made.
    void finish() noexcept;
    [[nodiscard]] std::uint64_t hash() const noexcept;

    /// The condition that was violated, or nullptr.
    [[nodiscard]] const char* violated() const noexcept { return violated_; }
    /// A word turned out to be shared that was taken for one thread's own: explore again from the start.
    [[nodiscard]] bool must_restart() const noexcept { return must_restart_; }
    void forget_shared_words() noexcept;
    /// The shared words as text that another process understands, for replay.
    [[nodiscard]] std::string shared_words() const;
    void set_shared_words(const std::string& text);
    [[nodiscard]] std::string describe(Move move) const;
    /// Every operation of the product's code that was seen so far.
    [[nodiscard]] const SiteSet& sites() const noexcept { return sites_; }
    void forget_sites() noexcept
    {
        sites_.clear();
        seen_sites_.clear();
    }

    // Called by threads.
    std::uint64_t perform(Operation& operation) noexcept;
    [[noreturn]] void leave_after_violation() noexcept;
    void note_violation(const char* what) noexcept;
    [[nodiscard]] int running() const noexcept { return running_; }
    [[nodiscard]] Model model() const noexcept { return model_; }
    [[nodiscard]] bool has_ended(int thread) const noexcept
    {
        return thread >= scenario_->registered && thread < threads_max && threads_[static_cast<std::size_t>(thread)].state == State::ended;
    }
    [[nodiscard]] unsigned steps() const noexcept { return steps_; }
    [[nodiscard]] int registering() const noexcept { return registering_; }
    [[nodiscard]] void* take_memory(std::size_t bytes) noexcept;
    void set_exit_destructor(void (*destructor)(void*)) noexcept { exit_destructor_ = destructor; }
    void set_exit_value(void* value) noexcept;
    void block_signals(int more) noexcept { signals_blocked_ += running_ >= 0 && running_ == scenario_->interrupted ? more : 0; }
    void thread_main() noexcept;

private:
    enum class State : std::uint8_t { unborn, ready, asleep, ended };
    struct Thread {
        State state = State::unborn;
        Operation* pending = nullptr;
        const void* sleeps_on = nullptr;
        std::uint64_t deadline_ns = 0;
        std::uint64_t history = 0;
        ThreadRecord* own_record = nullptr;
        void* exit_value = nullptr;
        std::byte* stack = nullptr;
        ucontext_t context{};
        jmp_buf resume{};
    };

    [[nodiscard]] bool is_private(const Operation& operation) noexcept;
    [[nodiscard]] bool enabled(int thread) noexcept;
    [[nodiscard]] bool time_matters() const noexcept;
    void apply(int thread, unsigned choice) noexcept;
    void wait_on_futex(Thread& thread, unsigned choice) noexcept;
    void wake_futex(const Operation& operation) noexcept;
    void tick() noexcept;
    void resume(int thread) noexcept;
    void switch_to_scheduler(Thread& thread) noexcept;
    void schedule(Thread& thread, Operation& operation) noexcept;
    [[nodiscard]] bool is_mutated(const Operation& operation) const noexcept;
    void note_site(const Operation& operation);

    const Scenario* scenario_ = nullptr;
    Model model_ = Model::sc;
    const Mutant* mutant_ = nullptr;
    Memory memory_;
    std::array<Thread, threads_max> threads_;
    int registering_ = -1;
    int running_ = -1;  ///< -1: the scenario's begin or finish
    jmp_buf scheduler_{};
    const char* violated_ = nullptr;
    bool must_restart_ = false;
    std::uint64_t now_ns_ = 0;
    int ticks_left_ = 0;
    unsigned steps_ = 0;
    unsigned signal_at_ = 0;
    unsigned interruptible_ = 0;
    bool in_handler_ = false;
    int signals_blocked_ = 0;  ///< of the interrupted thread
    std::vector<int> sleepers_;  ///< in the order in which they went to sleep
    void (*exit_destructor_)(void*) = nullptr;
    std::byte* arena_ = nullptr;
    std::size_t arena_used_ = 0;
    std::vector<std::byte> initial_data_;
    struct Use {
        std::int8_t thread = -1;
        bool shared = false;
    };
    std::unordered_map<const void*, Use> uses_;
    SiteSet sites_;
    std::unordered_set<std::uint64_t> seen_sites_;
};

/// By how much time passes when it does.
inline constexpr std::uint64_t tick_ns = 1'000'000'000;

[[nodiscard]] inline std::size_t at(int index) noexcept { return static_cast<std::size_t>(index); }

/// The one of this process.
[[nodiscard]] Execution& execution() noexcept;

}  // namespace stillpoint::schedules
