// vacation of STAMP (IISWC 2008, §III.B.7): a travel agency whose customers reserve cars, flights and rooms.
//
// Four ordered maps: three of offers by number, one of customers, each with a list of her reservations. A session is one transaction. Most
// sessions reserve: of some offers at random the dearest free one of each kind. The others delete a customer with all her reservations, or
// add seats to some offers, or take seats away; an offer without seats is removed.
//
// Contention: low looks at 2 offers among 90 % of them and reserves in 98 % of the sessions; high at 4 among 60 %, in 90 %.

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <unordered_map>

#include "../../transactions/list.hpp"
#include "../../transactions/tree.hpp"
#include "../../workloads/makers.hpp"
#include "../input_size.hpp"
#include "programs.hpp"

namespace bench {
namespace {

using namespace transactional;

constexpr std::uint64_t kinds = 3;  // cars, flights, rooms
constexpr std::uint64_t seats_changed = 100;
constexpr std::uint64_t offers_examined_max = 4;

struct Contention {
    std::uint64_t offers_examined;
    std::uint64_t percent_of_offers;
    std::uint64_t percent_of_reservations;
};
constexpr Contention low = {2, 90, 98};
constexpr Contention high = {4, 60, 90};

struct Offer {
    std::uint64_t total;
    std::uint64_t used;
    std::uint64_t free;
    std::uint64_t price;
};
using Reservations = List<std::uint64_t>;  ///< prices, by the key of the offer
struct Customer {
    Reservations reservations;
};
struct Agency {
    Tree<Offer*> offers[kinds];
    Tree<Customer*> customers;
    std::uint64_t is_filled;
};

/// Which offer of which kind, and what is done with it; chosen before a transaction, so that each attempt does the same.
struct Choice {
    std::uint64_t kind;
    std::uint64_t number;
    std::uint64_t price;
    bool grows;
};

std::uint64_t some_price(Random& random) { return 50 + 10 * random.below(5); }
std::uint64_t key_of(std::uint64_t kind, std::uint64_t number) { return kind << 32 | number; }

class TransactionalVacation final : public TransactionalWorkload {
public:
    TransactionalVacation(const Shape& shape, const Contention& contention, std::uint64_t offers)
        : TransactionalWorkload(shape), contention_(contention), offers_(offers),
          range_(std::max<std::uint64_t>(offers * contention.percent_of_offers / 100, 1)), agency_(M::named<Agency>("bench.vacation"))
    {
    }

    /// Goes on where a crash has interrupted it.
    void load() override
    {
        constexpr std::uint64_t each = 16;
        for (std::uint64_t first = 1; agency_->is_filled == 0 && first <= offers_; first += each) {
            M::atomically([&](auto& tx) {
                for (std::uint64_t number = first; number < std::min(first + each, offers_ + 1); ++number) {
                    Random random(number);
                    for (auto& offers : agency_->offers) {
                        (void)change(tx, offers, number, true, (1 + random.below(5)) * seats_changed, some_price(random));
                    }
                    (void)customer(tx, number);
                }
            });
        }
        M::atomically([&](auto& tx) { tx.write(agency_->is_filled, std::uint64_t{1}); });
    }

    void perform(Context& context, unsigned count) override
    {
        for (unsigned i = 0; i < count; ++i) {
            const std::uint64_t kind = context.random.below(200);
            const std::uint64_t reservations = 2 * contention_.percent_of_reservations;
            if (kind < reservations) {
                reserve(context);
            } else if ((kind - reservations) % 2 == 0) {
                delete_customer(context);
            } else {
                change_offers(context);
            }
        }
    }

    /// The maps are whole; of each offer, used and free seats are the total; the used ones are what customers have reserved.
    std::string fault() override
    {
        std::unordered_map<std::uint64_t, std::uint64_t> used;
        bool is_sorted = true;
        agency_->customers.for_each([&](std::uint64_t, const Customer* one) {
            std::uint64_t before = 0;
            one->reservations.for_each([&](std::uint64_t key, std::uint64_t) {
                is_sorted = is_sorted && (before == 0 || before < key);
                before = key;
                ++used[key];
            });
        });
        if (!is_sorted || !agency_->customers.is_whole()) {
            return "a customer's reservations, or the customers, are out of order";
        }
        std::string fault;
        for (std::uint64_t kind = 0; kind < kinds; ++kind) {
            if (!agency_->offers[kind].is_whole()) {
                return "the offers of kind " + std::to_string(kind) + " are out of order";
            }
            agency_->offers[kind].for_each([&](std::uint64_t number, const Offer* offer) {
                const auto found = used.find(key_of(kind, number));
                const std::uint64_t reserved = found != used.end() ? found->second : 0;
                used.erase(key_of(kind, number));
                if (offer->used != reserved || offer->used + offer->free != offer->total || offer->total == 0) {
                    fault = "offer " + std::to_string(number) + " of kind " + std::to_string(kind) + ": customers have " +
                            std::to_string(reserved) + " seats, used are " + std::to_string(offer->used) + ", free " +
                            std::to_string(offer->free) + " of " + std::to_string(offer->total);
                }
            });
        }
        return !fault.empty() ? fault : used.empty() ? std::string() : "customers have reserved offers that do not exist";
    }

private:
    using Choices = std::array<Choice, offers_examined_max>;

