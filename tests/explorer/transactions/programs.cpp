// Programs in transactions: one after the other, or of several threads at a time.

#include "transactions/programs.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <stdexcept>

#include "objects/threads.hpp"
#include "stillpoint/stillpoint.h"
#include "transactions/parts_program.hpp"

namespace stillpoint::explorer {

namespace {

/// One transaction; whatever it has read or made is acknowledged. `also` is run in its body, after its work.
void transact(TransactionParts& parts, const PartsChange& change, Random& random, unsigned flags = 0,
              const std::function<void(spht::transaction&, ToldTransaction&)>& also = {})
{
    ToldTransaction told;
    try {
        spht::atomically(
            [&](spht::transaction& tx) {
                told.begin_attempt();
                told.work(tx, parts, change, random);
                if (also) {
                    also(tx, told);
                }
            },
            flags);
    } catch (const spht::error& error) {
        if (error.code() == SP_E_ABORTED || error.code() == SP_E_TRANSACTION_TOO_LARGE) {
            told.take_back();
        }
        throw;  // Otherwise it is done, and may be lost.
    } catch (...) {
        told.take_back();
        throw;
    }
    told.acknowledge();
}

std::size_t any_part(Random& random) { return random() % transaction_parts; }

PartsChange small_change(Random& random)
{
    PartsChange change;
    change.written.insert(any_part(random));
    if (random() % 2 == 0) {
        change.written.insert(any_part(random));
    }
    if (random() % 2 == 0) {
        change.read.insert(any_part(random));
    }
    change.list_steps = static_cast<int>(random() % 4) - 1;
    return change;
}

class Sequential final : public PartsProgram {
    void work_on(TransactionParts& parts, Random& random) override { transact(parts, small_change(random), random); }
};

/// Blocks of many sizes, of which spans are made and given back.
class Churn final : public PartsProgram {
    void work_on(TransactionParts& parts, Random& random) override
    {
        PartsChange change = small_change(random);
        change.list_steps = static_cast<int>(random() % 12) - 6;
        change.block_words = random() % 4 == 0 ? 1 + random() % 900 : 1 + random() % 30;
        transact(parts, change, random);
    }
};

/// Records of several parts, logs of many chunks, which are used again; the pool grows.
class Large final : public PartsProgram {
    void work_on(TransactionParts& parts, Random& random) override
    {
        for (int i = 0; i < 3; ++i) {  // Without a pause: a round of replay runs beside them.
            change_blocks(parts, random);
        }
    }

    static void change_blocks(TransactionParts& parts, Random& random)
    {
        PartsChange change = small_change(random);
        change.list_steps = 1 - static_cast<int>(random() % 3);
        change.block_words = random() % 3 == 0 ? random() % 70'000 : random() % 9000;
        try {
            transact(parts, change, random);
        } catch (const std::bad_alloc&) {
            change.list_steps = -2;  // The pool is full.
            transact(parts, change, random);
        }
    }
};

/// Transactions that are rolled back: by their bodies, by exceptions, by one inside; and those that are run again, or alone.
class Aborts final : public PartsProgram {
    struct Refrain final {};

    void work_on(TransactionParts& parts, Random& random) override
    {
        switch (random() % 7) {
        case 0: throws(parts, random, [](spht::transaction& tx) { tx.cancel(); }); break;
        case 1: throws(parts, random, [](spht::transaction&) { throw Refrain{}; }); break;
        case 2:
            throws(parts, random, [](spht::transaction&) { spht::atomically([](spht::transaction& inner) { inner.cancel(); }); });
            break;
        case 3: runs_again(parts, random); break;
        case 4: transact(parts, small_change(random), random, SP_SPHT_IRREVOCABLE); break;
        case 5: nests(parts, random); break;
        default: transact(parts, small_change(random), random);
        }
    }

