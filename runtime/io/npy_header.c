/* npy_header.c - the text in front of an NPY file's elements: a literal of Python. */

#include "base/error.h"
#include "base/str.h"
#include "runtime/io/npy.h"

static const char magic[] = "\x93NUMPY";

enum { MAGIC_BYTES = 6, ALIGN = 64, GROWTH_DIGITS = 21 };

/* numpy's codes, without the byte order; `note` says what else is stored under the code. */
static const struct {
    enum dtype dtype;
    const char *code, *note;
} types[] = {
    {BOOL, "b1", NULL},
    {I8, "i1", NULL},
    {U8, "u1", NULL},
    {I16, "i2", NULL},
    {U16, "u2", NULL},
    {I32, "i4", NULL},
    {U32, "u4", NULL},
    {I64, "i8", NULL},
    {U64, "u8", NULL},
    {F16, "f2", NULL},
    {F32, "f4", NULL},
    {F64, "f8", NULL},
    {C64, "c8", NULL},
    {C128, "c16", NULL},
    {BF16, "u2", "uint16 with the bits of bfloat16"},
    {F8E5M2, "u1", "uint8 with the bits of float8_e5m2"},
    {F8E4M3FN, "u1", "uint8 with the bits of float8_e4m3fn"},
    {QI8, "i1", "int8 with the bits of qint8"},
    {QU8, "u1", "uint8 with the bits of quint8"},
    {QI16, "i2", "int16 with the bits of qint16"},
    {QU16, "u2", "uint16 with the bits of quint16"},
    {QI32, "i4", "int32 with the bits of qint32"},
};

/* --- reading --- */

/* The literal and how far it is read. */
struct literal {
    const char *bytes;
    size_t at, end; /* from the beginning of the file */
};

static void skip_space(struct literal *l)
{
    while (l->at < l->end && strchr(" \t\n\r", l->bytes[l->at]) && l->bytes[l->at])
        l->at++;
}

/* Whether `word` comes next; then it is taken. */
static bool take(struct literal *l, const char *word)
{
    size_t size = strlen(word);
    skip_space(l);
    if (l->end - l->at < size || memcmp(l->bytes + l->at, word, size) != 0)
        return false;
    l->at += size;
    return true;
}

static bool unexpected(const struct literal *l, const char *wanted, struct error *err)
{
    if (l->at >= l->end)
        return fail(err, DATA_LOSS, "at byte %zu: the header ends where %s should be", l->at,
                    wanted);
    unsigned char c = (unsigned char)l->bytes[l->at];
    if (c < ' ' || c > '~')
        return fail(err, DATA_LOSS, "at byte %zu: 0x%02x where %s should be", l->at, c, wanted);
    return fail(err, DATA_LOSS, "at byte %zu: '%c' where %s should be", l->at, c, wanted);
}

/* A quoted string without escapes, which none of the words here needs. */
static bool take_string(struct literal *l, char *out, size_t out_size, const char *wanted,
                        struct error *err)
{
    skip_space(l);
    char quote = l->at < l->end ? l->bytes[l->at] : 0;
    if (quote != '\'' && quote != '"')
        return unexpected(l, wanted, err);
    size_t size = 0;
    for (l->at++; l->at < l->end && l->bytes[l->at] != quote; l->at++) {
        unsigned char c = (unsigned char)l->bytes[l->at];
        if (c < ' ' || c > '~' || c == '\\' || size + 1 == out_size)
            return unexpected(l, "the end of a string", err);
        out[size++] = (char)c;
    }
    out[size] = 0;
    return take(l, (char[]){quote, 0}) || unexpected(l, "the end of a string", err);
}

static bool take_number(struct literal *l, int64_t *out, struct error *err)
{
    skip_space(l);
    size_t start = l->at;
    int64_t value = 0;
    for (; l->at < l->end && l->bytes[l->at] >= '0' && l->bytes[l->at] <= '9'; l->at++) {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, l->bytes[l->at] - '0', &value))
            return fail(err, DATA_LOSS, "at byte %zu: the dimension is too large", start);
    }
    *out = value;
    if (l->at == start)
        return unexpected(l, "a dimension", err);
    take(l, "L"); /* as Python 2 wrote some */
    return true;
}

