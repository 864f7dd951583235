#pragma once
// A page of statistics for a pool that is not a session's, for `stillpoint stats`: all that an engine whose pools programs open themselves
// needs of the layers above it.

#include <array>
#include <cstdint>
#include <string_view>

#include "core/result.hpp"
#include "runtime/statistics.hpp"

namespace stillpoint {

using StatisticsTableOfProgram = StatisticsTable (*)() noexcept;
/// Gives the table of all rows. The layer above the engines sets it before main; nullptr: there is no such layer, and no page.
extern constinit StatisticsTableOfProgram statistics_table_of_program;

class PoolFigures {
public:
    PoolFigures() = default;
    PoolFigures(const PoolFigures&) = delete;
    PoolFigures& operator=(const PoolFigures&) = delete;
    ~PoolFigures() { close(); }

    /// Makes the page. Errors: io, no_memory: figures go to private memory then.
    [[nodiscard]] Result<void> open(std::string_view pool_path, const std::array<std::uint8_t, 16>& pool_uuid,
                                    std::string_view engine_name);
    /// Readers that have the page mapped keep its last state.
    void close() noexcept;
    [[nodiscard]] Statistics& words() const noexcept { return *words_; }

private:
    static Statistics private_words;
    Statistics* words_ = &private_words;
    int file_ = -1;
};

}  // namespace stillpoint
