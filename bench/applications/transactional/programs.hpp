#pragma once
// The shared part of the transactional programs, those of STAMP (Minh, Chung, Kozyrakis, Olukotun, IISWC 2008) and TPC-C: what the driver
// asks of a workload or a job, on the transactional memory of the current engine.
//
// A program's input is made by a generator in ordinary memory, the same one in each process: it stands for a file. What the program
// computes is in transactional memory, and so is the stage of the job: memory that a crash has left is checked before it is used again.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "../../engines/current.hpp"
#include "../../transactions/transactions.hpp"
#include "../../worker/workload.hpp"
#include "../../workloads/team.hpp"

namespace bench {

/// A program's parameters by the size of its input: for tests, the usual ones, and those of the long runs that STAMP marks with "++",
/// scaled to some seconds on two cores.
template <class Parameters>
[[nodiscard]] Parameters parameters_for(const Shape& shape, const Parameters& smoke, const Parameters& usual, const Parameters& large)
{
    return shape.is_smoke ? smoke : shape.is_large ? large : usual;
}

/// Operations without end, each a transaction.
class TransactionalWorkload : public Workload {
public:
    using M = CurrentTransactions;
    static_assert(TransactionalMemory<M>);

    explicit TransactionalWorkload(const Shape& shape)
    {
        M::open(shape);
        notes_ = M::named<Note>("bench.notes", threads_max);
    }

    void settle() final { M::settle(); }
    void note_progress(unsigned thread, std::uint64_t operations) final
    {
        M::atomically([&](auto& tx) { tx.write(notes_[thread].operations, operations); });
    }
    std::uint64_t noted_progress(unsigned thread) final { return notes_[thread].operations; }

private:
    static constexpr unsigned threads_max = 64;
    struct alignas(64) Note {
        std::uint64_t operations;
    };

    Note* notes_ = nullptr;
};

/// A computation with a result. Its unit is a committed transaction of the threads' work.
class TransactionalJob : public Job, public Team {
public:
    using M = CurrentTransactions;
    static_assert(TransactionalMemory<M>);

    explicit TransactionalJob(const Shape& shape) : Team(shape.threads), done_(shape.threads)
    {
        M::open(shape);
        stage_ = M::named<Stage>("bench.stage");
    }

    void load() final
    {
        make_input();
        find_memory();
        recovered_fault_ = *stage_ == Stage::working ? fault_of_unfinished() : *stage_ == Stage::done ? fault_of_result() : std::string();
    }
    [[nodiscard]] std::string recovered_fault() const final { return recovered_fault_; }
    void prepare() final
    {
        enter(Stage::clearing);
        clear();
        enter(Stage::working);
        done_.assign(threads(), {});
    }
    void work(Context& context) final
    {
        run(context);
        wait_for_all();
        if (context.thread == 0) {
            enter(Stage::done);
        }
    }
    [[nodiscard]] std::string fault() final { return fault_of_result(); }
    void settle() final { M::settle(); }
    [[nodiscard]] std::uint64_t items() const final
    {
        std::uint64_t sum = 0;
        for (const Done& one : done_) {
            sum += one.transactions;
        }
        return sum;
    }

protected:
    /// In ordinary memory.
    virtual void make_input() = 0;
    /// Finds the named memory, or makes it.
    virtual void find_memory() = 0;
    /// Brings the memory to the state in which a job begins, whatever state it has.
    virtual void clear() = 0;
    virtual void run(Context& context) = 0;
    /// The error in the result of a whole job, in a sentence; empty: nothing.
    [[nodiscard]] virtual std::string fault_of_result() const = 0;
    /// The error in what a crash has left of a job: what holds between any two transactions, does not. Empty: nothing.
    [[nodiscard]] virtual std::string fault_of_unfinished() const = 0;

    /// A transaction of the threads' work.
    template <class Body>
    auto atomically(const Context& context, Body&& body)
    {
        ++done_[context.thread].transactions;
        return M::atomically(std::forward<Body>(body));
    }

    /// Sets `count` words to one value, in transactions of some of them.
    template <Word T>
    static void fill(T* words, std::size_t count, T value = {})
    {
        constexpr std::size_t each = 512;
        for (std::size_t first = 0; first < count; first += each) {
            const std::size_t end = first + each < count ? first + each : count;
            M::atomically([&](auto& tx) {
                for (std::size_t i = first; i < end; ++i) {
                    write_changed(tx, words[i], value);
                }
            });
        }
    }

private:
    enum class Stage : std::uint64_t { none, clearing, working, done };
    struct alignas(64) Done {
        std::uint64_t transactions = 0;
    };

    void enter(Stage stage)
    {
        M::atomically([&](auto& tx) { tx.write(*stage_, stage); });
    }

    Stage* stage_ = nullptr;
    std::vector<Done> done_;
    std::string recovered_fault_;
};

}  // namespace bench
