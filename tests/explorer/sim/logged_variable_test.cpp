// Logged variables [ResPCT §3.2.1] against the crash model: the stores of respct.hpp itself, traced, and recovery after every crash.
//
// The program is a pipeline of epochs. While epoch E + 1 runs, and updates the variable or not, lines of E are written back, then E is
// committed: until then, the variable must come back as it was at the end of E - 1. Two backups hold that; one does only where nothing
// runs between the end of E and its commit; and none holds where the words of a line reach the disk from different instants.

#include "core/sanitizers.hpp"

#if defined(__x86_64__) && !STILLPOINT_THREAD_SANITIZER  // A handler of ours may not interrupt the sanitizer's runtime.

#define STILLPOINT_RESPCT_CHECKED 0  // The plain form: the checked one knows no variables outside a pool.

#include <cstring>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "core/logged_words.hpp"
#include "engines/respct/thread.hpp"
#include "sim/crash_images.hpp"
#include "sim/sim_medium.hpp"
#include "stillpoint/respct.hpp"

namespace stillpoint::sim {
namespace {

constexpr std::uint64_t variable_offset = page_bytes;
constexpr std::uint64_t file_bytes = 2 * page_bytes;

struct Pair {
    std::uint64_t first;
    std::uint64_t second;
};

template <class T>
T value_of(std::uint64_t number)
{
    if constexpr (std::is_same_v<T, Pair>) {
        return {number, ~number};
    } else {
        return static_cast<T>(number);
    }
}

/// The variable of respct.hpp.
template <class T>
struct TwoBackups {
    respct::logged<T> variable;

    void initialise(std::uint64_t number) { variable.initialise(value_of<T>(number)); }
    void update(std::uint64_t number) { variable = value_of<T>(number); }
    void recover(std::uint64_t durable)
    {
        alignas(64) std::byte again[sizeof *this];
        std::memcpy(again, static_cast<const void*>(this), sizeof again);
        logged::roll_back(reinterpret_cast<std::byte*>(this), respct::logged<T>::kind, durable);
        // Recovery that is cut off before it has written the epoch word, and done again, comes to the same.
        std::memcpy(again, static_cast<const void*>(this), sizeof(T));
        logged::roll_back(again, respct::logged<T>::kind, durable);
        EXPECT_EQ(std::memcmp(again, this, sizeof(T)), 0);
    }
    [[nodiscard]] bool holds(std::uint64_t number) const
    {
        const T wanted = value_of<T>(number);
        return std::memcmp(this, &wanted, sizeof wanted) == 0;
    }
};

/// The paper's variable: record, backup, epoch [Figure 2].
struct alignas(32) OneBackup {
    std::uint64_t record;
    std::uint64_t backup;
    std::uint64_t epoch;

    void store(std::uint64_t& word, std::uint64_t value) { __atomic_store_n(&word, value, __ATOMIC_SEQ_CST); }
    void initialise(std::uint64_t number)
    {
        store(record, number);
        store(backup, number);
        store(epoch, sp_respct_running >> 1);
    }
    void update(std::uint64_t number)
    {
        if (epoch != sp_respct_running >> 1) {
            store(backup, record);
            store(epoch, sp_respct_running >> 1);
        }
        store(record, number);
    }
    void recover(std::uint64_t durable) { record = epoch > durable ? backup : record; }
    [[nodiscard]] bool holds(std::uint64_t number) const { return record == number; }
};

/// The work of the program while the lines of the epoch before are in flight.
struct Epoch {
    unsigned updates_before_write_back;
    unsigned updates_before_commit;
    unsigned updates_after_commit;
};

std::vector<Epoch> random_program(std::mt19937_64& random, bool stops_for_write_back)
{
    std::vector<Epoch> program(5);
    for (Epoch& epoch : program) {
        const unsigned overlap = stops_for_write_back ? 0 : 1;
        epoch = {static_cast<unsigned>(random() % 3) * overlap, static_cast<unsigned>(random() % 2) * overlap,
                 static_cast<unsigned>(random() % 3)};
    }
    return program;
}

template <class Variable>
class Pipeline {
public:
    Pipeline() : trace_(std::size_t{1} << 22), stage_(true, CrashImage{PageMap{}, false})
    {
        auto* const place = static_cast<std::byte*>(
            mmap(reinterpret_cast<void*>(window_base), page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0));
        set_stage(&stage_);
        MediumOptions options;
        options.path = "simulated";
        medium_ = std::move(*create_medium(options, file_bytes));
        const auto mapped = medium_->map_at(place, variable_offset, page_bytes);
        EXPECT_TRUE(mapped) << mapped.error().message;
        variable_ = reinterpret_cast<Variable*>(place);
        recording.store(&trace_);
    }
    Pipeline(const Pipeline&) = delete;
    Pipeline& operator=(const Pipeline&) = delete;
    ~Pipeline()
    {
        recording.store(nullptr);
        set_stage(nullptr);
        munmap(static_cast<void*>(variable_), page_bytes);
        respct::set_running_epoch(0);
    }

