// Money moves between accounts that lie pages apart: the sum never changes.

#include <numeric>

#include "workloads/entries.hpp"

namespace stillpoint::explorer {

namespace {

class BankTransfer final : public Workload {
    static constexpr std::size_t account_count = 24;
    static constexpr std::uint64_t opening_balance = 1000;
    struct Account {
        std::uint64_t balance;
        std::uint64_t transfers;
        std::byte rest[4096 / 3];  // Three to a page, some across a page's end.
    };
    struct Root {
        std::uint64_t opened;
        std::uint64_t transfers;
        Account accounts[account_count];
    };

    std::size_t root_bytes() const override { return sizeof(Root); }

    void perform(void* memory, Random& random) override
    {
        auto& root = *static_cast<Root*>(memory);
        if (root.opened == 0) {
            for (Account& account : root.accounts) {
                account.balance = opening_balance;
                stored(account.balance);
            }
            root.opened = 1;
            stored(root.opened);
            return;
        }
        Account& from = root.accounts[random() % account_count];
        Account& to = root.accounts[random() % account_count];
        const std::uint64_t amount = random() % (from.balance + 1);
        from.balance -= amount;
        to.balance += amount;
        ++from.transfers;
        ++to.transfers;
        ++root.transfers;
        for (const Account* const account : {&from, &to}) {
            stored(account->balance);
            stored(account->transfers);
        }
        stored(root.transfers);
    }

    std::string check(const void* memory, const FindObject&) const override
    {
        const auto& root = *static_cast<const Root*>(memory);
        std::uint64_t sum = 0;
        std::uint64_t sides = 0;
        for (const Account& account : root.accounts) {
            sum += account.balance;
            sides += account.transfers;
        }
        if (sum != (root.opened != 0 ? account_count * opening_balance : 0)) {
            return "the accounts hold " + std::to_string(sum);
        }
        return sides == 2 * root.transfers ? "" : "a transfer has one side only";
    }

    std::uint64_t digest(const void* memory, const FindObject&) const override
    {
        const auto& root = *static_cast<const Root*>(memory);
        Digest digest;
        digest.add(root.transfers);
        for (const Account& account : root.accounts) {
            digest.add(account.balance);
        }
        return digest.value();
    }
};

}  // namespace

std::unique_ptr<Workload> make_bank_transfer() { return std::make_unique<BankTransfer>(); }

}  // namespace stillpoint::explorer
