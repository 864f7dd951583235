// The five transactions of TPC-C (revision 5.11, clause 2): new-order, payment, order-status, delivery and stock-level.
//
// The standard's mix has 44 % new orders, 43 % payments, 5 % deliveries of ten orders each, so that orders do not pile up, and 4 % of
// either query (5.2.3). The other mix is that of [SPHT §4.1.2]: 95 % payments, 2 % new orders, 3 % deliveries.
//
// Size: warehouses. A thread is a terminal of one of them.

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>

#include "../../workloads/makers.hpp"
#include "../input_size.hpp"
#include "tpcc_tables.hpp"

namespace bench {
namespace {

using namespace transactional;
using tpcc_terms::Scale;
using tpcc_terms::some_customer;
using tpcc_terms::some_district;
using tpcc_terms::WantedOrder;
using tpcc_terms::WantedPayment;

/// Transactions of each kind among 100; the rest are stock levels.
struct Mix {
    std::uint64_t new_orders;
    std::uint64_t payments;
    std::uint64_t deliveries;
    std::uint64_t order_statuses;
};
constexpr Mix standard = {44, 43, 5, 4};
constexpr Mix mostly_payments = {2, 95, 3, 0};

class TransactionalTpcc final : public TransactionalWorkload {
public:
    TransactionalTpcc(const Shape& shape, const Mix& mix, const Scale& scale) : TransactionalWorkload(shape), mix_(mix), tables_(scale) {}

    void load() override { tables_.load(); }
    void perform(Context& context, unsigned count) override
    {
        const auto home = context.thread % tables_.scale().warehouses;
        for (unsigned i = 0; i < count; ++i) {
            std::uint64_t kind = context.random.below(100);
            const auto is = [&](std::uint64_t percent) {
                const bool found = kind < percent;
                kind -= percent;  // wraps where it was found, and is not used again
                return found;
            };
            if (is(mix_.new_orders)) {
                order(context, home);
            } else if (is(mix_.payments)) {
                pay(context, home);
            } else if (is(mix_.deliveries)) {
                deliver(context, home);
            } else if (is(mix_.order_statuses)) {
                ask_for_order(context, home);
            } else {
                ask_for_stock(context, home);
            }
        }
    }
    std::string fault() override { return tables_.fault(); }

private:
    /// Takes what line `i` wants from the stock, and makes the line.
    template <Transaction Tx>
    void sell(Tx& tx, const WantedOrder& wanted, std::uint32_t i, OrderLine& line) const
    {
        const auto& [item, supplier, quantity] = wanted.lines[i];
        Stock& stock = tables_.stock(supplier, item);
        tx.write(stock.quantity, tpcc_terms::quantity_after_sale(tx.read(stock.quantity), quantity));
        add(tx, stock.ytd, quantity);
        add(tx, stock.orders, 1);
        if (supplier != wanted.district / districts_each) {
            add(tx, stock.remote_orders, 1);
        }
        tx.write(line.item, std::uint64_t{item});
        tx.write(line.supplier, std::uint64_t{supplier});
        tx.write(line.quantity, std::uint64_t{quantity});
        tx.write(line.delivered_at, std::uint64_t{0});
        tx.write(line.amount, tx.read(tables_.item(item).price) * quantity);
        for (std::uint64_t word = 0; word < information_words; ++word) {
            tx.write(line.information[word], tx.read(stock.information[wanted.district % districts_each][word]));
        }
    }
    /// The one that is too old, if it is delivered: its sums stay.
    template <Transaction Tx>
    static void drop_old_order(Tx& tx, District& district, std::uint64_t newest)
    {
        Order** const place = newest > orders_kept ? district.orders.find(tx, newest - orders_kept) : nullptr;
        if (place == nullptr) {
            return;
        }
        Order* const old = tx.read(*place);
        if (tx.read(old->carrier) == 0) {
            return;
        }
        for (std::uint64_t i = 0; i < tx.read(old->line_count); ++i) {
            add(tx, district.dropped.delivered, tx.read(old->lines()[i].amount));
            add(tx, district.dropped.quantity, newest - orders_kept > first_orders ? tx.read(old->lines()[i].quantity) : 0);
        }
        district.orders.remove(tx, newest - orders_kept);
        tx.free(old);
    }

