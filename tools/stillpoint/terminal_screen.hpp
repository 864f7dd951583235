#pragma once
// A terminal that a command draws on: its state is given back however the command ends, but for SIGKILL.

#include <string_view>
#include <termios.h>

namespace stillpoint::tool {

class TerminalScreen {
public:
    enum class Wish { redraw, quit };

    /// Whether standard output is a terminal that can be drawn on.
    [[nodiscard]] static bool is_possible();

    /// Takes the other screen of the terminal, and keys as they are pressed.
    TerminalScreen();
    ~TerminalScreen();
    TerminalScreen(const TerminalScreen&) = delete;
    TerminalScreen& operator=(const TerminalScreen&) = delete;

    /// Replaces what is there by the text, as far as lines and columns go.
    void draw(std::string_view text) const;
    /// Until so much time has passed, or a key or a signal says that it ends: q, Ctrl-C, SIGTERM, SIGHUP.
    [[nodiscard]] Wish wait(double seconds) const;

private:
    termios before_{};
    bool has_keys_ = false;
};

}  // namespace stillpoint::tool
