// A child that shares this process's memory starts the program's process as its own child and ends, so that init, or whichever process
// adopts, becomes the parent. No copy of the page tables is made, as fork would: the program may have terabytes mapped and pages watched.

#include "os/detached_process.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <dlfcn.h>
#include <fcntl.h>
#include <mutex>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/sanitizers.hpp"
#include "os/direct_call.hpp"
#include "os/futex.hpp"

namespace stillpoint::os {

namespace {

constexpr std::size_t descriptors_max = 8;
constexpr int first_descriptor = 3;
constexpr std::size_t stack_bytes = 16384;
constinit FutexLock one_at_a_time;
alignas(64) std::array<std::byte, stack_bytes> first_stack;
alignas(64) std::array<std::byte, stack_bytes> second_stack;

struct Start {
    const DetachedProgram* program;
    int error;
};

/// libc's own. ThreadSanitizer has another in front of it, which takes every child for a copy of the process.
int clone_of_libc(int (*work)(void*), void* stack, int flags, void* context) noexcept
{
    if constexpr (thread_sanitizer) {
        static auto* const of_libc = reinterpret_cast<decltype(&clone)>(dlsym(RTLD_NEXT, "clone"));
        return of_libc(work, stack, flags, context);
    } else {
        return clone(work, stack, flags, context);
    }
}

/// errno, or 0. The numbers may overlap: all move out of the way first.
int place_descriptors(std::span<const int> wanted) noexcept
{
    constexpr int out_of_the_way = 64;
    std::array<int, descriptors_max> moved{};
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        const long copy = direct_call(SYS_fcntl, wanted[i], F_DUPFD, out_of_the_way);
        if (copy < 0) {
            return errno;
        }
        moved[i] = static_cast<int>(copy);
    }
    const long nothing = direct_call(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR);
    for (int standard = 0; standard < first_descriptor; ++standard) {
        if (nothing < 0 || (nothing != standard && direct_call(SYS_dup3, nothing, standard, 0) < 0)) {
            return errno;
        }
    }
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        if (direct_call(SYS_dup3, moved[i], first_descriptor + static_cast<int>(i), 0) < 0) {
            return errno;
        }
    }
    const auto after = first_descriptor + static_cast<unsigned>(wanted.size());
    if (direct_call(SYS_close_range, after, ~0U, 0) != 0) {
        constexpr unsigned usual_max = 65536;
        for (unsigned descriptor = after; descriptor < usual_max; ++descriptor) {  // A kernel before 5.9.
            direct_call(SYS_close, descriptor);
        }
    }
    return 0;
}

int become_program(void* context)
{
    Start& start = *static_cast<Start*>(context);
    start.error = place_descriptors(start.program->descriptors);
    if (start.error == 0) {
        direct_call(SYS_chdir, "/");
        const std::uint64_t none = 0;
        direct_call(SYS_rt_sigprocmask, SIG_SETMASK, &none, nullptr, sizeof none);
        direct_call(SYS_execve, start.program->path, start.program->arguments, start.program->environment);
        start.error = errno;
    }
    constexpr int could_not_run = 127;
    direct_call(SYS_exit_group, could_not_run);
    __builtin_unreachable();
}

int start_child_of_child(void* context)
{
    direct_call(SYS_setsid);
    if (clone_of_libc(&become_program, second_stack.data() + stack_bytes, CLONE_VM | CLONE_VFORK | SIGCHLD, context) < 0) {
        static_cast<Start*>(context)->error = errno;
    }
    direct_call(SYS_exit_group, 0);
    __builtin_unreachable();
}

}  // namespace

int start_detached(const DetachedProgram& program) noexcept
{
    if (program.descriptors.size() > descriptors_max) {
        return EINVAL;
    }
    const std::lock_guard guard(one_at_a_time);
    Start start{&program, 0};
    // Neither child may run a handler of the program, whose memory they share.
    const std::uint64_t all = ~std::uint64_t{0};
    std::uint64_t before = 0;
    direct_call(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all);
    // Without a signal at its end: the program hears nothing of it, and its wait() passes over it.
    const int child = clone_of_libc(&start_child_of_child, first_stack.data() + stack_bytes, CLONE_VM | CLONE_VFORK, &start);
    if (child < 0) {
        start.error = errno;
    } else {
        while (direct_call(SYS_wait4, child, nullptr, __WALL, nullptr) < 0 && errno == EINTR) {
        }
    }
    direct_call(SYS_rt_sigprocmask, SIG_SETMASK, &before, nullptr, sizeof before);
    return start.error;
}

}  // namespace stillpoint::os