    /// New-order (2.4). Taxes and the discount are read for the sum that a terminal would show.
    void order(Context& context, std::uint32_t home)
    {
        const WantedOrder wanted = wanted_order(context.random, home, tables_.scale());
        context.changed_bytes += M::atomically([&](auto& tx) -> std::uint64_t {
            District& district = tables_.district(wanted.district);
            Customer& buyer = tables_.customer(wanted.district, wanted.customer);
            (void)tx.read(tables_.warehouse(home).tax_basis_points);
            (void)tx.read(district.tax_basis_points);
            (void)tx.read(buyer.discount_basis_points);
            if (wanted.has_unused_item) {
                return 0;  // nothing is written yet
            }
            const std::uint64_t number = add(tx, district.next_order, 1) - 1;
            Order* const made = TpccTables::make_order(tx, number, wanted.customer, number, wanted.line_count);
            for (std::uint32_t i = 0; i < wanted.line_count; ++i) {
                sell(tx, wanted, i, made->lines()[i]);
            }
            district.orders.insert(tx, number, made);
            district.new_orders.push(tx, number);
            tx.write(buyer.last_order, number);
            drop_old_order(tx, district, number);
            return sizeof(Order) + wanted.line_count * (sizeof(OrderLine) + 4 * sizeof number) + 5 * sizeof number;
        });
    }
    /// The payment goes before the text, whose end is cut off.
    template <Transaction Tx>
    static void note_in_data(Tx& tx, Customer& customer, const WantedPayment& payment)
    {
        char note[64];
        const std::size_t length = write_note(note, payment);
        std::array<std::uint64_t, data_words> words{};
        std::transform(customer.data, customer.data + data_words, words.begin(), [&](const std::uint64_t& word) { return tx.read(word); });
        auto* const text = static_cast<char*>(static_cast<void*>(words.data()));
        std::memmove(text + length, text, sizeof words - length);
        std::memcpy(text, note, length);
        for (std::size_t i = 0; i < data_words; ++i) {
            tx.write(customer.data[i], words[i]);
        }
    }

    /// Payment (2.5). Of 100 customers, 60 are asked for by name.
    void pay(Context& context, std::uint32_t home)
    {
        WantedPayment wanted = wanted_payment(context.random, home, tables_.scale());
        wanted.customer = customer_by_number_or_name(context.random, wanted.customer);
        context.changed_bytes += M::atomically([&](auto& tx) -> std::uint64_t {
            District& district = tables_.district(wanted.district);
            Customer& customer = tables_.customer(wanted.customer_district, wanted.customer);
            add(tx, tables_.warehouse(home).ytd, wanted.amount);
            add(tx, district.ytd, wanted.amount);
            subtract(tx, customer.balance, wanted.amount);
            add(tx, customer.ytd_payment, wanted.amount);
            add(tx, customer.payments, 1);
            const bool has_bad_credit = tx.read(customer.has_bad_credit) != 0;
            if (has_bad_credit) {
                note_in_data(tx, customer, wanted);
            }
            History& row = district.history[(add(tx, district.next_history, 1) - 1) % history_kept];
            add(tx, district.dropped.paid, tx.read(row.amount));
            tx.write(row.customer, std::uint64_t{wanted.customer});
            tx.write(row.customer_district, std::uint64_t{wanted.customer_district});
            tx.write(row.amount, wanted.amount);
            return 6 * sizeof wanted.amount + sizeof(History) + (has_bad_credit ? sizeof customer.data : 0);
        });
    }
    [[nodiscard]] std::uint32_t customer_by_number_or_name(Random& random, std::uint32_t number) const
    {
        return random.below(100) < 60 ? tables_.customer_by_name(random) : number;
    }
    /// Order-status (2.6): the lines of a customer's last order. It is gone where the district has had many since.
    void ask_for_order(Context& context, std::uint32_t home)
    {
        const std::uint32_t district_number = some_district(context.random, home);
        const std::uint32_t number = customer_by_number_or_name(context.random, some_customer(context.random, tables_.scale()));
        M::atomically([&](auto& tx) {
            const Customer& customer = tables_.customer(district_number, number);
            Cents shown = tx.read(customer.balance);
            Order** const place = tables_.district(district_number).orders.find(tx, tx.read(customer.last_order));
            if (place == nullptr) {
                return shown;
            }
            Order* const last = tx.read(*place);
            for (std::uint64_t i = 0; i < tx.read(last->line_count); ++i) {
                const OrderLine& line = last->lines()[i];
                shown += tx.read(line.amount) +
                         static_cast<Cents>(tx.read(line.delivered_at) + tx.read(line.quantity) + tx.read(line.item));
            }
            return shown + static_cast<Cents>(tx.read(last->carrier));
        });
    }

