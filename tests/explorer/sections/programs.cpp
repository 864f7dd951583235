// Threads change parts of durable memory under a lock each, and wait for each other by condition variables and barriers.

#include "sections/programs.hpp"

#include <algorithm>
#include <condition_variable>

#include "engines/nvthreads.hpp"
#include "objects/threads.hpp"
#include "objects/told_mutex.hpp"
#include "objects/told_rwlock.hpp"
#include "sections/section.hpp"
#include "transactions/parts_program.hpp"

namespace stillpoint::explorer {

namespace {

PartLocks<ToldMutex> mutexes;
PartLocks<ToldRwlock> rwlocks;

class SectionProgram : public PartsProgram {
protected:
    using MutexSection = Section<ToldMutex>;

    /// `sections` of each of two or three threads.
    template <class Work>
    static void on_threads(TransactionParts& parts, Random& random, int sections, Work work)
    {
        const auto all = [&parts, sections, work](Random own) {
            for (int i = 0; i < sections; ++i) {
                work(parts, own);
            }
        };
        Threads threads;
        for (std::size_t i = 1 + random() % 2; i != 0; --i) {
            start(threads, [all, own = Random(random())] { all(own); });
        }
        all(Random(random()));
        threads.join();
    }
    template <class Work>
    static void start(Threads& threads, Work work)
    {
        section_ends::tell_wakeup();  // As pthread_create does.
        threads.run(std::move(work));
    }
};

class Sequential final : public SectionProgram {
    void work_on(TransactionParts& parts, Random& random) override { MutexSection(mutexes, parts, some_parts(random, 2), random).nested(); }
};

/// Blocks of few sizes, which other threads' lists get as soon as they are free: threads take blocks of the same spans.
class Churn final : public SectionProgram {
    void work_on(TransactionParts& parts, Random& random) override
    {
        on_threads(parts, random, 4, [](TransactionParts& all, Random& own) {
            MutexSection section(mutexes, all, some_parts(own, 2), own);
            section.change_lists({own() % 2 == 0 ? std::size_t{200} : std::size_t{900}, 2, false});
            own() % 2 == 0 ? section.nested() : section.overlapping();
        });
    }
};

/// So many blocks in a section that a thread gives away some of those that it has freed before the section ends.
class Passing final : public SectionProgram {
    void work_on(TransactionParts& parts, Random& random) override
    {
        on_threads(parts, random, 4, [](TransactionParts& all, Random& own) {
            MutexSection section(mutexes, all, some_parts(own, 2), own);
            section.change_lists({900, 24, true});
            section.nested();
        });
    }
};

class Several : public SectionProgram {
protected:
    void work_on(TransactionParts& parts, Random& random) override
    {
        on_threads(parts, random, 4, [](TransactionParts& all, Random& own) {
            MutexSection section(mutexes, all, some_parts(own, 2), own);
            own() % 4 == 0 ? section.read_only() : section.nested();
        });
    }
};

class Overlapping : public SectionProgram {
protected:
    void work_on(TransactionParts& parts, Random& random) override
    {
        on_threads(parts, random, 4, [](TransactionParts& all, Random& own) {
            MutexSection section(mutexes, all, some_parts(own, 3), own);
            own() % 3 == 0 ? section.nested() : section.overlapping();
        });
    }
};

class Readers : public SectionProgram {
protected:
    void work_on(TransactionParts& parts, Random& random) override
    {
        on_threads(parts, random, 5, [](TransactionParts& all, Random& own) {
            Section<ToldRwlock> section(rwlocks, all, some_parts(own, 3), own);
            switch (own() % 4) {
            case 0: section.nested(); break;
            case 1: section.shared(); break;
            case 2: section.overlapping(); break;
            default: section.shared_but_the_last(); break;
            }
        });
    }
};

/// A thread changes a part, waits with its lock held for another thread's change of a second part, and changes that too: one section,
/// of which the other thread may see the first half. A third thread works on what the first has changed before.
class Conditions : public SectionProgram {
    static constexpr std::size_t held = 0;
    static constexpr std::size_t awaited = 1;
    static constexpr int rounds = 3;

    struct Turn {
        std::condition_variable changed;
        bool is_waiting = false;  ///< under the lock of `awaited`
    };

protected:
    void work_on(TransactionParts& parts, Random& random) override
    {
        Turn turn;
        Threads threads;
        start(threads, [&parts, &turn, own = Random(random())]() mutable { answer(parts, turn, own); });
        if (random() % 2 == 0) {
            start(threads, [&parts, own = Random(random())]() mutable {
                for (int i = 0; i < 2 * rounds; ++i) {
                    auto numbers = std::vector<std::size_t>{held, awaited + 1 + own() % (transaction_parts - awaited - 1)};
                    MutexSection section(mutexes, parts, std::move(numbers), own);
                    own() % 2 == 0 ? section.nested() : section.overlapping();
                }
            });
        }
        ask(parts, turn, random);
        threads.join();
    }

private:
    static void ask(TransactionParts& parts, Turn& turn, Random& random)
    {
        for (int i = 0; i < rounds; ++i) {
            PartsSeen section(parts, random);
            mutexes[held].lock();
            section.see(held);
            section.expect(held, 1);
            mutexes[awaited].lock();
            section.expect(awaited, 2);  // That of the other thread, and one more of its own.
            section.change(held);
            turn.is_waiting = true;
            turn.changed.notify_all();
            while (turn.is_waiting) {
                mutexes[awaited].wait(turn.changed);
            }
            section.see(awaited);
            section.change(awaited);
            mutexes[awaited].unlock();
            section.pause_sometimes();
            mutexes[held].unlock();
            section.acknowledge_unlocked();
        }
    }
    static void answer(TransactionParts& parts, Turn& turn, Random& random)
    {
        for (int i = 0; i < rounds; ++i) {
            PartsSeen section(parts, random);
            mutexes[awaited].lock();
            while (!turn.is_waiting) {
                mutexes[awaited].wait(turn.changed);
            }
            // The first half of the other's section is there to be seen: it has told so by the condition.
            section.see(held);
            section.see(awaited);
            section.expect(awaited, 1);
            section.change(awaited);
            turn.is_waiting = false;
            turn.changed.notify_all();
            mutexes[awaited].unlock();
            section.acknowledge_unlocked();
        }
    }
};

/// Each thread changes a part of its own without a lock, and has seen all of the others' at the barrier before. The first thread's changes
/// lie in a section that goes on at the barrier, and ends with one more.
class Barriers final : public SectionProgram {
    static constexpr std::size_t locked = transaction_parts - 1;
    static constexpr int rounds = 3;

