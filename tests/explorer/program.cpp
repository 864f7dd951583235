#include "program.hpp"

#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <new>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/registry.hpp"
#include "api/session.hpp"
#include "canonical_image.hpp"
#include "marks_by_hand.h"
#include "objects/object_program.hpp"
#include "os/log.hpp"
#include "page_digests.hpp"
#include "runtime/session_state.hpp"
#include "runtime/sync_objects.hpp"
#include "sim/sim_medium.hpp"
#include "sim/store_tracer.hpp"
#include "sim/two_sides.hpp"
#include "stillpoint/stillpoint.h"
#include "typed/typed_program.hpp"

namespace stillpoint::explorer {

namespace {

/// As marks_by_hand.h has it, for the engine that is told of stores by calls alone.
__attribute__((section(NVHOOKS_MODULE_SECTION), used)) const nvhooks_module calls_by_hand_record = {
    NVHOOKS_MODULE_MAGIC, NVHOOKS_ABI_VERSION, NVHOOKS_MODULE_CALLS_HOOKS, 0, 1, "nvthreads", "by hand"};

constexpr std::size_t trace_bytes = std::size_t{1} << 30;  // Address space; memory as it is used.
constexpr std::size_t message_bytes = 1024;
constexpr int failed = 3;

/// The program: what the child process does.
class Program {
public:
    Program(const ProgramPlan& plan, bool is_first, char* message)
        : plan_(plan), is_first_(is_first), message_(message), workload_(plan.workload->make_for(plan.engine)),
          operations_are_durable_(operations_are_durable(plan))
    {
    }

    int run(const std::string& path)
    {
        os::set_least_severity(os::Severity::error);
        if (sp_open(path.c_str(), options().c_str()) != SP_OK) {
            return refused(std::string("the pool does not open: ") + sp_last_error());
        }
        const std::uint64_t recovered = sp_durable_epoch();
        root_ = workload_->open_root();
        if (root_ == nullptr) {
            return refused(std::string("no root: ") + sp_last_error());
        }
        note_acknowledged(operations_of(root_), recovered);
        if (const std::string wrong = workload_->check(root_, find()); !wrong.empty()) {
            return fail("after recovery of epoch " + std::to_string(recovered) + ": " + wrong);
        }
        note_operation();
        try {
            for (std::uint64_t i = 0; i < plan_.operations; ++i) {
                if (!one_operation()) {
                    return plan_.failing_sync == UINT64_MAX ? failed : 0;
                }
            }
        } catch (const std::bad_alloc&) {
            return refused(std::string("no memory: ") + sp_last_error());
        } catch (const TransactionRefused& error) {
            return refused(std::string("a transaction is refused: ") + error.what());
        }
        if (plan_.ends_normally) {
            if (notes_states()) {
                note_state();
            }
            if (sp_close() != SP_OK && plan_.failing_sync == UINT64_MAX) {
                return fail(std::string("the pool does not close: ") + sp_last_error());
            }
        }
        return 0;
    }

private:
    [[nodiscard]] std::string options() const
    {
        std::string text = "quiet pool_size_mb=4 staging_max_mb=64 engine=" + plan_.engine + " tracker=" + plan_.tracker +
                           plan_.more_options + " pool_max_mb=" + std::to_string(plan_.workload->image_max_mb) +
                           " interval_ms=" + (plan_.timed ? "1" : "3600000") +
                           " durability=" + (plan_.profile == sim::Profile::process ? "process" : "power");
        if (locks_acknowledge()) {
            text += " acknowledge=unlock";
        }
        if (plan_.place != Place::simulated) {
            text += plan_.place == Place::real_file ? " medium=file" : " medium=memory";
        }
        return text;
    }

    [[nodiscard]] bool locks_acknowledge() const noexcept { return operations_are_durable_ && !works_in_transactions(plan_); }

    [[nodiscard]] static FindObject find()
    {
        return [](const std::string& handle) { return sp_root_find(handle.c_str(), nullptr); };
    }

    int fail(const std::string& text)
    {
        std::strncpy(message_, text.c_str(), message_bytes - 1);
        return failed;
    }

    /// A program whose sync fails may be refused anything from then on.
    int refused(const std::string& text) { return plan_.failing_sync == UINT64_MAX ? fail(text) : 0; }

