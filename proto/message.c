/*
 * message.c - an iterative scan, then protobuf-c's own unpacking under a budget.
 *
 * What protobuf-c 1.4 allocates for a message: the struct, one array per repeated field, copies
 * of strings and bytes, one record and a copy per unknown field, and, when the message has more
 * than 16 fields, slabs of doubling size with 32 bytes per field.  Nothing is given back to an
 * arena, so the slabs count as well.
 */

#include "proto/message.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"

#define MEMBER_BYTES 32     /* protobuf-c's note of one field on the wire */
#define MEMBERS_ON_STACK 16 /* such notes that cost no memory */
#define ALLOCATION_BYTES 16 /* what an arena rounds to */

struct scan_frame {
    const ProtobufCMessageDescriptor *descriptor;
    const uint8_t *end;
    size_t fields_count;
};

struct scan {
    struct scan_frame frames[LIMIT_MESSAGE_DEPTH];
    int depth; /* frames in use */
    const uint8_t *start;
    const uint8_t *at;
    size_t fields_count; /* of all levels */
    size_t memory;
    struct error *err;
};

static size_t rounded(size_t size)
{
    return (size + ALLOCATION_BYTES - 1) / ALLOCATION_BYTES * ALLOCATION_BYTES;
}

static bool scan_bad(struct scan *scan, const char *what)
{
    return fail(scan->err, INVALID, "malformed %s: %s at byte %zu",
                scan->frames[0].descriptor->name, what, (size_t)(scan->at - scan->start));
}

/* Reads a varint of at most `bytes_max` bytes that ends before `end`. */
static bool scan_varint(struct scan *scan, const uint8_t *end, int bytes_max, uint64_t *value)
{
    *value = 0;
    for (int i = 0; i < bytes_max && scan->at + i < end; i++) {
        uint8_t byte = scan->at[i];
        *value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            scan->at += i + 1;
            return true;
        }
    }
    return scan_bad(scan, "a number is cut short or too long");
}

static size_t element_size(ProtobufCType type)
{
    switch (type) {
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
    default:
        return 4;
    }
}

/* How many values a packed field holds. */
static size_t packed_count(ProtobufCType type, const uint8_t *bytes, size_t size)
{
    switch (type) {
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return size / 4;
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return size / 8;
    default:
        break;
    }
    size_t count = 0;
    for (size_t i = 0; i < size; i++)
        count += bytes[i] < 0x80;
    return count;
}

static bool scan_enter(struct scan *scan, const ProtobufCMessageDescriptor *descriptor,
                       const uint8_t *end)
{
    if (scan->depth == LIMIT_MESSAGE_DEPTH)
        return fail(scan->err, EXHAUSTED, "%s is nested more than %d deep",
                    scan->frames[0].descriptor->name, LIMIT_MESSAGE_DEPTH);
    scan->frames[scan->depth++] = (struct scan_frame){.descriptor = descriptor, .end = end};
    scan->memory += rounded(descriptor->sizeof_message);
    return true;
}

/* The slabs that protobuf-c takes for the fields of one message. */
static size_t slab_memory(size_t fields_count)
{
    size_t memory = 0;
    for (size_t held = MEMBERS_ON_STACK, slab = MEMBERS_ON_STACK; held < fields_count;) {
        slab *= 2;
        held += slab;
        memory += slab * MEMBER_BYTES;
    }
    return memory;
}

/* A field with a length: text, bytes, a message or packed numbers; `scan->at` is behind the
 * length. */
static bool scan_content(struct scan *scan, const ProtobufCFieldDescriptor *field, size_t size)
{
    const uint8_t *bytes = scan->at;
    if (field && field->type == PROTOBUF_C_TYPE_MESSAGE)
        return scan_enter(scan, field->descriptor, bytes + size);

    scan->at += size;
    if (!field) {
        scan->memory += sizeof(ProtobufCMessageUnknownField) + rounded(size);
    } else if (field->type == PROTOBUF_C_TYPE_STRING) {
        if (memchr(bytes, 0, size) || !str_is_utf8((const char *)bytes, size))
            return fail(scan->err, INVALID, "%s: field '%s' is not valid UTF-8 text",
                        scan->frames[0].descriptor->name, field->name);
        scan->memory += rounded(size + 1);
    } else if (field->type == PROTOBUF_C_TYPE_BYTES) {
        scan->memory += rounded(size);
    } else {
        scan->memory += packed_count(field->type, bytes, size) * element_size(field->type);
    }
    return true;
}

