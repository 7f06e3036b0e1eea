/*
 * fuzz_tokenizer.c - texts and vocabularies; the first byte says which.
 *
 * A text that tokens are learned from decodes to itself, and the vocabulary reads back as it
 * was written; a vocabulary of any bytes is refused, or good for any text.
 */

#include "runtime/dataset/tokenizer.h"
#include "tests/fuzz/fuzz.h"

static void there_and_back(const struct tokenizer *tokenizer, const char *text, size_t size,
                           bool exact)
{
    struct tokenizer_ids ids = {0};
    struct str back = {0};
    struct error err;
    if (tokenizer_encode(tokenizer, text, size, &ids, &err)) {
        for (int64_t i = 0; i < ids.count; i++)
            FUZZ_CHECK(ids.ids[i] >= 0 && ids.ids[i] < tokenizer_size(tokenizer));
        tokenizer_decode(tokenizer, ids.ids, ids.count, &back);
        FUZZ_CHECK(!exact || (back.size == size && !memcmp(str_text(&back), text, size)));
    } else {
        FUZZ_CHECK(err.code == DATA_LOSS && tokenizer_kind(tokenizer) == TOKENIZER_CHARACTERS);
    }
    tokenizer_ids_release(&ids);
    str_release(&back);
}

static void learn(enum tokenizer_kind kind, int64_t size_max, const char *text, size_t size)
{
    struct error err;
    struct tokenizer *tokenizer = tokenizer_learn(kind, size_max, text, size, &err);
    if (!tokenizer) {
        FUZZ_CHECK(err.code == (size ? DATA_LOSS : INVALID));
        return;
    }
    there_and_back(tokenizer, text, size, kind != TOKENIZER_WORDS);
    struct str json = {0}, again = {0};
    tokenizer_write(tokenizer, &json);
    struct tokenizer *read = tokenizer_read(str_text(&json), json.size, &err);
    FUZZ_CHECK(read);
    tokenizer_write(read, &again);
    FUZZ_CHECK(!strcmp(str_text(&json), str_text(&again)));
    tokenizer_free(read);
    tokenizer_free(tokenizer);
    str_release(&json);
    str_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    /* A copy of its own, so that a step beyond its end is seen. */
    char *text = malloc(size);
    FUZZ_CHECK(text);
    memcpy(text, data + 1, --size);
    if (data[0] % 4 < 3) {
        learn(data[0] % 4, 256 + data[0] / 4, text, size);
    } else {
        struct error err;
        struct tokenizer *tokenizer = tokenizer_read(text, size, &err);
        if (tokenizer)
            there_and_back(tokenizer, text, size, tokenizer_kind(tokenizer) == TOKENIZER_BYTES);
        else
            FUZZ_CHECK(err.code == DATA_LOSS && err.text[0]);
        tokenizer_free(tokenizer);
    }
    free(text);
    return 0;
}
