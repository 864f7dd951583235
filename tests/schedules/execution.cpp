#include "tests/schedules/execution.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <sys/mman.h>

#include "runtime/fase_gate.hpp"
#include "runtime/thread_registry.hpp"
#include "tests/schedules/checks.hpp"

// The program's own variables, from the linker: the protocol's state is among them, the explorer's is not (it lies on
// the heap), so each schedule begins with the first one's copy.
extern "C" char __data_start[];
extern "C" char _end[];

namespace stillpoint::schedules {

namespace {

constexpr std::size_t stack_bytes = 256 * 1024;
constexpr std::size_t arena_bytes = 16 * 1024;
constexpr unsigned steps_max = 2000;

std::byte* map_memory(std::size_t bytes)
{
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        std::fprintf(stderr, "schedules: no memory for stacks\n");
        std::abort();
    }
    return static_cast<std::byte*>(memory);
}

}  // namespace

Execution& execution() noexcept
{
    static Execution* const only = new Execution;
    return *only;
}

Execution::Execution()
{
    for (Thread& thread : threads_) {
        thread.stack = map_memory(stack_bytes);
    }
    arena_ = map_memory(arena_bytes);
}

void Execution::begin(const Scenario& scenario, Model model, const Mutant* mutant, unsigned signal_at) noexcept
{
    const auto data_bytes = static_cast<std::size_t>(_end - __data_start);
    if (initial_data_.empty()) {
        initial_data_.resize(data_bytes);
        std::memcpy(initial_data_.data(), __data_start, data_bytes);
    } else {
        std::memcpy(__data_start, initial_data_.data(), data_bytes);
    }
    std::memset(arena_, 0, arena_used_);
    scenario_ = &scenario;
    model_ = model;
    mutant_ = mutant;
    memory_.begin(model, scenario.threads);
    violated_ = nullptr;
    must_restart_ = false;
    now_ns_ = tick_ns;
    ticks_left_ = scenario.ticks;
    steps_ = 0;
    signal_at_ = signal_at;
    interruptible_ = 0;
    in_handler_ = false;
    signals_blocked_ = 0;
    sleepers_.clear();
    arena_used_ = 0;
    exit_destructor_ = nullptr;
    running_ = -1;
    fase::own_record = nullptr;
    scenario.begin();
    durable.registered = static_cast<std::uint64_t>(scenario.registered);
    for (int t = 0; t < scenario.threads; ++t) {
        Thread& thread = threads_[at(t)];
        thread.state = State::unborn;
        thread.pending = nullptr;
        thread.sleeps_on = nullptr;
        thread.history = 0;
        thread.own_record = nullptr;
        thread.exit_value = nullptr;
        if (t < scenario.registered) {
            registering_ = t;
            fase::own_record = nullptr;
            thread.own_record = attach_thread();
        }
    }
    for (int t = 0; t < scenario.threads && violated_ == nullptr && !must_restart_; ++t) {
        resume(t);
    }
}

void Execution::thread_main() noexcept
{
    Thread& thread = threads_[at(running_)];
    scenario_->body(running_);
    for (int round = 0; round < PTHREAD_DESTRUCTOR_ITERATIONS && thread.exit_value != nullptr; ++round) {
        void* const value = thread.exit_value;
        thread.exit_value = nullptr;
        exit_destructor_(value);
    }
    memory_.end_thread(running_);
    thread.state = State::ended;
    switch_to_scheduler(thread);
}

namespace {
void fiber_main() { execution().thread_main(); }
}  // namespace

void Execution::resume(int number) noexcept
{
    Thread& thread = threads_[at(number)];
    running_ = number;
    fase::own_record = thread.own_record;
    if (_setjmp(scheduler_) == 0) {
        if (thread.state == State::unborn) {
            thread.state = State::ready;
            getcontext(&thread.context);
            thread.context.uc_stack.ss_sp = thread.stack;
            thread.context.uc_stack.ss_size = stack_bytes;
            thread.context.uc_link = nullptr;
            makecontext(&thread.context, &fiber_main, 0);
            setcontext(&thread.context);
        }
        _longjmp(thread.resume, 1);
    }
    threads_[at(running_)].own_record = fase::own_record;
    running_ = -1;
}

void Execution::switch_to_scheduler(Thread& thread) noexcept
{
    if (_setjmp(thread.resume) == 0) {
        _longjmp(scheduler_, 1);
    }
}

void Execution::note_violation(const char* what) noexcept
{
    if (violated_ == nullptr) {
        violated_ = what;
    }
}

void Execution::leave_after_violation() noexcept { _longjmp(scheduler_, 1); }

void* Execution::take_memory(std::size_t bytes) noexcept
{
    if (bytes > arena_bytes - arena_used_) {
        return nullptr;
    }
    void* const taken = arena_ + arena_used_;
    arena_used_ += bytes;
    return taken;
}

void Execution::set_exit_value(void* value) noexcept
{
    if (running_ >= 0) {
        threads_[at(running_)].exit_value = value;
    }
}

void Execution::forget_shared_words() noexcept
{
    uses_.clear();
    memory_.forget_numbers();
}

std::string Execution::shared_words() const
{
    std::string text;
    for (const auto& [address, use] : uses_) {
        if (!use.shared) {
            continue;
        }
        const auto* const byte = static_cast<const std::byte*>(address);
        const auto* const data = reinterpret_cast<const std::byte*>(__data_start);
        const bool in_arena = byte >= arena_ && byte < arena_ + arena_bytes;
        const bool in_data = byte >= data && byte < reinterpret_cast<const std::byte*>(_end);
        if (!in_arena && !in_data) {
            continue;  // A stack's; no scenario shares one.
        }
        char word[32];
        std::snprintf(word, sizeof word, "%c%tu", in_arena ? 'm' : 'd', byte - (in_arena ? arena_ : data));
        text += word;
    }
    return text;
}

