/*
 * passes.h - how long the scheduler's passes take, and which took longest and why.
 */
#pragma once

#include "base/base.h"

#define PASSES_KEPT 8

/* From the first message that it takes to the last order that it sends. */
struct pass {
    int64_t wall_us; /* when it began */
    uint64_t took_us;
    uint64_t decide_us; /* of that: the scheduler itself */
    uint64_t store_us;  /* and writing down what it decided */
    int messages;       /* that it took: wake-ups, joins, what agents said, requests */
    int decisions;
    int nodes;
};

struct passes {
    int64_t count;
    uint64_t took_us;                 /* of all together */
    struct pass longest[PASSES_KEPT]; /* the longest first */
    int longest_count;
};

/* Counts a pass, and keeps it if it is one of the longest. */
void passes_note(struct passes *passes, const struct pass *pass);
