// Threads change parts of durable memory under a lock each. The parts are those of transactions (transactions/parts.hpp): what a section
// has seen is written into each part that it changes, so a recovered pool shows whether a section survived without one that it depends on,
// or by half.

#include "sections/programs.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <new>
#include <stdexcept>
#include <unistd.h>

#include "objects/threads.hpp"
#include "objects/told_mutex.hpp"
#include "stillpoint/nvhooks.h"
#include "stillpoint/stillpoint.h"
#include "transactions/parts_program.hpp"

namespace stillpoint::explorer {

namespace {

std::array<ToldMutex, transaction_parts> part_locks;

template <class T>
void store(T& place, const T& value)
{
    place = value;
    sp_mark_written(&place, sizeof place);
}

void add_block(TransactionPart& part, std::uint64_t serial, std::size_t words)
{
    auto* const block = static_cast<PartBlock*>(sp_malloc(offsetof(PartBlock, words) + words * sizeof(std::uint64_t)));
    if (block == nullptr) {
        throw std::bad_alloc();
    }
    store(block->next, part.first);
    store(block->serial, serial);
    store(block->word_count, std::uint64_t{words});
    for (std::size_t i = 0; i < words; ++i) {
        store(block->words[i], part_word(serial, i));
    }
    store(part.first, block);
    store(part.length, part.length + 1);
    store(part.list_sum, part.list_sum + block_sum(serial));
}

void remove_block(TransactionPart& part)
{
    PartBlock* const gone = part.first;
    if (gone != nullptr) {
        store(part.first, gone->next);
        store(part.length, part.length - 1);
        store(part.list_sum, part.list_sum - block_sum(gone->serial));
        sp_free(gone);
    }
}

/// A section on some parts, in the order of their numbers.
class Section {
public:
    /// `block_words`: 0 for a section that leaves the lists alone.
    Section(TransactionParts& parts, std::vector<std::size_t> numbers, std::size_t block_words, Random& random)
        : parts_(parts), numbers_(std::move(numbers)), block_words_(block_words), random_(random), stamp_(random())
    {
    }

    /// All locks, then all changes, then all unlocks.
    void nested()
    {
        lock_all();
        for (const std::size_t number : numbers_) {
            change(number);
            pause_sometimes();
        }
        for (auto number = numbers_.rbegin(); number != numbers_.rend(); ++number) {
            part_locks[*number].unlock();
        }
        acknowledge();
    }
    /// Each part is given away as soon as it is changed, while the others' locks stay held.
    void overlapping()
    {
        lock_all();
        for (const std::size_t number : numbers_) {
            change(number);
            part_locks[number].unlock();
            pause_sometimes();
        }
        acknowledge();
    }
    void read_only()
    {
        lock_all();
        for (const std::size_t number : numbers_) {
            const TransactionPart& part = parts_.parts[number];
            if (part.operations != 0) {
                states_.emplace_back(number, digest_of_part(part));
            }
        }
        for (const std::size_t number : numbers_) {
            part_locks[number].unlock();
        }
        acknowledge();
    }

private:
    /// Every part that is changed has then seen what all of them will be.
    void lock_all()
    {
        for (const std::size_t number : numbers_) {
            part_locks[number].lock();
            const TransactionPart& part = parts_.parts[number];
            for (std::size_t i = 0; i < transaction_parts; ++i) {
                seen_[i] = std::max(seen_[i], part.seen[i]);
            }
            seen_[number] = std::max(seen_[number], part.operations + 1);
        }
    }

    /// Other sections begin and end meanwhile.
    void pause_sometimes()
    {
        if (random_() % 3 == 0) {
            usleep(static_cast<useconds_t>(random_() % 400));
        }
    }

