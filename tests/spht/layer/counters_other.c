#include "counters.h"

#include <stddef.h>

static struct account* find(const struct root* all, long number)
{
    struct account* one = all->first;
    while (number-- > 0 && one->richer != NULL)
        one = one->richer;
    return one;
}

static void put_in(struct root* all, struct account* one)
{
    struct account** at = &all->first;
    while (*at != NULL && (*at)->balance < one->balance)
        at = &(*at)->richer;
    one->richer = *at;
    *at = one;
}

static void take_out(struct root* all, struct account* one)
{
    struct account** at = &all->first;
    while (*at != one)
        at = &(*at)->richer;
    *at = one->richer;
}

void move(struct root* all, long from, long to, long amount)
{
    struct account *giver = find(all, from), *taker = find(all, to);
    if (giver == taker)
        return;
    take_out(all, giver);
    take_out(all, taker);
    giver->balance -= amount;
    taker->balance += amount;
    put_in(all, giver);
    put_in(all, taker);
    all->moved += amount;
}

long richest(const struct root* all)
{
    long found = 0;
    for (const struct account* one = all->first; one != NULL; one = one->richer)
        found = one->balance;
    return found;
}
long (*const looks)(const struct root*) = richest;
