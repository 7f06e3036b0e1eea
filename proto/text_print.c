/* text_print.c - a message in text form, with a stack of open messages. */

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "proto/message.h"
#include "proto/text.h"

struct open {
    const ProtobufCMessage *message;
    unsigned field; /* the next to be printed */
    size_t element; /* and of a repeated one, which */
};

struct writer {
    struct open stack[LIMIT_MESSAGE_DEPTH + 1];
    int depth;
    struct str *out;
};

/* --- values --- */

static void add_quoted(struct str *out, const uint8_t *bytes, size_t size)
{
    str_add_char(out, '"');
    for (size_t i = 0; i < size; i++) {
        uint8_t c = bytes[i];
        static const char names[] = "nrt\"'\\", meanings[] = "\n\r\t\"'\\";
        const char *known = c ? strchr(meanings, c) : NULL;
        if (known)
            str_printf(out, "\\%c", names[known - meanings]);
        else if (c < 0x20 || c >= 0x7f)
            str_printf(out, "\\%03o", c);
        else
            str_add_char(out, (char)c);
    }
    str_add_char(out, '"');
}

/* The shortest digits that read back as the same number, as Python prints them. */
static void add_real(struct str *out, double value)
{
    char text[40], digits[40];
    if (!isfinite(value)) {
        str_add(out, isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
        return;
    }
    int precision = 0;
    do
        snprintf(text, sizeof(text), "%.*e", precision, value);
    while (strtod(text, NULL) != value && precision++ < 17);
    int exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10), count = 0;
    for (const char *at = text; *at != 'e'; at++)
        if (isdigit((unsigned char)*at))
            digits[count++] = *at;
    str_add(out, signbit(value) ? "-" : "");
    if (exponent < -4 || exponent >= 16) {
        str_printf(out, "%c%s%.*s", digits[0], count > 1 ? "." : "", count - 1, digits + 1);
        str_printf(out, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
    } else if (exponent < 0) {
        str_printf(out, "0.%.*s%.*s", -exponent - 1, "0000", count, digits);
    } else {
        for (int i = 0; i <= exponent; i++)
            str_add_char(out, i < count ? digits[i] : '0');
        bool more = count > exponent + 1;
        str_printf(out, ".%.*s", more ? count - exponent - 1 : 1,
                   more ? digits + exponent + 1 : "0");
    }
}

/* The decimal of fewest digits that is this float. */
static double shortest(float value)
{
    char text[40];
    for (int precision = 6; isfinite(value) && precision < 10; precision++) {
        snprintf(text, sizeof(text), "%.*g", precision, (double)value);
        if (strtof(text, NULL) == value)
            return strtod(text, NULL);
    }
    return (double)value;
}

static void add_scalar(struct str *out, const ProtobufCFieldDescriptor *field, const void *at)
{
    const ProtobufCBinaryData *bytes = at;
    const ProtobufCEnumValue *name;
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        str_printf(out, "%d", *(const int32_t *)at);
        break;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        str_printf(out, "%u", *(const uint32_t *)at);
        break;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        str_printf(out, "%lld", (long long)*(const int64_t *)at);
        break;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        str_printf(out, "%llu", (unsigned long long)*(const uint64_t *)at);
        break;
    case PROTOBUF_C_TYPE_FLOAT:
        add_real(out, shortest(*(const float *)at));
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        add_real(out, *(const double *)at);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        str_add(out, *(const protobuf_c_boolean *)at ? "true" : "false");
        break;
    case PROTOBUF_C_TYPE_ENUM:
        name = protobuf_c_enum_descriptor_get_value(field->descriptor, *(const int *)at);
        if (name)
            str_add(out, name->name);
        else
            str_printf(out, "%d", *(const int *)at);
        break;
    case PROTOBUF_C_TYPE_STRING:
        add_quoted(out, *(const uint8_t *const *)at, strlen(*(const char *const *)at));
        break;
    default:
        add_quoted(out, bytes->data, bytes->len);
    }
}

static size_t size_of(const ProtobufCFieldDescriptor *field)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    default:
        return 4;
    }
}

/* --- which fields --- */

static bool is_entry(const ProtobufCMessageDescriptor *descriptor)
{
    size_t size = strlen(descriptor->name);
    return size > 5 && !strcmp(descriptor->name + size - 5, "Entry") &&
           descriptor->n_fields == 2 && !strcmp(descriptor->fields[0].name, "key") &&
           !strcmp(descriptor->fields[1].name, "value");
}

