/* reader_state.c - a small message, written and read by hand. */

#include "kernels/io/reader_state.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"

enum { WIRE_VARINT = 0, WIRE_BYTES = 2 };

static void add_varint(struct str *out, uint64_t value)
{
    for (; value > 0x7f; value >>= 7)
        str_add_char(out, (char)(value | 0x80));
    str_add_char(out, (char)value);
}

/* Zeros are left out. */
static void add_field(struct str *out, int field, int64_t value)
{
    if (!value)
        return;
    add_varint(out, (uint64_t)field << 3 | WIRE_VARINT);
    add_varint(out, (uint64_t)value);
}

void kernel_reader_state_write(const struct reader_state *state, struct str *out)
{
    add_field(out, 1, state->started);
    add_field(out, 2, state->finished);
    add_field(out, 3, state->records);
    if (state->path && state->path[0]) {
        add_varint(out, 4 << 3 | WIRE_BYTES);
        add_varint(out, strlen(state->path));
        str_add(out, state->path);
    }
}

static bool take_varint(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; shift < 64 && *at < end; shift += 7) {
        uint8_t byte = *(*at)++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

static bool parse(struct reader_state *state, const uint8_t *at, const uint8_t *end)
{
    int64_t *const fields[] = {NULL, &state->started, &state->finished, &state->records};
    while (at < end) {
        uint64_t tag, value;
        if (!take_varint(&at, end, &tag) || !take_varint(&at, end, &value))
            return false;
        uint64_t field = tag >> 3;
        if ((tag & 7) == WIRE_VARINT) {
            if (field >= 1 && field <= 3)
                *fields[field] = (int64_t)value;
        } else if ((tag & 7) == WIRE_BYTES && value <= (uint64_t)(end - at)) {
            if (field == 4) {
                free(state->path);
                state->path = alloc_text_n((const char *)at, value);
            }
            at += value;
        } else {
            return false;
        }
    }
    return true;
}

/* The state as C would write it. */
static void fail_parse(const char *reader, const uint8_t *bytes, size_t size, struct error *err)
{
    struct str text = {0};
    for (size_t i = 0; i < size; i++)
        if (bytes[i] < ' ' || bytes[i] > '~')
            str_printf(&text, "\\%03o", bytes[i]);
        else
            str_printf(&text, "%s%c", strchr("\"'\\", bytes[i]) ? "\\" : "", bytes[i]);
    (void)fail(err, INVALID, "Could not parse state for %s: %s", reader, str_text(&text));
    str_release(&text);
}

bool kernel_reader_state_read(struct reader_state *state, const void *bytes, size_t size,
                              const char *reader, struct error *err)
{
    struct reader_state read = {0};
    bool ok = !size || parse(&read, bytes, (const uint8_t *)bytes + size);
    if (!ok)
        fail_parse(reader, bytes, size, err);
    else if (read.started < 0 || read.finished < 0 || read.records < 0)
        ok = fail(err, INVALID, "Unexpected negative value when restoring in %s", reader);
    else if (read.started > read.finished)
        ok = fail(err, INVALID,
                  "Inconsistent work started vs. finished when restoring in %s: %lld and %lld",
                  reader, (long long)read.started, (long long)read.finished);
    if (!ok) {
        free(read.path);
        return false;
    }
    free(state->path);
    *state = read;
    return true;
}