void Execution::set_shared_words(const std::string& text)
{
    uses_.clear();
    for (const char* here = text.c_str(); *here == 'm' || *here == 'd';) {
        char* end = nullptr;
        const auto offset = static_cast<std::size_t>(std::strtoull(here + 1, &end, 10));
        uses_[*here == 'm' ? arena_ + offset : reinterpret_cast<std::byte*>(__data_start) + offset].shared = true;
        here = end;
    }
}

bool Execution::is_private(const Operation& operation) noexcept
{
    Use& use = uses_[operation.address];
    if (use.shared) {
        return false;
    }
    const bool waits = operation.kind > Kind::compare_exchange;
    if (use.thread < 0 && waits) {
        use.shared = true;
        return false;
    }
    if (use.thread < 0) {
        use.thread = static_cast<std::int8_t>(running_);
    }
    if (use.thread == running_ && !waits) {
        return true;
    }
    use.shared = true;
    must_restart_ = true;
    leave_after_violation();
}

bool Execution::is_mutated(const Operation& operation) const noexcept
{
    return mutant_ != nullptr && operation.site.line() == mutant_->site.line && operation.site.column() == mutant_->site.column &&
           std::string_view{operation.site.file_name()}.ends_with(mutant_->site.file);
}

void Execution::note_site(const Operation& operation)
{
    const auto key = mix(reinterpret_cast<std::uintptr_t>(operation.site.file_name()),
                         operation.site.line() * std::uint64_t{4096} + operation.site.column());
    if (!seen_sites_.insert(key).second) {
        return;
    }
    std::string file = short_path(operation.site.file_name());
    if (file.starts_with("src/")) {
        sites_.insert({file, operation.site.line(), operation.site.column(), operation.kind, operation.order});
    }
}

std::uint64_t Execution::perform(Operation& operation) noexcept
{
    if (running_ < 0) {
        perform_alone(operation);
        return operation.result;
    }
    Thread& thread = threads_[at(running_)];
    if (mutant_ == nullptr) {
        note_site(operation);
    }
    if (++steps_ > steps_max) {
        note_violation("a loop does not end");
        leave_after_violation();
    }
    if (running_ == scenario_->interrupted && !in_handler_ && signals_blocked_ == 0 && interruptible_++ == signal_at_) {
        in_handler_ = true;
        memory_.interrupt(running_);
        scenario_->handler();
        memory_.interrupt(running_);
        in_handler_ = false;
    }
    const bool mutated = is_mutated(operation);
    if (mutated) {
        const bool failing_too = acquires(operation.order_of_failure);
        switch (mutant_->change) {
        case Mutant::Change::dropped:
            if (operation.address != nullptr) {
                operation.result = memory_.latest(operation.address, operation.bytes);
            }
            return operation.result;
        case Mutant::Change::not_acquire:
            operation.order = releases(operation.order) ? std::memory_order_release : std::memory_order_relaxed;
            operation.order_of_failure = failing_too ? std::memory_order_relaxed : operation.order_of_failure;
            break;
        case Mutant::Change::not_release:
            operation.order = acquires(operation.order) ? std::memory_order_acquire : std::memory_order_relaxed;
            break;
        case Mutant::Change::blind: break;
        }
    }
    schedule(thread, operation);
    return mutated && mutant_->change == Mutant::Change::blind ? 0 : operation.result;
}

void Execution::schedule(Thread& thread, Operation& operation) noexcept
{
    switch (operation.kind) {
    case Kind::label: thread.history = mix(1, operation.site.line()); return;
    case Kind::yield: return;
    case Kind::compiler_fence: memory_.access(running_, operation, 0); return;
    case Kind::plain_read:
    case Kind::plain_write:
        if (!memory_.plain(running_, operation)) {
            note_violation("a race on durable memory: a store and a copy that nothing orders");
            leave_after_violation();
        }
        return;
    case Kind::clock:
        if (scenario_->ticks == 0) {
            operation.result = now_ns_;
            return;
        }
        break;
    case Kind::fence:
    case Kind::membarrier: break;
    default:
        if (is_private(operation)) {
            perform_alone(operation);
            return;
        }
    }
    thread.pending = &operation;
    switch_to_scheduler(thread);
}

// ---- What the code under exploration calls -------------------------------------------------------------------

std::uint64_t perform(Operation& operation) noexcept { return execution().perform(operation); }

int current_thread() noexcept { return execution().running() >= 0 ? execution().running() : execution().registering(); }

bool has_ended(int thread) noexcept { return execution().has_ended(thread); }
bool stores_arrive_in_order() noexcept { return execution().model() != Model::weak; }
unsigned operations_so_far() noexcept { return execution().steps(); }

void violation(const char* what) noexcept
{
    execution().note_violation(what);
    if (execution().running() >= 0) {
        execution().leave_after_violation();
    }
}

void* schedule_memory(std::size_t bytes) noexcept { return execution().take_memory(bytes); }
void set_exit_destructor(void (*destructor)(void*)) noexcept { execution().set_exit_destructor(destructor); }
void block_signals(int more) noexcept { execution().block_signals(more); }
void set_exit_value(void* value) noexcept { execution().set_exit_value(value); }

}  // namespace stillpoint::schedules
