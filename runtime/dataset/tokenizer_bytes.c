/* tokenizer_bytes.c - bytes, and pairs of tokens that stand together often. */

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/dataset/tokenizer_internal.h"

struct bytes {
    struct tokenizer base;
    struct tokenizer_pair *pairs; /* token 256 + index */
    int64_t pairs_count;
    int64_t *slots; /* of pairs: index + 1, hashed by their tokens */
    int64_t slots_count;
    uint8_t *sizes; /* of each token, in bytes */
};

/* --- pairs --- */

static int64_t slot_of(const struct bytes *b, int32_t left, int32_t right)
{
    uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    uint64_t slot = (key * UINT64_C(0x9e3779b97f4a7c15)) >> 20;
    for (;; slot++) {
        slot &= (uint64_t)b->slots_count - 1;
        int64_t index = b->slots[slot];
        if (!index || (b->pairs[index - 1].left == left && b->pairs[index - 1].right == right))
            return (int64_t)slot;
    }
}

/* The token that the two become, -1 if none. */
static int32_t joined(const struct bytes *b, int32_t left, int32_t right)
{
    int64_t index = b->slots[slot_of(b, left, right)];
    return index ? (int32_t)(TOKENIZER_BYTES_MIN - 1 + index) : -1;
}

/* --- making --- */

/* Takes `pairs`; NULL, and `*bad` is the first that cannot be, when they make no vocabulary. */
static struct tokenizer *make(struct tokenizer_pair *pairs, int64_t count, int64_t *bad)
{
    struct bytes *b = alloc_bytes(sizeof(*b));
    b->base.class = &tokenizer_bytes;
    b->pairs = pairs;
    b->sizes = alloc_bytes((size_t)(TOKENIZER_BYTES_MIN + count));
    memset(b->sizes, 1, TOKENIZER_BYTES_MIN);
    b->slots_count = 1024;
    while (b->slots_count < 2 * count)
        b->slots_count *= 2;
    b->slots = alloc_array((size_t)b->slots_count, sizeof(*b->slots));
    for (; b->pairs_count < count; b->pairs_count++) {
        int64_t token = TOKENIZER_BYTES_MIN + b->pairs_count;
        struct tokenizer_pair pair = pairs[b->pairs_count];
        bool known = pair.left >= 0 && pair.left < token && pair.right >= 0 &&
                     pair.right < token &&
                     b->sizes[pair.left] + b->sizes[pair.right] <= TOKENIZER_PIECE_MAX;
        int64_t slot = known ? slot_of(b, pair.left, pair.right) : 0;
        if (!known || b->slots[slot]) {
            *bad = b->pairs_count;
            tokenizer_free(&b->base);
            return NULL;
        }
        b->slots[slot] = b->pairs_count + 1;
        b->sizes[token] = (uint8_t)(b->sizes[pair.left] + b->sizes[pair.right]);
    }
    return &b->base;
}

static struct tokenizer *learn(const char *text, size_t size, int64_t size_max,
                               struct error *err)
{
    (void)err;
    assert(size_max >= TOKENIZER_BYTES_MIN && size_max <= TOKENIZER_SIZE_MAX);
    int64_t pairs_max = size_max - TOKENIZER_BYTES_MIN, bad;
    struct tokenizer_pair *pairs = alloc_array((size_t)pairs_max + 1, sizeof(*pairs));
    int64_t count = tokenizer_pairs_learn(text, size, pairs_max, pairs);
    struct tokenizer *tokenizer = make(pairs, count, &bad);
    assert(tokenizer);
    return tokenizer;
}

static void release(struct tokenizer *tokenizer)
{
    struct bytes *b = (struct bytes *)tokenizer;
    free(b->pairs);
    free(b->slots);
    free(b->sizes);
}

static int64_t size_of(const struct tokenizer *tokenizer)
{
    return TOKENIZER_BYTES_MIN + ((const struct bytes *)tokenizer)->pairs_count;
}

/* --- there and back --- */

/* The piece's tokens, joined in the order in which the pairs were learned; how many. */
static int encode_piece(const struct bytes *b, const char *text, size_t size,
                        int32_t tokens[TOKENIZER_PIECE_MAX])
{
    int count = (int)size;
    for (int i = 0; i < count; i++)
        tokens[i] = (unsigned char)text[i];
    for (;;) {
        int32_t first = INT32_MAX;
        for (int i = 0; i + 1 < count; i++) {
            int32_t token = joined(b, tokens[i], tokens[i + 1]);
            if (token >= 0 && token < first)
                first = token;
        }
        if (first == INT32_MAX)
            return count;
        struct tokenizer_pair pair = b->pairs[first - TOKENIZER_BYTES_MIN];
        int kept = 0;
        for (int i = 0; i < count; i++) {
            bool joins = i + 1 < count && tokens[i] == pair.left && tokens[i + 1] == pair.right;
            tokens[kept++] = joins ? first : tokens[i];
            i += joins;
        }
        count = kept;
    }
}

