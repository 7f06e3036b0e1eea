/* mutate.c - see mutate.h. */

#include "tests/fuzz/mutate.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "proto/message.h"

enum { PARTS_MAX = 20000, CHANGES_MAX = 4 };

struct mutation {
    struct arena *arena;
    uint64_t state;
    ProtobufCMessage **parts; /* every message in the tree */
    int parts_count;
    const struct mutate_words *words;
};

static uint64_t next(struct mutation *m)
{
    m->state += 0x9e3779b97f4a7c15u;
    uint64_t z = m->state;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static size_t below(struct mutation *m, size_t count)
{
    return count ? next(m) % count : 0;
}

/* --- fields by their descriptors --- */

static void *member(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    return (char *)message + field->offset;
}

/* The count of a repeated field, the presence of an optional one, the case of a oneof. */
static void *quantifier(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    return (char *)message + field->quantifier_offset;
}

static bool is_oneof(const ProtobufCFieldDescriptor *field)
{
    return field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF;
}

static bool is_set(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    return !is_oneof(field) || *(uint32_t *)quantifier(message, field) == field->id;
}

static size_t element_size(const ProtobufCFieldDescriptor *field)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    default:
        return 4;
    }
}

/* Collects every message below `root` in m->parts (room for PARTS_MAX), breadth first. */
static void collect(struct mutation *m, ProtobufCMessage *root)
{
    m->parts[0] = root;
    m->parts_count = 1;
    for (int at = 0; at < m->parts_count; at++) {
        ProtobufCMessage *message = m->parts[at];
        for (unsigned f = 0; f < message->descriptor->n_fields; f++) {
            const ProtobufCFieldDescriptor *field = &message->descriptor->fields[f];
            if (field->type != PROTOBUF_C_TYPE_MESSAGE || !is_set(message, field))
                continue;
            bool repeated = field->label == PROTOBUF_C_LABEL_REPEATED;
            ProtobufCMessage **list = repeated ? *(ProtobufCMessage ***)member(message, field)
                                               : (ProtobufCMessage **)member(message, field);
            size_t count = repeated ? *(size_t *)quantifier(message, field) : 1;
            for (size_t i = 0; i < count && m->parts_count < PARTS_MAX; i++)
                if (list[i])
                    m->parts[m->parts_count++] = list[i];
        }
    }
}

/* Some message of that type in the tree. */
static ProtobufCMessage *pick_like(struct mutation *m,
                                   const ProtobufCMessageDescriptor *descriptor)
{
    for (int tries = 0; tries < 50; tries++) {
        ProtobufCMessage *part = m->parts[below(m, (size_t)m->parts_count)];
        if (part->descriptor == descriptor)
            return part;
    }
    return NULL;
}

/* --- values --- */

static int64_t interesting(struct mutation *m, int64_t old)
{
    static const int64_t values[] = {
        0,         1,         -1,        2,   -2,   3,         4,        7,       8,
        16,        64,        127,       255, -128, 1000,      65536,    1 << 30, INT32_MAX,
        INT32_MIN, INT64_MAX, INT64_MIN, 32,  101,  1ll << 62, 1ll << 32};
    switch (below(m, 4)) {
    case 0:
        return (int64_t)((uint64_t)old + below(m, 5) - 2);
    case 1:
        return (int64_t)below(m, 24);
    default:
        return values[below(m, ARRAY_LEN(values))];
    }
}

static double interesting_real(struct mutation *m)
{
    static const double values[] = {0.0, -0.0, 1, -1, 0.5, 1e-30, 1e30, 1e300};
    size_t i = below(m, ARRAY_LEN(values) + 3);
    if (i < ARRAY_LEN(values))
        return values[i];
    return i == ARRAY_LEN(values) ? __builtin_nan("")
           : i & 1                ? __builtin_inf()
                                  : -__builtin_inf();
}

