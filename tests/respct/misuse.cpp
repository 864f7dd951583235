// Every misuse of respct.hpp that its checked form must catch, one for each argument; "right" does nothing wrong. The line that the
// message must name says `wrong: ARGUMENT`.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <mutex>
#include <thread>

#include <sched.h>

#include "stillpoint/respct.hpp"

namespace respct = stillpoint::respct;

namespace {

struct Account {
    respct::mutex guard;
    respct::mutex another;
    respct::condition changed;
    respct::logged<std::uint64_t> balance;
    std::uint64_t note = 0;
    respct::logged<bool> is_open;
};

struct Pair {
    respct::logged<std::uint64_t> first, second;
};

Account& account() { return *respct::root<Account>("account"); }

/// Both threads live until both have returned; the second begins when the first has returned.
void in_two_threads(const std::function<void()>& first, const std::function<void()>& second)
{
    std::atomic<int> returned{0};
    const auto wait_for = [&](int count) {
        const respct::blocking_call wait;
        while (returned.load() < count) {
            sched_yield();
        }
    };
    const respct::blocking_call wait;
    std::thread one([&] {
        first();
        ++returned;
        wait_for(2);
    });
    std::thread other([&] {
        wait_for(1);
        second();
        ++returned;
    });
    one.join();
    other.join();
}

void outside_the_pool()
{
    const respct::logged<int> on_the_stack(1);  // wrong: outside_the_pool
    std::printf("%d\n", on_the_stack.get());
}

void global_variable()
{
    alignas(64) static std::byte memory[64] = {};
    auto& variable = *reinterpret_cast<respct::logged<int>*>(memory);
    variable = 1;  // wrong: global_variable
}

void modified_outside()
{
    static int value = 0;
    value = 1;
    respct::add_modified(value);  // wrong: modified_outside
}

void modified_over_the_end()
{
    auto& all = account();
    respct::add_modified(&all, std::size_t{1} << 45);  // wrong: modified_over_the_end
}

void untyped_memory()
{
    auto& variable = *static_cast<respct::logged<std::uint64_t>*>(sp_aligned_alloc(64, 4096));
    variable.initialise(1);  // wrong: untyped_memory
}

void beside_its_place()
{
    auto& misplaced = *reinterpret_cast<respct::logged<std::uint64_t>*>(reinterpret_cast<std::byte*>(&account().balance) + 16);
    misplaced = 1;  // wrong: beside_its_place
}

void of_another_size()
{
    auto& misread = *reinterpret_cast<respct::logged<std::uint32_t>*>(&account().balance);
    misread += 1;  // wrong: of_another_size
}

void second_init()
{
    auto* const pair = respct::make<Pair>();
    pair->first = 5;
    pair->first.initialise(1);  // wrong: second_init
}

void no_lock()
{
    // clang-format off
    in_two_threads([] { account().balance = 1; }, [] {
        account().balance = 2;  // wrong: no_lock
    });
    // clang-format on
}

void different_locks()
{
    auto& all = account();
    const auto add_under = [&all](respct::mutex& guard) {
        const std::lock_guard lock(guard);
        ++all.balance;  // wrong: different_locks
    };
    in_two_threads([&] { add_under(all.guard); },
                   [&] {
                       add_under(all.another);
                       add_under(all.guard);
                   });
}

void lock_left_out_later()
{
    auto& all = account();
    in_two_threads(
        [&] {
            const std::lock_guard lock(all.guard);
            all.balance += 1;
        },
        [&] {
            {
                const std::lock_guard lock(all.guard);
                all.balance += 2;
            }
            all.balance -= 2;  // wrong: lock_left_out_later
        });
}

void at_a_restart_point()
{
    auto& all = account();
    sp_respct_checkpoint_allow();
    all.balance = 3;  // wrong: at_a_restart_point
    sp_respct_checkpoint_prevent(nullptr);
}

void modified_at_a_restart_point()
{
    auto& all = account();
    const respct::blocking_call wait;
    all.note = 3;
    respct::add_modified(all.note);  // wrong: modified_at_a_restart_point
}

void wait_after_a_write()
{
    auto& all = account();
    respct::critical_section section(1, all.guard);
    all.balance += 1;
    section.wait(all.changed, [&all] { return all.is_open.get(); });  // wrong: wait_after_a_write
}

void restart_point_under_a_lock()
{
    auto& all = account();
    const std::lock_guard lock(all.guard);
    respct::RP(2);  // wrong: restart_point_under_a_lock
}

/// Code that is allowed, and looks like the above.
void right()
{
    auto& all = account();
    all.balance = 1;  // Before there are other threads.
    all.note = 2;
    respct::add_modified(all.note);
    std::thread opener([&all] {
        respct::critical_section section(3, all.guard);
        all.is_open = true;
        all.changed.notify_one();
    });
    {
        respct::critical_section section(4, all.guard);
        section.wait(all.changed, [&all] { return all.is_open.get(); });
        all.is_open = false;
    }
    {
        const respct::blocking_call wait;
        opener.join();
    }
    const auto add = [&all](respct::mutex& guard) {
        const std::lock_guard outer(guard);
        const std::lock_guard inner(all.guard);
        all.balance += 1;
        respct::logged<std::uint64_t>& same = all.balance;
        same -= 1;
    };
    respct::mutex unshared;
    in_two_threads([&] { add(all.another); }, [&] { add(unshared); });
    all.balance = 7;  // After they have ended.
    {
        const respct::blocking_call wait;
        std::thread([&all] {
            all.guard.lock();
            ++all.balance;  // The thread's first call of respct.h is made under a lock.
            all.guard.unlock();
            respct::RP(6);
        }).join();
    }
    for (int round = 0; round < 3; ++round) {
        respct::RP(5);
        auto* const pair = respct::make<Pair>();
        pair->first = pair->second + 1;
        respct::destroy(pair);  // The pair's memory is initialised again, later.
    }
}

void frame_of_another_thread()
{
    const respct::thread_frame<Pair> frame("pair");
    const respct::blocking_call wait;
    std::thread([] { const respct::thread_frame<Pair> same("pair"); }).join();
}

struct Case {
    const char* name;
    void (*run)();
};
constexpr Case cases[] = {
    {"global_variable", global_variable},
    {"modified_outside", modified_outside},
    {"modified_over_the_end", modified_over_the_end},
    {"untyped_memory", untyped_memory},
    {"beside_its_place", beside_its_place},
    {"of_another_size", of_another_size},
    {"second_init", second_init},
    {"no_lock", no_lock},
    {"different_locks", different_locks},
    {"lock_left_out_later", lock_left_out_later},
    {"at_a_restart_point", at_a_restart_point},
    {"modified_at_a_restart_point", modified_at_a_restart_point},
    {"wait_after_a_write", wait_after_a_write},
    {"restart_point_under_a_lock", restart_point_under_a_lock},
    {"outside_the_pool", outside_the_pool},
    {"frame_of_another_thread", frame_of_another_thread},
    {"right", right},
};

}  // namespace

int main(int count, char** words)
{
    for (const Case& one : cases) {
        if (count == 2 && std::strcmp(one.name, words[1]) == 0) {
            one.run();
            return 0;
        }
    }
    std::fprintf(stderr, "which misuse?\n");
    return 64;
}
