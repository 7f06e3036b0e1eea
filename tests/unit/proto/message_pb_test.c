/* message_pb_test.c - messages from outside: good ones, malformed ones, hostile ones. */

#include "base/arena.h"
#include "base/limits.h"
#include "base/str.h"
#include "proto/message.h"
#include "tensorflow/event.pb-c.h"
#include "tensorflow/example.pb-c.h"
#include "tensorflow/graph.pb-c.h"
#include "tests/unit/test.h"

static void add_varint(struct str *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        str_add_char(out, (char)(value | 0x80));
    str_add_char(out, (char)value);
}

static enum error_code unpack_code(const ProtobufCMessageDescriptor *descriptor,
                                   const struct str *bytes)
{
    struct error err = {0};
    struct arena *arena = arena_new();
    void *message = message_unpack(descriptor, bytes->data, bytes->size, arena, &err);
    arena_free(arena);
    return message ? OK : err.code;
}

TEST(message_unpacks_what_was_packed)
{
    Tensorflow__Summary__Value value = TENSORFLOW__SUMMARY__VALUE__INIT;
    value.tag = "loss";
    value.value_case = TENSORFLOW__SUMMARY__VALUE__VALUE_SIMPLE_VALUE;
    value.simple_value = 0.5f;
    Tensorflow__Summary__Value *values[] = {&value, &value};
    Tensorflow__Summary summary = TENSORFLOW__SUMMARY__INIT;
    summary.value = values;
    summary.n_value = 2;
    struct str bytes = {0};
    message_pack(&summary.base, &bytes);

    struct error err;
    struct arena *arena = arena_new();
    Tensorflow__Summary *back =
        message_unpack(&tensorflow__summary__descriptor, bytes.data, bytes.size, arena, &err);
    CHECK_OK(back, &err);
    CHECK_INT(back->n_value, 2);
    CHECK_TEXT(back->value[1]->tag, "loss");
    CHECK(back->value[1]->simple_value == 0.5f);
    arena_free(arena);
    str_release(&bytes);
}

/* Vector of the format: a node with two attributes in a map, one of them a tensor. */
TEST(message_unpacks_a_node)
{
    const char node[] =
        "\x0a\x01\x61\x12\x05\x43\x6f\x6e\x73\x74\x2a\x0b\x0a\x05\x64\x74\x79\x70\x65"
        "\x12\x02\x30\x01\x2a\x15\x0a\x05\x76\x61\x6c\x75\x65\x12\x0c\x42\x0a\x08\x01"
        "\x12\x00\x2a\x04\x00\x00\x00\x40";
    struct error err;
    struct arena *arena = arena_new();
    Tensorflow__NodeDef *back =
        message_unpack(&tensorflow__node_def__descriptor, node, sizeof(node) - 1, arena, &err);
    CHECK_OK(back, &err);
    CHECK_TEXT(back->op, "Const");
    CHECK_INT(back->n_attr, 2);
    CHECK(back->attr[1]->value->tensor->float_val[0] == 2);
    arena_free(arena);
}

/* Every prefix of a message is either a message or INVALID, and never anything worse. */
TEST(message_survives_truncation)
{
    struct str bytes = {0};
    str_add_bytes(&bytes, "\x0a\x0a\x0a\x04loss\x15\x00\x00", 12);
    for (size_t size = 1; size < bytes.size; size++) {
        struct str cut = {.data = bytes.data, .size = size};
        CHECK_INT(unpack_code(&tensorflow__summary__descriptor, &cut), INVALID);
    }
    str_release(&bytes);
}

TEST(message_refuses_what_is_malformed)
{
    static const struct {
        const char *bytes;
        size_t size;
    } bad[] = {
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11}, /* tag without end */
        {"\x00\x01", 2},                                      /* field number 0 */
        {"\x0b\x0c", 2},                                      /* a group */
        {"\x0e", 1},                                          /* wire type 6 */
        {"\x12\x80\x80\x80\x80\x80\x01", 7},                  /* length of six bytes */
        {"\x12\x05zz", 4},                                    /* longer than what is there */
        {"\x09\x00\x00", 3},                                  /* half a double */
        {"\x1a\x01\xff", 3},                                  /* text that is not UTF-8 */
        {"\x1a\x03"
         "a\0b",
         5},                                                      /* text with a NUL */
        {"\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12}, /* step of eleven bytes */
        {"\x0d\x00\x00\x00\x00", 5},                              /* wall_time as a float */
    };
    for (int i = 0; i < ARRAY_LEN(bad); i++) {
        struct str bytes = {.data = (char *)bad[i].bytes, .size = bad[i].size};
        CHECK_INT(unpack_code(&tensorflow__event__descriptor, &bytes), INVALID);
    }
}