    void change(std::size_t number)
    {
        TransactionPart& part = parts_.parts[number];
        store(part.stamp, stamp_);
        for (std::size_t i = 0; i < TransactionPart::word_count; ++i) {
            store(part.words[i], part_word(stamp_, i));
        }
        store(part.seen, seen_);
        if (block_words_ != 0) {
            for (std::uint64_t steps = random_() % 3; steps != 0; --steps) {
                random_() % 2 == 0 ? remove_block(part) : add_block(part, random_(), block_words_);
            }
        }
        store(part.operations, part.operations + 1);
        const std::uint64_t digest = digest_of_part(part);
        ObjectNotes::state(part_name(number), digest);
        states_.emplace_back(number, digest);
    }

    void acknowledge() const
    {
        const int outcome = sp_wait_durable(sp_epoch(), 0);
        if (outcome != SP_OK && outcome != SP_E_TIMED_OUT) {
            return;  // The pool has failed, which an unlock cannot say.
        }
        for (const auto& [part, digest] : states_) {
            ObjectNotes::acknowledged(part_name(part), digest);
        }
    }

    TransactionParts& parts_;
    std::vector<std::size_t> numbers_;
    std::size_t block_words_;
    Random& random_;
    std::uint64_t stamp_;
    std::array<std::uint64_t, transaction_parts> seen_{};
    PartStates states_;
};

std::vector<std::size_t> some_parts(Random& random, std::size_t most)
{
    std::vector<std::size_t> numbers;
    for (std::size_t i = 0; i < transaction_parts; ++i) {
        if (numbers.size() < most && random() % 2 == 0) {
            numbers.push_back(i);
        }
    }
    if (numbers.empty()) {
        numbers.push_back(random() % transaction_parts);
    }
    return numbers;
}

class SectionProgram : public PartsProgram {
protected:
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
            section_ends::tell_wakeup();  // As pthread_create does.
            threads.run([all, own = Random(random())] { all(own); });
        }
        all(Random(random()));
        threads.join();
    }
};

class Sequential final : public SectionProgram {
    void work_on(TransactionParts& parts, Random& random) override { Section(parts, some_parts(random, 2), 0, random).nested(); }
};

/// Blocks of many sizes, which other threads' lists get as soon as they are free.
class Churn final : public SectionProgram {
    void work_on(TransactionParts& parts, Random& random) override
    {
        on_threads(parts, random, 4, [](TransactionParts& all, Random& own) {
            // Few sizes: threads take blocks of the same spans.
            Section section(all, some_parts(own, 2), own() % 2 == 0 ? 200 : 900, own);
            own() % 2 == 0 ? section.nested() : section.overlapping();
        });
    }
};

class Several final : public SectionProgram {
    void work_on(TransactionParts& parts, Random& random) override
    {
        on_threads(parts, random, 4, [](TransactionParts& all, Random& own) {
            Section section(all, some_parts(own, 2), 0, own);
            own() % 4 == 0 ? section.read_only() : section.nested();
        });
    }
};

class Overlapping final : public SectionProgram {
    void work_on(TransactionParts& parts, Random& random) override
    {
        on_threads(parts, random, 4, [](TransactionParts& all, Random& own) {
            Section section(all, some_parts(own, 3), 0, own);
            own() % 3 == 0 ? section.nested() : section.overlapping();
        });
    }
};

std::string options(std::uint64_t seed) { return " acknowledge=unlock staging_max_mb=" + std::to_string(seed % 2 == 0 ? 64 : 1); }

template <class Program>
std::unique_ptr<ObjectWorkload> make()
{
    return std::make_unique<Program>();
}

}  // namespace

const std::vector<ObjectWorkloadEntry>& section_programs()
{
    static const std::vector<ObjectWorkloadEntry> entries = {
        {"parts", &make<Sequential>, 10, &options, true},
        {"churn", &make<Churn>, 3, &options, true},
        {"several", &make<Several>, 3, &options, true},
        {"overlapping", &make<Overlapping>, 3, &options, true},
    };
    return entries;
}

const ObjectWorkloadEntry& section_program_called(std::string_view name)
{
    return *std::find_if(section_programs().begin(), section_programs().end(),
                         [=](const ObjectWorkloadEntry& entry) { return entry.name == name; });
}

}  // namespace stillpoint::explorer