static bool is_default(const ProtobufCFieldDescriptor *field, const void *at)
{
    static const char zeros[sizeof(ProtobufCBinaryData)];
    if (field->type == PROTOBUF_C_TYPE_STRING)
        return !*(char *const *)at || !**(char *const *)at;
    if (field->type == PROTOBUF_C_TYPE_BYTES)
        return !((const ProtobufCBinaryData *)at)->len;
    return !memcmp(at, zeros, size_of(field));
}

/* How many values of a field are to be printed; `*first` is where they are. */
static size_t values_of(const struct open *open, const ProtobufCFieldDescriptor *field,
                        const char **first)
{
    const char *base = (const char *)open->message;
    *first = base + field->offset;
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        *first = *(const char *const *)*first;
        return *(const size_t *)(const void *)(base + field->quantifier_offset);
    }
    if (field->type == PROTOBUF_C_TYPE_MESSAGE && !*(const void *const *)(const void *)*first)
        return 0;
    if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
        return *(const uint32_t *)(const void *)(base + field->quantifier_offset) == field->id;
    return field->type == PROTOBUF_C_TYPE_MESSAGE || !is_default(field, *first);
}

static int compare_keys(const void *a, const void *b)
{
    const ProtobufCMessage *left = *(ProtobufCMessage *const *)a;
    const ProtobufCMessage *right = *(ProtobufCMessage *const *)b;
    const ProtobufCFieldDescriptor *key = &left->descriptor->fields[0];
    const char *x = (const char *)left + key->offset, *y = (const char *)right + key->offset;
    if (key->type == PROTOBUF_C_TYPE_STRING)
        return strcmp(*(char *const *)(const void *)x, *(char *const *)(const void *)y);
    if (size_of(key) == 8) {
        int64_t i = *(const int64_t *)(const void *)x, k = *(const int64_t *)(const void *)y;
        return i < k ? -1 : i > k;
    }
    int32_t i = *(const int32_t *)(const void *)x, k = *(const int32_t *)(const void *)y;
    return i < k ? -1 : i > k;
}

/* --- printing --- */

static void add_indent(struct writer *w)
{
    for (int i = 0; i < w->depth; i++)
        str_add(w->out, "  ");
}

static void open_message(struct writer *w, const ProtobufCFieldDescriptor *field,
                         const ProtobufCMessage *message)
{
    add_indent(w);
    str_printf(w->out, "%s {\n", field->name);
    w->stack[++w->depth] = (struct open){.message = message};
}

/* The next value of the innermost message; false when it has no more. */
static bool print_next(struct writer *w)
{
    struct open *open = &w->stack[w->depth];
    const ProtobufCMessageDescriptor *descriptor = open->message->descriptor;
    for (; open->field < descriptor->n_fields; open->field++, open->element = 0) {
        const ProtobufCFieldDescriptor *field = &descriptor->fields[open->field];
        const char *first;
        size_t count = values_of(open, field, &first);
        if (open->element >= count)
            continue;
        bool message = field->type == PROTOBUF_C_TYPE_MESSAGE;
        if (message && count > 1 && !open->element && is_entry(field->descriptor))
            qsort((void *)first, count, sizeof(void *), compare_keys);
        const void *at = first + open->element++ * size_of(field);
        if (message) {
            open_message(w, field, *(const ProtobufCMessage *const *)at);
            return true;
        }
        add_indent(w);
        str_printf(w->out, "%s: ", field->name);
        add_scalar(w->out, field, at);
        str_add_char(w->out, '\n');
        return true;
    }
    return false;
}

bool text_print(const ProtobufCMessageDescriptor *descriptor, const void *bytes, size_t size,
                struct str *out, struct error *err)
{
    struct arena *arena =
        arena_new_limited(size * LIMIT_MESSAGE_EXPANSION + LIMIT_MESSAGE_EXPANSION_BASE);
    struct writer w = {.out = out};
    w.stack[0].message = message_unpack(descriptor, bytes, size, arena, err);
    bool ok = w.stack[0].message != NULL;
    while (ok && w.depth >= 0) {
        if (print_next(&w))
            continue;
        if (w.depth-- == 0)
            break;
        add_indent(&w);
        str_add(out, "}\n");
    }
    arena_free(arena);
    return ok;
}
