#pragma once
// Which process traces this one: a debugger, strace. Asked by the descriptor of a file that stays open, since a program that closes a
// descriptor may count on getting its number back.

namespace stillpoint::os {

/// Threads: one.
class TracingProcess {
public:
    TracingProcess() = default;
    TracingProcess(const TracingProcess&) = delete;
    TracingProcess& operator=(const TracingProcess&) = delete;
    ~TracingProcess();

    /// The number of that process; 0: none traces this one, or there is no /proc.
    [[nodiscard]] int number() noexcept;

private:
    int status_ = -1;  ///< /proc/self/status
    bool opened_ = false;
};

}  // namespace stillpoint::os
