#pragma once
// For the tests of engines of page versions: runs a function as the "program" of a pool in a process of its
// own, because a process has one pool and a crash is the end of it.

#include <csignal>
#include <cstdlib>
#include <functional>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include "api/session.hpp"
#include "core/units.hpp"
#include "nvhooks/abi/nvhooks_abi.h"
#include "os/log.hpp"
#include "stillpoint/nvhooks.h"
#include "stillpoint/stillpoint.h"

/// The tests mark by hand what they store, for the tracker hooks: this says so, as the compiler pass would.
__attribute__((section(NVHOOKS_MODULE_SECTION), used)) static const nvhooks_module marks_by_hand = {
    NVHOOKS_MODULE_MAGIC, NVHOOKS_ABI_VERSION, NVHOOKS_MODULE_MARKS_CARDS, NVHOOKS_CARD_SHIFT, 1, "pmthreads", "tests"};

namespace stillpoint::test {

/// The object was stored to.
template <class T>
void stored(const T& object) noexcept
{
    sp_mark_written(&object, sizeof object);
}

/// Exit code of the program, or 128 + the signal that ended it.
inline int run_program(const std::function<int()>& program)
{
    const pid_t child = fork();
    if (child == 0) {
        os::set_least_severity(os::Severity::error);
        _exit(program());
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

constexpr int killed = 128 + SIGKILL;
constexpr int could_not_open = 99;

/// Opens `pool` and runs `body`; a body that returns ends normally, one that calls crash() does not.
inline int run_with_pool(const std::string& pool, const std::string& options, const std::function<int()>& body)
{
    return run_program([&] {
        const int opened = sp_open(pool.c_str(), (options + " quiet").c_str());
        if (opened != SP_OK) {
            os::write_line(os::Severity::error, sp_last_error());
            return could_not_open;
        }
        const int outcome = body();
        session_end();
        return outcome;
    });
}

inline constexpr std::size_t words_per_page = page_bytes / sizeof(std::uint64_t);

/// Words at a page boundary, made by the first run that asks; zeroes at first.
inline std::uint64_t* durable_words(std::size_t count)
{
    auto** const root = static_cast<std::uint64_t**>(sp_root("table", sizeof(void*)));
    if (*root == nullptr) {
        sp_fase_begin();
        *root = static_cast<std::uint64_t*>(sp_aligned_alloc(page_bytes, count * sizeof(std::uint64_t)));
        stored(*root);
        sp_fase_end();
    }
    return *root;
}

[[noreturn]] inline void crash()
{
    kill(getpid(), SIGKILL);
    abort();
}

}  // namespace stillpoint::test
