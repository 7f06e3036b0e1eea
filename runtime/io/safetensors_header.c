/* safetensors_header.c - the JSON in front of a safetensors file, read strictly. */

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/io/safetensors_internal.h"

enum { FRONT_BYTES = 8 }; /* the size of the header, before it */

/* The format's types; the first row of a name is the one it stands for. */
static const struct {
    const char *name;
    enum dtype dtype;
} types[] = {
    {"BOOL", BOOL},        {"U8", U8},   {"I8", I8},   {"F8_E5M2", F8E5M2}, {"F16", F16},
    {"F8_E4M3", F8E4M3FN}, {"I16", I16}, {"U16", U16}, {"BF16", BF16},      {"I32", I32},
    {"U32", U32},          {"F32", F32}, {"F64", F64}, {"I64", I64},        {"U64", U64},
    {"C64", C64},          {"I8", QI8},  {"U8", QU8},  {"I16", QI16},       {"U16", QU16},
    {"I32", QI32},
};

/* Newer ones, which no tensor of ours can hold. */
static const char *const others[] = {"F4",      "F6_E2M3",     "F6_E3M2",
                                     "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"};

const char *safetensors_header_type(enum dtype dtype)
{
    for (int i = 0; i < ARRAY_LEN(types); i++) {
        if (types[i].dtype == dtype)
            return types[i].name;
    }
    return NULL;
}

/* --- JSON, as much of it as there is --- */

struct reader {
    const char *text;
    size_t at, end;
    struct arena *arena;
    struct str word; /* the last string */
};

static bool unexpected(const struct reader *r, const char *wanted, struct error *err)
{
    size_t place = r->at + FRONT_BYTES;
    if (r->at >= r->end)
        return fail(err, DATA_LOSS, "at byte %zu: the header ends where %s should be", place,
                    wanted);
    unsigned char c = (unsigned char)r->text[r->at];
    return fail(err, DATA_LOSS,
                c > ' ' && c <= '~' ? "at byte %zu: '%c' where %s should be"
                                    : "at byte %zu: 0x%02x where %s should be",
                place, c, wanted);
}

static void skip_space(struct reader *r)
{
    while (r->at < r->end && r->text[r->at] && strchr(" \t\n\r", r->text[r->at]))
        r->at++;
}

static bool take(struct reader *r, char c)
{
    skip_space(r);
    if (r->at == r->end || r->text[r->at] != c)
        return false;
    r->at++;
    return true;
}

/* \u and four digits: -1 when they are not. */
static int take_hex(struct reader *r)
{
    int value = 0;
    if (r->end - r->at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        char c = r->text[r->at++];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

static void add_utf8(struct str *out, int c)
{
    if (c < 0x80) {
        str_add_char(out, (char)c);
    } else if (c < 0x800) {
        str_add_bytes(out, (const char[]){(char)(0xc0 | c >> 6), (char)(0x80 | (c & 63))}, 2);
    } else if (c < 0x10000) {
        str_add_bytes(out,
                      (const char[]){(char)(0xe0 | c >> 12), (char)(0x80 | (c >> 6 & 63)),
                                     (char)(0x80 | (c & 63))},
                      3);
    } else {
        str_add_bytes(out,
                      (const char[]){(char)(0xf0 | c >> 18), (char)(0x80 | (c >> 12 & 63)),
                                     (char)(0x80 | (c >> 6 & 63)), (char)(0x80 | (c & 63))},
                      4);
    }
}

static bool take_escape(struct reader *r, struct error *err)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    size_t start = r->at++; /* at the backslash */
    char c = r->at < r->end ? r->text[r->at++] : 0;
    const char *known = c ? strchr(from, c) : NULL;
    if (known) {
        str_add_char(&r->word, to[known - from]);
        return true;
    }
    int value = c == 'u' ? take_hex(r) : -1;
    if (value >= 0xd800 && value < 0xdc00 && r->end - r->at >= 2 && r->text[r->at] == '\\' &&
        r->text[r->at + 1] == 'u') {
        r->at += 2;
        int low = take_hex(r);
        value = low >= 0xdc00 && low < 0xe000
                    ? 0x10000 + ((value - 0xd800) << 10) + (low - 0xdc00)
                    : -1;
    }
    if (value <= 0 || (value >= 0xd800 && value < 0xe000))
        return fail(err, DATA_LOSS, "at byte %zu: a wrong escape in a string",
                    start + FRONT_BYTES);
    add_utf8(&r->word, value);
    return true;
}

/* A string into r->word: UTF-8 without zero bytes. */
static bool take_string(struct reader *r, const char *wanted, struct error *err)
{
    if (!take(r, '"'))
        return unexpected(r, wanted, err);
    size_t start = r->at;
    str_clear(&r->word);
    while (r->at < r->end && r->text[r->at] != '"') {
        unsigned char c = (unsigned char)r->text[r->at];
        if (c == '\\') {
            if (!take_escape(r, err))
                return false;
            continue;
        }
        if (c < ' ')
            return unexpected(r, "a character of a string", err);
        size_t from = r->at;
        while (r->at < r->end && (unsigned char)r->text[r->at] >= ' ' &&
               r->text[r->at] != '"' && r->text[r->at] != '\\')
            r->at++;
        str_add_bytes(&r->word, r->text + from, r->at - from);
    }
    if (!take(r, '"'))
        return unexpected(r, "the end of a string", err);
    return str_is_utf8(str_text(&r->word), r->word.size) ||
           fail(err, DATA_LOSS, "at byte %zu: a string that is not UTF-8", start + FRONT_BYTES);
}

static bool take_number(struct reader *r, int64_t *out, struct error *err)
{
    skip_space(r);
    size_t start = r->at;
    int64_t value = 0;
    for (; r->at < r->end && r->text[r->at] >= '0' && r->text[r->at] <= '9'; r->at++) {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, r->text[r->at] - '0', &value))
            return fail(err, DATA_LOSS, "at byte %zu: the number is too large",
                        start + FRONT_BYTES);
    }
    *out = value;
    return r->at > start || unexpected(r, "a number from 0", err);
}

