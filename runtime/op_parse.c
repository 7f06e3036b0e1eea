/* op_parse.c - a reader for the little language of op signatures (its form is in op.h). */

#include <ctype.h>
#include <setjmp.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/error.h"
#include "runtime/op_parse.h"
#include "runtime/tensor.h"

struct reader {
    const struct op *op;
    const char *text; /* the whole, for messages */
    const char *at;
    struct arena *arena;
    struct error *err; /* NULL: a mistake ends the program */
    jmp_buf give_up;
};

/* Signatures are ours, so a wrong one is a mistake in the program; but for a library's. */
static _Noreturn void malformed(struct reader *reader, const char *expected)
{
    if (reader->err) {
        fail(reader->err, INVALID, "signature of op '%s': %s expected at '%s' in '%s'",
             reader->op->name, expected, reader->at, reader->text);
        longjmp(reader->give_up, 1);
    }
    fprintf(stderr, "level=error at=op msg=\"signature of %s: %s expected at '%s' in '%s'\"\n",
            reader->op->name, expected, reader->at, reader->text);
    abort();
}

static void skip_blanks(struct reader *reader)
{
    while (isspace((unsigned char)*reader->at))
        reader->at++;
}

/* Takes `text` if it comes next. */
static bool take(struct reader *reader, const char *text)
{
    skip_blanks(reader);
    size_t size = strlen(text);
    if (strncmp(reader->at, text, size) != 0)
        return false;
    reader->at += size;
    return true;
}

static void expect(struct reader *reader, const char *text)
{
    if (!take(reader, text))
        malformed(reader, text);
}

static const char *take_word(struct reader *reader)
{
    skip_blanks(reader);
    const char *start = reader->at;
    while (isalnum((unsigned char)*reader->at) || *reader->at == '_')
        reader->at++;
    if (reader->at == start)
        malformed(reader, "a word");
    return arena_text_n(reader->arena, start, (size_t)(reader->at - start));
}

static int64_t take_int(struct reader *reader)
{
    skip_blanks(reader);
    char *end;
    long long value = strtoll(reader->at, &end, 10);
    if (end == reader->at)
        malformed(reader, "an integer");
    reader->at = end;
    return value;
}

static int take_type(struct reader *reader)
{
    const char *word = take_word(reader);
    enum dtype dtype = dtype_find(word);
    if (dtype == DTYPE_NONE)
        malformed(reader, "a type");
    return dtype;
}

static struct attr_bytes take_string(struct reader *reader)
{
    skip_blanks(reader);
    char quote = *reader->at;
    if (quote != '\'' && quote != '"')
        malformed(reader, "a quoted string");
    const char *start = ++reader->at;
    while (*reader->at && *reader->at != quote)
        reader->at++;
    size_t size = (size_t)(reader->at - start);
    expect(reader, quote == '"' ? "\"" : "'");
    return (struct attr_bytes){arena_text_n(reader->arena, start, size), size};
}

static struct shape take_shape(struct reader *reader)
{
    if (take(reader, "<unk>"))
        return SHAPE_UNKNOWN;
    struct shape shape = SHAPE_SCALAR;
    expect(reader, "[");
    while (!take(reader, "]")) {
        assert(shape.rank < LIMIT_TENSOR_RANK);
        shape.dims[shape.rank++] = take(reader, "?") ? -1 : take_int(reader);
        take(reader, ",");
    }
    return shape;
}

/* --- "x:T  values:N*T  input:list(Tin)  ref:Ref(T)  n:N*Ref(float)" --- */

static void parse_arg_type(struct reader *reader, struct op_arg *arg)
{
    if (take(reader, "Ref(")) {
        arg->is_ref = true;
        parse_arg_type(reader, arg); /* one level: a Ref holds a word */
        expect(reader, ")");
        return;
    }
    const char *word = take_word(reader);
    enum dtype dtype = dtype_find(word);
    if (dtype != DTYPE_NONE)
        arg->dtype = arg->is_ref ? (int)dtype + DTYPE_REF : (int)dtype;
    else
        arg->type_attr = word;
}

