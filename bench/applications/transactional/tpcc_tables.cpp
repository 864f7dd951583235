#include "tpcc_tables.hpp"

#include <algorithm>
#include <cstddef>

namespace bench::transactional {

namespace {

constexpr Cents first_ytd_of_a_district = 30'000'00;
constexpr std::uint32_t last_names = 1000;

/// Eight letters.
std::uint64_t some_letters(Random& random)
{
    std::uint64_t word = 0;
    for (unsigned i = 0; i < sizeof word; ++i) {
        word = word << 8 | ('a' + random.below(26));
    }
    return word;
}

template <Transaction Tx, std::size_t count>
void write_text(Tx& tx, std::uint64_t (&words)[count], Random& random)
{
    for (std::uint64_t& word : words) {
        tx.write(word, some_letters(random));
    }
}

/// Calls make(tx, i) for each i below `count`, some in a transaction; `random` is that of the first one again in each attempt.
template <class Make>
void in_steps(std::uint64_t count, Random& random, Make make)
{
    constexpr std::uint64_t each = 8;
    for (std::uint64_t first = 0; first < count; first += each) {
        random = CurrentTransactions::atomically([&, begin = random](auto& tx) {
            Random own = begin;
            for (std::uint64_t i = first; i < std::min(first + each, count); ++i) {
                make(tx, i, own);
            }
            return own;
        });
    }
}

}  // namespace

/// Sums over rows that are kept, of one district or of all.
struct TpccTables::Sums {
    Cents paid = 0;
    Cents delivered = 0;
    std::uint64_t quantity = 0;
};

TpccTables::TpccTables(const tpcc_terms::Scale& scale) : scale_(scale)
{
    const std::uint64_t districts = std::uint64_t{scale.warehouses} * districts_each;
    warehouses_ = M::named<Warehouse>("bench.tpcc.warehouses", scale.warehouses);
    districts_ = M::named<District>("bench.tpcc.districts", districts);
    customers_ = M::named<Customer>("bench.tpcc.customers", districts * scale.customers_each);
    stock_ = M::named<Stock>("bench.tpcc.stock", std::uint64_t{scale.warehouses} * scale.items);
    items_ = M::named<Item>("bench.tpcc.items", scale.items);
    Random random(53);
    by_name_.resize(std::min(last_names, scale.customers_each));
    for (std::uint32_t i = 0; i < scale.customers_each; ++i) {
        const auto names = static_cast<std::uint32_t>(by_name_.size());
        by_name_[i < names ? i : tpcc_terms::skewed(random, 255, names)].push_back(i);
    }
}

std::uint32_t TpccTables::customer_by_name(Random& random) const
{
    const auto& all = by_name_[tpcc_terms::skewed(random, 255, static_cast<std::uint32_t>(by_name_.size()))];
    return all[(all.size() - 1) / 2];
}

void TpccTables::load()
{
    if (warehouse(0).is_filled == 0) {
        fill_items();
    }
    for (std::uint32_t number = 0; number < scale_.warehouses; ++number) {
        if (warehouse(number).is_filled == 0) {
            fill_warehouse(number);
        }
    }
}

void TpccTables::fill_items()
{
    Random random(59);
    in_steps(scale_.items, random, [&](auto& tx, std::uint64_t i, Random& own) {
        tx.write(items_[i].price, static_cast<Cents>(100 + own.below(9901)));
        write_text(tx, items_[i].data, own);
    });
}

void TpccTables::fill_warehouse(std::uint32_t number)
{
    Random random(61 + number);
    in_steps(scale_.items, random, [&](auto& tx, std::uint64_t i, Random& own) {
        Stock& row = stock(number, i);
        tx.write(row.quantity, static_cast<std::int64_t>(10 + own.below(91)));
        for (auto& text : row.information) {
            write_text(tx, text, own);
        }
    });
    in_steps(std::uint64_t{districts_each} * scale_.customers_each, random, [&](auto& tx, std::uint64_t i, Random& own) {
        Customer& row = customer(std::uint64_t{number} * districts_each, i);
        tx.write(row.discount_basis_points, own.below(5001));
        tx.write(row.has_bad_credit, std::uint64_t{own.below(10) == 0});
        write_text(tx, row.data, own);
    });
    for (std::uint32_t i = 0; i < districts_each; ++i) {
        fill_district(number * districts_each + i);
    }
    M::atomically([&](auto& tx) {
        tx.write(warehouse(number).ytd, first_ytd_of_a_district * districts_each);
        tx.write(warehouse(number).tax_basis_points, static_cast<std::int64_t>(random.below(2001)));
        tx.write(warehouse(number).is_filled, std::uint64_t{1});
    });
}

void TpccTables::fill_district(std::uint32_t number)
{
    for (std::uint64_t order = 1; order <= first_orders; ++order) {
        fill_order(number, order);
    }
    M::atomically([&](auto& tx) {
        District& row = district(number);
        tx.write(row.ytd, first_ytd_of_a_district);
        tx.write(row.dropped.paid, first_ytd_of_a_district);  // the history of the time before is gone
        tx.write(row.tax_basis_points, static_cast<std::int64_t>(number % 2001));
        tx.write(row.next_order, first_orders + 1);
    });
}

/// One that is there stays as it is.
void TpccTables::fill_order(std::uint32_t of, std::uint64_t number)
{
    M::atomically([&](auto& tx) {
        Random random(67 + std::uint64_t{of} * first_orders + number);
        District& row = district(of);
        const std::uint64_t buyer = (number * 7919 + of) % scale_.customers_each;
        const bool is_new = number > first_orders - first_new_orders;
        Order* const order = make_order(tx, number, buyer, number, 5 + random.below(lines_max - 4));
        Cents sum = 0;
        for (std::uint64_t i = 0; i < tx.read(order->line_count); ++i) {
            OrderLine& line = order->lines()[i];
            const auto amount = static_cast<Cents>(1 + random.below(999'999));
            sum += amount;
            tx.write(line.item, random.below(scale_.items));
            tx.write(line.supplier, std::uint64_t{of} / districts_each);
            tx.write(line.quantity, std::uint64_t{5});
            tx.write(line.delivered_at, is_new ? std::uint64_t{0} : number);
            tx.write(line.amount, amount);
            write_text(tx, line.information, random);
        }
        if (!row.orders.insert(tx, number, order)) {
            tx.free(order);
            return;
        }
        Customer& customer_row = customer(of, buyer);
        tx.write(customer_row.last_order, number);
        if (is_new) {
            row.new_orders.push(tx, number);
        } else {
            tx.write(order->carrier, std::uint64_t{1});
            add(tx, customer_row.balance, sum);
        }
    });
}

std::string TpccTables::fault() const
{
    Sums all;
    std::uint64_t sold = 0;
    for (std::uint64_t number = 0; number < scale_.warehouses; ++number) {
        Cents taken = 0;
        Sums of_warehouse;
        for (std::uint64_t i = number * districts_each; i < (number + 1) * districts_each; ++i) {
            taken += district(i).ytd;
            Sums of_district;
            if (std::string fault = fault_of_district(i, of_district); !fault.empty()) {
                return "district " + std::to_string(i) + ": " + fault;
            }
            of_warehouse.paid += of_district.paid;
            all.quantity += of_district.quantity;
        }
        if (warehouse(number).ytd != taken || taken != of_warehouse.paid) {
            return "3.3.2.1, 3.3.2.8: warehouse " + std::to_string(number) + " has taken " + std::to_string(warehouse(number).ytd) +
                   " cents, its districts " + std::to_string(taken) + ", by their history " + std::to_string(of_warehouse.paid);
        }
        all.paid += of_warehouse.paid - first_ytd_of_a_district * districts_each;
        for (std::uint64_t i = 0; i < scale_.items; ++i) {
            sold += stock(number, i).ytd;
        }
    }
    Cents paid = 0;
    for (std::uint64_t i = 0; i < std::uint64_t{scale_.warehouses} * districts_each * scale_.customers_each; ++i) {
        paid += customers_[i].ytd_payment;
    }
    if (paid != all.paid) {
        return "3.3.2.10: customers have paid " + std::to_string(paid) + " cents, warehouses have taken " + std::to_string(all.paid);
    }
    return sold == all.quantity ? std::string()
                                : "the stock has lost " + std::to_string(sold) + " pieces, the orders have " + std::to_string(all.quantity);
}

/// Adds what the district has to the sums.
std::string TpccTables::fault_of_district(std::uint64_t number, Sums& sums) const
{
    const District& one = district(number);
    std::vector<std::uint64_t> new_orders;
    one.new_orders.for_each([&](std::uint64_t order) { new_orders.push_back(order); });
    sums = {one.dropped.paid, one.dropped.delivered, one.dropped.quantity};
    std::string fault = fault_of_new_orders(one, new_orders);
    std::uint64_t newest = 0;
    std::uint64_t waiting = 0;
    one.orders.for_each([&](std::uint64_t key, const Order* order) {
        const bool is_new = std::binary_search(new_orders.begin(), new_orders.end(), key);
        newest = key;
        waiting += is_new;
        if (fault.empty()) {
            fault = order->number != key ? "an order is kept under another number" : fault_of_order(*order, is_new, sums);
        }
    });
    if (!fault.empty() || !one.orders.is_whole()) {
        return !fault.empty() ? fault : "the orders are out of order";
    }
    if (one.next_order != newest + 1 || waiting != new_orders.size()) {
        return "3.3.2.2, 3.3.2.5: the next order is " + std::to_string(one.next_order) + ", the newest order " + std::to_string(newest) +
               "; " + std::to_string(new_orders.size()) + " orders are new, " + std::to_string(waiting) + " of them are there";
    }
    for (const History& row : one.history) {
        sums.paid += row.amount;
    }
    if (one.ytd != sums.paid) {
        return "3.3.2.9: it has taken " + std::to_string(one.ytd) + " cents, by its history " + std::to_string(sums.paid);
    }
    Cents owed = 0;
    for (std::uint64_t i = 0; i < scale_.customers_each; ++i) {
        owed += customer(number, i).balance + customer(number, i).ytd_payment;
    }
    return owed == sums.delivered ? std::string()
                                  : "3.3.2.12: its customers have got goods for " + std::to_string(owed) + " cents, by their orders for " +
                                        std::to_string(sums.delivered);
}

std::string TpccTables::fault_of_new_orders(const District& district, const std::vector<std::uint64_t>& new_orders)
{
    for (std::size_t i = 1; i < new_orders.size(); ++i) {
        if (new_orders[i] != new_orders[i - 1] + 1) {
            return "3.3.2.3: new order " + std::to_string(new_orders[i]) + " follows " + std::to_string(new_orders[i - 1]);
        }
    }
    return new_orders.empty() || new_orders.back() + 1 == district.next_order
               ? std::string()
               : "3.3.2.2: the newest new order is " + std::to_string(new_orders.back()) + ", the next order " +
                     std::to_string(district.next_order);
}

std::string TpccTables::fault_of_order(const Order& order, bool is_new, Sums& sums)
{
    if (order.line_count == 0 || order.line_count > lines_max || (order.carrier == 0) != is_new) {
        return "3.3.2.4 to 3.3.2.6: order " + std::to_string(order.number) + " has " + std::to_string(order.line_count) +
               " lines, and carrier " + std::to_string(order.carrier);
    }
    for (std::uint64_t i = 0; i < order.line_count; ++i) {
        const OrderLine& line = order.lines()[i];
        if ((line.delivered_at == 0) != is_new) {
            return "3.3.2.7: a line of order " + std::to_string(order.number) + " is delivered, or not, unlike the order";
        }
        sums.delivered += is_new ? 0 : line.amount;
        sums.quantity += order.number > first_orders ? line.quantity : 0;
    }
    return {};
}

}  // namespace bench::transactional
