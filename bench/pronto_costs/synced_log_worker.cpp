// The baseline of group commit: threads that append entries to a log in a file and sync the file for each operation.
//
// Usage: pronto_synced_log threads=N entry_bytes=N folder=DIR [is_shared=1]
//
// The file has its blocks and its size before the work begins, so a sync has no metadata to write. Syncs come one after the other, each
// by the operation that it belongs to; with is_shared=1 threads sync side by side, and the kernel may answer several with one flush.
//
//   slice NS   -> operations, wall_ns, cpu_ns, settle_wall_ns, settle_cpu_ns

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <string>
#include <unistd.h>
#include <vector>

#include "../harness/clock.hpp"
#include "../harness/ending.hpp"
#include "../harness/slice_threads.hpp"
#include "../harness/commands.hpp"

namespace bench {
namespace {

constexpr std::size_t log_bytes = 64u << 20;

class SyncedLog {
public:
    explicit SyncedLog(const Settings& settings)
        : path_(settings.text("folder") + "/synced.log"), entry_(settings.number("entry_bytes", 192), 'e'),
          is_shared_(settings.number("is_shared", 0) != 0), file_(::open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600))
    {
        const std::vector<char> zeroes(1u << 20);
        for (std::size_t at = 0; at < log_bytes; at += zeroes.size()) {
            check(file_ >= 0 && pwrite(file_, zeroes.data(), zeroes.size(), static_cast<off_t>(at)) == static_cast<ssize_t>(zeroes.size()));
        }
        check(fsync(file_) == 0);
    }
    SyncedLog(const SyncedLog&) = delete;
    SyncedLog& operator=(const SyncedLog&) = delete;
    ~SyncedLog() { ::close(file_); }

    void append()
    {
        if (is_shared_) {
            write_and_sync();
            return;
        }
        const std::lock_guard locked(lock_);
        write_and_sync();
    }

private:
    void write_and_sync()
    {
        const std::size_t entries = log_bytes / entry_.size();
        const std::size_t at = next_.fetch_add(1) % entries * entry_.size();
        check(pwrite(file_, entry_.data(), entry_.size(), static_cast<off_t>(at)) == static_cast<ssize_t>(entry_.size()));
        check(fdatasync(file_) == 0);
    }
    void check(bool is_done) const
    {
        if (!is_done) {
            give_up(path_ + ": " + std::strerror(errno));
        }
    }

    std::string path_;
    std::string entry_;
    bool is_shared_;
    int file_;
    std::mutex lock_;
    std::atomic<std::size_t> next_{0};
};

void run(const Settings& settings)
{
    SyncedLog log(settings);
    SliceThreads threads(static_cast<unsigned>(settings.number("threads", 1)), false);
    const SliceThreads::Work work = [&log](unsigned, std::uint64_t deadline_ns) {
        std::uint64_t done = 0;
        for (; monotonic_ns() < deadline_ns; ++done) {
            log.append();
        }
        return done;
    };
    Commands commands;
    commands.add("slice", 1, [&](const Commands::Numbers& numbers, Answer& answer) {
        Stopwatch watch;
        const std::uint64_t operations = threads.run(numbers[0], work).operations;
        watch.lap();
        watch.add_to(answer, operations);
    });
    commands.serve(Answer().text("side", "one fdatasync an operation"));
}

}  // namespace
}  // namespace bench

int main(int count, char** words) { return bench::worker_main(count, words, &bench::run); }
