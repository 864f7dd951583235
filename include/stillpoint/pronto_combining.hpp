#pragma once
// Combining: operations of many threads on one durable object, done by one of them and made durable together (flat combining [Hendler,
// Incze, Shavit, Tzafrir, SPAA 2010]). Part of pronto.hpp; `combine` of pronto::object is built on it.

#if __cplusplus < 202002L
#error "Stillpoint's C++ headers need C++20: compile with -std=c++20 or a later standard"
#else

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "stillpoint/pronto.h"
#include "stillpoint/pronto_class.hpp"

namespace stillpoint::pronto::detail {

/// The work of one thread, in its own stack frame, until it is answered.
struct CombinedRequest {
    enum State : std::uint32_t {
        waiting = 0,
        asleep = 1,  ///< waits in the kernel
        chosen = 2,  ///< its thread combines now
        answered = 3,
    };

    /// Does the work, in the combining thread. Keeps what it throws in `failure`.
    using Run = void (*)(CombinedRequest& self) noexcept;

    CombinedRequest(Run runs, const void* on) noexcept : run(runs), object(on) {}

    Run run;
    const void* object;
    CombinedRequest* next = nullptr;
    std::exception_ptr failure;
    sp_pronto_ticket ticket{};  ///< of the operation that was committed; zeroes: none was
    /// In a line of its own: the thread that waits looks at it all the time.
    alignas(64) std::atomic<std::uint32_t> state{waiting};
};

/// One thread at a time does the work of all that have come. It lies in ordinary memory: nothing of it need survive.
/// Threads: any.
class Combiner {
public:
    /// That of an object. Some share one, which costs time and nothing else.
    [[nodiscard]] static Combiner& of(const void* object) noexcept
    {
        constexpr std::size_t object_bytes_min = 256;  // A record of 192 bytes lies in front of each.
        return all()[reinterpret_cast<std::uintptr_t>(object) / object_bytes_min % all().size()];
    }

    /// Returns when the request was run, and what it has changed is durable. Throws what it threw, and not_durable.
    void submit(CombinedRequest& request)
    {
        const bool is_part_of_another = sp_pronto_inside_operation() != 0;
        if (is_part_of_another) {
            request.run(request);  // That one is waited for. In a replay nothing is.
        } else if (begins_alone() || joins(request)) {
            combine(request);
        }
        if (request.failure != nullptr) {
            std::rethrow_exception(request.failure);
        }
        if (!is_part_of_another) {
            const bool has_read = request.ticket.object == nullptr;
            require_durable(has_read ? sp_pronto_wait_read(request.object) : sp_pronto_wait_or_defer(&request.ticket));
        }
    }

private:
    /// Work that one thread does before it answers.
    static constexpr unsigned requests_max = 64;
    /// Looks for the thread that came with the last ones, and looks before a thread sleeps: some 0.3 and 2 us.
    static constexpr unsigned looks_for_more = 300;
    static constexpr unsigned looks_before_sleep = 2000;

    [[nodiscard]] static std::array<Combiner, 64>& all() noexcept
    {
        static constinit std::array<Combiner, 64> combiners{};
        return combiners;
    }

    /// In `newest_`: a thread combines, and no other waits.
    [[nodiscard]] CombinedRequest* nothing_waits() noexcept { return reinterpret_cast<CombinedRequest*>(this); }

    [[nodiscard]] bool begins_alone() noexcept
    {
        CombinedRequest* none = nullptr;
        return newest_.load(std::memory_order_relaxed) == nullptr &&
               newest_.compare_exchange_strong(none, nothing_waits(), std::memory_order_acquire, std::memory_order_relaxed);
    }

    /// True: the request's thread combines now. False: it was answered.
    [[nodiscard]] bool joins(CombinedRequest& request) noexcept
    {
        CombinedRequest* seen = newest_.load(std::memory_order_relaxed);
        for (;;) {
            if (seen == nullptr) {
                request.next = nullptr;
                if (newest_.compare_exchange_weak(seen, nothing_waits(), std::memory_order_acquire, std::memory_order_relaxed)) {
                    return true;
                }
                continue;
            }
            request.next = seen == nothing_waits() ? nullptr : seen;
            if (newest_.compare_exchange_weak(seen, &request, std::memory_order_acq_rel, std::memory_order_relaxed)) {
                return await(request) == CombinedRequest::chosen;
            }
        }
    }

