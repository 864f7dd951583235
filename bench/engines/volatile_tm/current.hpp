#pragma once
// The worker of the volatile program with a software transactional memory.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "../../transactions/software_transactions.hpp"
#include "../volatile_engine.hpp"

#define BENCH_HAS_MEMORY 0
#define BENCH_HAS_TRANSACTIONS 1

namespace bench {

struct VolatileTransactions : SoftwareTransactions {
    static void open(const Shape&) noexcept {}
    template <class T>
    [[nodiscard]] static T* named(const char* name, std::size_t count = 1)
    {
        return VolatileEngine::named<T>(name, count);
    }
    static void settle() noexcept {}
    static void rest() noexcept {}
    static std::optional<std::uint64_t> statistic(std::string_view) noexcept { return std::nullopt; }
};

using CurrentTransactions = VolatileTransactions;
inline constexpr const char* why_no_program = "its memory is read and written by transactions alone";

}  // namespace bench
