/*
 * function_set.h - the functions of one session, made ready to be called by kernels.
 *
 * The session makes the set and closes it; functions that are kept elsewhere keep what they
 * need of it alive.
 */
#pragma once

#include "base/base.h"

struct device;
struct function_library;
struct function_set;
struct resources;

struct function_set_options {
    struct function_library *library; /* another reference is taken */
    const struct device *device;      /* copied */
    struct resources *resources;      /* borrowed: outlives all functions */
    int threads;
    int64_t memory_bytes_max;
    bool optimise;
    uint32_t passes_off;
};

struct function_set *function_set_new(const struct function_set_options *options);

/* Forgets the functions and gives back the session's reference.  NULL is fine. */
void function_set_close(struct function_set *set);