/* A list of at most `max` numbers. */
static bool take_numbers(struct reader *r, int64_t *out, int max, int *count, struct error *err)
{
    *count = 0;
    if (!take(r, '['))
        return unexpected(r, "'['", err);
    if (take(r, ']'))
        return true;
    do {
        if (*count == max)
            return fail(err, DATA_LOSS, "at byte %zu: more than %d numbers",
                        r->at + FRONT_BYTES, max);
        if (!take_number(r, &out[*count], err))
            return false;
        ++*count;
    } while (take(r, ','));
    return take(r, ']') || unexpected(r, "',' or ']'", err);
}

/* --- what it says --- */

static bool take_type(struct reader *r, enum dtype *out, struct error *err)
{
    if (!take_string(r, "the name of a type", err))
        return false;
    for (int i = 0; i < ARRAY_LEN(types); i++) {
        if (!strcmp(types[i].name, str_text(&r->word))) {
            *out = types[i].dtype;
            return true;
        }
    }
    for (int i = 0; i < ARRAY_LEN(others); i++) {
        if (!strcmp(others[i], str_text(&r->word)))
            return fail(err, UNIMPLEMENTED, "its type %s is none that a tensor can have here",
                        others[i]);
    }
    return fail(err, DATA_LOSS, "its type \"%.40s\" is not known", str_text(&r->word));
}

static bool take_field(struct reader *r, int field, struct safetensors_item *item,
                       struct error *err)
{
    int64_t ends[2];
    int count;
    switch (field) {
    case 0:
        return take_type(r, &item->dtype, err);
    case 1:
        return take_numbers(r, item->shape.dims, LIMIT_TENSOR_RANK, &item->shape.rank, err) ||
               error_prefix(err, "its shape: ");
    default:
        if (!take_numbers(r, ends, 2, &count, err))
            return error_prefix(err, "its data_offsets: ");
        if (count != 2 || ends[0] > ends[1])
            return fail(err, DATA_LOSS, "its data_offsets are not where it begins and ends");
        item->offset = ends[0];
        item->bytes = ends[1] - ends[0];
        return true;
    }
}

/* {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]} in any order, each once. */
static bool take_item(struct reader *r, struct safetensors_item *item, struct error *err)
{
    static const char *const fields[] = {"dtype", "shape", "data_offsets"};
    bool seen[ARRAY_LEN(fields)] = {false};
    if (!take(r, '{'))
        return unexpected(r, "'{'", err);
    do {
        int field = 0;
        if (!take_string(r, "the name of a field", err))
            return false;
        while (field < ARRAY_LEN(fields) && strcmp(fields[field], str_text(&r->word)) != 0)
            field++;
        if (field == ARRAY_LEN(fields) || seen[field])
            return fail(err, DATA_LOSS, "its field \"%.40s\" %s", str_text(&r->word),
                        field < ARRAY_LEN(fields) ? "is there twice" : "is not known");
        seen[field] = true;
        if (!take(r, ':'))
            return unexpected(r, "':'", err);
        if (!take_field(r, field, item, err))
            return false;
    } while (take(r, ','));
    for (int i = 0; i < ARRAY_LEN(fields); i++) {
        if (!seen[i])
            return fail(err, DATA_LOSS, "it has no field \"%s\"", fields[i]);
    }
    return take(r, '}') || unexpected(r, "',' or '}'", err);
}

