#include "jobs.hpp"

#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>

namespace stillpoint::explorer {

namespace {

volatile std::sig_atomic_t interrupted = 0;

// A result travels as bytes: figures, then texts with their lengths.
void put_text(std::FILE* out, const std::string& text)
{
    const std::uint64_t size = text.size();
    std::fwrite(&size, sizeof size, 1, out);
    std::fwrite(text.data(), 1, text.size(), out);
}

bool take_text(std::FILE* in, std::string& text)
{
    std::uint64_t size = 0;
    if (std::fread(&size, sizeof size, 1, in) != 1 || size > 1'000'000) {
        return false;
    }
    text.resize(size);
    return std::fread(text.data(), 1, size, in) == size;
}

void put_result(std::FILE* out, const CampaignResult& result)
{
    std::fwrite(&result.figures, sizeof result.figures, 1, out);
    put_text(out, result.skipped);
    const std::uint64_t count = result.violations.size();
    std::fwrite(&count, sizeof count, 1, out);
    for (const Violation& violation : result.violations) {
        put_text(out, violation.campaign);
        put_text(out, violation.history);
        put_text(out, violation.what);
    }
}

bool take_result(std::FILE* in, CampaignResult& result)
{
    std::uint64_t count = 0;
    if (std::fread(&result.figures, sizeof result.figures, 1, in) != 1 || !take_text(in, result.skipped) ||
        std::fread(&count, sizeof count, 1, in) != 1) {
        return false;
    }
    for (std::uint64_t i = 0; i < count; ++i) {
        Violation violation;
        if (!take_text(in, violation.campaign) || !take_text(in, violation.history) || !take_text(in, violation.what)) {
            return false;
        }
        result.violations.push_back(std::move(violation));
    }
    return true;
}

struct Running {
    std::size_t index;
    std::FILE* result;  ///< a file without a name, shared with the job
};

Running start(const Job& job, std::size_t index, pid_t& pid)
{
    std::FILE* const file = std::tmpfile();
    if (file == nullptr) {
        throw std::runtime_error("cannot make a temporary file");
    }
    pid = fork();
    if (pid == 0) {
        std::signal(SIGINT, SIG_DFL);
        std::signal(SIGTERM, SIG_DFL);
        CampaignResult result;
        try {
            result = job();
        } catch (const std::exception& error) {
            result.violations.push_back({"", "", error.what()});
            ++result.figures.violations;
        }
        put_result(file, result);
        std::fflush(file);
        _exit(0);
    }
    return {index, file};
}

CampaignResult result_of(const Running& running, int status)
{
    CampaignResult result;
    std::rewind(running.result);
    const bool died = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    if (died || !take_result(running.result, result)) {
        result = {};
        ++result.figures.violations;
        result.violations.push_back({"", "", "the explorer's process ended with status " + std::to_string(status)});
    }
    std::fclose(running.result);
    return result;
}

}  // namespace

bool run_jobs(const std::vector<Job>& jobs, unsigned at_a_time, const std::function<void(std::size_t, const CampaignResult&)>& finished)
{
    struct sigaction note{};
    note.sa_handler = [](int) { interrupted = 1; };
    sigaction(SIGINT, &note, nullptr);
    sigaction(SIGTERM, &note, nullptr);
    std::map<pid_t, Running> running;
    std::size_t next = 0;
    while (next < jobs.size() || !running.empty()) {
        if (interrupted != 0) {
            for (const auto& [pid, job] : running) {
                kill(pid, SIGTERM);
            }
            for (const auto& [pid, job] : running) {
                waitpid(pid, nullptr, 0);
            }
            return false;
        }
        if (next < jobs.size() && running.size() < at_a_time) {
            pid_t pid = 0;
            const Running job = start(jobs[next], next, pid);
            if (pid < 0) {
                throw std::runtime_error("cannot start a process");
            }
            running.emplace(pid, job);
            ++next;
            continue;
        }
        int status = 0;
        const pid_t ended = waitpid(-1, &status, 0);
        if (const auto found = running.find(ended); found != running.end()) {
            finished(found->second.index, result_of(found->second, status));
            running.erase(found);
        }
    }
    return true;
}

}  // namespace stillpoint::explorer