    [[nodiscard]] static std::uint32_t await(CombinedRequest& request) noexcept
    {
        for (unsigned look = 0; look < looks_before_sleep; ++look) {
            if (const std::uint32_t state = request.state.load(std::memory_order_acquire); state != CombinedRequest::waiting) {
                return state;
            }
        }
        std::uint32_t state = CombinedRequest::waiting;
        if (!request.state.compare_exchange_strong(state, CombinedRequest::asleep, std::memory_order_acq_rel, std::memory_order_acquire)) {
            return state;
        }
        do {
            request.state.wait(CombinedRequest::asleep, std::memory_order_acquire);
            state = request.state.load(std::memory_order_acquire);
        } while (state == CombinedRequest::asleep);
        return state;
    }

    /// The request may be gone when this returns.
    static void tell(CombinedRequest& request, CombinedRequest::State state) noexcept
    {
        if (request.state.exchange(state, std::memory_order_acq_rel) == CombinedRequest::asleep) {
            request.state.notify_one();
        }
    }

    /// Takes those that wait, the oldest first.
    [[nodiscard]] CombinedRequest* take_waiting() noexcept
    {
        if (newest_.load(std::memory_order_relaxed) == nothing_waits()) {
            return nullptr;
        }
        CombinedRequest* newest = newest_.exchange(nothing_waits(), std::memory_order_acquire);
        CombinedRequest* oldest = nullptr;
        while (newest != nullptr) {
            CombinedRequest* const older = newest->next;
            newest->next = oldest;
            oldest = newest;
            newest = older;
        }
        return oldest;
    }

    /// `own` is first, and `own.next` was waiting with it.
    void combine(CombinedRequest& own) noexcept
    {
        sp_pronto_group_begin();
        own.run(own);
        unsigned count = 1;
        CombinedRequest** end = &own.next;
        for (bool has_waited = false; count < requests_max;) {
            if (*end == nullptr) {
                *end = take_waiting();
            }
            if (CombinedRequest* const other = *end; other != nullptr) {
                other->run(*other);
                end = &other->next;
                ++count;
            } else if (has_waited || count >= last_count_ || !another_comes()) {
                break;
            } else {
                has_waited = true;
            }
        }
        last_count_ = count;
        CombinedRequest* const rest = *end;
        *end = nullptr;
        make_durable(own);
        CombinedRequest* const others = own.next;
        hand_over(rest);
        for (CombinedRequest* other = others; other != nullptr;) {
            CombinedRequest* const next = other->next;
            tell(*other, CombinedRequest::answered);
            other = next;
        }
    }

    [[nodiscard]] bool another_comes() noexcept
    {
        for (unsigned look = 0; look < looks_for_more; ++look) {
            if (newest_.load(std::memory_order_relaxed) != nothing_waits()) {
                return true;
            }
        }
        return false;
    }

    static void make_durable(CombinedRequest& first) noexcept
    {
        try {
            require_durable(sp_pronto_group_end(nullptr));
        } catch (...) {
            for (CombinedRequest* request = &first; request != nullptr; request = request->next) {
                request->failure = request->failure == nullptr ? std::current_exception() : request->failure;
            }
        }
    }

    /// The oldest of those that wait combines next; `rest`: those that were taken, and not run.
    void hand_over(CombinedRequest* rest) noexcept
    {
        if (rest == nullptr) {
            CombinedRequest* none = nothing_waits();
            if (newest_.compare_exchange_strong(none, nullptr, std::memory_order_release, std::memory_order_relaxed)) {
                return;
            }
            rest = take_waiting();
        }
        tell(*rest, CombinedRequest::chosen);
    }

    /// nullptr: no thread combines. Otherwise a list of those that wait, the newest first, which ends with a null pointer.
    alignas(128) std::atomic<CombinedRequest*> newest_{nullptr};
    unsigned last_count_ = 1;  ///< requests of the last thread that has combined
};

/// Calls work(sp_pronto_ticket&) in turn with all others on the object, in any thread, and returns its result. The work puts the ticket of
/// what it has committed there.
template <class Work>
auto in_turn(const void* object, Work work)
{
    using Result = std::invoke_result_t<Work&, sp_pronto_ticket&>;
    using Kept = std::conditional_t<std::is_void_v<Result>, std::monostate, std::optional<std::remove_cvref_t<Result>>>;
    struct Request : CombinedRequest {
        Request(Work& does, const void* on) noexcept : CombinedRequest(&run_own, on), work(does) {}

        static void run_own(CombinedRequest& self) noexcept
        {
            auto& own = static_cast<Request&>(self);
            try {
                if constexpr (std::is_void_v<Result>) {
                    own.work(own.ticket);
                } else {
                    own.result.emplace(own.work(own.ticket));
                }
            } catch (...) {
                own.failure = std::current_exception();
            }
        }

        Work& work;
        Kept result;
    };
    Request request(work, object);
    Combiner::of(object).submit(request);
    if constexpr (!std::is_void_v<Result>) {
        return std::move(*request.result);
    }
}

}  // namespace stillpoint::pronto::detail

#endif
