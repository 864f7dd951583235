#include "measured.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

#include "../harness/clock.hpp"
#include "../harness/ending.hpp"
#include "../transactions/transaction_phases.hpp"

namespace bench {

namespace {

/// A shared mapping of a file, made as long as it must be.
std::uint64_t* map_words(const std::string& path, std::size_t size_bytes)
{
    const int file = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, static_cast<off_t>(size_bytes)) != 0) {
        give_up(path + ": " + std::strerror(errno));
    }
    void* words = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (words == MAP_FAILED) {
        give_up(path + ": " + std::strerror(errno));
    }
    return static_cast<std::uint64_t*>(words);
}

std::string list_json(const std::vector<std::uint64_t>& numbers)
{
    std::string json = "[";
    for (const std::uint64_t number : numbers) {
        json += (json.size() > 1 ? ", " : "") + std::to_string(number);
    }
    return json + "]";
}

/// Nothing where no transactions were watched.
void add_phases(const PhaseSums& sums, Answer& answer)
{
    if (sums.transactions != 0) {
        answer.number("transactions", sums.transactions)
            .number("attempts", sums.attempts)
            .number("transactions_alone", sums.run_alone)
            .number("alone_ns", sums.alone_ns)
            .number("committed_ns", sums.committed_ns)
            .number("aborted_ns", sums.aborted_ns)
            .number("commit_phase_ns", sums.commit_phase_ns);
    }
}

}  // namespace

Measured::Measured(Work work, const Shape& shape)
    : work_(std::move(work)), shape_(shape), threads_(shape.threads), slices_(shape.threads, shape.is_pinned)
{
    for (unsigned i = 0; i < shape.threads; ++i) {
        threads_[i].context = {i, Random(i + 1), 0};
    }
}

void Measured::settle() { work_.job ? work_.job->settle() : work_.operations->settle(); }

std::uint64_t Measured::changed_bytes() const
{
    std::uint64_t sum = 0;
    for (const Thread& thread : threads_) {
        sum += thread.context.changed_bytes;
    }
    return sum;
}

void Measured::start(Answer& answer)
{
    answer.number("load_began_ns", monotonic_ns());
    add_recovery_time(answer);
    if (work_.job) {
        work_.job->load();
        if (const std::string fault = work_.job->recovered_fault(); !fault.empty()) {
            fault_ = "after a restart: " + fault;
        }
        job_goes_on_ = work_.job->goes_on_after_a_crash() && work_.job->steps_done() != 0;
        answer.boolean("goes_on", job_goes_on_);
    } else {
        work_.operations->load();
        work_.operations->perform(threads_[0].context, 1);
    }
    answer.number("first_operation_ns", monotonic_ns());
    settle();
}

void Measured::begin_slice()
{
    changed_before_ = changed_bytes();
    before_ = Counters();
    stops_.restart();
}

void Measured::end_slice(std::uint64_t operations, std::uint64_t wall_ns, std::uint64_t cpu_ns, Answer& answer)
{
    const std::uint64_t settle_began_ns = monotonic_ns();
    const std::uint64_t cpu_before = process_cpu_ns();
    settle();
    const std::uint64_t settle_ns = monotonic_ns() - settle_began_ns;
    answer.number("operations", operations)
        .number("wall_ns", wall_ns + settle_ns)
        .number("cpu_ns", cpu_ns)
        .number("settle_cpu_ns", process_cpu_ns() - cpu_before)
        .number("settle_ns", settle_ns)
        .number("changed_bytes", changed_bytes() - changed_before_)
        .number("anonymous_bytes", anonymous_bytes())
        .raw("stops_ns", list_json(stops_.stops_ns()))
        .raw("epochs_ns", list_json(stops_.epochs_ns()));
    Counters().add_growth(before_, answer);
}

void Measured::slice(std::uint64_t slice_ns, Answer& answer)
{
    if (work_.job) {
        run_jobs(slice_ns, answer, nullptr);
        return;
    }
    const auto turns = [this](unsigned thread, std::uint64_t deadline_ns) {
        Context& context = threads_[thread].context;
        const unsigned operations_per_turn = work_.operations->operations_per_turn();
        std::uint64_t done = 0;
        while (monotonic_ns() < deadline_ns) {
            work_.operations->perform(context, operations_per_turn);
            done += operations_per_turn;
        }
        return done;
    };
    run_operations(slice_ns, turns, answer);
}

void Measured::run_operations(std::uint64_t slice_ns, const SliceThreads::Work& turns, Answer& answer)
{
    begin_slice();
    const std::uint64_t cpu_before = process_cpu_ns();
    const auto slice = run_looking(slice_ns, turns);
    end_slice(slice.operations, slice.wall_ns, process_cpu_ns() - cpu_before, answer);
}

SliceThreads::Work Measured::resting_behind(const SliceThreads::Work& work)
{
    return [&work](unsigned thread, std::uint64_t deadline_ns) {
        const std::uint64_t done = work(thread, deadline_ns);
        rest();
        return done;
    };
}

SliceThreads::Slice Measured::run_looking(std::uint64_t slice_ns, const SliceThreads::Work& work)
{
    rest();
    return slices_.run(slice_ns, resting_behind(work), stops_.look_every_ns(), [this] { stops_.look(); });
}

