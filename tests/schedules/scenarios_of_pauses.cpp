// FASEs that pause: sp_fase_pause and sp_fase_resume.

#include "runtime/fase.hpp"
#include "tests/schedules/checks.hpp"
#include "tests/schedules/libc_model.hpp"
#include "tests/schedules/scenario_parts.hpp"

namespace stillpoint::schedules {

/// A FASE that lets checkpoints pass while it holds a mutex, and a thread inside that may wait for that mutex.
void paused_or_checkpoint(int thread)
{
    if (thread == 2) {
        static_cast<void>(take_checkpoint(short_attempt_ns));
    } else if (thread == 1) {
        write_under(shared.mutex, 1);
    } else {
        pthread_mutex_lock(&shared.mutex);
        write_word(0);
        last_write_is_done();
        fase_pause();
        require(!inside_fase(), "a paused FASE counts");
        fase_pause();
        fase_resume();
        fase_resume();
        require(inside_fase(), "a FASE is over after its pause");
        require(fase::own_record->lock.load(std::memory_order_relaxed) == reinterpret_cast<std::uintptr_t>(&shared.mutex),
                "a FASE goes on after its pause under another lock");
        write_word(0);
        last_write_is_done();
        pthread_mutex_unlock(&shared.mutex);
        require(!inside_fase(), "a FASE that was paused does not end");
    }
}

/// As above, with a checkpoint that must come in the pause.
void sleeper_in_a_pause_or_checkpoint(int thread)
{
    if (thread == 0) {
        fase_enter(&shared.mutex);
        fase_enter(&shared.other);
        write_word(0);
        last_write_is_done();
        fase_pause();
        await<std::uint32_t>(shared.flag, 1);
        fase_resume();
        write_word(0);
        fase_leave(&shared.other);
        last_write_is_done();
        fase_leave(&shared.mutex);
    } else {
        must_take_checkpoint();
        shared.flag.store(1, std::memory_order_release);
    }
}

}  // namespace stillpoint::schedules
