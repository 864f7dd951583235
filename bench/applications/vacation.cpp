// A travel agency, in the shape of STAMP's vacation: customers reserve cars, flights and rooms, cancel everything, and the
// agency changes its offers. Durable: three tables of offers, and a hash table of customers with lists of their reservations.
//
// Size: the number of offers in each table, and of possible customers. Of 100 operations 80 reserve, 10 delete a customer and
// 10 change offers; each looks at 4 offers.
//
// Lock order: the customer's bucket, then offers by table and number.

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "../engines/current.hpp"
#include "../workloads/makers.hpp"
#include "input_size.hpp"

namespace bench {
namespace {

using E = CurrentEngine;

constexpr std::uint32_t tables = 3;  // cars, flights, rooms
constexpr unsigned offers_examined = 4;
/// Deleting a customer takes a lock for each of her reservations, so their number is limited.
constexpr std::uint64_t reservations_max = 30;

/// Zeroed memory is an offer of nothing.
struct Offer {
    E::Mutex mutex;
    E::Durable<std::uint32_t> total;
    E::Durable<std::uint32_t> used;
    E::Durable<std::uint32_t> free;
    E::Durable<std::uint32_t> price;
};
struct Reservation {
    std::uint64_t offer;  ///< across all tables
    std::uint32_t price;
    Reservation* next;
};
struct Customer {
    std::uint64_t number;
    E::Durable<std::uint64_t> reservation_count;
    E::Durable<Reservation*> reservations;
    E::Durable<Customer*> next;
};
struct Bucket {
    E::Mutex mutex;
    E::Durable<Customer*> first;
};
struct Agency {
    E::Mutex mutex;
    E::Durable<Offer*> offers;  ///< table after table
    E::Durable<Bucket*> buckets;
};

/// Offers, each once, in the order of their locks.
template <std::size_t most>
class OfferSet {
public:
    void add(std::uint64_t offer)
    {
        std::size_t at = count_;
        while (at > 0 && numbers_[at - 1] > offer) {
            --at;
        }
        if (at > 0 && numbers_[at - 1] == offer) {
            return;
        }
        for (std::size_t i = count_++; i > at; --i) {
            numbers_[i] = numbers_[i - 1];
        }
        numbers_[at] = offer;
    }
    [[nodiscard]] const std::uint64_t* begin() const noexcept { return numbers_.data(); }
    [[nodiscard]] const std::uint64_t* end() const noexcept { return numbers_.data() + count_; }

private:
    std::array<std::uint64_t, most> numbers_ = {};
    std::size_t count_ = 0;
};

class Vacation final : public Workload {
public:
    Vacation(const Shape&, std::uint64_t offers_each) : offers_each_(offers_each), agency_(E::named<Agency>("bench.vacation")) {}

    void load() override
    {
        E::Operation<1> operation;
        operation.lock(agency_->mutex);
        if (agency_->offers != nullptr) {
            return;
        }
        Offer* const offers = E::make_array<Offer>(tables * offers_each_);
        Random random(17);
        for (std::uint64_t i = 0; i < tables * offers_each_; ++i) {
            const auto total = static_cast<std::uint32_t>(4 + random.below(16));
            E::init(offers[i].total, total);
            E::init(offers[i].free, total);
            E::init(offers[i].price, price(random));
        }
        agency_->buckets = E::make_array<Bucket>(buckets());
        agency_->offers = offers;
    }

    void perform(Context& context, unsigned count) override
    {
        for (unsigned i = 0; i < count; ++i) {
            const std::uint64_t kind = context.random.below(100);
            if (kind < 80) {
                reserve(context);
            } else if (kind < 90) {
                delete_customer(context);
            } else {
                change_offers(context);
            }
        }
    }

    /// The customers' reservations equal the offers' used counts, and used and free are the total.
    std::string fault() override
    {
        std::vector<std::uint32_t> used(tables * offers_each_);
        for (std::uint64_t i = 0; i < buckets(); ++i) {
            for (const Customer* customer = bucket(i).first; customer != nullptr; customer = customer->next) {
                std::uint64_t count = 0;
                for (const Reservation* one = customer->reservations; one != nullptr; one = one->next) {
                    ++count;
                    ++used[one->offer];
                }
                if (count != customer->reservation_count || count > reservations_max || customer->number % buckets() != i) {
                    return "customer " + std::to_string(customer->number) + " has " + std::to_string(count) + " reservations instead of " +
                           std::to_string(customer->reservation_count);
                }
            }
        }
        for (std::uint64_t i = 0; i < used.size(); ++i) {
            const Offer& one = offer(i);
            if (one.used != used[i] || one.used + one.free != one.total) {
                return "offer " + std::to_string(i) + ": customers have " + std::to_string(used[i]) + ", used are " +
                       std::to_string(one.used) + ", free " + std::to_string(one.free) + " of " + std::to_string(one.total);
            }
        }
        return {};
    }
    void settle() override { E::settle(); }
    void note_progress(unsigned thread, std::uint64_t operations) override { progress_.note(thread, operations); }
    std::uint64_t noted_progress(unsigned thread) override { return progress_.noted(thread); }

private:
    static std::uint32_t price(Random& random) { return static_cast<std::uint32_t>(50 + 10 * random.below(50)); }
    [[nodiscard]] Offer& offer(std::uint64_t number) const { return static_cast<Offer*>(agency_->offers)[number]; }
    /// Up to two customers each.
    [[nodiscard]] std::uint64_t buckets() const noexcept { return (offers_each_ + 1) / 2; }
    [[nodiscard]] Bucket& bucket(std::uint64_t customer) const { return static_cast<Bucket*>(agency_->buckets)[customer % buckets()]; }