    static void throws(TransactionParts& parts, Random& random, void (*end)(spht::transaction&))
    {
        bool aborted = false;
        try {
            transact(parts, small_change(random), random, 0, [&](spht::transaction& tx, ToldTransaction&) {
                tx.on_abort([&] { aborted = true; });
                end(tx);
            });
            throw std::logic_error("a transaction that was rolled back has committed");
        } catch (const Refrain&) {
        } catch (const spht::error& error) {
            if (error.code() != SP_E_ABORTED) {
                throw;
            }
        }
        if (!aborted) {
            throw std::logic_error("the action for an abort was not called");
        }
    }

    static void runs_again(TransactionParts& parts, Random& random)
    {
        int attempts = 0;
        transact(parts, small_change(random), random, 0, [&](spht::transaction& tx, ToldTransaction&) {
            if (++attempts < 3) {
                tx.retry();
            }
        });
    }

    /// The inner one's work is the outer one's.
    static void nests(TransactionParts& parts, Random& random)
    {
        const PartsChange inner = small_change(random);
        transact(parts, {}, random, 0, [&](spht::transaction&, ToldTransaction& told) {
            spht::atomically([&](spht::transaction& tx) { told.work(tx, parts, inner, random); });
        });
    }
};

/// Named objects are made and deleted between transactions that say which there are: what is older than a transaction is durable with it.
class Names final : public PartsProgram {
    static constexpr const char* list_handle = "names";
    static constexpr std::size_t name_count = 12;
    struct List {
        std::uint64_t serial;
        std::array<std::uint64_t, name_count> present;  ///< serial number of the object, 0: none, or one that is being made or deleted
    };
    struct Named {
        std::uint64_t words[40];
    };

    static std::string name_of(std::size_t index) { return "object " + std::string(index % 7, 'x') + std::to_string(index); }

    void find_more() override { list_ = static_cast<List*>(sp_root_find(list_handle, nullptr)); }

    void work_on(TransactionParts& parts, Random& random) override
    {
        if (list_ == nullptr) {
            list_ = static_cast<List*>(sp_root(list_handle, sizeof *list_));
        }
        const std::size_t index = random() % name_count;
        if (list_->present[index] != 0) {
            transact(parts, small_change(random), random, 0,
                     [&](spht::transaction& tx, ToldTransaction&) { tx.write(list_->present[index], 0); });
            static_cast<void>(sp_root_delete(name_of(index).c_str()));
            return;
        }
        auto* const object = static_cast<Named*>(sp_root(name_of(index).c_str(), sizeof(Named)));
        if (object == nullptr) {
            throw std::runtime_error(sp_last_error());
        }
        transact(parts, small_change(random), random, 0, [&](spht::transaction& tx, ToldTransaction&) {
            const std::uint64_t serial = tx.read(list_->serial) + 1;
            tx.write(list_->serial, serial);
            tx.write(list_->present[index], serial);
            for (std::uint64_t& word : object->words) {
                tx.write(word, serial);
            }
        });
    }

    std::string look_at_more(const FindObject& find, std::uint64_t& blocks) const override
    {
        const auto* const list = static_cast<const List*>(find(list_handle));
        blocks += list != nullptr ? 1 : 0;
        for (std::size_t i = 0; i < name_count; ++i) {
            const auto* const object = static_cast<const Named*>(find(name_of(i)));
            blocks += object != nullptr ? 1 : 0;
            const std::uint64_t serial = list != nullptr ? list->present[i] : 0;
            if (serial == 0) {
                continue;
            }
            const auto is_other = [=](std::uint64_t word) { return word != serial; };
            if (object == nullptr || std::any_of(std::begin(object->words), std::end(object->words), is_other)) {
                return name_of(i) + (object == nullptr ? " is gone" : " is another object");
            }
        }
        return "";
    }

    List* list_ = nullptr;
};

/// Two or three threads on shared parts and on their own: what one of them reads, another has just committed.
class Several final : public PartsProgram {
    void work_on(TransactionParts& parts, Random& random) override
    {
        Threads threads;
        const std::size_t count = 2 + random() % 2;
        for (std::size_t i = 1; i < count; ++i) {
            threads.run([&parts, i, own = Random(random())]() mutable { work(parts, i, own); });
        }
        Random own(random());
        work(parts, 0, own);
        threads.join();
    }

