#pragma once
// Programs that `crashtest` starts, waits for with a deadline, and kills with all that they started.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "os/descriptor.hpp"

namespace stillpoint::tool {

struct ChildPlan {
    std::vector<std::string> words;  ///< the program's path, and its arguments
    /// Variables to set; an empty value removes one.
    std::vector<std::pair<std::string, std::string>> environment;
    std::string output;  ///< file for standard output and error, made again
};

/// One child in a process group of its own. It does not outlive this object, nor this process.
class Child {
public:
    /// A child that cannot be started ends with code 127 or 126, as in a shell; errno in the output.
    explicit Child(const ChildPlan& plan);
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    ~Child();

    [[nodiscard]] pid_t pid() const noexcept { return pid_; }

    /// Waits until it has ended, and ends what is left of its group. False: `deadline_ns` (monotonic) came
    /// first, or a signal of the user.
    [[nodiscard]] bool ended_by(std::uint64_t deadline_ns);

    /// SIGKILL for the whole group, and waits for the child.
    void kill_group();

    /// As waitpid gives it; once it has ended.
    [[nodiscard]] int status() const noexcept { return status_; }
    [[nodiscard]] bool was_killed() const noexcept;
    /// "exit code 3", "signal 11 (Segmentation fault)".
    [[nodiscard]] std::string how_it_ended() const;

private:
    void reap();

    pid_t pid_ = -1;
    os::Descriptor handle_;  ///< of the process; invalid on kernels without one
    bool has_ended_ = false;
    int status_ = 0;
};

/// From here on SIGINT, SIGTERM and SIGHUP only set a mark.
void catch_interruption();
/// Whether the user has asked for the end. The number of the signal, otherwise 0.
[[nodiscard]] int interruption() noexcept;

/// The end of a file, at most `bytes_max`, without the last newline.
[[nodiscard]] std::string tail_of(const std::string& path, std::size_t bytes_max);

}  // namespace stillpoint::tool
