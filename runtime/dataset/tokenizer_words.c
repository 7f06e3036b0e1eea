/* tokenizer_words.c - words in small letters, the most frequent ones. */

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/dataset/tokenizer_internal.h"

#define WORD_MAX 256 /* bytes; a longer one is cut */

struct words {
    struct tokenizer base;
    char *text;                      /* behind the words */
    struct tokenizer_pieces entries; /* token 1 + index */
};

/* --- where words are --- */

static bool is_letter(char c)
{
    unsigned char byte = (unsigned char)c;
    return byte >= 0x80 || (unsigned)((byte | 0x20) - 'a') < 26 || (unsigned)(byte - '0') < 10;
}

/* The next word of letters, digits and apostrophes inside; its size in small letters, 0 at the
 * end of the text. */
static size_t next_word(const char *text, size_t size, size_t *at, char word[WORD_MAX])
{
    while (*at < size && !is_letter(text[*at]))
        ++*at;
    size_t count = 0;
    for (; *at < size && count < WORD_MAX; ++*at) {
        char c = text[*at];
        if (!is_letter(c) && (c != '\'' || *at + 1 == size || !is_letter(text[*at + 1])))
            break;
        word[count++] = c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
    }
    return count;
}

/* --- making --- */

static void add_word(struct words *w, const char *word, size_t size)
{
    tokenizer_pieces_add(&w->entries, word, size);
}

static struct words *make(void)
{
    struct words *w = alloc_bytes(sizeof(*w));
    w->base.class = &tokenizer_words;
    return w;
}

/* The most frequent first, of equal ones the first in the order of bytes. */
static int compare(const void *a, const void *b)
{
    const struct tokenizer_piece *x = a, *y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    int order = memcmp(x->text, y->text, x->size < y->size ? x->size : y->size);
    return order ? order : (x->size > y->size) - (x->size < y->size);
}

static struct tokenizer *learn(const char *text, size_t size, int64_t size_max,
                               struct error *err)
{
    (void)err;
    assert(size_max >= TOKENIZER_WORDS_MIN);
    struct words *w = make();
    struct tokenizer_pieces found = {0};
    size_t used = 0, at = 0, count;
    /* What is new is kept where the words are written in small letters. */
    char *small = alloc_bytes(size + WORD_MAX);
    while ((count = next_word(text, size, &at, small + used))) {
        struct tokenizer_piece *piece = tokenizer_pieces_add(&found, small + used, count);
        used += piece->count++ ? 0 : count;
    }
    if (found.count)
        qsort(found.all, (size_t)found.count, sizeof(*found.all), compare);
    w->text = small;
    for (int64_t i = 0; i < found.count && i < size_max - 1; i++)
        add_word(w, found.all[i].text, found.all[i].size);
    tokenizer_pieces_release(&found);
    return &w->base;
}

static void release(struct tokenizer *tokenizer)
{
    struct words *w = (struct words *)tokenizer;
    tokenizer_pieces_release(&w->entries);
    free(w->text);
}

static int64_t size_of(const struct tokenizer *tokenizer)
{
    return 1 + ((const struct words *)tokenizer)->entries.count;
}

/* --- there and back --- */

static bool encode(const struct tokenizer *tokenizer, const char *text, size_t size,
                   struct tokenizer_ids *out, struct error *err)
{
    const struct words *w = (const struct words *)tokenizer;
    char word[WORD_MAX];
    size_t at = 0, count;
    (void)err;
    while ((count = next_word(text, size, &at, word))) {
        const struct tokenizer_piece *entry = tokenizer_pieces_find(&w->entries, word, count);
        tokenizer_ids_add(out, entry ? (int32_t)(entry - w->entries.all) + 1 : 0);
    }
    return true;
}

/* With a blank behind it. */
static void decode(const struct tokenizer *tokenizer, int32_t id, struct str *out)
{
    const struct words *w = (const struct words *)tokenizer;
    if (id)
        str_add_bytes(out, w->entries.all[id - 1].text, w->entries.all[id - 1].size);
    else
        str_add(out, TOKENIZER_UNKNOWN);
    str_add_char(out, ' ');
}

/* --- as JSON: a list --- */

/* A word that was cut, or a text that is no UTF-8, is no text for JSON: its bytes are given as
 * numbers. */
static void write(const struct tokenizer *tokenizer, struct str *json)
{
    const struct words *w = (const struct words *)tokenizer;
    str_add(json, "[");
    for (int64_t i = 0; i < w->entries.count; i++) {
        const struct tokenizer_piece *word = &w->entries.all[i];
        str_add(json, i ? ", " : "");
        if (str_is_utf8(word->text, word->size)) {
            str_add_json(json, word->text, word->size);
            continue;
        }
        for (uint32_t b = 0; b < word->size; b++)
            str_printf(json, "%s%d", b ? ", " : "[", (unsigned char)word->text[b]);
        str_add(json, "]");
    }
    str_add(json, "]");
}

/* One word; false when it is none. */
static bool read_word(const json_t *word, char out[WORD_MAX], size_t *size)
{
    *size = json_is_string(word) ? json_string_length(word) : json_array_size(word);
    if (!*size || *size > WORD_MAX)
        return false;
    if (json_is_string(word)) {
        memcpy(out, json_string_value(word), *size);
        return true;
    }
    for (size_t i = 0; i < *size; i++) {
        const json_t *byte = json_array_get(word, i);
        json_int_t value = json_integer_value(byte);
        if (!json_is_integer(byte) || value < 0 || value > 255)
            return false;
        out[i] = (char)value;
    }
    return true;
}

static struct tokenizer *read(const json_t *value, struct error *err)
{
    size_t count = json_array_size(value), size;
    if (!json_is_array(value) || count >= TOKENIZER_SIZE_MAX)
        return fail_null(err, DATA_LOSS, "a vocabulary's \"words\" are no list of less than %d",
                         TOKENIZER_SIZE_MAX);
    struct words *w = make();
    struct str all = {0};
    char word[WORD_MAX];
    size_t *ends = alloc_array(count + 1, sizeof(*ends));
    size_t read_count = 0;
    for (; read_count < count; read_count++) {
        if (!read_word(json_array_get(value, read_count), word, &size))
            break;
        str_add_bytes(&all, word, size);
        ends[read_count] = all.size;
    }
    w->text = str_take(&all);
    for (size_t i = 0; i < read_count; i++) {
        size_t begin = i ? ends[i - 1] : 0;
        add_word(w, w->text + begin, ends[i] - begin);
    }
    free(ends);
    if (read_count == count && w->entries.count == (int64_t)count)
        return &w->base;
    tokenizer_free(&w->base);
    if (read_count == count)
        return fail_null(err, DATA_LOSS, "a vocabulary's \"words\" have one twice");
    return fail_null(err, DATA_LOSS, "a vocabulary's \"words\": number %zu is no word",
                     read_count);
}

const struct tokenizer_class tokenizer_words = {.name = "words",
                                                .kind = TOKENIZER_WORDS,
                                                .learn = learn,
                                                .release = release,
                                                .size = size_of,
                                                .encode = encode,
                                                .decode = decode,
                                                .write = write,
                                                .read = read};
