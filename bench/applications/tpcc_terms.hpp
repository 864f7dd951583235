#pragma once
// Orders and payments at random, as the terminals of TPC-C ask for them (revision 5.11, clause 2): for the program with locks (tpcc.cpp)
// and for the one with transactions (transactional/tpcc.cpp).

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "../harness/random.hpp"

namespace bench::tpcc_terms {

using Cents = std::int64_t;

inline constexpr std::uint32_t districts_each = 10;
inline constexpr std::uint32_t lines_max = 15;

struct Scale {
    std::uint32_t warehouses;
    std::uint32_t customers_each;  ///< of a district
    std::uint32_t items;
};

/// Clause 2.1.6: numbers below `count`, some of them far more often than others. `spread`: 2^n - 1.
[[nodiscard]] inline std::uint32_t skewed(Random& random, std::uint32_t spread, std::uint32_t count)
{
    const std::uint64_t constant = 123;
    return static_cast<std::uint32_t>(((random.below(spread + 1) | random.below(count)) + constant) % count);
}
/// By the customer's number, across a district.
[[nodiscard]] inline std::uint32_t some_customer(Random& random, const Scale& scale) { return skewed(random, 1023, scale.customers_each); }

/// Another warehouse than `home`, if there is one.
[[nodiscard]] inline std::uint32_t other_warehouse(Random& random, std::uint32_t home, const Scale& scale)
{
    return scale.warehouses == 1 ? home : static_cast<std::uint32_t>((home + 1 + random.below(scale.warehouses - 1)) % scale.warehouses);
}
/// A district of the warehouse, across all warehouses.
[[nodiscard]] inline std::uint32_t some_district(Random& random, std::uint32_t warehouse)
{
    return warehouse * districts_each + static_cast<std::uint32_t>(random.below(districts_each));
}

struct WantedLine {
    std::uint32_t item;
    std::uint32_t supplier;
    std::uint32_t quantity;
};
struct WantedOrder {
    std::uint32_t district;
    std::uint32_t customer;
    std::uint32_t line_count;
    bool has_unused_item;  ///< one in a hundred names an item that does not exist, and is rolled back (2.4.1.4)
    std::array<WantedLine, lines_max> lines;
};
[[nodiscard]] inline WantedOrder wanted_order(Random& random, std::uint32_t home, const Scale& scale)
{
    WantedOrder wanted;
    wanted.district = some_district(random, home);
    wanted.customer = some_customer(random, scale);
    wanted.line_count = static_cast<std::uint32_t>(5 + random.below(lines_max - 4));
    for (std::uint32_t i = 0; i < wanted.line_count; ++i) {
        wanted.lines[i] = {skewed(random, 8191, scale.items), random.below(100) == 0 ? other_warehouse(random, home, scale) : home,
                           static_cast<std::uint32_t>(1 + random.below(10))};
    }
    wanted.has_unused_item = random.below(100) == 0;
    return wanted;
}
/// The stock that is left of `there` pieces when `quantity` were sold, and new ones bought (2.4.2.2).
[[nodiscard]] constexpr std::int64_t quantity_after_sale(std::int64_t there, std::int64_t quantity)
{
    return there - quantity + (there >= quantity + 10 ? 0 : 91);
}

struct WantedPayment {
    std::uint32_t district;
    std::uint32_t customer_district;
    std::uint32_t customer;
    Cents amount;
};
[[nodiscard]] inline WantedPayment wanted_payment(Random& random, std::uint32_t home, const Scale& scale)
{
    WantedPayment wanted;
    wanted.district = some_district(random, home);
    wanted.customer_district = some_district(random, random.below(100) < 85 ? home : other_warehouse(random, home, scale));
    wanted.customer = some_customer(random, scale);
    wanted.amount = static_cast<Cents>(100 + random.below(499'901));
    return wanted;
}
/// Writes what a customer with bad credit has in her data about a payment (2.5.2.2); its length.
inline std::size_t write_note(char (&note)[64], const WantedPayment& payment)
{
    return static_cast<std::size_t>(
        std::snprintf(note, sizeof note, "%u %u %lld;", payment.customer, payment.district, static_cast<long long>(payment.amount)));
}

}  // namespace bench::tpcc_terms
