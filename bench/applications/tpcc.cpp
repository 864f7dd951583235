// Payment, new-order and delivery of TPC-C (clauses 2.4, 2.5, 2.7), each transaction one operation under the locks of its rows;
// delivery is one for each district, as clause 2.7.2.2 allows.
//
// Of 100 transactions 48 are new orders, 46 payments, 6 deliveries of ten orders each: as the standard's mix without its queries,
// with half as many deliveries again, so that orders do not pile up. Customers are chosen by their number only.
//
// Size: warehouses. A thread is a terminal of one of them.

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include "../workloads/makers.hpp"
#include "input_size.hpp"
#include "tpcc_tables.hpp"
#include "tpcc_terms.hpp"

namespace bench {
namespace {

using namespace tpcc;
using namespace tpcc_terms;

class Tpcc final : public Workload {
public:
    Tpcc(const Shape& shape, std::uint32_t warehouses) : shape_(shape), warehouses_(warehouses) {}

    void load() override
    {
        tables_.emplace(warehouses_, shape_.is_smoke);
        scale_ = {warehouses_, tables_->customers_each(), tables_->items()};
    }

    void perform(Context& context, unsigned count) override
    {
        const std::uint32_t home = context.thread % warehouses_;
        for (unsigned i = 0; i < count; ++i) {
            const std::uint64_t kind = context.random.below(100);
            if (kind < 48) {
                const WantedOrder wanted = wanted_order(context.random, home, scale_);
                if (!wanted.has_unused_item && !place(context, wanted)) {
                    deliver(context, home);  // every row is taken by an order that waits: now it is not
                    (void)place(context, wanted);
                }
            } else if (kind < 94) {
                pay(context, home);
            } else {
                deliver(context, home);
            }
        }
    }
    std::string fault() override { return tables_->fault(); }
    void settle() override { E::settle(); }
    void note_progress(unsigned thread, std::uint64_t operations) override { progress_.note(thread, operations); }
    std::uint64_t noted_progress(unsigned thread) override { return progress_.noted(thread); }

private:
    /// New-order. False: there is no row for it.
    bool place(Context& context, const WantedOrder& wanted)
    {
        District& district = tables_->district(wanted.district);
        E::Operation<1 + lines_max> operation;
        operation.lock(district.mutex);
        const std::uint32_t number = district.next_order;
        if (number - district.next_delivery >= rows_kept) {
            return false;
        }
        std::array<Stock*, lines_max> stocks = {};
        for (std::uint32_t i = 0; i < wanted.line_count; ++i) {
            stocks[i] = &tables_->stock(wanted.lines[i].supplier, wanted.lines[i].item);
        }
        auto locks = stocks;
        std::sort(locks.begin(), locks.begin() + wanted.line_count);
        const auto end = std::unique(locks.begin(), locks.begin() + wanted.line_count);
        std::for_each(locks.begin(), end, [&operation](Stock* stock) { operation.lock(stock->mutex); });

        Order* order = Tables::make_order(number, wanted.customer, wanted.line_count);
        for (std::uint32_t i = 0; i < wanted.line_count; ++i) {
            order->lines()[i] = sell(*stocks[i], wanted, i, number);
        }
        auto& row = district.orders[number % rows_kept];
        if (Order* const old = row; old != nullptr) {
            E::deallocate(old);
        }
        row = order;
        district.new_orders[number % rows_kept] = number;
        district.next_order = number + 1;
        context.changed_bytes += sizeof(Order) + wanted.line_count * (sizeof(OrderLine) + 4 * sizeof number) + 2 * sizeof number;
        return true;
    }
    /// Takes what line `i` wants from the stock, and makes the line.
    [[nodiscard]] OrderLine sell(Stock& stock, const WantedOrder& wanted, std::uint32_t i, std::uint32_t order) const
    {
        const WantedLine& line = wanted.lines[i];
        const auto quantity = static_cast<std::int32_t>(line.quantity);
        stock.quantity = static_cast<std::int32_t>(quantity_after_sale(stock.quantity, quantity));
        stock.ytd = stock.ytd + line.quantity;
        stock.order_count = stock.order_count + 1;
        if (line.supplier != wanted.district / districts_each) {
            stock.remote_count = stock.remote_count + 1;
        }
        OrderLine made = {order, i + 1, line.item, line.supplier, line.quantity, 0, tables_->item(line.item).price * quantity, {}};
        std::memcpy(made.district_information, stock.district_information[wanted.district % districts_each],
                    sizeof made.district_information);
        return made;
    }

