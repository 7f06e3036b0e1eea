/* tensor_message_pb_test.c - messages whose large tensors are borrowed are read as they are. */

#include "base/arena.h"
#include "base/str.h"
#include "proto/message.h"
#include "proto/message_cursor.h"
#include "runtime/tensor_pb.h"
#include "tensorflow/worker.pb-c.h"
#include "tests/unit/test.h"

enum { LARGE = TENSOR_LARGE_BYTES, SEND = 3, TENSOR = 1 };

static struct arena *arena;
static struct error err;

static void add_field(struct str *out, unsigned number, const void *bytes, size_t size)
{
    message_add_varint(out, MESSAGE_TAG(number));
    message_add_varint(out, size);
    str_add_bytes(out, bytes, size);
}

/* A TensorProto of so many bytes, each `value`. */
static struct str tensor_of(size_t size, char value)
{
    struct tensor tensor;
    struct str out = {0};
    CHECK_OK(tensor_init(&tensor, U8, &SHAPE((int64_t)size), &err), &err);
    memset(tensor.data, value, size);
    tensor_serialize(&tensor, &out);
    tensor_release(&tensor);
    return out;
}

static void add_send(struct str *request, const char *name, size_t size, char value)
{
    struct str tensor = tensor_of(size, value), named = {0};
    add_field(&named, 1, name, strlen(name));
    add_field(&named, 2, tensor.data, tensor.size);
    add_field(request, SEND, named.data, named.size);
    str_release(&named);
    str_release(&tensor);
}

static bool lies_in(const ProtobufCBinaryData *content, const struct str *message)
{
    const char *at = (const char *)content->data;
    return at >= message->data && at + content->len <= message->data + message->size;
}

static Tensorflow__RunGraphRequest *unpack_request(const struct str *bytes)
{
    arena = arena_new();
    return tensor_unpack_message(&tensorflow__run_graph_request__descriptor, SEND, LARGE,
                                 bytes->data, bytes->size, arena, &err);
}

static void check_send(const Tensorflow__RunGraphRequest *request, int index, const char *name,
                       size_t size, char value)
{
    struct tensor tensor;
    CHECK_TEXT(request->send[index]->name, name);
    CHECK_OK(tensor_unpack(&tensor, request->send[index]->tensor, &err), &err);
    CHECK_INT(tensor.dtype, U8);
    CHECK_INT(tensor.count, size);
    for (size_t i = 0; i < size; i++)
        CHECK(((const char *)tensor.data)[i] == value);
    tensor_release(&tensor);
}

/* Large and small, between other fields. */
TEST(tensor_message_borrows_large_elements)
{
    static const size_t sizes[] = {3, LARGE, 0, 5 * LARGE, LARGE / 2, LARGE + 1};
    struct str bytes = {0};
    char name[] = "a";
    add_field(&bytes, 1, "graph", 5);
    for (int i = 0; i < ARRAY_LEN(sizes); i++, name[0]++) {
        add_send(&bytes, name, sizes[i], (char)i);
        add_field(&bytes, 4, name, 1);
    }
    const Tensorflow__RunGraphRequest *request = unpack_request(&bytes);
    CHECK_OK(request, &err);
    CHECK_TEXT(request->graph_handle, "graph");
    CHECK_INT(request->n_send, ARRAY_LEN(sizes));
    CHECK_INT(request->n_recv_key, ARRAY_LEN(sizes));
    for (int i = 0; i < ARRAY_LEN(sizes); i++) {
        name[0] = (char)('a' + i);
        check_send(request, i, name, sizes[i], (char)i);
        CHECK_TEXT(request->recv_key[i], name);
        CHECK_INT(lies_in(&request->send[i]->tensor->tensor_content, &bytes),
                  sizes[i] >= LARGE);
    }
    arena_free(arena);
    str_release(&bytes);
}