    /// Delivery (2.7) of the oldest new order of each district, in one transaction.
    void deliver(Context& context, std::uint32_t home)
    {
        const std::uint64_t carrier = 1 + context.random.below(10);
        context.changed_bytes += M::atomically([&](auto& tx) {
            std::uint64_t changed = 0;
            for (std::uint32_t i = home * districts_each; i < (home + 1) * districts_each; ++i) {
                if (const auto number = tables_.district(i).new_orders.pop(tx)) {
                    changed += deliver_order(tx, i, *number, carrier);
                }
            }
            return changed;
        });
    }
    template <Transaction Tx>
    std::uint64_t deliver_order(Tx& tx, std::uint32_t district_number, std::uint64_t number, std::uint64_t carrier) const
    {
        District& district = tables_.district(district_number);
        Order* const order = tx.read(*district.orders.find(tx, number));
        Customer& customer = tables_.customer(district_number, tx.read(order->customer));
        const std::uint64_t now = tx.read(district.next_order);
        const std::uint64_t line_count = tx.read(order->line_count);
        Cents sum = 0;
        for (std::uint64_t i = 0; i < line_count; ++i) {
            tx.write(order->lines()[i].delivered_at, now);
            sum += tx.read(order->lines()[i].amount);
        }
        tx.write(order->carrier, carrier);
        add(tx, customer.balance, sum);
        add(tx, customer.deliveries, 1);
        return (line_count + 5) * sizeof sum;
    }

    /// Stock-level (2.8): how many different items of the last 20 orders are scarce.
    void ask_for_stock(Context& context, std::uint32_t home)
    {
        constexpr std::uint64_t orders_examined = 20;
        const std::uint32_t district_number = some_district(context.random, home);
        const auto threshold = static_cast<std::int64_t>(10 + context.random.below(11));
        M::atomically([&](auto& tx) {
            std::array<std::uint64_t, orders_examined * lines_max> items{};
            std::size_t count = 0;
            District& district = tables_.district(district_number);
            const std::uint64_t next = tx.read(district.next_order);
            for (std::uint64_t number = next - orders_examined; number < next; ++number) {
                Order** const place = district.orders.find(tx, number);
                Order* const order = place != nullptr ? tx.read(*place) : nullptr;
                for (std::uint64_t i = 0; order != nullptr && i < tx.read(order->line_count); ++i) {
                    items[count++] = tx.read(order->lines()[i].item);
                }
            }
            std::sort(items.begin(), items.begin() + count);
            const auto end = std::unique(items.begin(), items.begin() + count);
            return std::count_if(items.begin(), end,
                                 [&](std::uint64_t item) { return tx.read(tables_.stock(home, item).quantity) < threshold; });
        });
    }

    const Mix& mix_;
    TpccTables tables_;
};

Work make(const Shape& shape, const Mix& mix)
{
    Scale scale = parameters_for<Scale>(shape, {1, 60, 200}, {2, 1000, 10'000}, {4, 3000, 100'000});
    const std::uint64_t wanted = input_size(shape, scale.warehouses, scale.warehouses, {1, 64, "warehouses"});
    scale.warehouses = static_cast<std::uint32_t>(wanted);
    return {std::make_unique<TransactionalTpcc>(shape, mix, scale), nullptr};
}

}  // namespace

Work make_tpcc_standard(const Shape& shape) { return make(shape, standard); }
Work make_tpcc_payments(const Shape& shape) { return make(shape, mostly_payments); }

}  // namespace bench
