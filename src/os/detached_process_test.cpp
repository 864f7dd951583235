// Programs that are not children. Invariants: the program runs with the descriptors, the environment and the folder that were asked for and
// no others; wait() of this process never sees it; a program that cannot be started is an errno.

#include "os/detached_process.hpp"

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include "os/descriptor.hpp"

namespace stillpoint::os {
namespace {

/// All that a shell's script writes to descriptor 3 until it ends.
std::string output_of(const char* script)
{
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    const Descriptor near_end{ends[0]};
    Descriptor far_end{ends[1]};
    std::string words[] = {"sh", "-c", script};
    char* const arguments[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
    std::string variable = "WORD=kept";
    char* const environment[] = {variable.data(), nullptr};
    const int descriptors[] = {far_end.get()};
    EXPECT_EQ(start_detached({"/bin/sh", arguments, environment, descriptors}), 0);
    far_end.reset();
    std::string text;
    char piece[512];
    for (ssize_t got = 0; (got = read(near_end.get(), piece, sizeof piece)) > 0;) {
        text.append(piece, static_cast<std::size_t>(got));
    }
    return text;
}

TEST(DetachedProcess, HasItsDescriptorsItsEnvironmentAndNoOthers)
{
    const Descriptor other{open("/dev/null", O_RDONLY)};  // Without O_CLOEXEC.
    setenv("LD_PRELOAD_OF_A_TEST", "x", 1);
    EXPECT_EQ(output_of("echo $WORD:$LD_PRELOAD_OF_A_TEST >&3; pwd >&3; ls -l /proc/$$/fd | grep -c /dev/null >&3; [ -e /proc/$$/fd/4 ] || "
                        "echo alone >&3"),
              "kept:\n/\n3\nalone\n");
}

TEST(DetachedProcess, IsNotAChild)
{
    EXPECT_EQ(output_of("read -r line < /proc/$$/stat; set -- ${line##*) }; echo $2 >&3") == std::to_string(getpid()) + "\n", false);
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG | __WALL), -1);
    EXPECT_EQ(errno, ECHILD);
}

TEST(DetachedProcess, AProgramThatIsNotThereIsAnErrno)
{
    char* const nothing[] = {nullptr};
    EXPECT_EQ(start_detached({"/no/such/program", nothing, nothing, {}}), ENOENT);
    EXPECT_EQ(start_detached({"/dev/null", nothing, nothing, {}}), EACCES);
}

}  // namespace
}  // namespace stillpoint::os
