/*
 * fuzz_saved_model.c - SavedModels and MetaGraphDefs, binary or text, and the object graph of a
 * checkpoint beside it.
 *
 * Two bytes say how long the object graph is, then it comes, then the model.  Whatever they
 * are, they are refused with a reason or taken apart into what has bounds.
 */

#include "runtime/saved_model_internal.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/mutate.h"

extern const ProtobufCMessageDescriptor tensorflow__saved_model__descriptor;
extern const ProtobufCMessageDescriptor tensorflow__trackable_object_graph__descriptor;

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t size_max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed);

static size_t keys_size(const uint8_t *data, size_t size)
{
    size_t wanted = size < 2 ? 0 : data[0] | (size_t)data[1] << 8;
    return size < 2 || wanted > size - 2 ? 0 : wanted;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed)
{
    const struct mutate_words words = {NULL, 0};
    size_t keys = keys_size(data, size), made = 0;
    if (size >= 2 && seed % 16 > 1)
        made = mutate_message(&tensorflow__saved_model__descriptor, data + 2 + keys,
                              size - 2 - keys, size_max - 2 - keys, seed, &words);
    if (made)
        return made + 2 + keys;
    return LLVMFuzzerMutate(data, size, size_max);
}

static void check_signatures(const struct saved_meta *meta)
{
    for (int i = 0; i < meta->signatures_count; i++) {
        const struct signature *signature = &meta->signatures[i];
        FUZZ_CHECK(!i || strcmp(signature[-1].name, signature->name) <= 0);
        for (int k = 0; k < signature->inputs_count; k++)
            FUZZ_CHECK(signature_find_input(signature, signature->inputs[k].name) >= 0);
        for (int k = 0; k < signature->outputs_count; k++)
            FUZZ_CHECK(signature->outputs[k].name && signature->outputs[k].tensor);
    }
}

static void take(const struct str *bytes, bool is_text, bool is_meta, const char *tags,
                 const void *keys, size_t keys_bytes)
{
    struct error err = {0};
    struct saved_meta meta;
    struct arena *arena = arena_new();
    if (saved_model_parse(bytes, is_text, is_meta, tags, arena, &meta, &err)) {
        check_signatures(&meta);
        bool ok = saved_model_read_keys(&meta, keys, keys_bytes, &err);
        FUZZ_CHECK(ok || (err.code && err.text[0]));
        for (int i = 0; i < meta.objects_count; i++)
            FUZZ_CHECK(!meta.objects[i].key || meta.objects[i].is_variable);
        saved_model_drop(meta.signatures, meta.signatures_count);
        saved_model_release(&meta);
    } else {
        FUZZ_CHECK(err.code && err.text[0]);
    }
    arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    size_t keys = keys_size(data, size);
    struct str bytes = {0};
    str_add_bytes(&bytes, data + 2 + keys, size - 2 - keys);
    bool is_text = bytes.size && str_is_utf8(bytes.data, bytes.size) &&
                   !memchr(bytes.data, 0, bytes.size) && bytes.data[0] >= ' ';
    for (int how = 0; how < 3; how++)
        take(&bytes, is_text, how == 2, how == 1 ? "serve,gpu" : NULL, data + 2, keys);
    str_release(&bytes);
    return 0;
}