static bool scan_field(struct scan *scan)
{
    struct scan_frame *frame = &scan->frames[scan->depth - 1];
    if (++scan->fields_count > LIMIT_MESSAGE_FIELDS)
        return fail(scan->err, EXHAUSTED, "%s has more than %d fields",
                    scan->frames[0].descriptor->name, LIMIT_MESSAGE_FIELDS);
    frame->fields_count++;

    uint64_t tag, value;
    if (!scan_varint(scan, frame->end, 5, &tag))
        return false;
    if (tag >> 3 == 0 || tag > UINT32_MAX)
        return scan_bad(scan, "a field number is out of range");
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(frame->descriptor, (unsigned)(tag >> 3));
    if (field && field->label == PROTOBUF_C_LABEL_REPEATED)
        scan->memory += element_size(field->type);

    size_t left = (size_t)(frame->end - scan->at);
    switch (tag & 7) {
    case 0:
        if (!field)
            scan->memory += sizeof(ProtobufCMessageUnknownField) + ALLOCATION_BYTES;
        return scan_varint(scan, frame->end, 10, &value);
    case 1:
    case 5: {
        size_t size = (tag & 7) == 1 ? 8 : 4;
        if (left < size)
            return scan_bad(scan, "a fixed-size field is cut short");
        if (!field)
            scan->memory += sizeof(ProtobufCMessageUnknownField) + ALLOCATION_BYTES;
        scan->at += size;
        return true;
    }
    case 2:
        if (!scan_varint(scan, frame->end, 5, &value))
            return false;
        if (value > (size_t)(frame->end - scan->at))
            return scan_bad(scan, "a field is longer than what is left");
        return scan_content(scan, field, value);
    default:
        return scan_bad(scan, "groups and unknown wire types are not supported");
    }
}

bool message_scan(const ProtobufCMessageDescriptor *descriptor, const void *bytes, size_t size,
                  size_t *memory_bytes, struct error *err)
{
    /* No bytes may have no address, and one cannot count from there. */
    const void *start = size ? bytes : "";
    struct scan scan = {.start = start, .at = start, .err = err};
    if (!scan_enter(&scan, descriptor, scan.at + size))
        return false;

    while (scan.depth > 0) {
        struct scan_frame *frame = &scan.frames[scan.depth - 1];
        if (scan.at < frame->end) {
            if (!scan_field(&scan))
                return false;
        } else {
            scan.memory += slab_memory(frame->fields_count);
            scan.depth--;
        }
    }
    *memory_bytes += scan.memory;
    return true;
}

/* The arena behind protobuf-c's allocator. */
struct unpack {
    struct arena *arena;
    size_t bytes_left;
    bool exhausted;
};

static void *unpack_alloc(void *data, size_t size)
{
    struct unpack *unpack = data;
    void *memory = NULL;
    size_t wanted = size ? size : 1;
    if (wanted <= unpack->bytes_left)
        memory = arena_try(unpack->arena, wanted);
    if (!memory) {
        unpack->exhausted = true;
        return NULL;
    }
    unpack->bytes_left -= wanted;
    return memory;
}

static void unpack_free(void *data, void *memory)
{
    (void)data;
    (void)memory; /* goes with the arena */
}

void *message_unpack(const ProtobufCMessageDescriptor *descriptor, const void *bytes,
                     size_t size, struct arena *arena, struct error *err)
{
    if (size > LIMIT_MESSAGE_BYTES)
        return fail_null(err, EXHAUSTED, "%s of %zu bytes is over the limit of %lld",
                         descriptor->name, size, (long long)LIMIT_MESSAGE_BYTES);
    size_t memory = 0;
    if (!message_scan(descriptor, bytes, size, &memory, err))
        return NULL;
    size_t limit = size * LIMIT_MESSAGE_EXPANSION + LIMIT_MESSAGE_EXPANSION_BASE;
    if (memory > limit)
        return fail_null(err, EXHAUSTED, "%s of %zu bytes would take %zu bytes of memory",
                         descriptor->name, size, memory);

    /* The limit holds here too: merging a field that comes many times costs more than was seen.
     */
    struct unpack unpack = {.arena = arena, .bytes_left = limit};
    ProtobufCAllocator allocator = {unpack_alloc, unpack_free, &unpack};
    void *message = protobuf_c_message_unpack(descriptor, &allocator, size, bytes);
    if (message)
        return message;
    if (unpack.exhausted)
        return fail_null(err, EXHAUSTED, "%s of %zu bytes takes more memory than allowed",
                         descriptor->name, size);
    return fail_null(err, INVALID, "malformed %s: a field has the wrong type, or comes twice",
                     descriptor->name);
}

void message_pack(const ProtobufCMessage *message, struct str *out)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    protobuf_c_message_pack(message, (uint8_t *)str_extend(out, size));
}
