#pragma once
// The tables of TPC-C (revision 5.11, clause 1) in transactional memory. Rows of fixed tables lie in arrays; orders with their lines are
// blocks in an ordered map of each district, new orders a queue.
//
// Memory is bounded: a district keeps its last orders and its last history rows, and sums of what it has dropped, so that the conditions of
// clause 3.3.2 can still be checked. Names and addresses are left out, but for the customers' last names, which never change: the index of
// them is made when the program starts. A district's next order number is its clock.

#include <cstdint>
#include <string>
#include <vector>

#include "../../harness/random.hpp"
#include "../../transactions/queue.hpp"
#include "../../transactions/tree.hpp"
#include "../tpcc_terms.hpp"
#include "programs.hpp"

namespace bench::transactional {

using tpcc_terms::Cents;
using tpcc_terms::districts_each;
using tpcc_terms::lines_max;

inline constexpr std::uint64_t orders_kept = 1024;
inline constexpr std::uint64_t history_kept = 256;
inline constexpr std::uint64_t first_orders = 300;
inline constexpr std::uint64_t first_new_orders = 90;
inline constexpr std::uint64_t information_words = 3;
inline constexpr std::uint64_t data_words = 63;

struct Warehouse {
    Cents ytd;
    std::int64_t tax_basis_points;
    alignas(64) std::uint64_t is_filled;
};
struct OrderLine {
    std::uint64_t item;
    std::uint64_t supplier;  ///< a warehouse
    std::uint64_t quantity;
    std::uint64_t delivered_at;  ///< 0: not yet
    Cents amount;
    std::uint64_t information[information_words];
};
/// An order; its lines lie after it.
struct Order {
    std::uint64_t number;
    std::uint64_t customer;
    std::uint64_t entered_at;
    std::uint64_t carrier;  ///< 0: not delivered
    std::uint64_t line_count;

    [[nodiscard]] OrderLine* lines() noexcept { return static_cast<OrderLine*>(static_cast<void*>(this + 1)); }
    [[nodiscard]] const OrderLine* lines() const noexcept { return static_cast<const OrderLine*>(static_cast<const void*>(this + 1)); }
};
struct History {
    std::uint64_t customer;
    std::uint64_t customer_district;  ///< across all warehouses
    Cents amount;
};
/// The share of a district's rows that are gone in the sums of clause 3.3.2.
struct Dropped {
    Cents paid;  ///< of history rows
    Cents delivered;  ///< of orders
    std::uint64_t quantity;  ///< of orders that were made by transactions
};
struct District {
    alignas(64) Cents ytd;
    std::int64_t tax_basis_points;
    std::uint64_t next_order;  ///< orders are numbered from 1
    std::uint64_t next_history;
    Dropped dropped;
    alignas(64) Tree<Order*> orders;
    Queue<std::uint64_t> new_orders;  ///< their numbers
    History history[history_kept];  ///< row i is that of the numbers that leave i when divided by history_kept
};
struct Customer {
    Cents balance;
    Cents ytd_payment;
    std::uint64_t payments;
    std::uint64_t deliveries;
    std::uint64_t last_order;  ///< 0: none
    std::uint64_t discount_basis_points;
    std::uint64_t has_bad_credit;
    std::uint64_t data[data_words];
};
struct Stock {
    std::int64_t quantity;
    std::uint64_t ytd;
    std::uint64_t orders;
    std::uint64_t remote_orders;
    std::uint64_t information[districts_each][information_words];
};
struct Item {
    Cents price;
    std::uint64_t data[7];
};

class TpccTables {
public:
    using M = CurrentTransactions;

    explicit TpccTables(const tpcc_terms::Scale& scale);

    /// Fills what is not there yet; goes on where a crash has interrupted it.
    void load();

    [[nodiscard]] const tpcc_terms::Scale& scale() const noexcept { return scale_; }
    [[nodiscard]] Warehouse& warehouse(std::uint64_t number) const noexcept { return warehouses_[number]; }
    [[nodiscard]] District& district(std::uint64_t number) const noexcept { return districts_[number]; }
    [[nodiscard]] Customer& customer(std::uint64_t district, std::uint64_t number) const noexcept
    {
        return customers_[district * scale_.customers_each + number];
    }
    [[nodiscard]] Stock& stock(std::uint64_t warehouse, std::uint64_t item) const noexcept
    {
        return stock_[warehouse * scale_.items + item];
    }
    [[nodiscard]] const Item& item(std::uint64_t number) const noexcept { return items_[number]; }

    /// Clause 2.5.2.2: a last name at random; of the customers of a district with that name, the one in the middle.
    [[nodiscard]] std::uint32_t customer_by_name(Random& random) const;

    /// The consistency conditions of clause 3.3.2: what is wrong, in a sentence. No thread is in a transaction.
    [[nodiscard]] std::string fault() const;

    /// Every field of the row but its lines.
    template <Transaction Tx>
    static Order* make_order(Tx& tx, std::uint64_t number, std::uint64_t customer, std::uint64_t entered_at, std::uint64_t line_count)
    {
        auto* const order = static_cast<Order*>(tx.allocate(sizeof(Order) + line_count * sizeof(OrderLine)));
        tx.write(order->number, number);
        tx.write(order->customer, customer);
        tx.write(order->entered_at, entered_at);
        tx.write(order->carrier, std::uint64_t{0});
        tx.write(order->line_count, line_count);
        return order;
    }

private:
    struct Sums;

    void fill_items();
    void fill_warehouse(std::uint32_t number);
    void fill_district(std::uint32_t number);
    void fill_order(std::uint32_t district, std::uint64_t number);
    [[nodiscard]] std::string fault_of_district(std::uint64_t number, Sums& sums) const;
    [[nodiscard]] static std::string fault_of_order(const Order& order, bool is_new, Sums& sums);
    [[nodiscard]] static std::string fault_of_new_orders(const District& district, const std::vector<std::uint64_t>& new_orders);

    tpcc_terms::Scale scale_;
    Warehouse* warehouses_;
    District* districts_;
    Customer* customers_;
    Stock* stock_;
    Item* items_;
    std::vector<std::vector<std::uint32_t>> by_name_;  ///< customers of a district; in each district the same ones have a name
};

}  // namespace bench::transactional
