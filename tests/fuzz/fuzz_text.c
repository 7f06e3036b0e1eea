/*
 * fuzz_text.c - messages in text form; the first byte says which.
 *
 * What is read unpacks, or is over a limit: nothing malformed comes of any text.
 */

#include "proto/message.h"
#include "proto/text.h"
#include "tests/fuzz/fuzz.h"

extern const ProtobufCMessageDescriptor tensorflow__graph_def__descriptor;
extern const ProtobufCMessageDescriptor tensorflow__meta_graph_def__descriptor;
extern const ProtobufCMessageDescriptor tensorflow__example__descriptor;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const ProtobufCMessageDescriptor *const descriptors[] = {
        &tensorflow__graph_def__descriptor, &tensorflow__meta_graph_def__descriptor,
        &tensorflow__example__descriptor};
    if (!size)
        return 0;
    const ProtobufCMessageDescriptor *descriptor =
        descriptors[data[0] % ARRAY_LEN(descriptors)];
    struct error err = {0};
    struct str wire = {0};
    /* A copy of its own, so that a step beyond its end is seen. */
    char *text = malloc(size);
    FUZZ_CHECK(text);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = 0; /* as what reads files gives it */
    if (text_serialize(descriptor, text, size - 1, &wire, &err)) {
        struct arena *arena = arena_new();
        const void *message =
            message_unpack(descriptor, str_text(&wire), wire.size, arena, &err);
        FUZZ_CHECK(message || err.code == EXHAUSTED || strstr(err.text, "UTF-8"));
        arena_free(arena);
    } else {
        FUZZ_CHECK(err.code == INVALID && err.text[0]);
    }
    str_release(&wire);
    free(text);
    return 0;
}