/* A piece that comes again is copied from where its tokens stand already. */
static bool encode(const struct tokenizer *tokenizer, const char *text, size_t size,
                   struct tokenizer_ids *out, struct error *err)
{
    const struct bytes *b = (const struct bytes *)tokenizer;
    struct tokenizer_pieces pieces = {0};
    int32_t tokens[TOKENIZER_PIECE_MAX];
    size_t step;
    (void)err;
    for (size_t at = 0; at < size; at += step) {
        step = tokenizer_piece_next(text + at, size - at);
        struct tokenizer_piece *piece = tokenizer_pieces_add(&pieces, text + at, step);
        if (!piece->count) {
            piece->value = out->count;
            piece->count = encode_piece(b, text + at, step, tokens);
            for (int64_t i = 0; i < piece->count; i++)
                tokenizer_ids_add(out, tokens[i]);
        } else {
            for (int64_t i = 0; i < piece->count; i++)
                tokenizer_ids_add(out, out->ids[piece->value + i]);
        }
    }
    tokenizer_pieces_release(&pieces);
    return true;
}

/* Takes the token apart from its left end; what is still to come waits in a stack, which holds
 * at most as many as the token has bytes. */
static void decode(const struct tokenizer *tokenizer, int32_t id, struct str *out)
{
    const struct bytes *b = (const struct bytes *)tokenizer;
    int32_t stack[TOKENIZER_PIECE_MAX];
    int depth = 0;
    stack[depth++] = id;
    while (depth) {
        int32_t token = stack[--depth];
        if (token < TOKENIZER_BYTES_MIN) {
            str_add_char(out, (char)token);
            continue;
        }
        struct tokenizer_pair pair = b->pairs[token - TOKENIZER_BYTES_MIN];
        stack[depth++] = pair.right;
        stack[depth++] = pair.left;
    }
}

/* --- as JSON: the pairs in their order --- */

static void write(const struct tokenizer *tokenizer, struct str *json)
{
    const struct bytes *b = (const struct bytes *)tokenizer;
    str_add(json, "[");
    for (int64_t i = 0; i < b->pairs_count; i++)
        str_printf(json, "%s[%d, %d]", i ? ", " : "", b->pairs[i].left, b->pairs[i].right);
    str_add(json, "]");
}

static struct tokenizer *read(const json_t *value, struct error *err)
{
    size_t count = json_array_size(value);
    if (!json_is_array(value) || count > TOKENIZER_SIZE_MAX - TOKENIZER_BYTES_MIN)
        return fail_null(err, DATA_LOSS,
                         "a vocabulary's \"bpe\" are no list of at most %d pairs",
                         TOKENIZER_SIZE_MAX - TOKENIZER_BYTES_MIN);
    struct tokenizer_pair *pairs = alloc_array(count + 1, sizeof(*pairs));
    for (size_t i = 0; i < count; i++) {
        const json_t *pair = json_array_get(value, i);
        json_int_t left = json_integer_value(json_array_get(pair, 0));
        json_int_t right = json_integer_value(json_array_get(pair, 1));
        bool fits = json_array_size(pair) == 2 && json_is_integer(json_array_get(pair, 0)) &&
                    json_is_integer(json_array_get(pair, 1)) && left >= 0 && right >= 0 &&
                    left < TOKENIZER_SIZE_MAX && right < TOKENIZER_SIZE_MAX;
        /* One that does not fit is no pair of tokens either. */
        pairs[i] = fits ? (struct tokenizer_pair){(int32_t)left, (int32_t)right}
                        : (struct tokenizer_pair){-1, -1};
    }
    int64_t bad;
    struct tokenizer *tokenizer = make(pairs, (int64_t)count, &bad);
    return tokenizer ? tokenizer
                     : fail_null(err, DATA_LOSS,
                                 "a vocabulary's \"bpe\": number %lld is no pair of earlier "
                                 "tokens of at most %d bytes together, or there already",
                                 (long long)bad, TOKENIZER_PIECE_MAX);
}

const struct tokenizer_class tokenizer_bytes = {.name = "bpe",
                                                .kind = TOKENIZER_BYTES,
                                                .learn = learn,
                                                .release = release,
                                                .size = size_of,
                                                .encode = encode,
                                                .decode = decode,
                                                .write = write,
                                                .read = read};
