#pragma once
// CombinedQueue: a durable queue whose operations are combined, and beside it a counter with operations of its own, which take numbers in
// between.

#include <cstdint>
#include <deque>
#include <mutex>
#include <string_view>

#include "objects/object_workload.hpp"
#include "objects/told_mutex.hpp"
#include "stillpoint/pronto.hpp"

namespace stillpoint::explorer {

namespace pronto = stillpoint::pronto;

class CombinedQueue final : public pronto::object<CombinedQueue> {
public:
    static constexpr char type_name[] = "explored combined queue";
    using constructor = pronto::constructor<std::uint64_t, std::uint64_t>;

    CombinedQueue(std::uint64_t first_part, std::uint64_t life) : first_part_(first_part), life_(life)
    {
        ObjectNotes::state(first_part_, queue_digest());
        ObjectNotes::state(first_part_ + 1, count_digest());
    }

    /// These return the digest of their part after them.
    std::uint64_t push(std::uint64_t number, std::string_view text)
    {
        return combine<&CombinedQueue::push>(number, text, [&] {
            numbers_.push_back(number + text.size());
            return changed();
        });
    }
    /// 0: the queue was empty.
    std::uint64_t pop()
    {
        return combine_if<&CombinedQueue::pop>([&]() -> std::uint64_t {
            if (numbers_.empty()) {
                return 0;
            }
            numbers_.pop_front();
            return changed();
        });
    }
    [[nodiscard]] std::uint64_t read() const
    {
        return combine_read([&] { return queue_digest(); });
    }
    std::uint64_t count()
    {
        auto operation = op_begin<&CombinedQueue::count>();
        const std::lock_guard hold(guard_);
        ++count_;
        const std::uint64_t sum = count_digest();
        ObjectNotes::state(first_part_ + 1, sum);
        operation.commit();
        return sum;
    }

    /// No other thread uses it.
    [[nodiscard]] std::uint64_t queue_digest() const
    {
        Digest sum;
        sum.add(life_);
        sum.add(operations_);
        for (const std::uint64_t number : numbers_) {
            sum.add(number);
        }
        return sum.value();
    }
    [[nodiscard]] std::uint64_t count_digest() const
    {
        Digest sum;
        sum.add(~life_);
        sum.add(count_);
        return sum.value();
    }
    [[nodiscard]] std::uint64_t first_part() const noexcept { return first_part_; }

    static constexpr auto methods()
    {
        return pronto::methods(pronto::method<&CombinedQueue::push>("push"), pronto::method<&CombinedQueue::pop>("pop"),
                               pronto::method<&CombinedQueue::count>("count"));
    }

private:
    std::uint64_t changed()
    {
        ++operations_;
        const std::uint64_t sum = queue_digest();
        ObjectNotes::state(first_part_, sum);
        return sum;
    }

    std::uint64_t first_part_;
    std::uint64_t life_;
    std::uint64_t operations_ = 0;
    std::deque<std::uint64_t, pronto::allocator<std::uint64_t>> numbers_;
    ToldMutex guard_;
    std::uint64_t count_ = 0;
};

}  // namespace stillpoint::explorer
