/* safetensors_internal.h - the header of a safetensors file, for its reader. */
#pragma once

#include "runtime/io/safetensors.h"

struct arena;

struct safetensors_header {
    struct safetensors_item *items; /* in order of their offsets */
    int items_count;
    struct safetensors_note *notes;
    int notes_count;
};

/*
 * Parses and checks the header of a file with `data_bytes` after it; texts live in `arena`.
 * DATA_LOSS names the byte, counted from the beginning of the file, where the header is at 8.
 */
bool safetensors_header_parse(const char *text, size_t size, int64_t data_bytes,
                              struct arena *arena, struct safetensors_header *out,
                              struct error *err) CHECKED;

/* The format's name of a type, NULL when it has none. */
const char *safetensors_header_type(enum dtype dtype);
