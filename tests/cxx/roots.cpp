// Roots of stillpoint.hpp, one life of a program after the other: roots LIFE. Prints what it finds.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#include "stillpoint/stillpoint.hpp"

namespace sp = stillpoint;

namespace {

struct First {
    long number = 1;
};
struct Second {
    long number = 2;
};
struct Longer {
    long number = 3;
    long other = 4;
};
struct Before {
    static constexpr const char* type_name = "kept";
    long number = 5;
};
struct After {
    static constexpr const char* type_name = "kept";
    long number = 6;
};
struct alignas(256) Aligned {
    char letter = 'a';
};
struct Throws {
    sp::string text = sp::string(1000, 'x');
    explicit Throws(bool now)
    {
        if (now) {
            throw std::runtime_error("thrown");
        }
    }
};

template <class Body>
void report(const char* what, Body body)
{
    try {
        body();
        std::printf("%s: done\n", what);
    } catch (const sp::error& failure) {
        std::printf("%s: error %d %s\n", what, failure.code(), failure.what());
    } catch (const std::exception& failure) {
        std::printf("%s: %s\n", what, failure.what());
    }
}

void first_life()
{
    std::printf("%ld %ld\n", sp::root<First>("one").number++, sp::root<Before>("renamed").number);
    std::printf("aligned %d\n", reinterpret_cast<std::uintptr_t>(&sp::root<Aligned>("aligned")) % 256 == 0);
    report("another type", [] { static_cast<void>(sp::root<Second>("one")); });
    report("another size", [] { static_cast<void>(sp::root<Longer>("one")); });
    static_cast<void>(sp_root("plain", 200));
    report("of sp_root", [] { static_cast<void>(sp::root<First>("plain")); });
    report("a long name", [] { static_cast<void>(sp::root<First>(std::string(80, 'n').c_str())); });
    report("a constructor that throws", [] { static_cast<void>(sp::root<Throws>("throws", true)); });
    std::printf("none is left %d\n", sp::find_root<Throws>("throws") == nullptr);
    report("the next one", [] { static_cast<void>(sp::root<Throws>("throws", false)); });
    report("deleted", [] {
        const bool first = sp::delete_root<Throws>("throws");
        std::printf("%d %d\n", first, sp::delete_root<Throws>("throws"));
    });
    report("thrown in a section", [] {
        sp::atomically([] {
            sp::root<First>("one").number += 10;
            throw std::runtime_error("thrown");
        });
    });
}

}  // namespace

int main(int argc, char** argv)
{
    const std::string_view life = argc > 1 ? argv[1] : "";
    if (life == "first") {
        first_life();
    } else if (life == "second") {
        std::printf("%ld %ld\n", sp::root<First>("one").number, sp::root<After>("renamed").number);
        std::printf("aligned %c\n", sp::root<Aligned>("aligned").letter);
    } else {
        auto& one = sp::root<First>("one");
        sp::checkpoint();
        sp::atomically([&]() noexcept {
            one.number = 1000;
            static_cast<void>(std::string().at(1));
        });
    }
    return 0;
}
