#include "engines/spht/executors/simulated_tm.hpp"

#include <algorithm>
#include <mutex>

#include "os/thread_calls.hpp"

namespace stillpoint::spht {

Result<void> SimulatedMachine::prepare(std::uint64_t cores, std::uint64_t seed)
{
    seed_ = seed;
    return cores_.reserve(cores, "the cores of a simulated machine");
}

SimulatedMachine::Core& SimulatedMachine::use_core(std::uint64_t number) noexcept
{
    const std::lock_guard guard(lock_);
    core_count_ = std::max(core_count_, number + 1);
    return cores_[number];
}

void SimulatedMachine::take_line(std::uint64_t line, const Core* own, bool stores) noexcept
{
    const std::uint64_t bit = std::uint64_t{1} << line % 64;
    for (std::uint64_t i = 0; i < core_count_; ++i) {
        Core& other = cores_[i];
        if (&other == own || !other.runs) {
            continue;
        }
        if ((other.stored[line / 64] & bit) != 0 || (stores && (other.loaded[line / 64] & bit) != 0)) {
            other.lost = true;
        }
    }
}

SimulatedTm::SimulatedTm(SimulatedMachine& machine, std::uint64_t number) noexcept
    : machine_(machine), core_(machine.use_core(number)), random_((machine.seed() * 1024 + number + 1) * 0x9e37'79b9'7f4a'7c15)
{
}

std::uint64_t SimulatedTm::draw() noexcept
{
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return random_ * 0x2545'f491'4f6c'dd1d >> 32;
}

HtmStatus SimulatedTm::begin() noexcept
{
    constexpr AbortKind kinds[] = {AbortKind::conflict, AbortKind::conflict, AbortKind::capacity,
                                   AbortKind::code,     AbortKind::debug,    AbortKind::other};
    constexpr std::uint64_t steps_max = 40;
    buffer_.clear();
    lines_loaded_ = 0;
    lines_stored_ = 0;
    // Half of all transactions meet no abort but a real one.
    steps_left_ = machine_.seed() == 0 || draw() % 2 == 0 ? UINT64_MAX : draw() % steps_max;
    drawn_ = kinds[draw() % std::size(kinds)];
    {
        const std::lock_guard guard(machine_.lock_);
        std::fill(std::begin(core_.loaded), std::end(core_.loaded), 0);
        std::fill(std::begin(core_.stored), std::end(core_.stored), 0);
        core_.lost = false;
        core_.runs = true;
    }
    runs_ = true;
    last_ = {true, AbortKind::other, AbortCode::none};
    return last_;
}

bool SimulatedTm::stop(AbortKind kind, AbortCode code) noexcept
{
    if (runs_) {
        const std::lock_guard guard(machine_.lock_);
        core_.runs = false;
        runs_ = false;
        last_ = {false, kind, code};
    }
    return false;
}

bool SimulatedTm::step() noexcept
{
    if (machine_.seed() != 0) {
        if (draw() % 16 == 0) {
            os::yield_cpu();  // So that others come in between.
        }
        if (steps_left_-- == 0) {
            return stop(drawn_);
        }
    }
    return true;
}

bool SimulatedTm::use_line(const std::uint64_t* word, bool stores) noexcept
{
    if (core_.lost) {
        return false;
    }
    const std::uint64_t line = SimulatedMachine::line_number(word);
    std::uint64_t& known = (stores ? core_.stored : core_.loaded)[line / 64];
    const std::uint64_t bit = std::uint64_t{1} << line % 64;
    if ((known & bit) == 0) {
        known |= bit;
        ++(stores ? lines_stored_ : lines_loaded_);
    }
    machine_.take_line(line, &core_, stores);
    return true;
}

bool SimulatedTm::load(const std::uint64_t* word, std::uint64_t& value) noexcept
{
    if (!runs_ || !step()) {
        return false;
    }
    bool has_line = false;
    {
        const std::lock_guard guard(machine_.lock_);
        has_line = use_line(word, false);
        value = __atomic_load_n(word, __ATOMIC_RELAXED);
    }
    if (!has_line) {
        return stop(AbortKind::conflict);
    }
    if (lines_loaded_ > lines_loaded_max) {
        return stop(AbortKind::capacity);
    }
    if (const WriteSet::Entry* const written = buffer_.find(word); written != nullptr) {
        value = (value & ~written->mask) | written->value;
    }
    return true;
}

bool SimulatedTm::store(std::uint64_t* word, std::uint64_t value, std::uint64_t mask) noexcept
{
    if (!runs_ || !step()) {
        return false;
    }
    bool has_line = false;
    {
        const std::lock_guard guard(machine_.lock_);
        has_line = use_line(word, true);
    }
    if (!has_line) {
        return stop(AbortKind::conflict);
    }
    return (lines_stored_ <= lines_stored_max && buffer_.put(word, value, mask)) || stop(AbortKind::capacity);
}

bool SimulatedTm::end() noexcept
{
    if (!runs_ || !step()) {
        return false;
    }
    {
        const std::lock_guard guard(machine_.lock_);
        core_.runs = false;
        if (!core_.lost) {
            for (const WriteSet::Entry& entry : buffer_) {
                store_word(entry.word, entry.value, entry.mask);
            }
            runs_ = false;
        }
    }
    if (runs_) {
        return stop(AbortKind::conflict);
    }
    if (machine_.seed() != 0 && draw() % 2 == 0) {
        // Others commit before this thread does anything more, on top of what this transaction has stored.
        for (std::uint64_t turns = draw() % 32; turns != 0; --turns) {
            os::yield_cpu();
        }
    }
    return true;
}

bool SimulatedTm::test() const noexcept
{
    if (!runs_) {
        return false;
    }
    const std::lock_guard guard(machine_.lock_);
    return !core_.lost;
}

void SimulatedTm::note_plain_store(const std::uint64_t* word) noexcept
{
    const std::lock_guard guard(machine_.lock_);
    machine_.take_line(SimulatedMachine::line_number(word), nullptr, true);
}

}  // namespace stillpoint::spht
