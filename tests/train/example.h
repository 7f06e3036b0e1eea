/*
 * example.h - writes tf.Examples for tests: features one after the other, then the record.
 */
#pragma once

#include "base/str.h"
#include "runtime/io/record_file.h"

static inline void example_varint(struct str *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        str_add_char(out, (char)(value | 0x80));
    str_add_char(out, (char)value);
}

static inline void example_piece(struct str *out, int field, const void *bytes, size_t size)
{
    example_varint(out, (uint64_t)field << 3 | 2);
    example_varint(out, size);
    str_add_bytes(out, bytes, size);
}

/* Adds a feature whose list, of kind 1 bytes, 2 floats, 3 int64, is `list`. */
static inline void example_add(struct str *features, const char *name, int kind,
                               const struct str *list)
{
    struct str feature = {0}, entry = {0};
    example_piece(&feature, kind, list->data, list->size);
    example_piece(&entry, 1, name, strlen(name));
    example_piece(&entry, 2, feature.data, feature.size);
    example_piece(features, 1, entry.data, entry.size);
    str_release(&feature);
    str_release(&entry);
}

static inline void example_bytes(struct str *features, const char *name, const void *bytes,
                                 size_t size)
{
    struct str list = {0};
    example_piece(&list, 1, bytes, size);
    example_add(features, name, 1, &list);
    str_release(&list);
}

static inline void example_floats(struct str *features, const char *name, const float *values,
                                  int count)
{
    struct str list = {0};
    example_piece(&list, 1, values, (size_t)count * sizeof(*values));
    example_add(features, name, 2, &list);
    str_release(&list);
}

static inline void example_integers(struct str *features, const char *name,
                                    const int64_t *values, int count)
{
    struct str list = {0}, packed = {0};
    for (int i = 0; i < count; i++)
        example_varint(&packed, (uint64_t)values[i]);
    example_piece(&list, 1, packed.data, packed.size);
    example_add(features, name, 3, &list);
    str_release(&list);
    str_release(&packed);
}

/* The Example of these features, which are cleared. */
static inline void example_finish(struct str *features, struct str *example)
{
    str_clear(example);
    example_piece(example, 1, features->data, features->size);
    str_clear(features);
}
