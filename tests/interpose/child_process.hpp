#pragma once
// A body that runs in a child process, for tests of what ends a process or belongs to it, and what it wrote.

#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

struct Ended {
    int status;
    std::string output;
};

/// Runs `body` in a fresh process; what it writes to standard output comes back.
inline Ended in_child(const std::function<void()>& body)
{
    int pipe_ends[2];
    EXPECT_EQ(pipe(pipe_ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        dup2(pipe_ends[1], STDOUT_FILENO);
        close(pipe_ends[0]);
        close(pipe_ends[1]);
        body();
        _exit(99);
    }
    close(pipe_ends[1]);
    Ended ended{-1, {}};
    char buffer[256];
    ssize_t got = 0;
    while ((got = read(pipe_ends[0], buffer, sizeof buffer)) > 0) {
        ended.output.append(buffer, static_cast<std::size_t>(got));
    }
    close(pipe_ends[0]);
    waitpid(child, &ended.status, 0);
    return ended;
}

inline void say(const char* text) { [[maybe_unused]] const auto written = write(STDOUT_FILENO, text, std::strlen(text)); }