static bool take_notes(struct reader *r, struct safetensors_header *out, struct error *err)
{
    int capacity = 0;
    if (!take(r, '{'))
        return unexpected(r, "'{'", err);
    if (take(r, '}'))
        return true;
    do {
        out->notes = alloc_grow(out->notes, out->notes_count, &capacity, sizeof(*out->notes));
        struct safetensors_note *note = &out->notes[out->notes_count];
        if (!take_string(r, "a key", err))
            return false;
        note->key = arena_text_n(r->arena, str_text(&r->word), r->word.size);
        if (!take(r, ':'))
            return unexpected(r, "':'", err);
        if (!take_string(r, "a string", err))
            return false;
        note->value = arena_text_n(r->arena, str_text(&r->word), r->word.size);
        out->notes_count++;
    } while (take(r, ','));
    return take(r, '}') || unexpected(r, "',' or '}'", err);
}

static bool take_all(struct reader *r, struct safetensors_header *out, struct error *err)
{
    int capacity = 0;
    bool noted = false;
    if (!r->end || r->text[0] != '{')
        return unexpected(r, "'{'", err);
    take(r, '{');
    bool more = !take(r, '}');
    while (more) {
        if (!take_string(r, "a tensor's name", err))
            return false;
        const char *name = arena_text_n(r->arena, str_text(&r->word), r->word.size);
        if (!take(r, ':'))
            return unexpected(r, "':'", err);
        if (!strcmp(name, "__metadata__")) {
            if (noted)
                return fail(err, DATA_LOSS, "__metadata__ is there twice");
            noted = true;
            if (!take_notes(r, out, err))
                return error_prefix(err, "__metadata__: ");
        } else {
            out->items =
                alloc_grow(out->items, out->items_count, &capacity, sizeof(*out->items));
            struct safetensors_item *item = &out->items[out->items_count++];
            item->name = name;
            if (!take_item(r, item, err))
                return error_prefix(err, "tensor '%.200s': ", name);
        }
        more = take(r, ',');
        if (!more && !take(r, '}'))
            return unexpected(r, "',' or '}'", err);
    }
    skip_space(r);
    return r->at == r->end || unexpected(r, "the end of the header", err);
}

/* --- checks --- */

static int compare_offsets(const void *a, const void *b)
{
    const struct safetensors_item *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1; /* the empty ones first */
    return strcmp(x->name, y->name);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool names_check(const struct safetensors_header *header, struct error *err)
{
    int count = header->items_count;
    const char **names = alloc_array((size_t)count + 1, sizeof(*names));
    for (int i = 0; i < count; i++)
        names[i] = header->items[i].name;
    qsort(names, (size_t)count, sizeof(*names), compare_names);
    bool ok = true;
    for (int i = 1; ok && i < count; i++)
        ok = strcmp(names[i - 1], names[i]) != 0 ||
             fail(err, DATA_LOSS, "tensor '%.200s' is there twice", names[i]);
    free(names);
    return ok;
}

/* The items one after the other fill the data. */
static bool places_check(const struct safetensors_header *header, int64_t data_bytes,
                         struct error *err)
{
    int64_t at = 0;
    char text[SHAPE_TEXT_BYTES];
    for (int i = 0; i < header->items_count; i++) {
        const struct safetensors_item *item = &header->items[i];
        int64_t count = shape_count(&item->shape), wanted;
        if (count < 0 ||
            __builtin_mul_overflow(count, (int64_t)dtype_size(item->dtype), &wanted))
            return fail(err, DATA_LOSS, "tensor '%.200s': its shape %s is too large",
                        item->name, shape_text(&item->shape, text, sizeof(text)));
        if (item->bytes != wanted)
            return fail(err, DATA_LOSS,
                        "tensor '%.200s': %lld bytes for %s of shape %s, which has %lld",
                        item->name, (long long)item->bytes, dtype_name(item->dtype),
                        shape_text(&item->shape, text, sizeof(text)), (long long)wanted);
        if (item->offset != at)
            return fail(err, DATA_LOSS,
                        "tensor '%.200s' begins at byte %lld of the data, the one before it "
                        "ends at %lld",
                        item->name, (long long)item->offset, (long long)at);
        if (item->bytes > data_bytes - at)
            return fail(
                err, DATA_LOSS,
                "tensor '%.200s' ends at byte %lld of the data, of which there are %lld",
                item->name, (long long)(at + item->bytes), (long long)data_bytes);
        at += item->bytes;
    }
    return at == data_bytes ||
           fail(err, DATA_LOSS, "its tensors have %lld bytes, after the header there are %lld",
                (long long)at, (long long)data_bytes);
}

bool safetensors_header_parse(const char *text, size_t size, int64_t data_bytes,
                              struct arena *arena, struct safetensors_header *out,
                              struct error *err)
{
    struct reader reader = {.text = text, .end = size, .arena = arena};
    struct safetensors_header header = {0};
    bool ok = take_all(&reader, &header, err) && names_check(&header, err);
    if (ok && header.items_count)
        qsort(header.items, (size_t)header.items_count, sizeof(*header.items), compare_offsets);
    ok = ok && places_check(&header, data_bytes, err);
    if (ok) {
        *out = header;
    } else {
        free(header.items);
        free(header.notes);
    }
    str_release(&reader.word);
    return ok;
}
