/*
 * device.h - where kernels run: names, types, memory.
 *
 * Full name: /job:worker/replica:0/task:0/device:CPU:0 (TensorFlow's).  Partial names leave out
 * parts; "*" is the same as absent.
 */
#pragma once

#include "base/base.h"

struct error;

enum device_type { CPU, GPU, DEVICE_TYPES };

struct device_name { /* parsed; -1 and "" stand for "any" */
    char job[64];
    int replica;
    int task;
    char type[16];
    int index;
};

struct device {
    char name[128]; /* full */
    enum device_type type;
    struct device_name parts;
    int64_t memory_bytes;
    uint64_t incarnation; /* random, never 0, new at each start of the process */
    int threads;          /* CPU: that kernels may use */
};

/* Accepts full, partial and legacy ("/cpu:0") names.  Fails with INVALID, quoting the text. */
bool device_name_parse(const char *text, struct device_name *name, struct error *err) CHECKED;

/* Writes the canonical form of a (partial) name; returns `out`. */
const char *device_name_text(const struct device_name *name, char *out, size_t out_size);

/* Whether a full name meets a wish. */
bool device_name_matches(const struct device_name *wish, const struct device_name *full);

/* Whether both are of one task. */
bool device_name_same_task(const struct device_name *a, const struct device_name *b);
bool device_same_task(const struct device *a, const struct device *b);

/*
 * Adds what `extra` asks to `into`.  Fails with INVALID when they contradict each other; with
 * `soft`, type and index of `into` are dropped instead.
 */
bool device_name_merge(struct device_name *into, const struct device_name *extra, bool soft,
                       struct error *err) CHECKED;

/* What `name` leaves open becomes as in `from`. */
void device_name_fill(struct device_name *name, const struct device_name *from);

const char *device_type_name(enum device_type type); /* "CPU" */
