// One possible next move in a schedule.

#include <algorithm>
#include <cstdio>

#include "runtime/fase_gate.hpp"
#include "tests/schedules/execution.hpp"

namespace stillpoint::schedules {

namespace {

/// A deadline from here on is none.
constexpr std::uint64_t never_ns = std::uint64_t{1} << 62;

}  // namespace

bool commute(const Footprint& a, const Footprint& b) noexcept
{
    if (a.everywhere || b.everywhere || (a.fences && b.fences) || (a.time && b.time)) {
        return false;
    }
    return a.word < 0 || a.word != b.word || (a.effect != Footprint::writes && b.effect != Footprint::writes);
}

bool Execution::enabled(int number) noexcept
{
    const Thread& thread = threads_[at(number)];
    if (thread.state != State::ready || memory_.needs_flush(number, *thread.pending)) {
        return false;
    }
    const Operation& operation = *thread.pending;
    return operation.kind != Kind::await || memory_.latest(operation.address, operation.bytes) == operation.operand;
}

bool Execution::time_matters() const noexcept
{
    return std::any_of(threads_.begin(), threads_.begin() + scenario_->threads, [](const Thread& thread) {
        if (thread.state == State::asleep) {
            return thread.deadline_ns < never_ns;
        }
        return thread.state == State::ready && (thread.pending->kind == Kind::clock ||
                                                (thread.pending->kind == Kind::futex_wait && thread.pending->deadline_ns < never_ns));
    });
}

void Execution::moves(std::vector<Move>& moves) noexcept
{
    moves.clear();
    for (int t = 0; t < scenario_->threads; ++t) {
        if (enabled(t)) {
            const unsigned count = memory_.choices(t, *threads_[at(t)].pending);
            for (unsigned choice = 0; choice < count; ++choice) {
                moves.push_back({static_cast<std::uint8_t>(t), static_cast<std::uint8_t>(choice)});
            }
        }
        if (memory_.has_buffered(t)) {
            moves.push_back({static_cast<std::uint8_t>(threads_max + t), 0});
        }
    }
    const bool someone_would_wake = std::any_of(sleepers_.begin(), sleepers_.end(),
                                                [this](int t) { return threads_[at(t)].deadline_ns < never_ns; });
    if (moves.empty() ? someone_would_wake : ticks_left_ > 0 && time_matters()) {
        moves.push_back({clock_agent, 0});
    }
}

Footprint Execution::footprint(int agent) const noexcept
{
    Footprint print;
    if (agent == clock_agent) {
        print.time = true;
        return print;
    }
    if (agent >= threads_max) {
        print.word = memory_.buffered_word(agent - threads_max);
        print.effect = Footprint::writes;
        return print;
    }
    const Operation& operation = *threads_[at(agent)].pending;
    print.everywhere = operation.kind == Kind::membarrier;
    print.fences = operation.kind == Kind::fence;
    print.time = operation.kind == Kind::clock || operation.kind == Kind::futex_wake ||
                 (operation.kind == Kind::futex_wait && operation.deadline_ns < never_ns);
    if (operation.address != nullptr) {
        print.word = const_cast<Memory&>(memory_).word_at(operation.address);
        print.effect = operation.kind == Kind::load || operation.kind == Kind::await ? Footprint::reads : Footprint::writes;
    }
    return print;
}

void Execution::step(Move move) noexcept
{
    if (move.agent == clock_agent) {
        tick();
        return;
    }
    if (move.agent >= threads_max) {
        memory_.flush(move.agent - threads_max);
        return;
    }
    apply(move.agent, move.choice);
}

void Execution::apply(int number, unsigned choice) noexcept
{
    Thread& thread = threads_[at(number)];
    Operation& operation = *thread.pending;
    switch (operation.kind) {
    case Kind::membarrier: memory_.membarrier(number); break;
    case Kind::futex_wait:
        running_ = number;
        wait_on_futex(thread, choice);
        break;
    case Kind::futex_wake: memory_.pass_queue_lock(number, operation); break;
    case Kind::clock: operation.result = now_ns_; break;
    case Kind::await:
        operation.kind = Kind::load;
        memory_.access(number, operation, 0);
        break;
    default: memory_.access(number, operation, choice);
    }
    thread.history = mix(mix(thread.history, operation.result * 32 + static_cast<std::uint64_t>(operation.kind)),
                         static_cast<std::uint64_t>(operation.address == nullptr ? 0 : memory_.word_at(operation.address)));
    const bool wakes = operation.kind == Kind::futex_wake;
    const Operation done = operation;
    if (thread.state == State::ready) {
        resume(number);
    }
    if (wakes) {
        wake_futex(done);
    }
}

void Execution::wait_on_futex(Thread& thread, unsigned choice) noexcept
{
    Operation& operation = *thread.pending;
    const int number = running_;
    const bool sleeps = memory_.read_under_queue_lock(number, operation, choice) == operation.operand && operation.deadline_ns > now_ns_;
    operation.result = sleeps ? 1 : 0;
    if (sleeps) {
        thread.state = State::asleep;
        thread.sleeps_on = operation.address;
        thread.deadline_ns = operation.deadline_ns;
        sleepers_.push_back(number);
    }
}

void Execution::wake_futex(const Operation& operation) noexcept
{
    std::uint64_t left = operation.operand;
    for (std::size_t i = 0; i < sleepers_.size() && left > 0 && violated_ == nullptr && !must_restart_;) {
        const int sleeper = sleepers_[i];
        if (threads_[at(sleeper)].sleeps_on != operation.address) {
            ++i;
            continue;
        }
        --left;
        sleepers_.erase(sleepers_.begin() + static_cast<std::ptrdiff_t>(i));
        threads_[at(sleeper)].state = State::ready;
        resume(sleeper);
    }
}

void Execution::tick() noexcept
{
    ticks_left_ = std::max(0, ticks_left_ - 1);
    now_ns_ += tick_ns;
    for (std::size_t i = 0; i < sleepers_.size() && violated_ == nullptr && !must_restart_;) {
        const int sleeper = sleepers_[i];
        if (threads_[at(sleeper)].deadline_ns > now_ns_) {
            ++i;
            continue;
        }
        sleepers_.erase(sleepers_.begin() + static_cast<std::ptrdiff_t>(i));
        threads_[at(sleeper)].state = State::ready;
        resume(sleeper);
    }
}

void Execution::finish() noexcept
{
    const bool all_ended = std::all_of(threads_.begin(), threads_.begin() + scenario_->threads,
                                       [](const Thread& thread) { return thread.state == State::ended; });
    if (!all_ended) {
        note_violation("deadlock: no thread can go on, and not all have ended");
        return;
    }
    running_ = -1;
    fase::own_record = nullptr;
    scenario_->finish();
}

std::uint64_t Execution::hash() const noexcept
{
    std::uint64_t hash = mix(memory_.hash(), now_ns_ + static_cast<std::uint64_t>(ticks_left_));
    for (int t = 0; t < scenario_->threads; ++t) {
        const Thread& thread = threads_[at(t)];
        hash = mix(hash, thread.history + static_cast<std::uint64_t>(thread.state));
        hash = mix(hash, reinterpret_cast<std::uintptr_t>(thread.own_record));
    }
    for (const int sleeper : sleepers_) {
        hash = mix(hash, static_cast<std::uint64_t>(sleeper) + 1);
    }
    return hash;
}

std::string Execution::describe(Move move) const
{
    char text[512];
    if (move.agent == clock_agent) {
        return "time passes the deadlines";
    }
    if (move.agent >= threads_max) {
        std::snprintf(text, sizeof text, "thread %d: a buffered store reaches memory", move.agent - threads_max);
        return text;
    }
    const Operation& operation = *threads_[move.agent].pending;
    std::snprintf(text, sizeof text, "thread %d: %s %s operand %#llx%s at %s:%u", move.agent, name_of(operation.kind),
                  name_of(operation.order), static_cast<unsigned long long>(operation.operand), move.choice != 0 ? " (an old store)" : "",
                  short_path(operation.site.file_name()).c_str(), operation.site.line());
    return text;
}

}  // namespace stillpoint::schedules
