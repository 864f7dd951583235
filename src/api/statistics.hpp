#pragma once
// The rows of all statistics, the engines' own among them, and the pages of other processes, which are read by them.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "core/result.hpp"
#include "runtime/statistics.hpp"

namespace stillpoint {

/// All rows: the general ones, then each engine's own, in the order of their tables.
[[nodiscard]] std::span<const StatisticRow> statistic_rows() noexcept;

/// The description of these rows in a page: for statistics_open().
[[nodiscard]] StatisticsTable statistics_table() noexcept;

/// A read-only mapping of another process's page; unmapped when destroyed.
class StatisticsView {
public:
    StatisticsView(StatisticsView&& other) noexcept;
    StatisticsView& operator=(StatisticsView&& other) noexcept;
    ~StatisticsView();

    /// The values change under the reader; each is read whole.
    [[nodiscard]] const Statistics& operator*() const noexcept { return *page_; }
    [[nodiscard]] const Statistics* operator->() const noexcept { return page_; }
    /// Terminated even if the writer is hostile.
    [[nodiscard]] std::string_view program_name() const noexcept;
    [[nodiscard]] std::string_view pool_path() const noexcept;
    [[nodiscard]] std::string_view engine_name() const noexcept;

private:
    friend Result<StatisticsView> open_statistics(pid_t process, const std::string& pool_path);
    explicit StatisticsView(const Statistics* page) noexcept : page_(page) {}
    const Statistics* page_;
};

/// Finds and maps the page of `process`, of several that of the pool whose file is `pool_path`. Errors: not_open (no such process, or it
/// has no pool open, or not that one),
/// pool_read_only (no permission: another user's), pool_version (another version of Stillpoint wrote it),
/// pool_corrupt (the page is not sealed or not as long as it must be).
[[nodiscard]] Result<StatisticsView> open_statistics(pid_t process, const std::string& pool_path = {});

/// The value of one row; 0 where it is of an engine that does not write this page.
[[nodiscard]] std::uint64_t read_statistic(const Statistics& page, const StatisticRow& row) noexcept;

/// The values of all rows, in the table's order, while the program writes them: a row that never exceeds an earlier row (the
/// durable epoch and the running one, a percentile and the maximum) is never shown larger. They are read from the last row to the first;
/// writers store the earlier row first.
[[nodiscard]] std::vector<std::uint64_t> read_statistics(const Statistics& page);

}  // namespace stillpoint
