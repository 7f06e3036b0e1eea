/* tokenizer.c - the kinds of tokenizers behind one face. */

#include "runtime/dataset/tokenizer_internal.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"

static const struct tokenizer_class *const classes[] = {
    [TOKENIZER_CHARACTERS] = &tokenizer_characters,
    [TOKENIZER_BYTES] = &tokenizer_bytes,
    [TOKENIZER_WORDS] = &tokenizer_words,
};

const char *tokenizer_name(enum tokenizer_kind kind)
{
    return classes[kind]->name;
}

enum tokenizer_kind tokenizer_kind(const struct tokenizer *tokenizer)
{
    return tokenizer->class->kind;
}

bool tokenizer_check(enum tokenizer_kind kind, const char *text, size_t size, struct error *err)
{
    return !classes[kind]->check || classes[kind]->check(text, size, err);
}

struct tokenizer *tokenizer_learn(enum tokenizer_kind kind, int64_t size_max, const char *text,
                                  size_t size, struct error *err)
{
    if (!size)
        return fail_null(err, INVALID, "there is no text to learn tokens from");
    return classes[kind]->learn(text, size, size_max, err);
}

void tokenizer_free(struct tokenizer *tokenizer)
{
    if (!tokenizer)
        return;
    tokenizer->class->release(tokenizer);
    free(tokenizer);
}

int64_t tokenizer_size(const struct tokenizer *tokenizer)
{
    return tokenizer->class->size(tokenizer);
}

bool tokenizer_encode(const struct tokenizer *tokenizer, const char *text, size_t size,
                      struct tokenizer_ids *out, struct error *err)
{
    return tokenizer->class->encode(tokenizer, text, size, out, err);
}

void tokenizer_decode(const struct tokenizer *tokenizer, const int32_t *ids, int64_t count,
                      struct str *out)
{
    int64_t size = tokenizer_size(tokenizer);
    for (int64_t i = 0; i < count; i++) {
        if (ids[i] < 0 || ids[i] >= size)
            str_add(out, TOKENIZER_UNKNOWN);
        else
            tokenizer->class->decode(tokenizer, ids[i], out);
    }
}

void tokenizer_ids_add(struct tokenizer_ids *ids, int32_t id)
{
    if (ids->count == ids->capacity) {
        ids->capacity = ids->capacity ? 2 * ids->capacity : 1024;
        ids->ids = alloc_resize(ids->ids, (size_t)ids->capacity * sizeof(*ids->ids));
    }
    ids->ids[ids->count++] = id;
}

void tokenizer_ids_release(struct tokenizer_ids *ids)
{
    free(ids->ids);
    *ids = (struct tokenizer_ids){0};
}

int tokenizer_code_point(const char *text, size_t size, uint32_t *point)
{
    const unsigned char *bytes = (const unsigned char *)text;
    int count = bytes[0] < 0x80   ? 1
                : bytes[0] < 0xc2 ? 0
                : bytes[0] < 0xe0 ? 2
                : bytes[0] < 0xf0 ? 3
                : bytes[0] < 0xf5 ? 4
                                  : 0;
    if (!count || (size_t)count > size || !str_is_utf8(text, (size_t)count))
        return 0;
    *point = count == 1 ? bytes[0] : bytes[0] & (0xffu >> (count + 1));
    for (int i = 1; i < count; i++)
        *point = *point << 6 | (bytes[i] & 0x3f);
    return count;
}

/* --- as JSON --- */

void tokenizer_write(const struct tokenizer *tokenizer, struct str *json)
{
    str_printf(json, "{\"version\": 1, \"tokenizer\": \"%s\", \"%s\": ", tokenizer->class->name,
               tokenizer->class->name);
    tokenizer->class->write(tokenizer, json);
    str_add(json, "}\n");
}

struct tokenizer *tokenizer_read(const char *json, size_t size, struct error *err)
{
    json_error_t wrong;
    json_t *root = json_loadb(json, size, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &wrong);
    if (!root)
        return fail_null(err, DATA_LOSS, "a vocabulary, at byte %d: %s", wrong.position,
                         wrong.text);
    const char *name = json_string_value(json_object_get(root, "tokenizer"));
    struct tokenizer *tokenizer = NULL;
    int kind = 0;
    while (kind < ARRAY_LEN(classes) && (!name || strcmp(classes[kind]->name, name) != 0))
        kind++;
    if (json_integer_value(json_object_get(root, "version")) != 1)
        (void)fail(err, DATA_LOSS, "no vocabulary of version 1");
    else if (kind == ARRAY_LEN(classes))
        (void)fail(err, DATA_LOSS,
                   "a vocabulary's \"tokenizer\" is %s%s%s, allowed: characters, bpe, words",
                   name ? "\"" : "", name ? name : "missing", name ? "\"" : "");
    else
        tokenizer = classes[kind]->read(json_object_get(root, name), err);
    json_decref(root);
    return tokenizer;
}