/* A string of another field in the tree, a word, or the old one a little changed. */
static char *pick_string(struct mutation *m, const char *old)
{
    size_t way = below(m, 8);
    if (way < 2 && m->words->count)
        return arena_text(m->arena, m->words->name((int)below(m, (size_t)m->words->count)));
    if (way == 2)
        return arena_printf(m->arena, "^%s", old);
    if (way == 3)
        return arena_printf(m->arena, "%s:%d", old, (int)below(m, 4) - 1);
    for (int tries = 0; tries < 50; tries++) {
        ProtobufCMessage *part = m->parts[below(m, (size_t)m->parts_count)];
        const ProtobufCMessageDescriptor *d = part->descriptor;
        const ProtobufCFieldDescriptor *field =
            d->n_fields ? &d->fields[below(m, d->n_fields)] : NULL;
        if (!field || field->type != PROTOBUF_C_TYPE_STRING || !is_set(part, field))
            continue;
        if (field->label != PROTOBUF_C_LABEL_REPEATED)
            return *(char **)member(part, field);
        size_t count = *(size_t *)quantifier(part, field);
        if (count)
            return (*(char ***)member(part, field))[below(m, count)];
    }
    return arena_text(m->arena, "");
}

/* Numbers of a tensor's content, all of one size: some become interesting ones. */
static void change_numbers(struct mutation *m, uint8_t *bytes, size_t size)
{
    size_t each = below(m, 2) ? 8 : 4;
    for (size_t i = 0; size >= each && i < 1 + below(m, 3); i++) {
        uint8_t *at = bytes + below(m, size / each) * each;
        int64_t integer = interesting(m, 0);
        double real = interesting_real(m);
        float narrow = (float)real;
        if (below(m, 4))
            memcpy(at, &integer, each);
        else if (each == 8)
            memcpy(at, &real, each);
        else
            memcpy(at, &narrow, each);
    }
}

static void change_bytes(struct mutation *m, ProtobufCBinaryData *bytes)
{
    size_t size = bytes->len;
    size_t room = size + 64;
    uint8_t *copy = arena_alloc(m->arena, room);
    if (size)
        memcpy(copy, bytes->data, size);
    switch (below(m, 5)) {
    case 0:
        size = below(m, size + 1);
        break;
    case 1:
        memset(copy + size, (int)next(m), 64);
        size += below(m, 64);
        break;
    case 2:
    case 3:
        change_numbers(m, copy, size);
        break;
    default:
        for (size_t i = 0; size && i < 1 + below(m, 8); i++)
            copy[below(m, size)] = (uint8_t)next(m);
    }
    bytes->data = copy;
    bytes->len = size;
}

/* A message that is part of itself can neither be packed nor walked. */
static bool reaches(ProtobufCMessage *from, const ProtobufCMessage *what)
{
    static ProtobufCMessage *parts[PARTS_MAX];
    struct mutation below_it = {.parts = parts};
    collect(&below_it, from);
    for (int i = 0; i < below_it.parts_count; i++)
        if (below_it.parts[i] == what)
            return true;
    return below_it.parts_count == PARTS_MAX;
}

/* `at`: where the value is in `owner`, or in a list of its. */
static void change_element(struct mutation *m, ProtobufCMessage *owner, void *at,
                           const ProtobufCFieldDescriptor *field)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        *(char **)at = pick_string(m, *(char **)at);
        break;
    case PROTOBUF_C_TYPE_BYTES:
        change_bytes(m, at);
        break;
    case PROTOBUF_C_TYPE_MESSAGE: {
        ProtobufCMessage *like = pick_like(m, field->descriptor);
        if (like && !reaches(like, owner))
            *(ProtobufCMessage **)at = like;
        break;
    }
    case PROTOBUF_C_TYPE_FLOAT:
        *(float *)at = (float)interesting_real(m);
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        *(double *)at = interesting_real(m);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)at = !*(protobuf_c_boolean *)at;
        break;
    case PROTOBUF_C_TYPE_ENUM:
        *(int *)at = (int)(below(m, 4) ? below(m, 26) : 100 + below(m, 26));
        break;
    default:
        if (element_size(field) == 8)
            *(int64_t *)at = interesting(m, *(int64_t *)at);
        else
            *(int32_t *)at = (int32_t)interesting(m, *(int32_t *)at);
    }
}