    void run(const std::vector<Epoch>& program)
    {
        ends_ = {0};
        begin_epoch();
        variable_->initialise(++number_);
        updated_ = true;
        for (const Epoch& epoch : program) {
            const bool must_be_written_back = updated_;
            begin_epoch();
            update(epoch.updates_before_write_back);
            if (must_be_written_back) {
                const auto line = reinterpret_cast<std::uintptr_t>(variable_);
                medium_->write_back_lines({&line, 1});
                medium_->fence();
            }
            update(epoch.updates_before_commit);
            record(EventKind::sync);
            record(EventKind::acknowledge, 0, nullptr, 0, (sp_respct_running >> 1) - 1);
            update(epoch.updates_after_commit);
        }
    }

    /// Crashes that are not recovered to the end of the newest durable epoch.
    [[nodiscard]] unsigned violations(Profile profile, PageCopy page_copy = PageCopy::at_one_instant) const
    {
        unsigned found = 0;
        std::uint64_t durable = 0;
        std::mt19937_64 random(1);
        CrashModel model(profile, CrashImage{PageMap(file_bytes), true}, page_copy);
        for (const Event& event : trace_.events()) {
            model.apply(event);
            durable = event.kind == EventKind::acknowledge ? event.value : durable;
            if (durable == 0) {
                continue;  // The variable does not exist.
            }
            for_each_image(model, {}, random, [&](const CrashImage& image) {
                Variable recovered;
                image.content.read(variable_offset, &recovered, sizeof recovered);
                recovered.recover(durable);
                found += recovered.holds(ends_[durable]) ? 0u : 1u;
                return true;
            });
        }
        return found;
    }

private:
    void begin_epoch()
    {
        if (ends_.size() > 1 || number_ != 0) {
            ends_.push_back(number_);
        }
        respct::set_running_epoch(ends_.size());
        updated_ = false;
    }
    void update(unsigned times)
    {
        for (; times != 0; --times) {
            variable_->update(++number_);
            updated_ = true;
        }
    }

    Trace trace_;
    Stage stage_;
    std::unique_ptr<Medium> medium_;
    Variable* variable_;
    std::uint64_t number_ = 0;
    bool updated_ = false;  ///< in the running epoch
    std::vector<std::uint64_t> ends_;  ///< the value at the end of each epoch; epoch 0 has none
};

template <class Variable>
unsigned violations_of_programs(Profile profile, PageCopy page_copy = PageCopy::at_one_instant, bool stops_for_write_back = false)
{
    std::mt19937_64 random(7);
    unsigned found = 0;
    for (int i = 0; i < 60; ++i) {
        Pipeline<Variable> pipeline;
        pipeline.run(random_program(random, stops_for_write_back));
        found += pipeline.violations(profile, page_copy);
    }
    return found;
}

template <class Variable>
class LoggedVariable : public ::testing::Test {};
using Variables = ::testing::Types<TwoBackups<std::uint8_t>, TwoBackups<std::uint16_t>, TwoBackups<std::uint32_t>,
                                   TwoBackups<std::uint64_t>, TwoBackups<Pair>>;
TYPED_TEST_SUITE(LoggedVariable, Variables);

TYPED_TEST(LoggedVariable, ComesBackWithTwoEpochsInFlight)
{
    EXPECT_EQ(violations_of_programs<TypeParam>(Profile::cache_line), 0u);
    EXPECT_EQ(violations_of_programs<TypeParam>(Profile::persistent_caches), 0u);
    EXPECT_EQ(violations_of_programs<TypeParam>(Profile::process), 0u);
}

TYPED_TEST(LoggedVariable, ComesBackFromAMappedFileWhoseSectorsAreCopiedAtOneInstant)
{
    EXPECT_EQ(violations_of_programs<TypeParam>(Profile::page), 0u);
}

TYPED_TEST(LoggedVariable, IsLostInAMappedFileWhosePagesAreCopiedInMotion)
{
    EXPECT_GT(violations_of_programs<TypeParam>(Profile::page, PageCopy::word_by_word), 0u);
}

TEST(LoggedVariableWithOneBackup, ComesBackOnlyIfTheProgramStopsForTheWriteBack)
{
    EXPECT_EQ(violations_of_programs<OneBackup>(Profile::cache_line, PageCopy::at_one_instant, true), 0u);
    EXPECT_GT(violations_of_programs<OneBackup>(Profile::cache_line), 0u)
        << "the update in the epoch that runs meanwhile overwrites the backup that a crash still needs";
}

}  // namespace
}  // namespace stillpoint::sim

#endif
