// Money moves between accounts that lie pages apart: the sum never changes.

#include <algorithm>

#include "workloads/entries.hpp"

namespace stillpoint::explorer {

namespace {

template <class Memory>
struct Account {
    typename Memory::template Field<std::uint64_t> balance;
    typename Memory::template Field<std::uint64_t> transfers;
    std::byte rest[4096 / 3];  // Three to a page, some across a page's end.
};

template <class Memory>
struct Bank {
    static constexpr std::size_t account_count = std::min<std::size_t>(24, Memory::runs_max - 2);
    typename Memory::template Field<std::uint64_t> opened;
    typename Memory::template Field<std::uint64_t> transfers;
    Account<Memory> accounts[account_count];
};

template <class Memory>
class BankTransfer final : public WorkloadOn<Memory, Bank<Memory>> {
    using Root = Bank<Memory>;
    static constexpr std::uint64_t opening_balance = 1000;

    void change(Root& root, Random& random) override
    {
        if (root.opened == 0) {
            for (auto& account : root.accounts) {
                account.balance = opening_balance;
                Memory::stored(account.balance);
            }
            root.opened = 1;
            Memory::stored(root.opened);
            return;
        }
        auto& from = root.accounts[random() % Root::account_count];
        auto& to = root.accounts[random() % Root::account_count];
        const std::uint64_t amount = random() % (from.balance + 1);
        from.balance -= amount;
        to.balance += amount;
        ++from.transfers;
        ++to.transfers;
        ++root.transfers;
        for (const auto* const account : {&from, &to}) {
            Memory::stored(account->balance);
            Memory::stored(account->transfers);
        }
        Memory::stored(root.transfers);
    }

    std::string problem_of(const Root& root, const FindObject&) const override
    {
        std::uint64_t sum = 0;
        std::uint64_t sides = 0;
        for (const auto& account : root.accounts) {
            sum += account.balance;
            sides += account.transfers;
        }
        if (sum != (root.opened != 0 ? Root::account_count * opening_balance : 0)) {
            return "the accounts hold " + std::to_string(sum);
        }
        return sides == 2 * root.transfers ? "" : "a transfer has one side only";
    }

    std::uint64_t digest_of(const Root& root, const FindObject&) const override
    {
        Digest digest;
        digest.add(root.transfers);
        for (const auto& account : root.accounts) {
            digest.add(account.balance);
        }
        return digest.value();
    }
};

}  // namespace

WorkloadMakers bank_transfer() { return over_each_memory<BankTransfer>(); }

}  // namespace stillpoint::explorer