/* --- lists --- */

static void change_list(struct mutation *m, ProtobufCMessage *message,
                        const ProtobufCFieldDescriptor *field)
{
    size_t size =
        field->type == PROTOBUF_C_TYPE_BOOL ? sizeof(protobuf_c_boolean) : element_size(field);
    size_t *count = quantifier(message, field);
    char **list = member(message, field);
    if (!*count)
        return;
    /* Another list may share the elements: it is copied before it is changed. */
    char *copy = arena_alloc(m->arena, (*count + 1) * size);
    memcpy(copy, *list, *count * size);
    *list = copy;
    size_t at = below(m, *count);
    char kept[sizeof(ProtobufCBinaryData)];
    switch (below(m, 4)) {
    case 0: /* one less */
        memmove(copy + at * size, copy + (at + 1) * size, (*count - at - 1) * size);
        --*count;
        break;
    case 1: /* one twice */
        memcpy(copy + *count * size, copy + at * size, size);
        ++*count;
        break;
    case 2: /* two change places */
        memcpy(kept, copy + at * size, size);
        size_t other = below(m, *count);
        memcpy(copy + at * size, copy + other * size, size);
        memcpy(copy + other * size, kept, size);
        break;
    default:
        change_element(m, message, copy + at * size, field);
    }
}

/* Takes the place of `message` in full, as a message of the same type elsewhere is. */
static void become(struct mutation *m, ProtobufCMessage *message)
{
    ProtobufCMessage *like = pick_like(m, message->descriptor);
    if (like && like != message && !reaches(like, message))
        memcpy(message, like, message->descriptor->sizeof_message);
}

static void change(struct mutation *m)
{
    ProtobufCMessage *message = m->parts[below(m, (size_t)m->parts_count)];
    const ProtobufCMessageDescriptor *d = message->descriptor;
    if (!d->n_fields)
        return;
    if (!below(m, 6)) {
        become(m, message);
        return;
    }
    const ProtobufCFieldDescriptor *field = NULL;
    for (int tries = 0; tries < 20; tries++) {
        field = &d->fields[below(m, d->n_fields)];
        if (is_set(message, field))
            break;
    }
    if (!is_set(message, field))
        return;
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        change_list(m, message, field);
        return;
    }
    if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        ProtobufCMessage *like = pick_like(m, field->descriptor);
        if (!below(m, 3) && !is_oneof(field))
            *(ProtobufCMessage **)member(message, field) = NULL;
        else if (like && !reaches(like, message))
            *(ProtobufCMessage **)member(message, field) = like;
        return;
    }
    change_element(m, message, member(message, field), field);
}

size_t mutate_message(const ProtobufCMessageDescriptor *descriptor, uint8_t *data, size_t size,
                      size_t size_max, uint64_t seed, const struct mutate_words *words)
{
    static ProtobufCMessage *parts[PARTS_MAX];
    struct mutation m = {.arena = arena_new(), .state = seed, .parts = parts, .words = words};
    struct error err;
    size_t made = 0;
    ProtobufCMessage *message = message_unpack(descriptor, data, size, m.arena, &err);
    if (message) {
        size_t changes = 1 + below(&m, CHANGES_MAX);
        for (size_t i = 0; i < changes; i++) {
            collect(&m, message);
            change(&m);
        }
        collect(&m, message);
        if (m.parts_count < PARTS_MAX &&
            protobuf_c_message_get_packed_size(message) <= size_max)
            made = protobuf_c_message_pack(message, data);
    }
    arena_free(m.arena);
    return made;
}