    static void work(TransactionParts& parts, std::size_t thread, Random& random)
    {
        for (int i = 0; i < 4; ++i) {
            PartsChange change = small_change(random);
            switch (random() % 4) {
            case 0: transact(parts, {{}, change.written}, random, SP_SPHT_READ_ONLY); break;
            case 1:  // A part of its own: others commit beside it.
                change.written = {thread};
                change.read.clear();
                [[fallthrough]];
            default: transact(parts, change, random);
            }
        }
    }
};

/// One thread writes, two read what it is writing.
class Readers final : public PartsProgram {
public:
    explicit Readers(unsigned flags) : flags_(flags) {}

private:
    void work_on(TransactionParts& parts, Random& random) override
    {
        Threads threads;
        for (int i = 0; i < 2; ++i) {
            threads.run([&parts, own = Random(random()), flags = flags_]() mutable {
                for (int reads = 0; reads < 6; ++reads) {
                    transact(parts, {{}, {any_part(own), any_part(own)}}, own, flags);
                }
            });
        }
        Random own(random());
        for (int writes = 0; writes < 5; ++writes) {
            transact(parts, small_change(own), own);
        }
        threads.join();
    }

    unsigned flags_;
};

std::string options(std::uint64_t seed)
{
    return " staging_max_mb=" + std::to_string(seed % 2 == 0 ? 64 : 1) + " replayers=" + std::to_string(1 + seed % 3);
}

/// Hardware aborts by a seed, often enough that some transactions run alone.
std::string options_simulated(std::uint64_t seed)
{
    return options(seed) + " executor=simulated executor_seed=" + std::to_string(1 + seed);
}
std::string options_norec(std::uint64_t seed) { return options(seed) + " executor=norec"; }
std::string options_tinystm(std::uint64_t seed) { return options(seed) + " executor=tinystm"; }

template <class Program, unsigned... arguments>
std::unique_ptr<ObjectWorkload> make()
{
    return std::make_unique<Program>(arguments...);
}

}  // namespace

const std::vector<ObjectWorkloadEntry>& transaction_programs()
{
    static const std::vector<ObjectWorkloadEntry> entries = {
        {"parts", &make<Sequential>, 10, &options, true},
        {"churn", &make<Churn>, 10, &options, true},
        {"large", &make<Large>, 5, &options, true},
        {"aborts", &make<Aborts>, 14, &options, true},
        {"names", &make<Names>, 8, &options, true},
        {"several", &make<Several>, 3, &options, true},
        {"readers", &make<Readers, unsigned{SP_SPHT_READ_ONLY}>, 2, &options, true},
    };
    return entries;
}

const std::vector<ObjectWorkloadEntry>& transaction_programs_on(std::string_view executor)
{
    static const std::vector<ObjectWorkloadEntry> simulated = {
        {"churn", &make<Churn>, 10, &options_simulated, true},
        {"aborts", &make<Aborts>, 14, &options_simulated, true},
        {"several", &make<Several>, 3, &options_simulated, true},
        {"readers", &make<Readers, unsigned{SP_SPHT_READ_ONLY}>, 2, &options_simulated, true},
    };
    static const std::vector<ObjectWorkloadEntry> norec = {{"several", &make<Several>, 3, &options_norec, true}};
    static const std::vector<ObjectWorkloadEntry> tinystm = {{"several", &make<Several>, 3, &options_tinystm, true}};
    return executor == "simulated" ? simulated : executor == "norec" ? norec : tinystm;
}

const ObjectWorkloadEntry& transaction_program_called(std::string_view name)
{
    return *std::find_if(transaction_programs().begin(), transaction_programs().end(),
                         [=](const ObjectWorkloadEntry& entry) { return entry.name == name; });
}

const ObjectWorkloadEntry& readers_that_do_not_wait()
{
    static const ObjectWorkloadEntry entry{"readers", &make<Readers, unsigned{SP_SPHT_READ_ONLY | SP_SPHT_READS_MAY_BE_LOST}>, 4, &options,
                                           true};
    return entry;
}

}  // namespace stillpoint::explorer
