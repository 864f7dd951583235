#include "crash_rounds.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/statistics.hpp"
#include "os/clock.hpp"
#include "output.hpp"
#include "pool_access.hpp"

namespace stillpoint::tool {

namespace {

constexpr std::size_t shown_output_bytes = 1500;
constexpr std::uint64_t second_ns = 1'000'000'000;
constexpr std::uint64_t check_deadline_ns = 600 * second_ns;  ///< of `stillpoint check`: only a defect needs more
constexpr std::uint64_t look_ns = 2'000'000;  ///< between two looks for the statistics of a program that starts

bool exists(const std::string& path)
{
    struct stat facts{};
    return stat(path.c_str(), &facts) == 0;
}

/// The number after "key": in one JSON object of our own.
std::uint64_t number_in(const std::string& json, const std::string& key)
{
    const std::string label = text_of("\"{}\": ", key);
    const std::size_t at = json.find(label);
    std::uint64_t number = 0;
    if (at != std::string::npos) {
        std::from_chars(json.data() + at + label.size(), json.data() + json.size(), number);
    }
    return number;
}

std::string own_path()
{
    char path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    return {path, length > 0 ? static_cast<std::size_t>(length) : 0};
}

}  // namespace

CrashRounds::CrashRounds(const CrashPlan& plan)
    : plan_(plan), chooser_(plan.seed, plan.moments, plan.min_ms, plan.max_ms), self_(own_path())
{
}

CrashRounds::~CrashRounds()
{
    if (folder_.empty()) {
        return;
    }
    std::error_code ignored;
    const bool keeps_a_pool = std::ranges::any_of(
        failures_, [&](const CrashFailure& failure) { return failure.kept_pool.starts_with(folder_ + "/"); });
    if (!keeps_a_pool) {
        std::filesystem::remove_all(folder_, ignored);
    }
    std::filesystem::remove(pool_ + ".checked", ignored);
}

Result<void> CrashRounds::prepare()
{
    const char* const parent = std::getenv("TMPDIR");
    folder_ = text_of("{}/stillpoint-crashtest-XXXXXX", parent != nullptr && *parent != '\0' ? parent : "/tmp");
    if (mkdtemp(folder_.data()) == nullptr) {
        const int error = errno;
        return stillpoint::fail(SP_E_IO, error, "cannot make a folder {}: {}; set TMPDIR to one that can be written",
                                std::exchange(folder_, {}), std::strerror(error));
    }
    pool_ = plan_.pool.empty() ? folder_ + "/crashtest.pool" : std::filesystem::absolute(plan_.pool).string();
    pool_is_ours_ = !exists(pool_);
    std::filesystem::create_directory(folder_ + "/notes");
    if (pool_is_ours_) {
        return {};
    }
    const auto opened = open_pool_to_read(pool_, true);
    if (!opened) {
        return pass_on(opened.error());
    }
    const auto verified = verify(*opened, plan_.progress, {});
    return verified ? Result<void>{} : pass_on(verified.error());
}

ChildPlan CrashRounds::run_of(const std::vector<std::string>& words, const std::string& pool, const std::string& fault) const
{
    ChildPlan plan{{self_, "run", "--quiet", "--pool", pool, "--"}, plan_.environment, path_of_output()};
    plan.words.insert(plan.words.end(), words.begin(), words.end());
    plan.environment.emplace_back("STILLPOINT_FAULT", fault);
    plan.environment.emplace_back("CRASHTEST_FOLDER", folder_ + "/notes");
    return plan;
}

bool CrashRounds::is_over() const
{
    // A program that always ends before it is killed must not be started forever.
    const bool is_in_vain = static_cast<double>(figures_.rounds) >= 4 * plan_.kills + 100;
    const double elapsed_s = static_cast<double>(os::monotonic_ns() - begin_ns_) / 1e9;
    return static_cast<double>(figures_.kills) >= plan_.kills || is_in_vain || (plan_.seconds > 0 && elapsed_s >= plan_.seconds) ||
           (!failures_.empty() && !plan_.keep_going) || interruption() != 0;
}

void CrashRounds::run()
{
    begin_ns_ = os::monotonic_ns();
    while (!is_over()) {
        round(chooser_.of_round(figures_.rounds), true);
        show_progress();
    }
    if (failures_.empty() && interruption() == 0) {
        // Whether the program comes back from the last kill, too.
        round({.point = 0, .after_ns = static_cast<std::uint64_t>(plan_.max_ms * 1e6)}, false);
    }
    if (plan_.progress) {
        print_error("\r\x1b[K");
    }
    figures_.elapsed_ns = os::monotonic_ns() - begin_ns_;
}

void CrashRounds::show_progress()
{
    const std::uint64_t now = os::monotonic_ns();
    if (plan_.progress && now - shown_ns_ > second_ns / 5) {
        shown_ns_ = now;
        print_error("\r\x1b[K{} kills, {} recoveries, {} failures", figures_.kills, figures_.recoveries, failures_.size());
    }
}

void CrashRounds::round(const Moment& moment, bool counts_as_kill)
{
    ++figures_.rounds;
    moment_text_ = moment.describe();
    const std::uint64_t deadline_ns = os::monotonic_ns() + moment.after_ns;
    Child child(run_of(plan_.program, pool_, moment.point != 0 ? text_of("persist:kill@{}", moment.point) : ""));
    const bool ended = ends_by_itself(child, deadline_ns);
    if (interruption() != 0) {
        return;
    }
    // Also where it ended while the kill was on its way.
    const bool has_finished = WIFEXITED(child.status()) && WEXITSTATUS(child.status()) == 0;
    if (has_finished) {
        ++figures_.ended_by_itself;
        moment_text_ = "by itself";
        if (moment.point != 0) {
            chooser_.sweep_has_ended();
        }
    } else if (!child.was_killed()) {
        ++figures_.restart_failures;
        fail(text_of("the program ended with {} where it was to be killed {}: {}", child.how_it_ended(), moment_text_,
                     tail_of(path_of_output(), shown_output_bytes)));
        return;
    } else if (counts_as_kill) {
        const bool at_point = ended && moment.point != 0;
        if (moment.point != 0 && !at_point) {
            moment_text_ = text_of("after {:.2f} ms, before persist point {}", plan_.max_ms, moment.point);
        }
        count_kill(moment, at_point);
    }
    if (examine_pool() && has_finished && pool_is_ours_) {
        new_pool();  // The work is done: the next run begins it again.
    }
}

bool CrashRounds::ends_by_itself(Child& child, std::uint64_t deadline_ns)
{
    const bool had_pool = exists(pool_);
    std::optional<StatisticsView> view;
    bool ended = false;
    while (!ended && os::monotonic_ns() < deadline_ns && interruption() == 0) {
        ended = child.ended_by(view ? deadline_ns : std::min(deadline_ns, os::monotonic_ns() + look_ns));
        if (auto opened = open_statistics(child.pid()); !ended && !view && opened) {
            view.emplace(std::move(*opened));
        }
    }
    child.kill_group();
    if (!view) {
        return ended;
    }
    // The page now says the last that the program knew.
    const auto value = [&](const std::atomic<std::uint64_t>& word) { return word.load(std::memory_order_relaxed); };
    ++figures_.epochs_observed;
    acknowledged_ = std::max(acknowledged_, value((*view)->durable_epoch));
    if (had_pool && value((*view)->recovery_ns) != 0) {
        ++figures_.recoveries;
        figures_.longest_recovery_ns = std::max(figures_.longest_recovery_ns, value((*view)->recovery_ns));
    }
    return ended;
}

void CrashRounds::count_kill(const Moment& moment, bool at_point)
{
    ++figures_.kills;
    chooser_.note(moment, at_point);
    if (at_point) {
        ++figures_.kills_at_points;
        figures_.points.insert(moment.point);
    }
}

bool CrashRounds::examine_pool()
{
    if (!exists(pool_)) {
        ++figures_.killed_without_pool;
        if (acknowledged_ != 0) {
            ++figures_.epochs_lost;
            fail(text_of("the pool has vanished; its epoch {} was durable", acknowledged_));
            return false;
        }
        return true;
    }
    Child check({{self_, "check", "--json", pool_}, {}, path_of_output()});
    if (!check.ended_by(os::monotonic_ns() + check_deadline_ns)) {
        check.kill_group();
    }
    if (interruption() != 0) {
        return false;
    }
    ++figures_.pool_checks;
    const std::string output = tail_of(path_of_output(), shown_output_bytes);
    if (check.status() != 0) {
        // Where the file system has no files without names, a kill inside the creation leaves a pool that was
        // never one; the next run says so and refuses it.
        const bool was_never_one = output.find("creation was never finished") != std::string::npos ||
                                   output.find("the file is empty") != std::string::npos;
        if (acknowledged_ == 0 && was_never_one) {
            ++figures_.killed_without_pool;
            new_pool();
            return true;
        }
        ++figures_.pool_failures;
        fail(text_of("`stillpoint check` ended with {} after the program ended {}: {}", check.how_it_ended(), moment_text_, output));
        return false;
    }
    if (const std::uint64_t epoch = number_in(output, "durable_epoch"); epoch < acknowledged_) {
        ++figures_.epochs_lost;
        fail(text_of("the program had epoch {} durable when it ended {}, and the pool holds {}", acknowledged_, moment_text_, epoch));
        return false;
    }
    return plan_.checker.empty() || ask_checker();
}

bool CrashRounds::ask_checker()
{
    // On a copy: the program itself is to meet the pool as the crash has left it.
    const std::string copy = pool_ + ".checked";
    if (const auto copied = copy_sparse(pool_, copy); !copied) {
        fail(std::string(copied.error().text()));
        return false;
    }
    ++figures_.checker_runs;
    Child checker(run_of(plan_.checker, copy, ""));
    const auto limit_ns = static_cast<std::uint64_t>(plan_.check_seconds * 1e9);
    const bool ended = checker.ended_by(os::monotonic_ns() + limit_ns);
    checker.kill_group();
    if (interruption() != 0) {
        return false;
    }
    if (ended && checker.status() == 0) {
        ++figures_.recoveries;
        return true;
    }
    ++figures_.checker_failures;
    fail(text_of("the checker {} after the program ended {}: {}",
                 ended ? "ended with " + checker.how_it_ended() : text_of("did not end in {} s", plan_.check_seconds), moment_text_,
                 tail_of(path_of_output(), shown_output_bytes)));
    return false;
}

void CrashRounds::new_pool()
{
    std::error_code ignored;
    std::filesystem::remove(pool_, ignored);
    std::filesystem::remove_all(folder_ + "/notes", ignored);
    std::filesystem::create_directory(folder_ + "/notes", ignored);
    acknowledged_ = 0;
}

void CrashRounds::fail(const std::string& what)
{
    std::string kept = pool_;
    if (plan_.keep_going && exists(pool_)) {
        kept = text_of("{}.round-{}", pool_, figures_.rounds);
        std::error_code ignored;
        std::filesystem::rename(pool_, kept, ignored);
        pool_is_ours_ = true;  // The next one is.
        new_pool();
    }
    failures_.push_back({figures_.rounds, figures_.kills, what, exists(kept) ? kept : ""});
}

}  // namespace stillpoint::tool
