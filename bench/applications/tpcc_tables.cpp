#include "tpcc_tables.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace bench::tpcc {

namespace {

constexpr std::uint32_t first_orders = 300;
constexpr std::uint32_t first_new_orders = 90;
constexpr Cents first_ytd_of_a_district = 30'000'00;

/// Zeroed rows, inside an operation: every lock free, every number 0.
template <class Row>
Row* make_rows(std::size_t count)
{
    void* rows = E::allocate_aligned(64, count * sizeof(Row));
    std::memset(rows, 0, count * sizeof(Row));
    return static_cast<Row*>(rows);
}

void fill_text(char* text, std::size_t size, Random& random)
{
    std::generate_n(text, size, [&random] { return static_cast<char>('a' + random.below(26)); });
}

}  // namespace

Tables::Tables(std::uint32_t warehouses, bool is_small)
    : warehouse_count_(warehouses), customers_each_(is_small ? 60 : 1000), item_count_(is_small ? 200 : 10'000),
      root_(static_cast<Root*>(E::root("bench.tpcc", sizeof(Root))))
{
    if (root_->items == nullptr) {
        make_items();
    }
    for (std::uint32_t warehouse = 0; warehouse < warehouses; ++warehouse) {
        if (root_->parts[warehouse] == nullptr) {
            make_part(warehouse);
        }
    }
}

void Tables::make_items()
{
    Random random(23);
    E::Operation<1> operation;
    operation.lock(root_->mutex);
    auto* items = make_rows<Item>(item_count_);
    for (std::uint32_t i = 0; i < item_count_; ++i) {
        items[i].price = static_cast<Cents>(100 + random.below(9901));
        fill_text(items[i].data, sizeof items[i].data, random);
    }
    root_->items = items;
}

void Tables::make_part(std::uint32_t warehouse)
{
    Random random(29 + warehouse);
    E::Operation<1> operation;
    operation.lock(root_->mutex);
    auto* made = make_rows<Part>(1);
    made->warehouse.tax_basis_points = static_cast<std::int64_t>(random.below(2001));
    E::init(made->warehouse.ytd, first_ytd_of_a_district * districts_each);
    made->customers = make_rows<Customer>(std::size_t{districts_each} * customers_each_);
    for (std::uint32_t i = 0; i < districts_each * customers_each_; ++i) {
        Customer& customer = made->customers[i];
        customer.discount_basis_points = static_cast<std::uint32_t>(random.below(5001));
        customer.has_bad_credit = random.below(10) == 0;
        fill_text(customer.data, sizeof customer.data, random);
    }
    made->stock = make_rows<Stock>(item_count_);
    for (std::uint32_t i = 0; i < item_count_; ++i) {
        E::init(made->stock[i].quantity, static_cast<std::int32_t>(10 + random.below(91)));
        fill_text(&made->stock[i].district_information[0][0], sizeof made->stock[i].district_information, random);
    }
    made->districts = make_rows<District>(districts_each);
    for (std::uint32_t i = 0; i < districts_each; ++i) {
        fill_district(made->districts[i], random);
    }
    root_->parts[warehouse] = made;
}

void Tables::fill_district(District& district, Random& random) const
{
    district.tax_basis_points = static_cast<std::int64_t>(random.below(2001));
    E::init(district.ytd, first_ytd_of_a_district);
    E::init(district.next_order, first_orders + 1);
    E::init(district.next_delivery, first_orders - first_new_orders + 1);
    for (std::uint32_t number = 1; number <= first_orders; ++number) {
        const bool is_new = number > first_orders - first_new_orders;
        Order* order = make_order(number, static_cast<std::uint32_t>(random.below(customers_each_)),
                                  static_cast<std::uint32_t>(5 + random.below(lines_max - 4)));
        E::init(order->carrier, is_new ? 0u : 1u);
        for (std::uint32_t line = 0; line < order->line_count; ++line) {
            order->lines()[line] = {number, line + 1,         static_cast<std::uint32_t>(random.below(item_count_)), 0,
                                    5,      is_new ? 0u : 1u, static_cast<Cents>(1 + random.below(999'999)),         {}};
        }
        E::init(district.orders[number % rows_kept], order);
        if (is_new) {
            E::init(district.new_orders[number % rows_kept], number);
        }
    }
}

Order* Tables::make_order(std::uint32_t number, std::uint32_t customer, std::uint32_t line_count)
{
    auto* order = static_cast<Order*>(E::allocate(sizeof(Order) + line_count * sizeof(OrderLine)));
    order->number = number;
    order->customer = customer;
    order->line_count = line_count;
    E::init(order->carrier, 0u);
    return order;
}

std::string Tables::fault() const
{
    for (std::uint32_t number = 0; number < warehouse_count_; ++number) {
        Cents sum = 0;
        for (std::uint32_t i = 0; i < districts_each; ++i) {
            sum += district(number * districts_each + i).ytd;
            if (std::string fault = district_fault(number * districts_each + i); !fault.empty()) {
                return fault;
            }
        }
        const Cents ytd = warehouse(number).ytd;
        if (ytd != sum) {
            return "3.3.2.1: warehouse " + std::to_string(number) + " has taken " + std::to_string(ytd) + " cents, its districts " +
                   std::to_string(sum);
        }
    }
    return {};
}

std::string Tables::district_fault(std::uint32_t number) const
{
    const District& one = district(number);
    const std::string where = "district " + std::to_string(number) + ": ";
    std::uint32_t newest = 0;
    std::uint64_t lines_promised = 0;
    std::uint64_t lines_found = 0;
    for (std::uint32_t row = 0; row < rows_kept; ++row) {
        const Order* order = one.orders[row];
        if (order == nullptr) {
            continue;
        }
        newest = std::max(newest, order->number);
        lines_promised += order->line_count;
        for (std::uint32_t line = 0; line < order->line_count; ++line) {
            const OrderLine& found = order->lines()[line];
            const bool is_delivered = order->carrier != 0;
            lines_found += found.order == order->number && found.number == line + 1 && (found.delivered_at != 0) == is_delivered;
        }
        if (order->number % rows_kept != row || (order->carrier == 0) != (one.new_orders[row] == order->number)) {
            return where + "order " + std::to_string(order->number) + " is out of its row, or delivered and new at once";
        }
    }
    std::uint32_t new_min = UINT32_MAX;
    std::uint32_t new_max = 0;
    std::uint32_t new_count = 0;
    for (const auto& row : one.new_orders) {
        const std::uint32_t order = row;
        if (order != 0) {
            new_min = std::min(new_min, order);
            new_max = std::max(new_max, order);
            ++new_count;
        }
    }
    if (one.next_order - 1 != newest || (new_count != 0 && new_max != newest)) {
        return "3.3.2.2: " + where + "the next order is " + std::to_string(one.next_order) + ", the newest order " +
               std::to_string(newest) + ", the newest new order " + std::to_string(new_max);
    }
    if (new_count != 0 && (new_max - new_min + 1 != new_count || new_min != one.next_delivery)) {
        return "3.3.2.3: " + where + std::to_string(new_count) + " new orders from " + std::to_string(new_min) + " to " +
               std::to_string(new_max) + ", to be delivered from " + std::to_string(one.next_delivery) + " on";
    }
    if (lines_found != lines_promised) {
        return "3.3.2.4: " + where + "the orders have " + std::to_string(lines_promised) + " lines, " + std::to_string(lines_found) +
               " are whole";
    }
    return {};
}

}  // namespace bench::tpcc