static bool take_shape(struct literal *l, struct shape *shape, struct error *err)
{
    *shape = SHAPE_SCALAR;
    if (!take(l, "("))
        return unexpected(l, "'(', the shape,", err);
    while (!take(l, ")")) {
        if (shape->rank == LIMIT_TENSOR_RANK)
            return fail(err, DATA_LOSS,
                        "at byte %zu: more than %d dimensions, which are possible", l->at,
                        LIMIT_TENSOR_RANK);
        if (!take_number(l, &shape->dims[shape->rank], err))
            return false;
        shape->rank++;
        bool more = take(l, ",");
        if (!more && shape->rank == 1)
            return unexpected(l, "','", err); /* "(3)" is a number, not a shape */
        if (more)
            continue;
        if (!take(l, ")"))
            return unexpected(l, "',' or ')'", err);
        break;
    }
    return true;
}

/* "<f4": byte order, kind, bytes. */
static bool type_parse(const char *code, struct npy_header *out, struct error *err)
{
    bool has_order = *code && strchr("<>|=", *code);
    const char *rest = code + has_order;
    out->is_swapped = *code == '>';
    for (int i = 0; i < ARRAY_LEN(types); i++) {
        if (types[i].note || strcmp(types[i].code, rest) != 0)
            continue;
        out->dtype = types[i].dtype;
        return true;
    }
    static const struct {
        char kind;
        const char *what;
    } others[] = {
        {'S', "byte strings"},   {'a', "byte strings"},  {'U', "strings"},
        {'O', "Python objects"}, {'M', "dates"},         {'m', "time spans"},
        {'V', "raw bytes"},      {'f', "wide floats"},   {'c', "wide complex numbers"},
        {'T', "strings"},        {'i', "wide integers"}, {'u', "wide integers"}};
    for (int i = 0; i < ARRAY_LEN(others); i++) {
        if (*rest == others[i].kind)
            return fail(err, UNIMPLEMENTED,
                        "its elements are %s (numpy's type \"%s\"), which no tensor can hold; "
                        "%s",
                        others[i].what, code,
                        *rest == 'V' ? "store a view of them as uint8 or uint16"
                                     : "store numbers or booleans");
    }
    return fail(err, DATA_LOSS, "numpy has no type \"%s\"", code);
}

static bool take_type(struct literal *l, struct npy_header *out, struct error *err)
{
    char code[32];
    skip_space(l);
    if (l->at < l->end && (l->bytes[l->at] == '[' || l->bytes[l->at] == '('))
        return fail(err, UNIMPLEMENTED,
                    "its elements are records of several fields, which no tensor can hold; "
                    "store each field as an array of its own");
    size_t start = l->at;
    return take_string(l, code, sizeof(code), "numpy's name of a type", err) &&
           (type_parse(code, out, err) || error_prefix(err, "at byte %zu: ", start));
}

/* {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } in any order, each once. */
static bool fields_parse(struct literal *l, struct npy_header *out, struct error *err)
{
    static const char *const names[] = {"descr", "fortran_order", "shape"};
    bool seen[ARRAY_LEN(names)] = {false};
    if (!take(l, "{"))
        return unexpected(l, "'{'", err);
    while (!take(l, "}")) {
        char name[32];
        size_t start = l->at;
        int field = 0;
        if (!take_string(l, name, sizeof(name), "the name of a field", err))
            return false;
        while (field < ARRAY_LEN(names) && strcmp(names[field], name) != 0)
            field++;
        if (field == ARRAY_LEN(names) || seen[field])
            return fail(err, DATA_LOSS, "at byte %zu: the field \"%s\" %s", start, name,
                        field < ARRAY_LEN(names) ? "is there twice" : "is not known");
        seen[field] = true;
        if (!take(l, ":"))
            return unexpected(l, "':'", err);
        out->is_fortran = field == 1 ? take(l, "True") : out->is_fortran;
        if (field == 0 ? !take_type(l, out, err)
            : field == 1
                ? !out->is_fortran && !take(l, "False") && !unexpected(l, "True or False", err)
                : !take_shape(l, &out->shape, err))
            return false;
        if (take(l, ","))
            continue;
        if (!take(l, "}"))
            return unexpected(l, "',' or '}'", err);
        break;
    }
    for (int i = 0; i < ARRAY_LEN(names); i++) {
        if (!seen[i])
            return fail(err, DATA_LOSS, "its header has no field \"%s\"", names[i]);
    }
    skip_space(l);
    return l->at == l->end || unexpected(l, "the end of the header", err);
}