    [[nodiscard]] Choices choices(Random& random) const
    {
        Choices made{};
        for (std::uint64_t i = 0; i < contention_.offers_examined; ++i) {
            made[i] = {random.below(kinds), 1 + random.below(range_), some_price(random), random.below(2) == 0};
        }
        return made;
    }

    /// False: she has it already.
    template <Transaction Tx>
    bool take(Tx& tx, Customer& customer, const Choice& wanted)
    {
        if (!customer.reservations.insert(tx, key_of(wanted.kind, wanted.number), wanted.price)) {
            return false;
        }
        Offer* const offer = tx.read(*agency_->offers[wanted.kind].find(tx, wanted.number));
        add(tx, offer->used, 1);
        subtract(tx, offer->free, 1);
        return true;
    }
    /// Finds or makes her.
    template <Transaction Tx>
    Customer* customer(Tx& tx, std::uint64_t number)
    {
        if (Customer** const place = agency_->customers.find(tx, number); place != nullptr) {
            return tx.read(*place);
        }
        auto* const made = make_empty<Customer>(tx);
        agency_->customers.insert(tx, number, made);
        return made;
    }

    void reserve(Context& context)
    {
        const Choices chosen = choices(context.random);
        const std::uint64_t number = 1 + context.random.below(range_);
        context.changed_bytes += M::atomically([&](auto& tx) -> std::uint64_t {
            std::array<Choice, kinds> best = {};  // number 0: none
            for (std::uint64_t i = 0; i < contention_.offers_examined; ++i) {
                Offer** const place = agency_->offers[chosen[i].kind].find(tx, chosen[i].number);
                if (place == nullptr) {
                    continue;
                }
                Offer* const offer = tx.read(*place);
                const std::uint64_t price = tx.read(offer->price);
                Choice& own = best[chosen[i].kind];
                if (tx.read(offer->free) != 0 && price > own.price) {
                    own = {chosen[i].kind, chosen[i].number, price, false};
                }
            }
            std::uint64_t taken = 0;
            for (const Choice& one : best) {
                taken += one.number != 0 && take(tx, *customer(tx, number), one);
            }
            return taken * (sizeof(Offer) + sizeof(std::uint64_t));
        });
    }
    void delete_customer(Context& context)
    {
        const std::uint64_t number = 1 + context.random.below(range_);
        context.changed_bytes += M::atomically([&](auto& tx) -> std::uint64_t {
            const auto removed = agency_->customers.remove(tx, number);
            if (!removed) {
                return 0;
            }
            std::uint64_t returned = 0;
            (*removed)->reservations.for_each(tx, [&](std::uint64_t key, std::uint64_t&) {
                Offer* const offer = tx.read(*agency_->offers[key >> 32].find(tx, key & UINT32_MAX));
                subtract(tx, offer->used, 1);
                add(tx, offer->free, 1);
                ++returned;
            });
            while ((*removed)->reservations.pop(tx)) {
            }
            tx.free(*removed);
            return returned * sizeof(Offer);
        });
    }

    void change_offers(Context& context)
    {
        const Choices chosen = choices(context.random);
        context.changed_bytes += M::atomically([&](auto& tx) {
            std::uint64_t changed = 0;
            for (std::uint64_t i = 0; i < contention_.offers_examined; ++i) {
                const Choice& one = chosen[i];
                changed += change(tx, agency_->offers[one.kind], one.number, one.grows, seats_changed, one.price);
            }
            return changed * sizeof(Offer);
        });
    }
    /// Adds seats, at a new price, or takes free ones away. False: there are not so many.
    template <Transaction Tx>
    static bool change(Tx& tx, Tree<Offer*>& offers, std::uint64_t number, bool grows, std::uint64_t seats, std::uint64_t price)
    {
        Offer** const place = offers.find(tx, number);
        Offer* offer = place != nullptr ? tx.read(*place) : nullptr;
        if (offer == nullptr) {
            if (!grows) {
                return false;
            }
            offer = make_empty<Offer>(tx);
            offers.insert(tx, number, offer);
        }
        if (grows) {
            add(tx, offer->total, seats);
            add(tx, offer->free, seats);
            tx.write(offer->price, price);
            return true;
        }
        if (tx.read(offer->free) < seats) {
            return false;
        }
        subtract(tx, offer->free, seats);
        if (subtract(tx, offer->total, seats) == 0) {
            offers.remove(tx, number);
            tx.free(offer);
        }
        return true;
    }

    const Contention& contention_;
    const std::uint64_t offers_;
    const std::uint64_t range_;  ///< sessions choose numbers from 1 to this one
    Agency* agency_;
};

Work make(const Shape& shape, const Contention& contention)
{
    const std::uint64_t offers = parameters_for<std::uint64_t>(shape, 256, 16 << 10, 256 << 10);
    const std::uint64_t wanted = input_size(shape, offers, offers, {4, 4 << 20, "offers of each kind"});
    return {std::make_unique<TransactionalVacation>(shape, contention, wanted), nullptr};
}

}  // namespace

/// size: offers of each kind, and customers.
Work make_stamp_vacation_low(const Shape& shape) { return make(shape, low); }
Work make_stamp_vacation_high(const Shape& shape) { return make(shape, high); }

}  // namespace bench
