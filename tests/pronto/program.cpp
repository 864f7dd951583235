// The program that restart_test.py runs, kills and runs again. FORM is 1, and in changed programs 2 (other order of methods, one
// more), 3 (a changed signature), 4 (another type under the name), 5 (a method is gone).
//
//     pronto_program_FORM POOL COMMAND...     commands: see `commands` below; "die" ends by SIGKILL
//
// The environment's PRONTO_OPTIONS are more options of sp_open.

#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory_resource>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "stillpoint/durable.hpp"
#include "stillpoint/stillpoint.h"

namespace durable = stillpoint::durable;
namespace pronto = stillpoint::pronto;

namespace {

#if FORM == 3
using Number = long;
#else
using Number = int;
#endif

class Numbers : public pronto::object<Numbers> {
public:
#if FORM == 4
    static constexpr char type_name[] = "other_numbers";
#else
    static constexpr char type_name[] = "numbers";
#endif
    static constexpr auto methods()
    {
        using pronto::method;
        constexpr auto promise = pronto::promise::unchanged_by_exception;
#if FORM == 2
        return pronto::methods(method<&Numbers::clear>("clear"), method<&Numbers::add_or_throw>("add_or_throw", promise),
                               method<&Numbers::add_address>("add_address"), method<&Numbers::add_half>("add_half"),
                               method<&Numbers::add>("add"));
#elif FORM == 5
        return pronto::methods(method<&Numbers::add_or_throw>("add_or_throw", promise), method<&Numbers::add_half>("add_half"),
                               method<&Numbers::add_address>("add_address"));
#else
        return pronto::methods(method<&Numbers::add>("add"), method<&Numbers::add_or_throw>("add_or_throw", promise),
                               method<&Numbers::add_half>("add_half"), method<&Numbers::add_address>("add_address"));
#endif
    }

