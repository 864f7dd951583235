#pragma once
// The durable classes of pronto_ledger: written as a user of pronto.hpp would write them, with locks inside.

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <mutex>
#include <numeric>
#include <string>

#include "stillpoint/pronto.hpp"

inline constexpr std::uint64_t account_count = 100, first_balance = 1000, threads_max = 16;

/// Each thread's own number: the newest of its operations that the object has.
struct alignas(64) ThreadNumber {
    std::uint64_t number = 0;
};

/// Accounts with a lock each: transfers between different ones run at the same time, and commute.
class Bank final : public stillpoint::pronto::object<Bank> {
public:
    static constexpr char type_name[] = "bank";

    Bank() = default;

    void transfer(std::uint32_t thread, std::uint64_t number, std::uint64_t from, std::uint64_t to, std::uint64_t amount)
    {
        auto operation = op_begin<&Bank::transfer>(thread, number, from, to, amount);
        Account& one = accounts_[std::min(from, to)];
        Account& other = accounts_[std::max(from, to)];
        const std::lock_guard first(one.guard);
        std::unique_lock<std::mutex> second(other.guard, std::defer_lock);
        if (&one != &other) {
            second.lock();
        }
        const std::uint64_t moved = std::min(amount, accounts_[from].balance);
        accounts_[from].balance -= moved;
        accounts_[to].balance += moved;
        done_[thread].number = number;
        operation.commit_early();
    }

    [[nodiscard]] std::uint64_t done_by(unsigned thread) const { return done_[thread].number; }
    [[nodiscard]] std::string problem() const
    {
        std::uint64_t sum = 0;
        for (const Account& account : accounts_) {
            sum += account.balance;
        }
        return sum == account_count * first_balance ? "" : " BROKEN: the balances are " + std::to_string(sum);
    }

    static constexpr auto methods() { return stillpoint::pronto::methods(stillpoint::pronto::method<&Bank::transfer>("transfer")); }

private:
    struct Account {
        std::mutex guard;
        std::uint64_t balance = first_balance;
    };
    std::array<Account, account_count> accounts_;
    std::array<ThreadNumber, threads_max> done_;
};

/// A queue under one lock. A pop of an empty queue is an operation too.
class Handovers final : public stillpoint::pronto::object<Handovers> {
public:
    static constexpr char type_name[] = "handovers";

    Handovers() = default;

    void push(std::uint32_t thread, std::uint64_t number)
    {
        auto operation = op_begin<&Handovers::push>(thread, number);
        const std::lock_guard hold(guard_);
        queue_.push_back(inverted(pushed_++));
        done_[thread].number = number;
        operation.commit();
    }
    void pop(std::uint32_t thread, std::uint64_t number)
    {
        auto operation = op_begin<&Handovers::pop>(thread, number);
        const std::lock_guard hold(guard_);
        if (!queue_.empty()) {
            is_in_order_ = is_in_order_ && queue_.front() == inverted(popped_);
            ++popped_;
            queue_.pop_front();
        }
        done_[thread].number = number;
        operation.commit();
    }

    [[nodiscard]] std::uint64_t done_by(unsigned thread) const { return done_[thread].number; }
    [[nodiscard]] std::string problem() const
    {
        bool is_sound = is_in_order_ && pushed_ - popped_ == queue_.size();
        for (std::size_t i = 0; i < queue_.size(); ++i) {
            is_sound = is_sound && queue_[i] == inverted(popped_ + i);
        }
        return is_sound ? "" : " BROKEN: the queue has lost its order";
    }

    static constexpr auto methods()
    {
        using stillpoint::pronto::method;
        return stillpoint::pronto::methods(method<&Handovers::push>("push"), method<&Handovers::pop>("pop"));
    }

private:
    static std::uint64_t inverted(std::uint64_t number) { return ~number * 0x9e3779b97f4a7c15u; }

    std::mutex guard_;
    std::deque<std::uint64_t, stillpoint::pronto::allocator<std::uint64_t>> queue_;
    std::uint64_t pushed_ = 0, popped_ = 0;
    bool is_in_order_ = true;
    std::array<ThreadNumber, threads_max> done_;
};