    [[nodiscard]] OfferSet<offers_examined> some_offers(Random& random) const
    {
        OfferSet<offers_examined> set;
        for (unsigned i = 0; i < offers_examined; ++i) {
            set.add(random.below(tables) * offers_each_ + random.below(offers_each_));
        }
        return set;
    }

    /// Reserves the dearest free offer of each kind that was examined.
    void reserve(Context& context)
    {
        const std::uint64_t number = context.random.below(offers_each_);
        const auto set = some_offers(context.random);
        E::Operation<1 + offers_examined> operation;
        operation.lock(bucket(number).mutex);
        std::array<std::uint64_t, tables> best = {};
        std::array<std::uint32_t, tables> best_price = {};
        for (const std::uint64_t one : set) {
            operation.lock(offer(one).mutex);
            const std::uint64_t table = one / offers_each_;
            if (offer(one).free != 0 && offer(one).price > best_price[table]) {
                best[table] = one;
                best_price[table] = offer(one).price;
            }
        }
        for (std::uint32_t table = 0; table < tables; ++table) {
            if (best_price[table] != 0) {
                take(context, number, best[table]);
            }
        }
    }
    /// The customer's bucket and the offer are locked.
    void take(Context& context, std::uint64_t number, std::uint64_t wanted)
    {
        Customer* customer = find(number);
        if (customer == nullptr) {
            customer = E::make<Customer>();
            customer->number = number;
            E::init(customer->reservation_count, std::uint64_t{0});
            E::init(customer->reservations, static_cast<Reservation*>(nullptr));
            E::init(customer->next, static_cast<Customer*>(bucket(number).first));
            bucket(number).first = customer;
            context.changed_bytes += sizeof number;
        }
        if (customer->reservation_count == reservations_max) {
            return;
        }
        Offer& taken = offer(wanted);
        auto* const reservation = static_cast<Reservation*>(E::allocate(sizeof(Reservation)));
        reservation->offer = wanted;
        reservation->price = taken.price;
        reservation->next = customer->reservations;
        customer->reservations = reservation;
        customer->reservation_count = customer->reservation_count + 1;
        taken.used = taken.used + 1;
        taken.free = taken.free - 1;
        context.changed_bytes += sizeof(Reservation) + sizeof taken.used + sizeof taken.free;
    }

    void delete_customer(Context& context)
    {
        const std::uint64_t number = context.random.below(offers_each_);
        E::Operation<1 + reservations_max> operation;
        operation.lock(bucket(number).mutex);
        Customer* customer = find(number);
        if (customer == nullptr) {
            return;
        }
        OfferSet<reservations_max> set;
        for (const Reservation* one = customer->reservations; one != nullptr; one = one->next) {
            set.add(one->offer);
        }
        for (const std::uint64_t one : set) {
            operation.lock(offer(one).mutex);
        }
        for (Reservation* one = customer->reservations; one != nullptr;) {
            Offer& returned = offer(one->offer);
            returned.used = returned.used - 1;
            returned.free = returned.free + 1;
            Reservation* const next = one->next;
            E::deallocate(one);
            one = next;
            context.changed_bytes += sizeof returned.used + sizeof returned.free;
        }
        unlink(*customer);
        E::deallocate(customer);
        context.changed_bytes += sizeof number;
    }
    [[nodiscard]] Customer* find(std::uint64_t number) const
    {
        Customer* customer = bucket(number).first;
        while (customer != nullptr && customer->number != number) {
            customer = customer->next;
        }
        return customer;
    }
    void unlink(const Customer& customer)
    {
        Bucket& own = bucket(customer.number);
        Customer* const next = customer.next;
        if (own.first == &customer) {
            own.first = next;
            return;
        }
        Customer* before = own.first;
        while (before->next != &customer) {
            before = before->next;
        }
        before->next = next;
    }

    /// Each of some offers grows or shrinks; one that grows gets a new price.
    void change_offers(Context& context)
    {
        const auto set = some_offers(context.random);
        E::Operation<offers_examined> operation;
        for (const std::uint64_t one : set) {
            const bool grows = context.random.below(2) == 0;
            const std::uint32_t new_price = price(context.random);
            operation.lock(offer(one).mutex);
            Offer& changed = offer(one);
            if (grows) {
                changed.total = changed.total + 1;
                changed.free = changed.free + 1;
                changed.price = new_price;
            } else if (changed.free != 0) {
                changed.total = changed.total - 1;
                changed.free = changed.free - 1;
            }
            context.changed_bytes += 2 * sizeof new_price;
        }
    }

    std::uint64_t offers_each_;
    Agency* agency_;
    Progress<E> progress_;
};

}  // namespace

Work make_vacation(const Shape& shape)
{
    return {std::make_unique<Vacation>(shape, input_size(shape, 64 << 10, 256, {4, 16 << 20, "offers in each table"})), nullptr};
}

}  // namespace bench