    void add([[maybe_unused]] Number value)
    {
#if FORM != 5
        run<&Numbers::add>(value, [&] { values_.push_back(static_cast<int>(value)); });
#endif
    }
    void add_or_throw(int value)
    {
        run<&Numbers::add_or_throw>(value, [&] { throw std::runtime_error("add_or_throw"); });
    }
    void add_half(int value)
    {
        run<&Numbers::add_half>(value, [&] {
            values_.push_back(value);
            throw std::runtime_error("add_half");
        });
    }
    void clear() {}
    /// Not deterministic: for verify_replay.
    void add_address(int value)
    {
        run<&Numbers::add_address>(value, [&] { values_.push_back(static_cast<int>(reinterpret_cast<std::uintptr_t>(this) >> 4U)); });
    }
    [[nodiscard]] const pronto::vector<int>& values() const { return values_; }
    bool operator==(const Numbers&) const = default;

private:
    pronto::vector<int> values_;
};

class Pages : public pronto::object<Pages> {
public:
    static constexpr char type_name[] = "pages";
    static constexpr auto methods() { return pronto::methods(pronto::method<&Pages::add>("add")); }
    void add(std::string_view page)
    {
        run<&Pages::add>(page, [&] { pages_.emplace_back(page); });
    }
    [[nodiscard]] const std::pmr::vector<std::pmr::string>& pages() const { return pages_; }

private:
    std::pmr::vector<std::pmr::string> pages_{pronto::durable_resource()};
};

/// Commands are words with at most one argument behind a colon: "add:5".
using Command = void (*)(const std::string& argument);

Numbers& numbers() { return pronto::get_object<Numbers>("numbers"); }

void fill_map(const std::string& count)
{
    auto& map = pronto::get_object<durable::string_map>("texts");
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread) {
        threads.emplace_back([&, thread] {
            for (int place = 0; place < std::stoi(count); ++place) {
                map.put(std::to_string(thread) + "." + std::to_string(place), std::string(50, static_cast<char>('a' + thread)));
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
}

/// "NAME=SHARDS", or NAME alone.
durable::sharded_string_map sharded(const std::string& words)
{
    const std::size_t sign = words.find('=');
    return sign == std::string::npos ? durable::sharded_string_map(words)
                                     : durable::sharded_string_map(words.substr(0, sign), std::stoul(words.substr(sign + 1)));
}

/// Two threads put 100 keys each and take half of them away.
void fill_sharded(const std::string& words)
{
    durable::sharded_string_map map = sharded(words);
    const auto work = [&map](int thread) {
        for (int number = 0; number < 100; ++number) {
            map.put(std::to_string(thread) + "." + std::to_string(number), std::to_string(number));
        }
        for (int number = 0; number < 100; number += 2) {
            map.erase(std::to_string(thread) + "." + std::to_string(number));
        }
    };
    std::thread other(work, 1);
    work(0);
    other.join();
}

void show_sharded(const std::string& words)
{
    const durable::sharded_string_map map = sharded(words);
    bool fits = true;
    map.for_each([&](std::string_view key, std::string_view value) { fits = fits && key.substr(key.find('.') + 1) == value; });
    std::printf("%zu in %zu shards%s\n", map.size(), map.shard_count(), fits ? "" : ", BROKEN");
}

/// The objects that a creation of "NAME" with three shards has made when it is killed after the second.
void half_make_sharded(const std::string& name)
{
    static_cast<void>(pronto::get_object<durable::string_map_shard>(name, 0U, 3U));
    static_cast<void>(pronto::get_object<durable::string_map_shard>(name + "#1", 1U, 3U));
}

/// A deletion of "NAME" with three shards that is killed after the first.
void half_delete_sharded(const std::string& name)
{
    pronto::find_object<durable::string_map_shard>(name)->enter(durable::string_map_shard::phase::deleting);
    pronto::delete_object(name + "#2");
}

const std::map<std::string, Command> commands{
    {"add", [](const std::string& value) { numbers().add(std::stoi(value)); }},
    {"add_or_throw", [](const std::string& value) { numbers().add_or_throw(std::stoi(value)); }},
    {"add_half", [](const std::string& value) { numbers().add_half(std::stoi(value)); }},
    {"add_address", [](const std::string& value) { numbers().add_address(std::stoi(value)); }},
    {"show",
     [](const std::string&) {
         for (const int value : numbers().values()) {
             std::printf("%d ", value);
         }
         std::printf("\n");
     }},
    {"accept",
     [](const std::string&) {
         std::printf("%s\n", pronto::find_object<Numbers>("numbers", pronto::changed_methods::accept) != nullptr ? "accepted" : "none");
     }},
    {"numbers",
     [](const std::string&) {
         const pronto::operation_numbers found = pronto::numbers_of(numbers());
         std::printf("%llu %llu\n", static_cast<unsigned long long>(found.committed), static_cast<unsigned long long>(found.durable));
     }},
    {"delete", [](const std::string& name) { std::printf("%s\n", pronto::delete_object(name) ? "deleted" : "none"); }},
    {"find", [](const std::string& name) { std::printf("%s\n", pronto::find_object<Numbers>(name) != nullptr ? "found" : "none"); }},
    {"snapshot", [](const std::string&) { pronto::snapshot(); }},
    {"page", [](const std::string& page) { pronto::get_object<Pages>("pages").add(page + std::string(100, '.')); }},
    {"pages",
     [](const std::string&) {
         for (const std::pmr::string& page : pronto::get_object<Pages>("pages").pages()) {
             std::printf("%.*s ", static_cast<int>(page.find('.')), page.c_str());
         }
         std::printf("\n");
     }},
    {"fill", fill_map},
    {"count", [](const std::string&) { std::printf("%zu\n", pronto::get_object<durable::string_map>("texts").size()); }},
    {"insert",
     [](const std::string& key) {
         const std::vector<std::uint8_t> value(1000, 7);
         pronto::get_object<durable::map<std::string, std::vector<std::uint8_t>>>("map").insert_or_assign(key, value);
         pronto::get_object<durable::unordered_map<std::string, int>>("unordered").insert(key, 1);
         pronto::get_object<durable::priority_queue<std::string>>("queue").push(key);
         pronto::get_object<durable::vector<std::string>>("vector").push_back(key);
     }},
    {"contains",
     [](const std::string& key) {
         std::printf("%d %d %s %s\n", pronto::get_object<durable::map<std::string, std::vector<std::uint8_t>>>("map").contains(key) ? 1 : 0,
                     pronto::get_object<durable::unordered_map<std::string, int>>("unordered").contains(key) ? 1 : 0,
                     pronto::get_object<durable::priority_queue<std::string>>("queue").top().c_str(),
                     pronto::get_object<durable::vector<std::string>>("vector").back().c_str());
     }},
    {"put", [](const std::string& key) { pronto::get_object<durable::string_map>("texts").put(key, "text"); }},
    {"die_as_reader",  // A snapshot has been taken meanwhile.
     [](const std::string& key) {
         pronto::get_object<durable::string_map>("texts").visit(key, [](std::string_view) {
             std::thread([] { pronto::snapshot(); }).join();
             raise(SIGKILL);
         });
     }},
    {"fill_sharded", fill_sharded},
    {"show_sharded", show_sharded},
    {"half_make_sharded", half_make_sharded},
    {"half_delete_sharded", half_delete_sharded},
    {"delete_sharded",
     [](const std::string& name) { std::printf("%s\n", durable::sharded_string_map::delete_map(name) ? "deleted" : "none"); }},
    {"clear_shard",  // As a clear() that is killed after it.
     [](const std::string& name) {
         auto* const shard = pronto::find_object<durable::string_map_shard>(name);
         std::printf("cleared %zu\n", shard->size());
         shard->clear();
     }},
    {"clear_sharded", [](const std::string& words) { sharded(words).clear(); }},
    {"die", [](const std::string&) { static_cast<void>(raise(SIGKILL)); }},
};

const char* kind_of(const pronto::error& failure)
{
    if (dynamic_cast<const pronto::refused*>(&failure) != nullptr) {
        return "refused";
    }
    if (dynamic_cast<const pronto::other_type*>(&failure) != nullptr) {
        return "other_type";
    }
    return dynamic_cast<const pronto::not_durable*>(&failure) != nullptr ? "not_durable" : "error";
}

}  // namespace

int main(int count, char** words)
{
    const char* const more = std::getenv("PRONTO_OPTIONS");
    const std::string options = std::string("engine=pronto quiet=1 ") + (more != nullptr ? more : "");
    if (count < 3 || sp_open(words[1], options.c_str()) != SP_OK) {
        std::printf("not opened: %s\n", sp_last_error());
        return 1;
    }
    for (int place = 2; place < count; ++place) {
        const std::string word = words[place];
        const std::size_t colon = std::min(word.find(':'), word.size());
        std::fflush(stdout);
        try {
            commands.at(word.substr(0, colon))(word.substr(std::min(colon + 1, word.size())));
        } catch (const pronto::error& failure) {
            std::printf("%s: %s\n", kind_of(failure), failure.what());
        } catch (const std::runtime_error& failure) {
            std::printf("threw: %s\n", failure.what());
        }
    }
    return 0;
}
