// Durable containers, for the commands that look inside.

#include <cstdio>
#include <string>
#include <vector>

#include <stillpoint/durable.hpp>

namespace durable = stillpoint::durable;
namespace pronto = stillpoint::pronto;

int main()
{
    auto& visits = pronto::get_object<durable::map<std::string, int>>("visits");
    visits.insert_or_assign("Anna", 3);
    visits.insert_or_assign("a name that has no room in a short string", 4);
    auto& numbers = pronto::get_object<durable::vector<long>>("numbers");
    for (long i = 0; i < 5; ++i) {
        numbers.push_back(i * i);
    }
    auto& words = pronto::get_object<durable::unordered_map<std::string, long>>("words");
    words.insert_or_assign("one", 1);
    auto& texts = pronto::get_object<durable::string_map>("texts");
    texts.put("key", "value");
    std::puts("stored");
}
