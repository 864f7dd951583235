#pragma once
// For tests of several engines: stores to durable memory as programs of the engine make them, in a FASE or in a transaction.

#include <cstdint>
#include <gtest/gtest.h>
#include <string_view>

#include "stillpoint/spht.h"
#include "stillpoint/stillpoint.h"

namespace stillpoint::test {

[[nodiscard]] inline bool has_transactions(std::string_view engine) noexcept { return engine == "spht"; }

inline void begin_section(bool is_transaction)
{
    if (is_transaction) {
        EXPECT_NE(sp_spht_begin(0, nullptr), nullptr);
    } else {
        sp_fase_begin();
    }
}

inline void end_section(bool is_transaction)
{
    if (is_transaction) {
        EXPECT_EQ(sp_spht_commit(sp_spht_current()), SP_OK);
    } else {
        sp_fase_end();
    }
}

/// Inside a section.
inline void store(std::uint64_t& word, std::uint64_t value)
{
    if (sp_spht_transaction* const running = sp_spht_current(); running != nullptr) {
        EXPECT_EQ(sp_spht_write_word(running, &word, value, ~std::uint64_t{0}), SP_OK);
    } else {
        word = value;
        sp_mark_written(&word, sizeof word);
    }
}

}  // namespace stillpoint::test
