/* text.c - text form to wire format, field by field, with a stack of open messages. */

#include "proto/text.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5, WORD_MAX = 256 };

struct open {
    const ProtobufCMessageDescriptor *descriptor;
    const ProtobufCFieldDescriptor *list; /* of the parent: in [ ], more may follow */
    struct str bytes;
    uint64_t seen; /* fields that may come once and did, by their place among the first 64 */
    uint32_t id;   /* of the field that it is */
    char close;
};

struct reader {
    const char *at, *end;
    int line;
    struct open stack[LIMIT_MESSAGE_DEPTH];
    int depth; /* index of the innermost */
    struct error *err;
};

/* --- characters --- */

static bool bad(struct reader *r, const char *what, const char *word)
{
    return fail(r->err, INVALID, "line %d: %s%s%s%s (in %s)", r->line, what, word ? " \"" : "",
                word ? word : "", word ? "\"" : "", r->stack[r->depth].descriptor->name);
}

/* The next character that counts, 0 at the end. */
static char peek(struct reader *r)
{
    while (r->at < r->end) {
        if (*r->at == '#')
            while (r->at < r->end && *r->at != '\n')
                r->at++;
        else if (isspace((unsigned char)*r->at))
            r->line += *r->at++ == '\n';
        else
            return *r->at;
    }
    return 0;
}

static bool take(struct reader *r, char c)
{
    if (peek(r) != c)
        return false;
    r->at++;
    return true;
}

/* Letters, digits and what numbers are made of. */
static bool read_word(struct reader *r, char *word)
{
    size_t size = 0;
    peek(r);
    while (r->at < r->end && (isalnum((unsigned char)*r->at) || strchr("_.+-", *r->at))) {
        if (size == WORD_MAX - 1)
            return bad(r, "too long a word", NULL);
        word[size++] = *r->at++;
    }
    word[size] = 0;
    return size || bad(r, "a name or a value is missing", NULL);
}

/* --- strings --- */

static void add_utf8(struct str *out, uint32_t code)
{
    if (code < 0x80) {
        str_add_char(out, (char)code);
        return;
    }
    int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    str_add_char(out, (char)((0xff00u >> (more + 1) & 0xff) | code >> 6 * more));
    while (more-- > 0)
        str_add_char(out, (char)(0x80 | (code >> 6 * more & 0x3f)));
}

/* Up to `most` digits of a base; how many there were. */
static int read_digits(struct reader *r, int base, int most, uint32_t *value)
{
    int count = 0;
    *value = 0;
    for (; count < most && r->at < r->end; count++) {
        char c = *r->at;
        int digit = isdigit((unsigned char)c)    ? c - '0'
                    : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10
                                                 : 99;
        if (digit >= base)
            break;
        *value = *value * (uint32_t)base + (uint32_t)digit;
        r->at++;
    }
    return count;
}

static bool read_escape(struct reader *r, struct str *out)
{
    static const char names[] = "abfnrtv\\'\"?", meanings[] = "\a\b\f\n\r\t\v\\'\"?";
    uint32_t code;
    if (r->at == r->end)
        return bad(r, "a string ends in a backslash", NULL);
    char c = *r->at;
    if (c >= '0' && c <= '7') {
        read_digits(r, 8, 3, &code);
        str_add_char(out, (char)code);
        return true;
    }
    r->at++;
    const char *found = strchr(names, c);
    if (found && c) {
        str_add_char(out, meanings[found - names]);
        return true;
    }
    int digits = c == 'x' || c == 'X' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    int read = digits ? read_digits(r, 16, digits, &code) : 0;
    if (!read || (digits > 2 && (read < digits || code > 0x10ffff)))
        return bad(r, "a bad escape in a string", NULL);
    if (digits == 2)
        str_add_char(out, (char)code);
    else
        add_utf8(out, code);
    return true;
}

/* One or more literals side by side. */
static bool read_string(struct reader *r, struct str *out)
{
    char quote = peek(r);
    if (quote != '"' && quote != '\'')
        return bad(r, "a string is missing", NULL);
    for (; (quote = peek(r)) == '"' || quote == '\'';) {
        r->at++;
        while (r->at < r->end && *r->at != quote && *r->at != '\n') {
            if (*r->at != '\\')
                str_add_char(out, *r->at++);
            else if (r->at++, !read_escape(r, out))
                return false;
        }
        if (r->at == r->end || *r->at != quote)
            return bad(r, "a string does not end", NULL);
        r->at++;
    }
    return true;
}

/* --- wire format --- */

static void add_varint(struct str *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        str_add_char(out, (char)(value | 0x80));
    str_add_char(out, (char)value);
}

static void add_tag(struct str *out, uint32_t id, int wire)
{
    add_varint(out, (uint64_t)id << 3 | (unsigned)wire);
}