static void parse_arg(struct reader *reader, struct op_arg *arg)
{
    arg->name = take_word(reader);
    expect(reader, ":");
    if (take(reader, "list(")) {
        arg->list_attr = take_word(reader);
        expect(reader, ")");
        return;
    }
    const char *start = reader->at;
    if (!take(reader, "Ref(")) {
        const char *word = take_word(reader);
        if (take(reader, "*")) {
            arg->number_attr = word;
            parse_arg_type(reader, arg);
            return;
        }
    }
    reader->at = start;
    parse_arg_type(reader, arg);
}

/* "uint8[255,0,0]": a vector. */
static struct tensor take_tensor(struct reader *reader)
{
    int64_t values[16];
    int64_t count = 0;
    enum dtype dtype = (enum dtype)take_type(reader);
    for (expect(reader, "["); !take(reader, "]"); take(reader, ",")) {
        assert(count < ARRAY_LEN(values));
        values[count++] = take_int(reader);
    }
    struct tensor tensor;
    struct error err;
    bool made = tensor_init(&tensor, dtype, &SHAPE(count), &err);
    assert(made);
    for (int64_t i = 0; i < count; i++)
        tensor_set_number(&tensor, i, (double)values[i]);
    return tensor;
}

static const struct op_arg *parse_args(struct reader *reader, const char *text, int *count)
{
    reader->text = reader->at = text ? text : "";
    int colons = 0;
    for (const char *c = reader->at; *c; c++)
        colons += *c == ':';
    struct op_arg *args = arena_array(reader->arena, (size_t)colons, sizeof(*args));
    *count = colons;
    for (int i = 0; i < colons; i++) {
        parse_arg(reader, &args[i]);
        take(reader, ",");
    }
    skip_blanks(reader);
    if (*reader->at)
        malformed(reader, "an argument");
    return args;
}

/* --- "T:{float,int32}=float  N:int>=2  strides:list(int)=[1,1]  padding:{'SAME','VALID'}" ---
 */

static const struct {
    const char *name;
    enum attr_kind kind;
    uint64_t types;
} kinds[] = {
    {"string", ATTR_STRING, 0},
    {"int", ATTR_INT, 0},
    {"float", ATTR_FLOAT, 0},
    {"bool", ATTR_BOOL, 0},
    {"shape", ATTR_SHAPE, 0},
    {"tensor", ATTR_TENSOR, 0},
    {"func", ATTR_FUNC, 0},
    {"type", ATTR_TYPE, DTYPES_ANY},
    {"numbertype", ATTR_TYPE, DTYPES_NUMBER | DTYPES_QUANTIZED},
    {"realnumbertype", ATTR_TYPE, DTYPES_REAL},
};

/* "{float, double}" or "{'SAME', 'VALID'}", the brace taken. */
static void parse_set(struct reader *reader, struct op_attr *attr)
{
    const char *strings[64];
    int count = 0;
    skip_blanks(reader);
    attr->kind = *reader->at == '\'' || *reader->at == '"' ? ATTR_STRING : ATTR_TYPE;
    while (!take(reader, "}")) {
        if (attr->kind == ATTR_TYPE) {
            attr->types |= BIT(take_type(reader));
        } else {
            assert(count < ARRAY_LEN(strings));
            strings[count++] = take_string(reader).data;
        }
        take(reader, ",");
    }
    if (attr->kind == ATTR_STRING) {
        const char **list = arena_array(reader->arena, (size_t)count + 1, sizeof(*list));
        memcpy(list, strings, (size_t)count * sizeof(*list));
        attr->strings = list;
    }
}

static void parse_attr_type(struct reader *reader, struct op_attr *attr)
{
    if (take(reader, "{")) {
        parse_set(reader, attr);
        return;
    }
    const char *word = take_word(reader);
    for (int i = 0; i < ARRAY_LEN(kinds); i++) {
        if (!strcmp(kinds[i].name, word)) {
            attr->kind = kinds[i].kind;
            attr->types = kinds[i].types;
            return;
        }
    }
    malformed(reader, "a kind of attribute");
}