/* A tensor that is not repeated. */
TEST(tensor_message_borrows_of_one_tensor)
{
    struct str tensor = tensor_of(3 * LARGE, 'x'), bytes = {0};
    struct tensor read;
    add_field(&bytes, TENSOR, tensor.data, tensor.size);
    arena = arena_new();
    const Tensorflow__RecvTensorResponse *response =
        tensor_unpack_message(&tensorflow__recv_tensor_response__descriptor, TENSOR, LARGE,
                              bytes.data, bytes.size, arena, &err);
    CHECK_OK(response, &err);
    CHECK(lies_in(&response->tensor->tensor_content, &bytes));
    CHECK_OK(tensor_unpack(&read, response->tensor, &err), &err);
    CHECK_INT(read.count, 3 * LARGE);
    CHECK_INT(((const char *)read.data)[3 * LARGE - 1], 'x');
    tensor_release(&read);
    arena_free(arena);

    /* The second is merged into the first, as protobuf wants it. */
    struct str other = tensor_of(3 * LARGE, 'y');
    add_field(&bytes, TENSOR, other.data, other.size);
    arena = arena_new();
    response = tensor_unpack_message(&tensorflow__recv_tensor_response__descriptor, TENSOR,
                                     LARGE, bytes.data, bytes.size, arena, &err);
    CHECK_OK(response, &err);
    CHECK_INT(response->tensor->tensor_content.data[0], 'y');
    CHECK_INT(response->tensor->tensor_shape->n_dim, 2); /* of both */
    arena_free(arena);
    str_release(&other);
    str_release(&tensor);
    str_release(&bytes);
}

/* Fields that come twice are merged; the tensor beside them is borrowed all the same. */
TEST(tensor_message_leaves_the_unusual_to_protobuf)
{
    struct str bytes = {0}, named = {0};
    struct str first = tensor_of(2 * LARGE, 'x'), second = tensor_of(2 * LARGE, 'y');
    add_field(&named, 2, first.data, first.size);
    add_field(&named, 1, "twice", 5);
    add_field(&named, 2, second.data, second.size);
    add_field(&bytes, SEND, named.data, named.size);
    add_send(&bytes, "once", 2 * LARGE, 'z');
    const Tensorflow__RunGraphRequest *request = unpack_request(&bytes);
    CHECK_OK(request, &err);
    CHECK_INT(request->n_send, 2);
    CHECK_TEXT(request->send[0]->name, "twice");
    CHECK_INT(request->send[0]->tensor->tensor_content.len, 2 * LARGE);
    CHECK_INT(request->send[0]->tensor->tensor_content.data[0], 'y');
    CHECK(!lies_in(&request->send[0]->tensor->tensor_content, &bytes));
    check_send(request, 1, "once", 2 * LARGE, 'z');
    CHECK(lies_in(&request->send[1]->tensor->tensor_content, &bytes));
    arena_free(arena);
    str_release(&first);
    str_release(&second);
    str_release(&named);
    str_release(&bytes);
}

/* More than are looked at. */
TEST(tensor_message_takes_many_tensors)
{
    struct str bytes = {0};
    for (int i = 0; i < 3000; i++)
        add_send(&bytes, "small", 10, (char)i);
    add_send(&bytes, "large", LARGE, 'x');
    const Tensorflow__RunGraphRequest *request = unpack_request(&bytes);
    CHECK_OK(request, &err);
    CHECK_INT(request->n_send, 3001);
    check_send(request, 1234, "small", 10, (char)1234);
    check_send(request, 3000, "large", LARGE, 'x');
    arena_free(arena);
    str_release(&bytes);
}

/* Wherever it is cut short it is refused, or read without what is missing. */
TEST(tensor_message_survives_truncation)
{
    struct str bytes = {0};
    add_send(&bytes, "a", LARGE, 'x');
    add_field(&bytes, 1, "graph", 5);
    for (size_t size = 0; size <= bytes.size; size += size > 40 && size < LARGE ? 997 : 1) {
        const struct str part = {.data = bytes.data, .size = size};
        struct error whole_err;
        struct arena *other = arena_new();
        const void *whole = message_unpack(&tensorflow__run_graph_request__descriptor,
                                           part.data, size, other, &whole_err);
        const Tensorflow__RunGraphRequest *request = unpack_request(&part);
        CHECK_INT(request != NULL, whole != NULL);
        if (!request)
            CHECK_TEXT(err.text, whole_err.text);
        if (request && request->n_send)
            check_send(request, 0, "a", LARGE, 'x');
        arena_free(other);
        arena_free(arena);
    }
    str_release(&bytes);
}

/* What is wrong with one part is said, whatever is borrowed beside it. */
TEST(tensor_message_refuses_what_is_malformed)
{
    struct str bytes = {0};
    add_send(&bytes, "a", LARGE, 'x');
    add_field(&bytes, 1, "\xff\xfe", 2);
    CHECK(!unpack_request(&bytes));
    CHECK_INT(err.code, INVALID);
    CHECK(strstr(err.text, "field 'graph_handle' is not valid UTF-8 text"));
    arena_free(arena);
    str_release(&bytes);
}
