// The supervisor's first thread: waits for the processes of the program's threads, passes signals on to the program, and cleans up after
// a process that died alone: its section is gone, and its locks are released.

#include <algorithm>
#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

#include "engines/nvthreads/own_statistics.hpp"
#include "engines/nvthreads/processes/isolated_view.hpp"
#include "engines/nvthreads/processes/supervisor.hpp"
#include "engines/nvthreads/processes/sync_calls.hpp"
#include "engines/nvthreads/processes/threads.hpp"
#include "os/log.hpp"

namespace stillpoint::nvthreads::processes {

ProgramEnd Supervisor::wait_for_program(pid_t first) noexcept
{
    sigset_t all;
    sigfillset(&all);
    int status = 0;
    while (true) {
        siginfo_t info{};
        const int number = sigwaitinfo(&all, &info);
        if (number == SIGCHLD || number < 0) {
            if (reap(first, status)) {
                break;
            }
        } else if (info.si_code != SI_KERNEL) {  // A terminal's goes to the whole group.
            kill(first, number);
        }
    }
    end_all();
    const bool is_open = std::ranges::any_of(
        parts_.control->threads, [](const ThreadSlot& slot) { return slot.has_handed_over.load(std::memory_order_acquire) != 0; });
    return {status, !is_open};
}

bool Supervisor::reap(pid_t first, int& status) noexcept
{
    ControlArea& area = *parts_.control;
    int ended = 0;
    pid_t process = 0;
    while ((process = waitpid(-1, &ended, WNOHANG | __WALL)) > 0) {
        if (process == first) {
            status = ended;
            return true;
        }
        for (std::uint32_t i = 1; i < threads_max; ++i) {
            if (area.threads[i].process.load(std::memory_order_acquire) != process) {
                continue;
            }
            if (ends_program(area.threads[i], ended)) {
                status = ended;
                return true;
            }
            bury(i, ended);
            break;
        }
    }
    return false;
}

/// Others may have built on what a section has handed over, so without its rest none of it may stay: the program ends as in a crash.
bool Supervisor::ends_program(const ThreadSlot& slot, int& status) const noexcept
{
    if (slot.exit_asked.load(std::memory_order_acquire) != 0) {
        return true;
    }
    if (slot.has_handed_over.load(std::memory_order_acquire) == 0) {
        return false;
    }
    os::log(os::Severity::error,
            "process {} died in a section of which other threads had seen a part: the program ends, and its next start is at the state "
            "before that section",
            slot.process.load(std::memory_order_relaxed));
    status = SIGKILL;  // As waitpid has a process that this signal has ended.
    return true;
}

void Supervisor::bury(std::uint32_t index, int status) noexcept
{
    ControlArea& area = *parts_.control;
    ThreadSlot& slot = area.threads[index];
    const std::uint32_t number = index + 1;
    if (area.commit_lock.holder() == number) {
        finish_merge();
    }
    for (OwnedLock* const lock : {&area.commit_lock, &area.threads_lock, &area.keys.lock}) {
        lock->release_for_dead(number);
    }
    if (static_cast<ThreadState>(slot.state.load(std::memory_order_acquire)) != ThreadState::ended) {
        std::uint32_t locks = 0;
        slot.held.take_all([&](SyncState& state, bool is_shared) {
            release_for_dead(state, is_shared, number);
            ++locks;
        });
        own_statistic(OwnStatistic::threads_died).fetch_add(1, std::memory_order_relaxed);
        os::log(os::Severity::warning,
                "thread {} (process {}) died alone ({} {}): its section is gone, {} locks that it held are released, and the others "
                "go on",
                index, slot.process.load(std::memory_order_relaxed), WIFSIGNALED(status) ? "signal" : "exit status",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), locks);
        const Held lock(area.commit_lock, supervisor_number);
        static_cast<void>(area.ring.add(index, RecordKind::thread_ends, nullptr, 0, area.has_failed));
        area.ring.note_applied();
        slot.value = PTHREAD_CANCELED;
    }
    slot.process.store(0, std::memory_order_release);
    {
        const Held lock(area.threads_lock, supervisor_number);
        slot.state.store(static_cast<std::uint32_t>(ThreadState::ended), std::memory_order_release);
        free_slot_if_done(area, index);
    }
    shared_wake(slot.state);
    area.threads_alive.fetch_sub(1, std::memory_order_seq_cst);
    shared_wake(area.threads_alive);
}

/// A record that is in the ring counts, though its writer did not live to apply it.
void Supervisor::finish_merge() noexcept
{
    parts_.control->ring.apply_rest([this](const RecordHead& head, const std::byte* payload) {
        if (head.kind != RecordKind::race) {
            IsolatedView::apply(parts_.image_base, parts_.image_bytes_max, payload, head.bytes - sizeof head);
        }
    });
    parts_.control->merges.fetch_add(1, std::memory_order_release);
}

void Supervisor::end_all() noexcept
{
    ControlArea& area = *parts_.control;
    for (ThreadSlot& slot : area.threads) {
        if (const pid_t process = slot.process.load(std::memory_order_acquire); process != 0) {
            kill(process, SIGKILL);
        }
    }
    int status = 0;
    while (waitpid(-1, &status, __WALL) > 0) {
    }
    if (area.commit_lock.holder() != 0) {
        finish_merge();
        area.commit_lock.unlock();
    }
}

}  // namespace stillpoint::nvthreads::processes
