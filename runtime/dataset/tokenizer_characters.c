/* tokenizer_characters.c - a token for each code point that the text has. */

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/dataset/tokenizer_internal.h"

#define CODE_POINTS 0x110000
#define PLAIN 128 /* code points that are looked up in a table */

struct characters {
    struct tokenizer base;
    uint32_t *points; /* sorted; token 1 + index */
    int64_t count;
    int32_t plain[PLAIN]; /* the tokens of ASCII, 0: none */
};

/* --- making --- */

/* Takes `points`. */
static struct tokenizer *make(uint32_t *points, int64_t count)
{
    struct characters *characters = alloc_bytes(sizeof(*characters));
    characters->base.class = &tokenizer_characters;
    characters->points = points;
    characters->count = count;
    for (int64_t i = 0; i < count && points[i] < PLAIN; i++)
        characters->plain[points[i]] = (int32_t)i + 1;
    return &characters->base;
}

static bool refuse(const char *text, size_t at, struct error *err)
{
    return fail(err, DATA_LOSS, "at byte %zu: 0x%02x is not UTF-8 here", at,
                (unsigned char)text[at]);
}

static bool check(const char *text, size_t size, struct error *err)
{
    uint32_t point;
    int step;
    for (size_t at = 0; at < size; at += (size_t)step) {
        step = tokenizer_code_point(text + at, size - at, &point);
        if (!step)
            return refuse(text, at, err);
    }
    return true;
}

static struct tokenizer *learn(const char *text, size_t size, int64_t size_max,
                               struct error *err)
{
    (void)size_max;
    uint64_t *seen = alloc_array(CODE_POINTS / 64, sizeof(*seen)); /* a bit each */
    int64_t count = 0;
    bool ok = true;
    int step;
    for (size_t at = 0; ok && at < size; at += (size_t)step) {
        uint32_t point = 0;
        step = tokenizer_code_point(text + at, size - at, &point);
        if (!step)
            ok = refuse(text, at, err);
        count += !(seen[point / 64] >> point % 64 & 1);
        seen[point / 64] |= UINT64_C(1) << point % 64;
    }
    struct tokenizer *tokenizer = NULL;
    if (ok) {
        uint32_t *points = alloc_array((size_t)count, sizeof(*points));
        int64_t i = 0;
        for (uint32_t word = 0; word < CODE_POINTS / 64; word++)
            for (uint64_t left = seen[word]; left; left &= left - 1)
                points[i++] = 64 * word + (uint32_t)__builtin_ctzll(left);
        tokenizer = make(points, count);
    }
    free(seen);
    return tokenizer;
}

static void release(struct tokenizer *tokenizer)
{
    free(((struct characters *)tokenizer)->points);
}

static int64_t size_of(const struct tokenizer *tokenizer)
{
    return 1 + ((const struct characters *)tokenizer)->count;
}

/* --- there and back --- */

static int32_t find(const struct characters *characters, uint32_t point)
{
    if (point < PLAIN)
        return characters->plain[point];
    int64_t low = 0, high = characters->count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (characters->points[middle] < point)
            low = middle + 1;
        else
            high = middle;
    }
    return low < characters->count && characters->points[low] == point ? (int32_t)low + 1 : 0;
}

static bool encode(const struct tokenizer *tokenizer, const char *text, size_t size,
                   struct tokenizer_ids *out, struct error *err)
{
    const struct characters *characters = (const struct characters *)tokenizer;
    int step;
    for (size_t at = 0; at < size; at += (size_t)step) {
        uint32_t point;
        step = tokenizer_code_point(text + at, size - at, &point);
        if (!step)
            return refuse(text, at, err);
        tokenizer_ids_add(out, find(characters, point));
    }
    return true;
}

static void add_point(uint32_t point, struct str *out)
{
    if (point < 0x80) {
        str_add_char(out, (char)point);
        return;
    }
    int more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
    str_add_char(out, (char)((0xff00u >> (more + 1)) | point >> (6 * more)));
    while (more--)
        str_add_char(out, (char)(0x80 | ((point >> (6 * more)) & 0x3f)));
}

static void decode(const struct tokenizer *tokenizer, int32_t id, struct str *out)
{
    if (id)
        add_point(((const struct characters *)tokenizer)->points[id - 1], out);
    else
        str_add(out, TOKENIZER_UNKNOWN);
}

/* --- as JSON: code points, sorted --- */

static void write(const struct tokenizer *tokenizer, struct str *json)
{
    const struct characters *characters = (const struct characters *)tokenizer;
    for (int64_t i = 0; i < characters->count; i++)
        str_printf(json, "%s%u", i ? ", " : "[", characters->points[i]);
    str_add(json, "]");
}

static struct tokenizer *read(const json_t *value, struct error *err)
{
    size_t count = json_array_size(value);
    if (!count || count > CODE_POINTS)
        return fail_null(err, DATA_LOSS, "a vocabulary without a list of \"characters\"");
    uint32_t *points = alloc_array(count, sizeof(*points));
    for (size_t i = 0; i < count; i++) {
        const json_t *point = json_array_get(value, i);
        json_int_t number = json_integer_value(point);
        bool is_point = json_is_integer(point) && number >= 0 && number < CODE_POINTS &&
                        !(number >= 0xd800 && number < 0xe000);
        if (!is_point || (i && number <= (json_int_t)points[i - 1])) {
            free(points);
            return fail_null(err, DATA_LOSS,
                             "a vocabulary's \"characters\": number %zu is no code point, or "
                             "not in order",
                             i);
        }
        points[i] = (uint32_t)number;
    }
    return make(points, (int64_t)count);
}

const struct tokenizer_class tokenizer_characters = {.name = "characters",
                                                     .kind = TOKENIZER_CHARACTERS,
                                                     .check = check,
                                                     .learn = learn,
                                                     .release = release,
                                                     .size = size_of,
                                                     .encode = encode,
                                                     .decode = decode,
                                                     .write = write,
                                                     .read = read};
