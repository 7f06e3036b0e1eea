/* map.h - what the datasets that call a function for each element share. */
#pragma once

#include "kernels/data/dataset.h"

struct map {
    struct dataset dataset;
    struct dataset_function function;
    bool keeps_count;     /* the function's end of sequence is an error */
    struct tensor *state; /* scan: before the first element */
    int state_count;
    int64_t calls; /* in parallel: how many at once */
    bool sloppy;   /* in parallel: elements come as they are done */
};

/*
 * A map whose function runs on several elements at once, which come in the order of the input
 * (parallel_map.c).
 */
extern const struct dataset_type kernel_parallel_map_type;

/* A function may end the sequence by failing with OUT_OF_RANGE: true, and `*end`. */
bool kernel_map_end_or_error(const struct map *map, bool *end, struct error *err) CHECKED;

int64_t kernel_map_cardinality(const struct dataset *dataset);
void kernel_map_release(struct dataset *dataset);
