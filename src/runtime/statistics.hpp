#pragma once
// Statistics: one page of 64-bit words that the runtime writes and any process of the same user can read while the program runs.
// statistics.inc has those of all engines, an engine's statistics.inc its own, which its driver lists; api/statistics.hpp has the rows of
// both, and reads the page. It lives in a memfd: no
// file is left behind, and it vanishes with the process. Readers find it through /proc/PID/fd of the process that has the pool open.
//
// Each open pool has a page, under its number (session_state.hpp). A thread's figures go to the page of number 0, the process's default
// pool, or to that of its StatisticsScope: the threads of a pool have one.

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "core/result.hpp"
#include "core/units.hpp"

namespace stillpoint {

/// The shared page. Plain data: the reader's process may be another build.
struct Statistics {
    static constexpr std::array<char, 8> expected_magic = {'s', 'p', '-', 's', 't', 'a', 't', 's'};
    static constexpr std::uint32_t expected_version = 2;
    static constexpr std::size_t engine_words_max = 32;
    static constexpr const char* file_name = "stillpoint-statistics";

    std::array<char, 8> magic;
    std::uint32_t version;
    std::uint32_t row_count;
    std::uint64_t table_fingerprint;  ///< of the names of all rows: another table, another value
    std::uint64_t process_id;         ///< as the writer sees itself
    std::uint64_t started_ns;         ///< monotonic
    std::array<std::uint8_t, 16> pool_uuid;
    std::array<char, 64> program_name;   ///< terminated
    std::array<char, 1024> pool_path;    ///< absolute where it fits, terminated

#define STATISTIC(name, unit, sentence) std::atomic<std::uint64_t> name;
#define COUNTER STATISTIC
#include "runtime/statistics.inc"
#undef COUNTER
#undef STATISTIC
    /// The words of the engine of this name, in the order of its table.
    std::array<char, 24> engine_name;
    std::array<std::atomic<std::uint64_t>, engine_words_max> engine_words;
};

/// Size of the shared file.
inline constexpr std::size_t statistics_file_bytes = round_up(sizeof(Statistics), page_bytes);

struct StatisticRow {
    std::string_view name;
    std::string_view unit;
    std::string_view sentence;
    bool only_grows;                                          ///< during a run
    std::atomic<std::uint64_t> Statistics::* field = nullptr;  ///< of a general row
    std::string_view engine = {};                             ///< whose own statistic this is; empty: of all engines
    std::size_t engine_word = 0;                              ///< its place in Statistics::engine_words
};

/// The description of the table of all rows (api/statistics.hpp) in a page, for readers of another build.
struct StatisticsTable {
    std::uint32_t row_count;
    std::uint64_t fingerprint;
};

/// Numbers of pages, from 0.
inline constexpr unsigned statistics_pages_max = 16;

/// The words that the calling thread's figures go to. Always there: before statistics_open, and where no pool is open, in
/// private memory. Do not keep the reference across statistics_open. Threads: any; relaxed stores.
[[nodiscard]] Statistics& statistics() noexcept;
/// The words of the page of that number.
[[nodiscard]] Statistics& statistics_of(unsigned number) noexcept;

/// While it lives the calling thread's figures go to the page of that number.
class StatisticsScope {
public:
    explicit StatisticsScope(unsigned number) noexcept;
    ~StatisticsScope();
    StatisticsScope(const StatisticsScope&) = delete;
    StatisticsScope& operator=(const StatisticsScope&) = delete;
    /// The number of the innermost scope of the calling thread; 0 outside all.
    [[nodiscard]] static unsigned current() noexcept;

private:
    unsigned before_;
};

/// Moves the calling thread's words (StatisticsScope) into a fresh shared page (mode 0600, sealed against resizing and foreign
/// writers, close-on-exec) and zeroes them. Errors: io, no_memory; the words stay private then.
[[nodiscard]] Result<void> statistics_open(std::string_view pool_path, const std::array<std::uint8_t, 16>& pool_uuid,
                                           std::string_view engine_name, const StatisticsTable& table);
/// Back to private memory; readers that have the page mapped keep its last state.
void statistics_close() noexcept;

/// Adds one stop time: last, max, p50 and p99. Threads: the engine's checkpoint thread only.
void record_stop_time(std::uint64_t stop_ns) noexcept;

}  // namespace stillpoint
