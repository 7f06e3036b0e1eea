/* tensors_internal.h - what a format gives tensors.c. */
#pragma once

#include "runtime/io/tensors.h"

struct tensors_format {
    const char *name;
    /* Opens tensors->path and adds its items. */
    bool (*open)(struct tensors *tensors, struct error *err);
    /* Elements [from, from + count) of a tensor of plain elements. */
    bool (*piece)(struct tensors *tensors, const struct tensors_item *item, int64_t from,
                  int64_t count, void *out, struct error *err);
    bool (*read)(struct tensors *tensors, const struct tensors_item *item, struct tensor *out,
                 struct error *err);
    void (*close)(struct tensors *tensors);
};

struct tensors {
    char *path;
    const struct tensors_format *format;
    void *source; /* the format's own */
    struct tensors_item *items;
    int items_count, items_capacity;
};

extern const struct tensors_format tensors_bundle, tensors_slices, tensors_safetensors,
    tensors_npy, tensors_npz, tensors_hdf5, tensors_keras;

/* Adds an item; its name lives as long as the source. */
struct tensors_item *tensors_add(struct tensors *tensors, const char *name, int dtype,
                                 const struct shape *shape);