/* TensorProto in VariantTensorDataProto in TensorProto ..., `depth` deep. */
static void add_nested(struct str *out, int depth)
{
    size_t *sizes = calloc((size_t)depth + 1, sizeof(*sizes));
    for (int i = 1; i <= depth; i++) {
        struct str length = {0};
        add_varint(&length, sizes[i - 1]);
        sizes[i] = sizes[i - 1] + length.size + 1;
        str_release(&length);
    }
    for (int i = depth; i > 0; i--) {
        str_add_char(out, (depth - i) % 2 ? 0x1a : 0x7a);
        add_varint(out, sizes[i - 1]);
    }
    free(sizes);
}

TEST(message_limits_depth)
{
    const ProtobufCMessageDescriptor *descriptor = &tensorflow__tensor_proto__descriptor;
    struct str bytes = {0};
    add_nested(&bytes, LIMIT_MESSAGE_DEPTH - 1);
    CHECK_INT(unpack_code(descriptor, &bytes), OK);
    str_clear(&bytes);
    add_nested(&bytes, LIMIT_MESSAGE_DEPTH);
    CHECK_INT(unpack_code(descriptor, &bytes), EXHAUSTED);
    str_clear(&bytes);
    add_nested(&bytes, 10000);
    CHECK_INT(unpack_code(descriptor, &bytes), EXHAUSTED);
    str_release(&bytes);
}

/* Two bytes each on the wire, a hundred in memory. */
TEST(message_limits_growth)
{
    struct str bytes = {0};
    for (int i = 0; i < 2 << 20; i++)
        str_add_bytes(&bytes, "\x0a\x00", 2);
    CHECK_INT(unpack_code(&tensorflow__summary__descriptor, &bytes), EXHAUSTED);
    str_release(&bytes);
}

/* An optional message that comes again and again: each time protobuf-c merges what it has. */
TEST(message_limits_merging)
{
    struct str one = {0}, bytes = {0};
    str_add_bytes(&one, "\x0a\x02\x0a\x00", 4);
    for (int i = 0; i < 200000; i++) {
        str_add_char(&bytes, 0x2a); /* Event.summary: a member of a oneof */
        add_varint(&bytes, one.size);
        str_add_bytes(&bytes, one.data, one.size);
    }
    CHECK_INT(unpack_code(&tensorflow__event__descriptor, &bytes), EXHAUSTED);
    str_release(&bytes);
    str_release(&one);
}

TEST(message_respects_the_arena)
{
    struct str bytes = {0};
    for (int i = 0; i < 1000; i++)
        str_add_bytes(&bytes, "\x0a\x03\x0a\x01x", 5);
    struct error err;
    struct arena *arena = arena_new_limited(20000);
    CHECK_FAILS(
        message_unpack(&tensorflow__summary__descriptor, bytes.data, bytes.size, arena, &err),
        &err, EXHAUSTED);
    arena_free(arena);
    str_release(&bytes);
}

/* What the scan foresees is what unpacking takes, within the rounding of the arrays. */
TEST(message_scan_foresees_the_memory)
{
    struct str bytes = {0};
    for (int i = 0; i < 1000; i++)
        str_add_bytes(&bytes, "\x0a\x0b\x0a\x04loss\x15\x00\x00\x00\x3f", 13);
    struct error err;
    size_t memory = 0;
    const ProtobufCMessageDescriptor *descriptor = &tensorflow__summary__descriptor;
    CHECK_OK(message_scan(descriptor, bytes.data, bytes.size, &memory, &err), &err);
    struct arena *arena = arena_new();
    CHECK_OK(message_unpack(descriptor, bytes.data, bytes.size, arena, &err), &err);
    CHECK(arena_used(arena) <= memory + 16);
    CHECK(arena_used(arena) > memory / 2);
    arena_free(arena);
    str_release(&bytes);
}

/* Packed and unpacked, in pieces, with unknown fields between: all legal. */
TEST(message_takes_mixed_encodings)
{
    struct str bytes = {0};
    str_add_bytes(&bytes, "\x0a\x02\x01\x02", 4);     /* packed 1 2 */
    str_add_bytes(&bytes, "\x08\x03", 2);             /* unpacked 3 */
    str_add_bytes(&bytes, "\xa2\x06\x03xyz", 6);      /* unknown field 100 */
    str_add_bytes(&bytes, "\x0a\x03\xac\x02\x04", 5); /* packed 300 4 */
    struct error err;
    struct arena *arena = arena_new();
    Tensorflow__Int64List *list = message_unpack(&tensorflow__int64_list__descriptor,
                                                 bytes.data, bytes.size, arena, &err);
    CHECK_OK(list, &err);
    CHECK_INT(list->n_value, 5);
    CHECK_INT(list->value[3], 300);
    arena_free(arena);
    str_release(&bytes);
}
