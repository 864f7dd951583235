// Mistakes with transactions, for `stillpoint lint`: each line says what is reported of it. Lines without a comment are right.

#include <stillpoint/spht.hpp>

#include "spht-hooks.h"

namespace spht = stillpoint::spht;

struct root {
    long value, other;
    root* self;
};

void set(root& all, long value)
{
    all.value = value;  // expect: store-outside-transaction
}

void set_by_plain_body(root& all, long value)
{
    spht::atomically([&] {
        all.value = value;
        all.other += value;
    });
}

void set_by_calls(root& all, long value)
{
    spht::atomically([&](spht::transaction& tx) {
        tx.write(all.value, tx.read(all.other) + value);
        all.other = value;  // expect: plain-store-in-transaction
    });
}

long read_by_calls(root& all)
{
    return spht::atomically([&](spht::transaction& tx) {
        const long value = tx.read(all.value);
        return value + all.other;  // expect: plain-read-in-transaction
    });
}

void fill_new_block(root& all)
{
    auto* const made = static_cast<root*>(sp_malloc(sizeof(root)));
    made->value = 1;  // expect: store-outside-transaction
    spht::atomically([&] { all.self = made; });
}

int main()
{
    auto* const all = static_cast<root*>(sp_root("mistakes", sizeof(root)));
    if (all == nullptr) {
        return 2;
    }
    set_by_plain_body(*all, 1);
    spht::atomically([&] { all->other = all->value; }, SP_SPHT_IRREVOCABLE);
    spht::atomically([&](spht::transaction&) { all->other = 2; }, SP_SPHT_IRREVOCABLE | SP_SPHT_PLAIN_STORES);
    if (all->value + all->other == 3) {
        set_by_calls(*all, 2);
        set(*all, read_by_calls(*all));
        fill_new_block(*all);
    }
    return 0;
}
