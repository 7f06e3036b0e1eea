/* fuzz_message.c - protobuf messages: what unpacks can be packed and unpacked again. */

#include "proto/message.h"
#include "tests/fuzz/fuzz.h"

extern const ProtobufCMessageDescriptor tensorflow__graph_def__descriptor;
extern const ProtobufCMessageDescriptor tensorflow__event__descriptor;
extern const ProtobufCMessageDescriptor tensorflow__tensor_proto__descriptor;
extern const ProtobufCMessageDescriptor tensorflow__example__descriptor;
extern const ProtobufCMessageDescriptor tensorflow__meta_graph_def__descriptor;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const ProtobufCMessageDescriptor *const descriptors[] = {
        &tensorflow__graph_def__descriptor, &tensorflow__event__descriptor,
        &tensorflow__tensor_proto__descriptor, &tensorflow__example__descriptor,
        &tensorflow__meta_graph_def__descriptor};
    if (!size)
        return 0;
    const ProtobufCMessageDescriptor *descriptor =
        descriptors[data[0] % ARRAY_LEN(descriptors)];
    struct error err;
    struct arena *arena = arena_new(), *again = arena_new();
    void *message = message_unpack(descriptor, data + 1, size - 1, arena, &err);
    if (message) {
        struct str packed = {0};
        message_pack(message, &packed);
        /* Packing may need more bytes (packed numbers of negative enums), never a deeper
         * message. */
        void *back = message_unpack(descriptor, packed.data, packed.size, again, &err);
        FUZZ_CHECK(back || err.code == EXHAUSTED);
        str_release(&packed);
    } else {
        FUZZ_CHECK(err.code == INVALID || err.code == EXHAUSTED);
    }
    FUZZ_CHECK(arena_used(arena) <= 32 * size + (8 << 20));
    arena_free(arena);
    arena_free(again);
    return 0;
}