    void note_operation()
    {
        const std::uint64_t digest = workload_->digest(root_, find());
        record(sim::EventKind::operation, 0, &digest, sizeof digest, workload_->operations(root_));
    }

    /// Before a checkpoint that the program asks for: it captures the state. One of transactions brings copies up to what is durable.
    [[nodiscard]] bool notes_states() const noexcept { return !plan_.timed && !operations_are_durable_; }

    /// The image as the next checkpoint will find it: this thread is the only one that writes it.
    void note_state()
    {
        Heap::finish_frees();  // As this thread's next restart point does.
        list_uses();
        const Engine& engine = *open_session()->engine;
        const std::uint64_t pages = engine.image_bytes() / page_bytes;
        // Nothing is loaded at its first touch into the simulated image of a new pool: pages without memory are zeroes, and stay without.
        const bool zero_if_absent = is_first_ && plan_.place == Place::simulated;
        const std::vector<unsigned char> resident = zero_if_absent ? resident_pages(engine.image_base(), pages)
                                                                   : std::vector<unsigned char>(pages, 1);
        const CanonicalImage image(plan_.engine, engine.image_base(), resident);
        std::vector<std::uint64_t> words(2 + pages);
        words[0] = operations_of(root_);
        words[1] = pages;
        for (std::uint64_t page = 0; page < pages; ++page) {
            words[2 + page] = resident[page] != 0 ? page_digest(image.page(page)) : 0;
        }
        record(sim::EventKind::state, 0, words.data(), words.size() * sizeof(std::uint64_t), sp_epoch());
    }

    /// As the stop will: its table of locks in use is part of the image.
    static void list_uses()
    {
        if (sync_uses::any.load()) {
            const SyncObjectsCapture capture(session_engine()->image_base(), [](void*, std::byte*, std::size_t) {}, nullptr);
        }
    }