static void add_bytes(struct str *out, uint32_t id, const struct str *bytes)
{
    add_tag(out, id, BYTES);
    add_varint(out, bytes->size);
    str_add_bytes(out, str_text(bytes), bytes->size);
}

/* --- values --- */

static bool read_integer(struct reader *r, const char *word, uint64_t *value)
{
    char *end;
    bool minus = *word == '-';
    errno = 0;
    if (!isdigit((unsigned char)word[minus]))
        return bad(r, "no integer:", word);
    *value = strtoull(word + minus, &end, 0);
    if (*end || errno)
        return bad(r, "no integer:", word);
    *value = minus ? 0 - *value : *value;
    return true;
}

static bool read_real(struct reader *r, const char *word, double *value)
{
    char *end;
    *value = strtod(word, &end);
    end += *end == 'f' || *end == 'F';
    return (end != word && !*end) || bad(r, "no number:", word);
}

static bool read_enum(struct reader *r, const ProtobufCEnumDescriptor *names, const char *word,
                      uint64_t *value)
{
    const ProtobufCEnumValue *found = protobuf_c_enum_descriptor_get_value_by_name(names, word);
    if (!found)
        return isdigit((unsigned char)word[*word == '-'])
                   ? read_integer(r, word, value)
                   : bad(r, "no value of this kind:", word);
    *value = (uint64_t)(int64_t)found->value;
    return true;
}

static bool read_bool(struct reader *r, const char *word, uint64_t *value)
{
    *value = !strcmp(word, "true") || !strcmp(word, "True") || !strcmp(word, "t") ||
             !strcmp(word, "1");
    return *value || !strcmp(word, "false") || !strcmp(word, "False") || !strcmp(word, "f") ||
           !strcmp(word, "0") || bad(r, "neither true nor false:", word);
}

static void add_fixed(struct str *out, uint32_t id, uint64_t bits, int size)
{
    add_tag(out, id, size == 8 ? FIXED64 : FIXED32);
    for (int i = 0; i < size; i++)
        str_add_char(out, (char)(bits >> 8 * i));
}

static bool read_float(struct reader *r, const ProtobufCFieldDescriptor *field,
                       const char *word, struct str *out)
{
    double number;
    if (!read_real(r, word, &number))
        return false;
    float single = (float)number;
    uint64_t bits = 0;
    bool wide = field->type == PROTOBUF_C_TYPE_DOUBLE;
    memcpy(&bits, wide ? (void *)&number : (void *)&single, wide ? 8 : 4);
    add_fixed(out, field->id, bits, wide ? 8 : 4);
    return true;
}

/* A number, a truth or a name. */
static bool read_number(struct reader *r, const ProtobufCFieldDescriptor *field,
                        struct str *out)
{
    char word[WORD_MAX];
    uint64_t value;
    if (!read_word(r, word))
        return false;
    switch (field->type) {
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_DOUBLE:
        return read_float(r, field, word, out);
    case PROTOBUF_C_TYPE_ENUM:
        if (!read_enum(r, field->descriptor, word, &value))
            return false;
        break;
    case PROTOBUF_C_TYPE_BOOL:
        if (!read_bool(r, word, &value))
            return false;
        break;
    default:
        if (!read_integer(r, word, &value))
            return false;
    }
    switch (field->type) {
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_SFIXED32:
        add_fixed(out, field->id, value, 4);
        return true;
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64:
        add_fixed(out, field->id, value, 8);
        return true;
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SINT64:
        value = value << 1 ^ (uint64_t)((int64_t)value >> 63);
        break;
    default:
        break;
    }
    add_tag(out, field->id, VARINT);
    add_varint(out, value);
    return true;
}

static bool read_scalar(struct reader *r, const ProtobufCFieldDescriptor *field)
{
    struct str *out = &r->stack[r->depth].bytes;
    if (field->type != PROTOBUF_C_TYPE_STRING && field->type != PROTOBUF_C_TYPE_BYTES)
        return read_number(r, field, out);
    struct str text = {0};
    bool ok = read_string(r, &text);
    if (ok)
        add_bytes(out, field->id, &text);
    str_release(&text);
    return ok;
}

/* Passes over a message in braces, whatever is in it. */
static bool skip_message(struct reader *r)
{
    struct str ignored = {0};
    bool ok = true;
    for (int depth = 0; ok;) {
        char c = peek(r);
        if (c == '"' || c == '\'') {
            ok = read_string(r, &ignored);
            str_clear(&ignored);
            continue;
        }
        if (!c)
            ok = bad(r, "a message does not end", NULL);
        r->at += c != 0;
        depth += (c == '{' || c == '<') - (c == '}' || c == '>');
        if (depth == 0 && (c == '}' || c == '>'))
            break;
    }
    str_release(&ignored);
    return ok;
}

/* --- messages --- */

