#include "terminal_screen.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <poll.h>
#include <string>
#include <sys/ioctl.h>
#include <unistd.h>

#include "output.hpp"
#include "report.hpp"
#include "utf8.hpp"

namespace stillpoint::tool {

namespace {

constexpr std::string_view enter = "\x1b[?1049h\x1b[?25l";  // The other screen, without a cursor.
constexpr std::string_view leave = "\x1b[?25h\x1b[?1049l";

std::atomic<bool> has_to_end{false};

void on_signal(int) { has_to_end.store(true, std::memory_order_relaxed); }

constexpr std::array ending_signals{SIGINT, SIGTERM, SIGHUP, SIGQUIT};

sigset_t set_of_ending_signals()
{
    sigset_t set;
    sigemptyset(&set);
    for (const int number : ending_signals) {
        sigaddset(&set, number);
    }
    return set;
}

/// The first columns of a line.
std::string_view cut(std::string_view line, std::size_t columns)
{
    std::size_t bytes = 0;
    for (std::size_t column = 0; column < columns && bytes < line.size(); ++column) {
        bytes += std::max<std::size_t>(sequence_bytes(line.substr(bytes)), 1);
    }
    return line.substr(0, bytes);
}

winsize size_of_terminal()
{
    winsize size{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
        size.ws_col = 80;
        size.ws_row = 24;
    }
    return size;
}

}  // namespace

bool TerminalScreen::is_possible()
{
    const char* const kind = std::getenv("TERM");
    return isatty(STDOUT_FILENO) == 1 && kind != nullptr && std::string_view(kind) != "dumb" && *kind != '\0';
}

TerminalScreen::TerminalScreen()
{
    const sigset_t ending = set_of_ending_signals();
    sigprocmask(SIG_BLOCK, &ending, nullptr);  // Taken in wait() only: no signal is lost between two looks.
    for (const int number : ending_signals) {
        std::signal(number, &on_signal);
    }
    if (tcgetattr(STDIN_FILENO, &before_) == 0) {
        has_keys_ = true;
        termios keys = before_;
        keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
        keys.c_cc[VSUSP] = _POSIX_VDISABLE;  // Ctrl-Z would leave the other screen to the shell.
        keys.c_cc[VMIN] = 0;
        keys.c_cc[VTIME] = 0;
        tcsetattr(STDIN_FILENO, TCSANOW, &keys);
    }
    print("{}", enter);
}

TerminalScreen::~TerminalScreen()
{
    print("{}", leave);
    std::fflush(stdout);
    if (has_keys_) {
        tcsetattr(STDIN_FILENO, TCSANOW, &before_);
    }
}

void TerminalScreen::draw(std::string_view text) const
{
    const winsize size = size_of_terminal();
    std::string screen = "\x1b[H";
    for (unsigned row = 0; row < size.ws_row && !text.empty(); ++row) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        screen += text_of("{}{}\x1b[K", row == 0 ? "" : "\r\n", cut(text.substr(0, end), size.ws_col));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    print("{}\x1b[J", screen);
    std::fflush(stdout);
}

TerminalScreen::Wish TerminalScreen::wait(double seconds) const
{
    timespec end{};
    clock_gettime(CLOCK_MONOTONIC, &end);
    const double end_seconds = static_cast<double>(end.tv_sec) + static_cast<double>(end.tv_nsec) / 1e9 + seconds;
    sigset_t none;
    sigemptyset(&none);
    while (!has_to_end.load(std::memory_order_relaxed)) {
        timespec now{};
        clock_gettime(CLOCK_MONOTONIC, &now);
        const double left = end_seconds - static_cast<double>(now.tv_sec) - static_cast<double>(now.tv_nsec) / 1e9;
        if (left <= 0) {
            return Wish::redraw;
        }
        const timespec limit{static_cast<time_t>(left), static_cast<long>((left - std::floor(left)) * 1e9)};
        pollfd keys{has_keys_ ? STDIN_FILENO : -1, POLLIN, 0};
        if (ppoll(&keys, 1, &limit, &none) < 0) {
            if (errno == EINTR && !has_to_end.load(std::memory_order_relaxed)) {
                return Wish::redraw;  // The window has another size, or the command was stopped and goes on.
            }
            continue;
        }
        char key = 0;
        if ((keys.revents & (POLLHUP | POLLERR)) != 0) {
            return Wish::quit;
        }
        if ((keys.revents & POLLIN) != 0 && read(STDIN_FILENO, &key, 1) == 1 && (key == 'q' || key == 'Q')) {
            return Wish::quit;
        }
    }
    return Wish::quit;
}

}  // namespace stillpoint::tool