    bool one_operation()
    {
        Random random((plan_.seed * 1'000'003 + plan_.run) * 1'000'003 + operations_of(root_));
        workload_->perform(root_, random, [this] {
            note_operation();
            if (plan_.timed && !operations_are_durable_) {
                note_state();  // A checkpoint comes when it likes, and between operations only.
            }
        });
        if (locks_acknowledge() && plan_.failing_sync != UINT64_MAX && sp_wait_durable(sp_epoch(), 60'000) != SP_OK) {
            return false;  // An unlock has no error to return.
        }
        if (operations_are_durable_) {  // The transaction, or the section, is durable.
            note_acknowledged(operations_of(root_), sp_durable_epoch());
            if (plan_.timed) {
                usleep(static_cast<useconds_t>(random() % 1500));  // Otherwise the program ends before the clock's first round.
            }
        }
        if (plan_.stray_store) {
            stray_store();
        }
        if ((plan_.checkpoint_each || random() % 5 < 2) && !acknowledge()) {
            return false;
        }
        return !plan_.has_replica || random() % 3 != 0 || look_at_replica(random() % 4 == 0);
    }

    void note_acknowledged(std::uint64_t operations, std::uint64_t epoch)
    {
        acknowledged_ = operations;
        record(sim::EventKind::acknowledge, operations, nullptr, sp_epoch(), epoch);
    }

    /// Learns that the replica has everything that is durable here.
    bool look_at_replica(bool rests)
    {
        constexpr useconds_t until_recorded_us = 30'000;
        const std::uint64_t epoch = sp_durable_epoch();
        if (sp_wait_durable_at(epoch, SP_LEVEL_REMOTE, 60'000) != SP_OK) {
            fail(std::string("a wait for the replica failed: ") + sp_last_error());
            return false;
        }
        record(sim::EventKind::replica_acknowledge, acknowledged_, nullptr, sp_epoch(), epoch);
        if (rests) {
            usleep(until_recorded_us);
        }
        return true;
    }

    bool acknowledge()
    {
        const std::uint64_t epoch = sp_epoch();
        const std::uint64_t operations = operations_of(root_);
        if (notes_states()) {
            note_state();
        }
        const int outcome = plan_.timed ? sp_wait_durable(epoch, 60'000) : sp_checkpoint();
        if (outcome != SP_OK) {
            fail(std::string("a checkpoint failed: ") + sp_last_error());
            return false;
        }
        // A wait need not be for a checkpoint, where sections are durable without one.
        note_acknowledged(operations, locks_acknowledge() ? sp_durable_epoch() : epoch);
        return true;
    }

    /// Where an engine with a defect would store: the pool's own bytes, and not by the medium's calls.
    static void stray_store()
    {
        const std::byte* const bytes = sim::stage()->visible_bytes();
        *const_cast<volatile std::byte*>(bytes + 2 * page_bytes) = std::byte{1};
    }

    const ProgramPlan& plan_;
    bool is_first_;  ///< it makes the pool
    char* message_;
    std::unique_ptr<Workload> workload_;
    bool operations_are_durable_;
    std::uint64_t acknowledged_ = 0;  ///< operations
    void* root_ = nullptr;
};

int typed_ran(const ProgramPlan& plan, char* message)
{
    const std::string problem = run_typed(plan);
    std::strncpy(message, problem.c_str(), message_bytes - 1);
    return problem.empty() ? 0 : failed;
}

int objects_ran(const ProgramPlan& plan, const std::string& path, char* message)
{
    const std::string problem = run_objects(plan, path);
    std::strncpy(message, problem.c_str(), message_bytes - 1);
    return problem.empty() ? 0 : failed;
}

sim::CrashModel replayed(const ProgramRun& run, const sim::CrashImage& before)
{
    sim::CrashModel model(sim::Profile::process, before);
    for (const sim::Event& event : run.events) {
        model.apply(event);
    }
    return model;
}

/// A page that is not as the trace has made it, or "". read(offset, page) is false where there is none.
template <class Read>
std::string changed_unseen(const sim::CrashModel& model, Read&& read)
{
    std::vector<std::byte> page(page_bytes);
    const sim::PageMap& content = model.visible().content;
    for (std::uint64_t at = 0; at < content.size_bytes(); at += page_bytes) {
        if (!read(at, page.data()) || !content.equals(at, page.data(), page_bytes)) {
            return "bytes of the page at offset " + std::to_string(at) + " changed unseen";
        }
    }
    return "";
}

void write_real_file(const std::string& path, const sim::CrashImage& file)
{
    unlink(path.c_str());
    if (!file.named) {
        return;
    }
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    bool good = fd >= 0 && ftruncate(fd, static_cast<off_t>(file.content.size_bytes())) == 0;
    file.content.for_each_page([&](std::uint64_t page, const std::byte* bytes) {
        good = good && pwrite(fd, bytes, page_bytes, static_cast<off_t>(page * page_bytes)) == page_bytes;
    });
    close(fd);
    if (!good) {
        throw std::runtime_error("cannot write " + path);
    }
}

std::string how_it_ended(int status, const char* message)
{
    if (WIFSIGNALED(status)) {
        const char* const why = WTERMSIG(status) == SIGSEGV ? " (a store past the medium faults like this)" : "";
        return std::string("the program died of signal ") + std::to_string(WTERMSIG(status)) + why;
    }
    if (WEXITSTATUS(status) != 0) {
        return message[0] != '\0' ? std::string(message) : "the program ended with exit code " + std::to_string(WEXITSTATUS(status));
    }
    return "";
}

}  // namespace

bool byte_addressable(const ProgramPlan& plan) noexcept
{
    switch (plan.place) {
    case Place::real_file: return false;
    case Place::real_memory: return true;
    case Place::simulated: break;
    }
    return plan.profile == sim::Profile::persistent_caches || plan.profile == sim::Profile::cache_line;
}

bool operations_are_durable(const ProgramPlan& plan) noexcept
{
    return works_in_transactions(plan) || find_engine(plan.engine)->programs == Programs::critical_sections;
}

bool works_in_transactions(const ProgramPlan& plan) noexcept { return find_engine(plan.engine)->programs == Programs::transactions; }

bool maps_its_file(const ProgramPlan& plan) noexcept { return byte_addressable(plan) && find_engine(plan.engine)->trackers.empty(); }

ProgramRunner::ProgramRunner(std::string scratch)
    : scratch_(std::move(scratch)), trace_(std::make_unique<sim::Trace>(trace_bytes)),
      message_(static_cast<char*>(mmap(nullptr, message_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)))
{
    if (message_ == MAP_FAILED) {
        throw std::bad_alloc();
    }
}

ProgramRun ProgramRunner::run(const ProgramPlan& plan, const sim::CrashImage& file)
{
    const std::string path = scratch_ + "/" + std::to_string(getpid()) + ".pool";
    if (plan.place != Place::simulated) {
        write_real_file(path, file);
    }
    std::unique_ptr<sim::Stage> stage;
    if (plan.place == Place::simulated) {
        stage = std::make_unique<sim::Stage>(byte_addressable(plan), file);
        stage->failing_sync = plan.failing_sync;
        stage->primitive = plan.primitive_files;
        stage->in_objects = plan.profile == sim::Profile::rados;
        stage->sync_waits_for = plan.sync_waits_for;
        stage->sync_us = plan.sync_us;
        stage->fence_us_max = plan.fence_us_max;
        stage->stranger = plan.seed % 2 == 0;
    }
    ProgramRun run = run_child(plan, path, !file.named, [&] { sim::set_stage(stage.get()); });
    if (run.problem.empty() && plan.place != Place::simulated) {
        run.problem = check_unseen_bytes(run, file);
    } else if (run.problem.empty() && maps_its_file(plan)) {
        run.problem = changed_unseen(replayed(run, file), [&](std::uint64_t at, std::byte* page) {
            std::memcpy(page, stage->visible_bytes() + at, page_bytes);
            return true;
        });
    }
    return run;
}

ProgramRun ProgramRunner::run_replicated(const ProgramPlan& plan, const ReplicatedFiles& files, bool on_replica_alone)
{
    const std::string path = scratch_ + "/" + std::to_string(getpid()) + ".pool";
    const std::string record_path = path + ".replica";
    unlink(record_path.c_str());
    if (!files.record.empty()) {
        std::ofstream(record_path, std::ios::binary)
            .write(reinterpret_cast<const char*>(files.record.data()), static_cast<std::streamsize>(files.record.size()));
    }
    sim::Stage here(false, files.here);
    sim::Stage replica(false, files.replica);
    sim::Stage incoming(false, sim::CrashImage{{}, false});
    replica.writer = files.writer;
    sim::TwoSides sides(here, replica, incoming, files.here_number, files.incoming_number);
    ProgramRun run = run_child(plan, on_replica_alone ? replica_name : path, !files.here.named && !files.replica.named, [&] {
        sim::set_stage(&here);
        set_medium_opener(&sides);
    });
    unlink(record_path.c_str());
    return run;
}

ProgramRun ProgramRunner::run_child(const ProgramPlan& plan, const std::string& path, bool is_first, const std::function<void()>& prepare)
{
    trace_->clear();
    message_[0] = '\0';
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGINT, SIG_DFL);
        alarm(120);  // A program that hangs is a finding, not a reason to wait.
        sim::recording.store(trace_.get(), std::memory_order_release);
        prepare();
        const int code = plan.typed != nullptr     ? typed_ran(plan, message_)
                         : plan.objects != nullptr ? objects_ran(plan, path, message_)
                                                   : Program(plan, is_first, message_).run(path);
        const sim::BetweenTracedStores for_ever;  // Recorded stores are done, and done stores are recorded.
        _exit(code);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
    }
    ProgramRun run{trace_->events(), how_it_ended(status, message_)};
    if (run.problem.empty() && trace_->overflowed()) {
        run.problem = "the trace is full: give the program fewer operations";
    }
    return run;
}

/// Bytes of a real file that changed without an event.
std::string ProgramRunner::check_unseen_bytes(const ProgramRun& run, const sim::CrashImage& before) const
{
    const sim::CrashModel model = replayed(run, before);
    const std::string path = scratch_ + "/" + std::to_string(getpid()) + ".pool";
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat facts{};
    std::string problem;
    if (fd < 0 || fstat(fd, &facts) != 0) {
        problem = model.visible().named ? "the file is gone" : "";
    } else if (static_cast<std::uint64_t>(facts.st_size) != model.visible().content.size_bytes()) {
        problem = "the file's size changed unseen, to " + std::to_string(facts.st_size);
    } else {
        problem = changed_unseen(
            model, [fd](std::uint64_t at, std::byte* page) { return pread(fd, page, page_bytes, static_cast<off_t>(at)) == page_bytes; });
    }
    close(fd);
    unlink(path.c_str());
    return problem;
}

}  // namespace stillpoint::explorer
