/*
 * wire_collective.h - WorkerService's messages of collectives as plain structs, for both ends.
 *
 * What is read lives in the arena that it is given.
 */
#pragma once

#include "runtime/collective.h"

struct arena;
struct str;

/* CompleteGroup and CompleteInstance. */
struct wire_member {
    struct collective_wish wish;
    struct device device; /* of CompleteInstance the name alone */
};

/* RecvBuf. */
struct wire_buffer {
    int64_t step_id;
    const char *key;
    int64_t bytes;
    const char *from, *to; /* devices */
    uint64_t incarnation;  /* of `from` */
    int64_t request_id;
};

void wire_write_complete_group(const struct wire_member *in, struct str *out);
bool wire_read_complete_group(const void *bytes, size_t size, struct arena *arena,
                              struct wire_member *out, struct error *err) CHECKED;
void wire_write_group(const struct collective_group *group, struct str *out);
bool wire_read_group(const void *bytes, size_t size, struct arena *arena,
                     struct collective_group *out, struct error *err) CHECKED;

void wire_write_complete_instance(const struct wire_member *in, struct str *out);
bool wire_read_complete_instance(const void *bytes, size_t size, struct arena *arena,
                                 struct wire_member *out, struct error *err) CHECKED;
void wire_write_instance(int source, struct str *out);
bool wire_read_instance(const void *bytes, size_t size, int *source, struct error *err) CHECKED;

/* GetStepSequence; the answer has the ids in the order of the keys. */
void wire_write_get_steps(int64_t graph_key, struct str *out);
bool wire_read_get_steps(const void *bytes, size_t size, struct arena *arena,
                         const int64_t **graph_keys, int *count, struct error *err) CHECKED;
void wire_write_steps(const int64_t *graph_keys, const int64_t *step_ids, int count,
                      struct str *out);
/* Fails with INTERNAL when the answer lacks that graph. */
bool wire_read_steps(const void *bytes, size_t size, int64_t graph_key, int64_t *step_id,
                     struct error *err) CHECKED;

void wire_write_receive_buffer(const struct wire_buffer *in, struct str *out);
bool wire_read_receive_buffer(const void *bytes, size_t size, struct arena *arena,
                              struct wire_buffer *out, struct error *err) CHECKED;
/* What comes before the bytes in the answer; nothing comes after them. */
void wire_write_buffer_head(size_t size, struct str *out);
/* Into `into`, which must have its size: else INTERNAL. */
bool wire_read_buffer(const void *bytes, size_t size, void *into, size_t into_size,
                      struct error *err) CHECKED;
