// Logged variables, for the commands that look inside.

#include <cstdio>

#include <stillpoint/respct.hpp>

namespace respct = stillpoint::respct;

struct Node {
    respct::logged<Node*> next;
    respct::logged<long> count;
    long key;
};
struct List {
    respct::mutex guard;
    respct::logged<Node*> first;
};

int main()
{
    auto* const list = respct::root<List>("list");
    for (long key = 0; key < 3; ++key) {
        respct::RP(1);
        auto* const made = respct::make<Node>();
        made->key = key;
        respct::add_modified(made->key);
        made->count = key * 10;
        made->next = list->first;
        list->first = made;
    }
    std::puts("stored");
}