void Measured::timed_slice(std::uint64_t slice_ns, Answer& answer)
{
    LatencyHistogram sum;
    TransactionPhases::begin();
    if (work_.job) {
        run_jobs(slice_ns, answer, &sum);
    } else {
        const auto turns = [this](unsigned thread, std::uint64_t deadline_ns) {
            Thread& own = threads_[thread];
            own.latencies = LatencyHistogram();
            std::uint64_t done = 0;
            std::uint64_t before_ns = monotonic_ns();
            while (before_ns < deadline_ns) {
                work_.operations->perform(own.context, 1);
                const std::uint64_t after_ns = monotonic_ns();
                own.latencies.record(after_ns - before_ns);
                before_ns = after_ns;
                ++done;
            }
            return done;
        };
        run_operations(slice_ns, turns, answer);
        for (const Thread& thread : threads_) {
            sum.add(thread.latencies);
        }
    }
    add_phases(TransactionPhases::end(), answer);
    answer.raw("latencies_ns", json_of(sum));
}

void Measured::exact(std::uint64_t operations, std::uint64_t parts, Answer& answer)
{
    begin_slice();
    const std::uint64_t began_ns = monotonic_ns();
    std::uint64_t fences = 0;
    for (std::uint64_t part = 0; part < parts; ++part) {
        const Counters before;
        // A signal that is ignored by default: tests/bench/step_counter.cpp counts the instructions between two of them.
        std::raise(SIGURG);
        work_.operations->perform(threads_[0].context, static_cast<unsigned>(operations / parts));
        std::raise(SIGURG);
        fences += Counters().value("fences") - before.value("fences");
        settle();
    }
    answer.number("fences_in_operations", fences);
    end_slice(operations / parts * parts, monotonic_ns() - began_ns, 0, answer);
}

SliceThreads::Work Measured::part_of_the_job()
{
    return [this](unsigned thread, std::uint64_t) -> std::uint64_t {
        work_.job->work(threads_[thread].context);
        return 0;
    };
}

void Measured::run_jobs(std::uint64_t slice_ns, Answer& answer, LatencyHistogram* latencies)
{
    begin_slice();
    const SliceThreads::Work part = part_of_the_job();
    std::uint64_t jobs = 0;
    std::uint64_t items = 0;
    std::uint64_t wall_ns = 0;
    std::uint64_t cpu_ns = 0;
    do {
        if (!std::exchange(job_goes_on_, false)) {
            work_.job->prepare();
        }
        const std::uint64_t cpu_before = process_cpu_ns();
        const auto one = run_looking(0, part);
        cpu_ns += process_cpu_ns() - cpu_before;
        wall_ns += one.wall_ns;
        ++jobs;
        items += work_.job->items();
        if (latencies != nullptr) {
            latencies->record(one.wall_ns);
        }
        if (std::string fault = work_.job->fault(); !fault.empty()) {
            fault_ = std::move(fault);
        }
    } while (wall_ns < slice_ns);
    end_slice(items, wall_ns, cpu_ns, answer);
    answer.number("jobs", jobs);
}

void Measured::work_until_killed(const std::string& path, std::uint64_t limit_ns, Answer& answer)
{
    constexpr std::size_t words_each = 8;
    std::uint64_t* const words = map_words(path, (shape_.threads + 1) * words_each * sizeof(std::uint64_t));
    const auto publish = [words](unsigned slot, std::uint64_t value) {
        std::atomic_ref(words[slot * words_each]).store(value, std::memory_order_release);
    };
    // Records of earlier lives were acknowledged then: a thread that completes nothing in this one has lost nothing.
    std::vector<std::uint64_t> told_before(shape_.threads);
    for (unsigned thread = 0; !work_.job && thread < shape_.threads; ++thread) {
        told_before[thread] = work_.operations->noted_progress(thread);
        publish(thread, told_before[thread]);
    }
    answer.number("working", 1).send();
    if (work_.job) {
        const SliceThreads::Work part = part_of_the_job();
        const std::uint64_t end_ns = monotonic_ns() + limit_ns;
        do {
            work_.job->prepare();
            rest();
            slices_.run(0, resting_behind(part), 1'000'000, [&] { publish(0, work_.job->steps_done()); });
        } while (!work_.job->goes_on_after_a_crash() && monotonic_ns() < end_ns);
        publish(shape_.threads, 1);  // the job ended before the kill
        return;
    }
    const SliceThreads::Work turns = [&](unsigned thread, std::uint64_t deadline_ns) {
        Context& context = threads_[thread].context;
        std::uint64_t done = told_before[thread];
        while (monotonic_ns() < deadline_ns) {
            work_.operations->perform(context, 1);
            work_.operations->note_progress(thread, ++done);
            publish(thread, done);
        }
        return done;
    };
    rest();
    slices_.run(limit_ns, resting_behind(turns));
}

void Measured::noted(Answer& answer)
{
    std::string notes = "[";
    if (work_.job) {
        notes += std::to_string(work_.job->steps_done());
    }
    for (unsigned thread = 0; !work_.job && thread < shape_.threads; ++thread) {
        notes += (thread == 0 ? "" : ", ") + std::to_string(work_.operations->noted_progress(thread));
    }
    answer.raw("noted", notes + "]");
}

void Measured::check()
{
    if (!work_.job && fault_.empty()) {
        fault_ = work_.operations->fault();
    }
}

}  // namespace bench