/* Reads one value behind those that `attr` holds; room for it is there. */
static void parse_value(struct reader *reader, enum attr_kind kind, void *values, int index)
{
    switch (kind) {
    case ATTR_STRING:
        ((struct attr_bytes *)values)[index] = take_string(reader);
        return;
    case ATTR_INT:
        ((int64_t *)values)[index] = take_int(reader);
        return;
    case ATTR_FLOAT: {
        skip_blanks(reader);
        char *end;
        ((float *)values)[index] = strtof(reader->at, &end);
        if (end == reader->at)
            malformed(reader, "a number");
        reader->at = end;
        return;
    }
    case ATTR_BOOL:
        ((bool *)values)[index] = take(reader, "true");
        if (!((bool *)values)[index])
            expect(reader, "false");
        return;
    case ATTR_TYPE:
        ((int *)values)[index] = take_type(reader);
        return;
    case ATTR_SHAPE:
        ((struct shape *)values)[index] = take_shape(reader);
        return;
    case ATTR_TENSOR:
        ((struct tensor *)values)[index] = take_tensor(reader);
        return;
    default:
        malformed(reader, "no default for this kind");
    }
}

static void parse_default(struct reader *reader, struct op_attr *attr)
{
    enum { VALUES_MAX = 16 };
    void *values =
        arena_array(reader->arena, attr->is_list ? VALUES_MAX : 1, sizeof(struct tensor));
    int count = 0;

    attr->has_default = true;
    if (!attr->is_list) {
        parse_value(reader, attr->kind, values, 0);
        count = 1;
    } else {
        expect(reader, "[");
        while (!take(reader, "]")) {
            assert(count < VALUES_MAX);
            parse_value(reader, attr->kind, values, count++);
            take(reader, ",");
        }
    }
    attr->value = (struct attr){.name = attr->name,
                                .kind = attr->kind,
                                .is_list = attr->is_list,
                                .count = count,
                                .any = values};
}

static void parse_attr(struct reader *reader, struct op_attr *attr)
{
    attr->name = take_word(reader);
    expect(reader, ":");
    if (take(reader, "list(")) {
        attr->is_list = true;
        parse_attr_type(reader, attr);
        expect(reader, ")");
    } else {
        parse_attr_type(reader, attr);
    }
    for (;;) {
        if (take(reader, ">=")) {
            attr->has_minimum = true;
            attr->minimum = take_int(reader);
        } else if (take(reader, "=")) {
            parse_default(reader, attr);
        } else {
            return;
        }
    }
}

static const struct op_attr *parse_attrs(struct reader *reader, const char *text, int *count)
{
    reader->text = reader->at = text ? text : "";
    struct op_attr parsed[64];
    *count = 0;
    for (skip_blanks(reader); *reader->at; skip_blanks(reader)) {
        assert(*count < ARRAY_LEN(parsed));
        parsed[*count] = (struct op_attr){0};
        parse_attr(reader, &parsed[(*count)++]);
        take(reader, ",");
    }
    return arena_copy(reader->arena, parsed, (size_t)*count * sizeof(*parsed));
}

/* Types and numbers that arguments name must be declared. */
static void check_names(struct reader *reader, const struct op_signature *signature,
                        const struct op_arg *args, int count)
{
    for (int i = 0; i < count; i++) {
        const char *names[] = {args[i].type_attr, args[i].number_attr, args[i].list_attr};
        for (int k = 0; k < ARRAY_LEN(names); k++) {
            if (names[k] && !op_signature_attr(signature, names[k])) {
                reader->at = names[k];
                malformed(reader, "a declared attribute");
            }
        }
    }
}

static const struct op_signature *parse(struct reader *reader)
{
    const struct op *op = reader->op;
    struct op_signature *signature = arena_alloc(reader->arena, sizeof(*signature));
    signature->inputs = parse_args(reader, op->inputs, &signature->inputs_count);
    signature->outputs = parse_args(reader, op->outputs, &signature->outputs_count);
    signature->attrs = parse_attrs(reader, op->attrs, &signature->attrs_count);
    check_names(reader, signature, signature->inputs, signature->inputs_count);
    check_names(reader, signature, signature->outputs, signature->outputs_count);
    return signature;
}

const struct op_signature *op_parse(const struct op *op, struct arena *arena)
{
    struct reader reader = {.op = op, .arena = arena};
    return parse(&reader);
}

bool op_parse_check(const struct op *op, struct error *err)
{
    struct reader reader = {.op = op, .arena = arena_new(), .err = err};
    struct arena *arena = reader.arena;
    bool ok = !setjmp(reader.give_up) && parse(&reader);
    arena_free(arena);
    return ok;
}
