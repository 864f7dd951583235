// C++ in the bodies of transactions: exceptions that stay inside or leave, virtual functions, std::function, containers of the standard
// library in ordinary and in durable memory, static locals, nested transactions, values that a body returns. Prints a line for each thing
// that is not as it must be.

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "spht-hooks.h"

namespace spht = stillpoint::spht;

namespace {

int failures = 0;

void expect(bool holds, const char* what)
{
    if (!holds) {
        std::printf("not so: %s\n", what);
        ++failures;
    }
}

/// Containers whose elements are durable: sp_malloc inside a transaction belongs to it.
template <class T>
struct durable_allocator {
    using value_type = T;
    durable_allocator() = default;
    template <class Other>
    durable_allocator(const durable_allocator<Other>&)
    {
    }
    T* allocate(std::size_t count)
    {
        void* const block = sp_malloc(count * sizeof(T));
        if (block == nullptr) {
            throw std::bad_alloc();
        }
        return static_cast<T*>(block);
    }
    void deallocate(T* block, std::size_t) { sp_free(block); }
    friend bool operator==(const durable_allocator&, const durable_allocator&) { return true; }
};

using durable_map = std::map<long, long, std::less<>, durable_allocator<std::pair<const long, long>>>;
using durable_vector = std::vector<long, durable_allocator<long>>;

struct root {
    long balance, moved;
    bool is_made;
    alignas(16) char map[sizeof(durable_map)];
    alignas(16) char numbers[sizeof(durable_vector)];
};

struct shape {
    virtual ~shape() = default;
    virtual long area() const = 0;
    long edge = 0;
};
struct square : shape {
    long area() const override { return edge * edge; }
};
struct line : shape {
    long area() const override { return edge; }
};

struct counts_its_end {
    long* ends;
    ~counts_its_end() { ++*ends; }
};

void exceptions(root& all)
{
    const long before = all.balance;
    long ends = 0;
    std::string caught;
    try {
        spht::atomically([&] {
            const counts_its_end one{&ends};
            all.balance += 5;
            throw std::runtime_error("a text that does not fit into the object, so that it has memory of its own");
        });
    } catch (const std::runtime_error& error) {
        caught = error.what();
    }
    expect(caught == "a text that does not fit into the object, so that it has memory of its own", "an exception leaves with its text");
    expect(all.balance == before, "an exception that leaves rolls back");
    expect(ends == 0, "a local variable outside is rolled back too");

    spht::atomically([&] {
        try {
            const counts_its_end one{&ends};
            all.balance += 5;
            throw std::string("a string that does not fit into the object either, at least as long as this");
        } catch (const std::string& text) {
            all.balance += static_cast<long>(text.size());
        }
    });
    expect(all.balance == before + 5 + 75 && ends == 1, "an exception that is caught inside rolls nothing back");

    try {
        spht::atomically([&] {
            try {
                throw 7;
            } catch (int) {
                all.balance = 0;
                throw;
            }
        });
    } catch (int number) {
        expect(number == 7, "an exception that is thrown again leaves");
    }
    expect(all.balance == before + 80, "an exception that is thrown again rolls back");

    bool refused = false;
    try {
        spht::atomically([&] {
            all.balance = -1;
            std::vector<int>().at(3) = 1;
        });
    } catch (const std::out_of_range&) {
        refused = true;
    }
    expect(refused && all.balance == before + 80, "an exception of the library leaves, and rolls back");

    int code = 0;
    try {
        spht::atomically([&] {
            all.balance = 12;
            sp_tm_cancel();
        });
    } catch (const spht::error& error) {
        code = error.code();
    }
    expect(code == SP_E_ABORTED && all.balance == before + 80, "a cancelled transaction says so");
    expect(std::uncaught_exceptions() == 0, "no exception is left in flight");
}

void irrevocable_exceptions(root& all)
{
    const long before = all.balance;
    bool caught = false;
    try {
        spht::atomically(
            [&] {
                ++all.balance;
                throw std::runtime_error("after what cannot be undone");
            },
            SP_SPHT_IRREVOCABLE);
    } catch (const std::runtime_error&) {
        caught = true;
    }
    expect(caught && all.balance == before + 1, "an exception that leaves an irrevocable transaction commits");
}

/// Threads whose transactions meet while exceptions are thrown, are caught, and leave.
void throwing_threads(root& all, long rounds)
{
    constexpr long number = 4;
    spht::atomically([&] { all.balance = all.moved = 0; });
    std::atomic<long> wrong{0};
    std::vector<std::thread> threads;
    for (long thread = 0; thread < number; ++thread) {
        threads.emplace_back([&, thread] {
            for (long i = 0; i < rounds; ++i) {
                const std::string name = "exception number " + std::to_string(i) + " of thread " + std::to_string(thread);
                std::string left;
                bool is_same = true;
                try {
                    spht::atomically([&] {
                        all.balance += 1;
                        try {
                            const counts_its_end one{&all.moved};  // meets other threads while the exception passes
                            throw std::runtime_error(name);
                        } catch (const std::runtime_error& error) {
                            is_same = error.what() == name;
                            all.balance += 1;
                            if (i % 3 == 0) {
                                throw;
                            }
                        }
                    });
                } catch (const std::runtime_error& error) {
                    left = error.what();
                }
                wrong += is_same ? 0 : 1;
                wrong += left == (i % 3 == 0 ? name : "") ? 0 : 1;
            }
            wrong += std::uncaught_exceptions();
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    const long kept = number * (rounds - (rounds + 2) / 3);
    expect(wrong == 0, "exceptions of threads that meet have their texts");
    expect(all.balance == 2 * kept && all.moved == kept, "exceptions of threads that meet roll back what they leave");
}

void objects(root& all)
{
    std::vector<std::unique_ptr<shape>> shapes;
    const long sum = spht::atomically([&] {
        shapes.push_back(std::make_unique<square>());
        shapes.push_back(std::make_unique<line>());
        long areas = 0;
        for (const auto& one : shapes) {
            one->edge = 4;
            areas += one->area();
        }
        all.moved += areas;
        return areas;
    });
    expect(sum == 20 && shapes.size() == 2 && shapes[0]->area() == 16, "virtual functions, and ordinary objects that stay");

    const std::function<long(long)> twice = [&](long value) { return all.moved = value * 2; };
    expect(spht::atomically([&] { return twice(21); }) == 42 && all.moved == 42, "std::function");

    const std::string text = spht::atomically([&] {
        std::string made = "moved ";
        for (int i = 0; i < 20; ++i) {
            made += std::to_string(all.moved) + ",";
        }
        return made;
    });
    expect(text.size() == 6 + 60 && text.ends_with("42,42,"), "a string that a body returns");

    const auto nested = [&](long by) { spht::atomically([&] { all.balance += by; }); };
    try {
        spht::atomically([&] {
            nested(1);
            nested(2);
            throw 1;
        });
    } catch (int) {
    }
    const long before = all.balance;
    spht::atomically([&] { nested(1), nested(2); });
    expect(all.balance == before + 3, "nested ones are parts of the outer one");

    const auto counted = [] {
        static long calls = 40;
        return ++calls;
    };
    expect(spht::atomically([&] { return counted(); }) == 41 && counted() == 42, "static locals");

    const std::optional<long> largest = spht::atomically([&]() -> std::optional<long> {
        std::vector<long> sorted{5, 3, 9, 1, all.moved, 7};
        std::sort(sorted.begin(), sorted.end());
        return sorted.back();
    });
    expect(largest == 42, "algorithms of the library");
}

void containers(root& all, long rounds)
{
    auto& map = *reinterpret_cast<durable_map*>(all.map);
    auto& numbers = *reinterpret_cast<durable_vector*>(all.numbers);
    if (!all.is_made) {
        spht::atomically([&] {
            new (all.map) durable_map;
            new (all.numbers) durable_vector;
            all.is_made = true;
        });
    }
    const long first = static_cast<long>(numbers.size());
    for (long i = first; i < first + rounds; ++i) {
        spht::atomically([&] {
            map[i * 7919 % 10007] = i;
            numbers.push_back(i);
            if (i % 5 == 4) {
                map.erase((i - 2) * 7919 % 10007);
            }
        });
        try {
            spht::atomically([&] {
                map.clear();
                numbers.resize(numbers.size() + 100);
                throw i;
            });
        } catch (long) {
        }
    }
    std::map<long, long> model;
    for (long i = 0; i < first + rounds; ++i) {
        model[i * 7919 % 10007] = i;
        if (i % 5 == 4) {
            model.erase((i - 2) * 7919 % 10007);
        }
    }
    expect(std::equal(map.begin(), map.end(), model.begin(), model.end()), "a durable std::map holds what its model does");
    expect(static_cast<long>(numbers.size()) == first + rounds && numbers.back() == first + rounds - 1, "a durable std::vector");
}

}  // namespace

int main()
{
    auto* const all = static_cast<root*>(sp_root("objects", sizeof(root)));
    if (all == nullptr) {
        return std::fprintf(stderr, "%s\n", sp_last_error()), 1;
    }
    exceptions(*all);
    irrevocable_exceptions(*all);
    throwing_threads(*all, 600);
    objects(*all);
    containers(*all, 300);
    std::puts(failures == 0 ? "all is so" : "not all is so");
    return failures;
}
