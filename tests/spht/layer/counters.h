/* The parts of the program counters.c that lie in a unit of their own. */
#ifndef COUNTERS_H
#define COUNTERS_H

enum { COUNTERS = 16, PEOPLE = 64 };
struct account {
    long balance;
    struct account* richer;
    char name[16];
};
struct root {
    long left[8][8], right[8][8]; /* of a thread, in lines of its own */
    struct account* first;        /* a list, by balance */
    long people, moved, total, deaths;
    _Atomic long atomic;
};

void move(struct root* all, long from, long to, long amount);
long richest(const struct root* all);
extern long (*const looks)(const struct root*);
#endif