bool npy_header_parse(const void *bytes, size_t size, struct npy_header *out, struct error *err)
{
    const unsigned char *b = bytes;
    if (size < MAGIC_BYTES + 4 || memcmp(b, magic, MAGIC_BYTES) != 0)
        return fail(err, DATA_LOSS, "at byte 0: this does not begin an NPY file");
    int version = b[MAGIC_BYTES];
    if (version < 1 || version > 3 || b[MAGIC_BYTES + 1])
        return fail(err, DATA_LOSS, "at byte %d: version %d.%d, known are 1.0, 2.0 and 3.0",
                    MAGIC_BYTES, version, b[MAGIC_BYTES + 1]);
    size_t start = version == 1 ? 10 : 12;
    if (size < start)
        return fail(err, DATA_LOSS, "ends at byte %zu, within its header", size);
    size_t header = (size_t)b[8] | (size_t)b[9] << 8;
    if (version > 1)
        header |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
    if (header > NPY_HEADER_BYTES_MAX - start)
        return fail(err, DATA_LOSS, "at byte 8: a header of %zu bytes, at most %zu are allowed",
                    header, NPY_HEADER_BYTES_MAX - start);
    if (header > size - start)
        return fail(err, DATA_LOSS, "ends at byte %zu, its header at %zu", size,
                    start + header);
    struct npy_header result = {.bytes = (int64_t)(start + header)};
    struct literal literal = {.bytes = bytes, .at = start, .end = start + header};
    if (!fields_parse(&literal, &result, err))
        return false;
    int64_t count = shape_count(&result.shape);
    char text[SHAPE_TEXT_BYTES];
    if (count < 0 ||
        __builtin_mul_overflow(count, (int64_t)dtype_size(result.dtype), &result.data_bytes))
        return fail(err, DATA_LOSS, "its dimensions %s are too large",
                    shape_text(&result.shape, text, sizeof(text)));
    *out = result;
    return true;
}

/* --- writing --- */

const char *npy_header_note(enum dtype dtype)
{
    for (int i = 0; i < ARRAY_LEN(types); i++) {
        if (types[i].dtype == dtype)
            return types[i].note;
    }
    return NULL;
}

bool npy_header_add(struct str *out, enum dtype dtype, const struct shape *shape,
                    struct error *err)
{
    int row = 0;
    while (row < ARRAY_LEN(types) && types[row].dtype != dtype)
        row++;
    if (row == ARRAY_LEN(types))
        return fail(err, UNIMPLEMENTED, "an NPY file cannot hold elements of type %s",
                    dtype_name(dtype));
    struct str text = {0};
    str_printf(&text, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
               dtype_size(dtype) == 1 ? '|' : '<', types[row].code);
    for (int d = 0; d < shape->rank; d++)
        str_printf(&text, "%s%lld", d ? ", " : "", (long long)shape->dims[d]);
    str_printf(&text, "%s), }", shape->rank == 1 ? "," : "");
    /* numpy leaves room for the first dimension to grow, then pads to its alignment. */
    if (shape->rank) {
        char digits[32];
        int used = snprintf(digits, sizeof(digits), "%lld", (long long)shape->dims[0]);
        str_printf(&text, "%*s", GROWTH_DIGITS - used, "");
    }
    str_printf(&text, "%*s\n", ALIGN - (int)((MAGIC_BYTES + 4 + text.size + 1) % ALIGN), "");
    str_add_bytes(out, magic, MAGIC_BYTES);
    str_add_bytes(out, (const char[]){1, 0, (char)text.size, (char)(text.size >> 8)}, 4);
    str_add_bytes(out, text.data, text.size);
    str_release(&text);
    return true;
}