    void pay(Context& context, std::uint32_t home)
    {
        const WantedPayment wanted = wanted_payment(context.random, home, scale_);
        Warehouse& warehouse = tables_->warehouse(home);
        District& district = tables_->district(wanted.district);
        Customer& customer = tables_->customer(wanted.customer_district, wanted.customer);

        E::Operation<3> operation;
        operation.lock(warehouse.mutex);
        operation.lock(district.mutex);
        operation.lock(customer.mutex);
        warehouse.ytd = warehouse.ytd + wanted.amount;
        district.ytd = district.ytd + wanted.amount;
        customer.balance = customer.balance - wanted.amount;
        customer.ytd_payment = customer.ytd_payment + wanted.amount;
        customer.payment_count = customer.payment_count + 1;
        if (customer.has_bad_credit) {
            note_in_data(customer, wanted);
            context.changed_bytes += sizeof customer.data;
        }
        const std::uint32_t row = district.next_history;
        E::about_to_write(&district.history[row], sizeof(History));
        district.history[row] = {wanted.customer, wanted.customer_district, wanted.amount};
        district.next_history = (row + 1) % rows_kept;
        context.changed_bytes += 4 * sizeof wanted.amount + sizeof(History);
    }
    /// Clause 2.5.2.2: the payment goes before the text, whose end is cut off.
    static void note_in_data(Customer& customer, const WantedPayment& payment)
    {
        char note[64];
        const std::size_t length = write_note(note, payment);
        E::about_to_write(customer.data, sizeof customer.data);
        std::memmove(customer.data + length, customer.data, sizeof customer.data - length);
        std::memcpy(customer.data, note, length);
    }

    /// Delivers the oldest waiting order of each district.
    void deliver(Context& context, std::uint32_t home)
    {
        const auto carrier = static_cast<std::uint32_t>(1 + context.random.below(10));
        for (std::uint32_t i = 0; i < districts_each; ++i) {
            const std::uint32_t number = home * districts_each + i;
            District& district = tables_->district(number);
            E::Operation<2> operation;
            operation.lock(district.mutex);
            const std::uint32_t oldest = district.next_delivery;
            if (oldest == district.next_order) {
                continue;
            }
            Order& order = *static_cast<Order*>(district.orders[oldest % rows_kept]);
            Customer& customer = tables_->customer(number, order.customer);
            operation.lock(customer.mutex);
            Cents sum = 0;
            E::about_to_write(order.lines(), order.line_count * sizeof(OrderLine));
            for (std::uint32_t line = 0; line < order.line_count; ++line) {
                order.lines()[line].delivered_at = district.next_order;  // the district's clock
                sum += order.lines()[line].amount;
            }
            order.carrier = carrier;
            customer.balance = customer.balance + sum;
            customer.delivery_count = customer.delivery_count + 1;
            district.new_orders[oldest % rows_kept] = 0u;
            district.next_delivery = oldest + 1;
            context.changed_bytes += (order.line_count + 5) * sizeof oldest + sizeof sum;
        }
    }

    const Shape shape_;
    const std::uint32_t warehouses_;
    std::optional<Tables> tables_;
    Scale scale_{};
    Progress<E> progress_;
};

}  // namespace

Work make_tpcc(const Shape& shape)
{
    const std::uint64_t warehouses = input_size(shape, 2, 1, {1, 64, "warehouses"});
    return {std::make_unique<Tpcc>(shape, static_cast<std::uint32_t>(warehouses)), nullptr};
}

}  // namespace bench