    void work_on(TransactionParts& parts, Random& random) override
    {
        const std::size_t others = 1 + random() % 2;
        ToldBarrier barrier(static_cast<int>(others) + 1);
        Threads threads;
        for (std::size_t i = 1; i <= others; ++i) {
            start(threads, [&parts, &barrier, i, others, own = Random(random())]() mutable {
                for (int round = 0; round < rounds; ++round) {
                    work_unlocked(parts, barrier, i, others, own);
                }
            });
        }
        for (int round = 0; round < rounds; ++round) {
            work_in_a_section(parts, barrier, others, random);
        }
        threads.join();
    }

    static void see_others(PartsSeen& work, std::size_t own, std::size_t others)
    {
        for (std::size_t i = 0; i <= others; ++i) {
            if (i != own) {
                work.see(i);
            }
        }
    }
    static void work_unlocked(TransactionParts& parts, ToldBarrier& barrier, std::size_t number, std::size_t others, Random& random)
    {
        PartsSeen first(parts, random);
        first.see(number);
        first.expect(number, 1);
        first.change(number);
        barrier.wait();
        PartsSeen second(parts, random);
        see_others(second, number, others);
        second.see(locked);
        second.see(number);
        second.expect(number, 1);
        barrier.wait();
        second.change(number);
        // Before the last barrier: what is waited for includes a section that goes on, and the next one goes on at the barrier.
        first.acknowledge_after_wait();
        second.acknowledge_after_wait();
        barrier.wait();
    }
    static void work_in_a_section(TransactionParts& parts, ToldBarrier& barrier, std::size_t others, Random& random)
    {
        PartsSeen section(parts, random);
        mutexes[locked].lock();
        section.see(locked);
        section.expect(locked, 1);
        section.see(0);
        section.expect(0, 1);  // After the barriers.
        section.change(locked);
        barrier.wait();
        see_others(section, 0, others);
        barrier.wait();
        section.pause_sometimes();
        section.change(0);
        mutexes[locked].unlock();
        section.acknowledge_unlocked();
        barrier.wait();
    }
};

std::string staging(std::uint64_t seed) { return " staging_max_mb=" + std::to_string(seed % 2 == 0 ? 64 : 1); }
std::string options(std::uint64_t seed) { return " acknowledge=unlock" + staging(seed); }
std::string order_options(std::uint64_t seed) { return " acknowledge=order order_delay_ms=0" + staging(seed); }

/// The program's sections take the way of threads=processes into the logs.
template <class Program>
class Scribed final : public Program {
    void work_on(TransactionParts& parts, Random& random) override
    {
        const Scribing scribing;
        Program::work_on(parts, random);
    }
};

template <class Program, bool unlocks_wait = true>
std::unique_ptr<ObjectWorkload> make()
{
    PartsSeen::unlocks_wait = unlocks_wait;
    return std::make_unique<Program>();
}

}  // namespace

const std::vector<ObjectWorkloadEntry>& section_programs()
{
    static const std::vector<ObjectWorkloadEntry> entries = {
        {"parts", &make<Sequential>, 10, &options, true},       {"churn", &make<Churn>, 3, &options, true},
        {"passing", &make<Passing>, 3, &options, true},         {"several", &make<Several>, 3, &options, true},
        {"overlapping", &make<Overlapping>, 3, &options, true}, {"readers", &make<Readers>, 3, &options, true},
        {"conditions", &make<Conditions>, 3, &options, true},   {"barriers", &make<Barriers>, 3, &options, true},
    };
    return entries;
}

const std::vector<ObjectWorkloadEntry>& scribed_programs()
{
    static const std::vector<ObjectWorkloadEntry> entries = {
        {"several", &make<Scribed<Several>>, 3, &options, true},
        {"overlapping", &make<Scribed<Overlapping>>, 3, &options, true},
        {"readers", &make<Scribed<Readers>>, 3, &options, true},
        {"conditions", &make<Scribed<Conditions>>, 3, &options, true},
    };
    return entries;
}

const std::vector<ObjectWorkloadEntry>& ordered_section_programs()
{
    static const std::vector<ObjectWorkloadEntry> entries = {
        {"churn", &make<Churn, false>, 3, &order_options, true},
        {"several", &make<Several, false>, 3, &order_options, true},
        {"overlapping", &make<Overlapping, false>, 3, &order_options, true},
    };
    return entries;
}

const ObjectWorkloadEntry& section_program_called(std::string_view name)
{
    return *std::find_if(section_programs().begin(), section_programs().end(),
                         [=](const ObjectWorkloadEntry& entry) { return entry.name == name; });
}

}  // namespace stillpoint::explorer