static bool open_message(struct reader *r, const ProtobufCFieldDescriptor *field,
                         const ProtobufCFieldDescriptor *list)
{
    if (field->type == PROTOBUF_C_TYPE_BYTES)
        return skip_message(r);
    if (field->type != PROTOBUF_C_TYPE_MESSAGE)
        return bad(r, "not a message:", field->name);
    if (r->depth + 1 == LIMIT_MESSAGE_DEPTH)
        return bad(r, "messages are nested too deeply", NULL);
    char close = *r->at++ == '{' ? '}' : '>';
    r->stack[++r->depth] = (struct open){
        .descriptor = field->descriptor, .list = list, .id = field->id, .close = close};
    return true;
}

/* Values in brackets, up to one that is a message: close_message() goes on behind it. */
static bool read_list(struct reader *r, const ProtobufCFieldDescriptor *field)
{
    while (!take(r, ']')) {
        char c = peek(r);
        if (c == '{' || c == '<')
            return open_message(r, field, field);
        if (field->type == PROTOBUF_C_TYPE_MESSAGE)
            return bad(r, "a '{' is missing in the list", field->name);
        if (!read_scalar(r, field))
            return false;
        if (!take(r, ',') && peek(r) != ']')
            return bad(r, "a list does not end", NULL);
    }
    return true;
}

static bool close_message(struct reader *r)
{
    struct open closed = r->stack[r->depth--];
    add_bytes(&r->stack[r->depth].bytes, closed.id, &closed.bytes);
    str_release(&closed.bytes);
    if (!closed.list) {
        (void)(take(r, ',') || take(r, ';'));
        return true;
    }
    (void)take(r, ',');
    return read_list(r, closed.list);
}

/* A field that is no list comes once, and one of those that exclude each other. */
static bool see_field(struct reader *r, const ProtobufCFieldDescriptor *field)
{
    struct open *in = &r->stack[r->depth];
    const ProtobufCFieldDescriptor *fields = in->descriptor->fields;
    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        return true;
    for (size_t i = 0; i < in->descriptor->n_fields && i < 64; i++) {
        if (!(in->seen >> i & 1))
            continue;
        if (&fields[i] == field)
            return bad(r, "a field that is no list comes twice:", field->name);
        if (field->flags & fields[i].flags & PROTOBUF_C_FIELD_FLAG_ONEOF &&
            fields[i].quantifier_offset == field->quantifier_offset)
            return bad(r, "a field that excludes it came before", field->name);
    }
    size_t place = (size_t)(field - fields);
    if (place < 64)
        in->seen |= (uint64_t)1 << place;
    return true;
}

static bool read_field(struct reader *r)
{
    char name[WORD_MAX];
    if (take(r, '[')) { /* an extension, or what an Any holds */
        while (r->at < r->end && *r->at != ']')
            r->at++;
        r->at += r->at < r->end;
        (void)take(r, ':');
        return peek(r) == '{' || peek(r) == '<'
                   ? skip_message(r)
                   : bad(r, "an extension that is no message", NULL);
    }
    if (!read_word(r, name))
        return false;
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(r->stack[r->depth].descriptor, name);
    if (!field)
        return bad(r, "there is no field", name);
    if (!see_field(r, field))
        return false;
    bool colon = take(r, ':');
    char c = peek(r);
    bool message = field->type == PROTOBUF_C_TYPE_MESSAGE, ok;
    if (c == '{' || c == '<')
        ok = open_message(r, field, NULL);
    else if (!colon && !(message && c == '['))
        ok = bad(r, message ? "a '{' is missing after" : "a ':' is missing after", name);
    else if (take(r, '['))
        ok = field->label == PROTOBUF_C_LABEL_REPEATED ? read_list(r, field)
                                                       : bad(r, "not a list:", name);
    else
        ok = message ? bad(r, "a '{' is missing after", name) : read_scalar(r, field);
    if (ok && peek(r) != '}')
        (void)(take(r, ',') || take(r, ';'));
    return ok;
}

bool text_serialize(const ProtobufCMessageDescriptor *descriptor, const char *text, size_t size,
                    struct str *out, struct error *err)
{
    struct reader *r = calloc(1, sizeof(*r));
    if (!r)
        return fail(err, EXHAUSTED, "no memory to read a message in text form");
    r->at = text;
    r->end = text + size;
    r->line = 1;
    r->err = err;
    r->stack[0].descriptor = descriptor;
    bool ok = true;
    for (char c; ok && (c = peek(r));) {
        if (r->depth && c == r->stack[r->depth].close) {
            r->at++;
            ok = close_message(r);
        } else {
            ok = read_field(r);
        }
    }
    if (ok && r->depth)
        ok = bad(r, "a message does not end", NULL);
    if (ok)
        str_add_bytes(out, str_text(&r->stack[0].bytes), r->stack[0].bytes.size);
    for (int i = 0; i <= r->depth; i++)
        str_release(&r->stack[i].bytes);
    free(r);
    return ok;
}
