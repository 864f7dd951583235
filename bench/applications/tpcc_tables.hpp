#pragma once
// The tables of TPC-C (revision 5.11, clause 1) that its transactions payment, new-order and delivery need, in durable memory.
//
// Tables smaller than in the standard: 1000 customers in a district instead of 3000, 10,000 items instead of 100,000; of the order
// and history tables each district keeps the last 512 rows, so that memory is bounded. Names and addresses are left out.
//
// Locks: warehouse, district (with its orders, new orders and history), customer, stock; in this order, and rows of one
// table in the order of their addresses. What never changes (taxes, discounts, items) is read without one.

#include <cstdint>
#include <string>

#include "../engines/current.hpp"
#include "../harness/random.hpp"
#include "tpcc_terms.hpp"

namespace bench::tpcc {

using E = CurrentEngine;
using tpcc_terms::Cents;
using tpcc_terms::districts_each;
using tpcc_terms::lines_max;

inline constexpr std::uint32_t rows_kept = 512;

struct Warehouse {
    E::Mutex mutex;
    E::Durable<Cents> ytd;
    std::int64_t tax_basis_points;
};
struct OrderLine {
    std::uint32_t order;
    std::uint32_t number;  ///< from 1
    std::uint32_t item;
    std::uint32_t supplier;  ///< a warehouse
    std::uint32_t quantity;
    std::uint32_t delivered_at;  ///< the number of the district's next order at that time; 0: not yet
    Cents amount;
    char district_information[24];
};
/// An order; its lines lie after it.
struct Order {
    std::uint32_t number;
    std::uint32_t customer;
    std::uint32_t line_count;
    E::Durable<std::uint32_t> carrier;  ///< 0: not delivered

    [[nodiscard]] OrderLine* lines() noexcept { return static_cast<OrderLine*>(static_cast<void*>(this + 1)); }
    [[nodiscard]] const OrderLine* lines() const noexcept { return static_cast<const OrderLine*>(static_cast<const void*>(this + 1)); }
};
struct History {
    std::uint32_t customer;
    std::uint32_t customer_district;  ///< across all warehouses
    Cents amount;
};
/// Orders are numbered from 1; row i of a table is that of the numbers that leave i when divided by rows_kept.
struct District {
    E::Mutex mutex;
    E::Durable<Cents> ytd;
    E::Durable<std::uint32_t> next_order;
    E::Durable<std::uint32_t> next_delivery;  ///< the oldest order that is not delivered, or next_order
    E::Durable<std::uint32_t> next_history;
    std::int64_t tax_basis_points;
    E::Durable<Order*> orders[rows_kept];
    E::Durable<std::uint32_t> new_orders[rows_kept];  ///< the number of an order that is not delivered, or 0
    History history[rows_kept];
};
struct Customer {
    E::Mutex mutex;
    E::Durable<Cents> balance;
    E::Durable<Cents> ytd_payment;
    E::Durable<std::uint32_t> payment_count;
    E::Durable<std::uint32_t> delivery_count;
    std::uint32_t discount_basis_points;
    bool has_bad_credit;
    char data[500];
};
struct Stock {
    E::Mutex mutex;
    E::Durable<std::int32_t> quantity;
    E::Durable<std::uint32_t> ytd;
    E::Durable<std::uint32_t> order_count;
    E::Durable<std::uint32_t> remote_count;
    char district_information[districts_each][24];
};
struct Item {
    Cents price;
    char data[50];
};

class Tables {
public:
    /// Finds the tables, or makes and fills them. `is_small`: for tests, a fraction of the customers and items.
    Tables(std::uint32_t warehouses, bool is_small);

    [[nodiscard]] std::uint32_t warehouses() const noexcept { return warehouse_count_; }
    [[nodiscard]] std::uint32_t districts() const noexcept { return warehouse_count_ * districts_each; }
    [[nodiscard]] std::uint32_t customers_each() const noexcept { return customers_each_; }
    [[nodiscard]] std::uint32_t items() const noexcept { return item_count_; }

    [[nodiscard]] Warehouse& warehouse(std::uint32_t number) const { return part(number)->warehouse; }
    [[nodiscard]] District& district(std::uint32_t number) const
    {
        return part(number / districts_each)->districts[number % districts_each];
    }
    [[nodiscard]] Customer& customer(std::uint32_t district, std::uint32_t number) const
    {
        return part(district / districts_each)->customers[district % districts_each * customers_each_ + number];
    }
    [[nodiscard]] Stock& stock(std::uint32_t warehouse, std::uint32_t item) const { return part(warehouse)->stock[item]; }
    [[nodiscard]] const Item& item(std::uint32_t number) const { return static_cast<const Item*>(root_->items)[number]; }

    /// The consistency conditions of clauses 3.3.2.1 to 3.3.2.4: what is wrong, in a sentence. No thread is at work.
    [[nodiscard]] std::string fault() const;

    /// An order with room for its lines; inside an operation.
    static Order* make_order(std::uint32_t number, std::uint32_t customer, std::uint32_t line_count);

private:
    /// The rows that belong to one warehouse: made by one operation. The pointers do not change.
    struct Part {
        Warehouse warehouse;
        District* districts;
        Customer* customers;
        Stock* stock;
    };
    static constexpr std::uint32_t warehouses_max = 64;
    struct Root {
        E::Mutex mutex;
        E::Durable<Item*> items;
        E::Durable<Part*> parts[warehouses_max];
    };

    [[nodiscard]] Part* part(std::uint32_t warehouse) const { return root_->parts[warehouse]; }
    void make_items();
    void make_part(std::uint32_t warehouse);
    void fill_district(District& district, Random& random) const;
    [[nodiscard]] std::string district_fault(std::uint32_t number) const;

    std::uint32_t warehouse_count_;
    std::uint32_t customers_each_;
    std::uint32_t item_count_;
    Root* root_;
};

}  // namespace bench::tpcc
