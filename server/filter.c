/* filter.c - a parser by recursive descent, and a walk over the tree that it makes. */

#include "server/filter.h"

#include <math.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"

enum { DEPTH_MAX = 32, NODES_MAX = 200, TOKEN_BYTES_MAX = 300 };

enum filter_op {
    OP_OR,
    OP_AND,
    OP_NOT,
    OP_EQUAL,
    OP_UNEQUAL,
    OP_LESS,
    OP_MOST,
    OP_MORE,
    OP_LEAST,
    OP_HAS
};

struct filter {
    enum filter_op op;
    const struct filter *left, *right; /* of OR, AND and (left) NOT */
    const char *field;                 /* of comparisons */
    struct filter_value value;
};

enum token_kind {
    TOKEN_END,
    TOKEN_WORD,
    TOKEN_QUOTED_WORD,
    TOKEN_TEXT,
    TOKEN_NUMBER,
    TOKEN_SIGN
};

struct token {
    enum token_kind kind;
    const char *text; /* of words and texts */
    double number;
    char sign[3];
    int column; /* where it begins, from 1 */
};

struct parser {
    struct arena *arena;
    const char *text;
    const char *at;
    struct token token; /* the next one */
    filter_field *field;
    struct error *err;
    int nodes;
};

static bool wrong(const struct parser *p, int column, const char *what)
{
    return fail(p->err, INVALID, "filter, column %d: %s", column, what);
}

/* --- tokens --- */

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_' || c == '.' || c == '/' || c == '-';
}

/* What stands between quotes, where two of them are one. */
static bool quoted(struct parser *p)
{
    char quote = *p->at++;
    struct str text = {0};
    while (*p->at && (*p->at != quote || p->at[1] == quote)) {
        str_add_char(&text, *p->at);
        p->at += *p->at == quote ? 2 : 1;
    }
    bool ok = *p->at == quote;
    p->at += ok;
    p->token.kind = quote == '`' ? TOKEN_QUOTED_WORD : TOKEN_TEXT;
    p->token.text = arena_text(p->arena, str_text(&text));
    str_release(&text);
    return ok || wrong(p, p->token.column, "this quote has no end");
}

static bool number(struct parser *p)
{
    char copy[64];
    size_t size = strspn(p->at, "+-.0123456789eE");
    char *end = copy;
    if (size < sizeof(copy)) {
        memcpy(copy, p->at, size);
        copy[size] = 0;
        p->token.number = strtod(copy, &end);
    }
    if (end == copy || *end || !isfinite(p->token.number) || is_word(p->at[size]))
        return wrong(p, p->token.column, "this is no number");
    p->token.kind = TOKEN_NUMBER;
    p->at += size;
    return true;
}

static bool sign(struct parser *p)
{
    static const char *const signs[] = {"==", "!=", "<=", ">=", "=", "<", ">", "~", "(", ")"};
    for (size_t i = 0; i < ARRAY_LEN(signs); i++) {
        size_t size = strlen(signs[i]);
        if (strncmp(p->at, signs[i], size) != 0)
            continue;
        p->token.kind = TOKEN_SIGN;
        memcpy(p->token.sign, signs[i], size + 1);
        p->at += size;
        return true;
    }
    return wrong(p, p->token.column, "this character has no meaning here");
}

static bool next(struct parser *p)
{
    p->at += strspn(p->at, " \t\r\n");
    p->token = (struct token){.kind = TOKEN_END, .column = (int)(p->at - p->text) + 1};
    char c = *p->at;
    if (!c)
        return true;
    if (c == '\'' || c == '"' || c == '`')
        return quoted(p);
    if ((c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.')
        return number(p);
    if (!is_word(c))
        return sign(p);
    size_t size = 0;
    while (is_word(p->at[size]))
        size++;
    if (size > TOKEN_BYTES_MAX)
        return wrong(p, p->token.column, "this word is too long");
    p->token.kind = TOKEN_WORD;
    p->token.text = arena_text_n(p->arena, p->at, size);
    p->at += size;
    return true;
}

static bool is_sign(const struct parser *p, const char *sign)
{
    return p->token.kind == TOKEN_SIGN && strcmp(p->token.sign, sign) == 0;
}

static bool is_keyword(const struct parser *p, const char *word)
{
    return p->token.kind == TOKEN_WORD && strcasecmp(p->token.text, word) == 0;
}

/* --- the tree --- */

static const struct filter *parse_or(struct parser *p, int depth);

static struct filter *node(struct parser *p, enum filter_op op, const struct filter *left,
                           const struct filter *right)
{
    if (++p->nodes > NODES_MAX) {
        (void)wrong(p, p->token.column, "the expression is too long");
        return NULL;
    }
    struct filter *filter = arena_alloc(p->arena, sizeof(*filter));
    *filter = (struct filter){.op = op, .left = left, .right = right};
    return filter;
}

static bool parse_operator(struct parser *p, enum filter_op *op)
{
    static const struct {
        const char *sign;
        enum filter_op op;
    } operators[] = {{"=", OP_EQUAL}, {"==", OP_EQUAL}, {"!=", OP_UNEQUAL}, {"<", OP_LESS},
                     {"<=", OP_MOST}, {">", OP_MORE},   {">=", OP_LEAST},   {"~", OP_HAS}};
    for (size_t i = 0; i < ARRAY_LEN(operators); i++)
        if (is_sign(p, operators[i].sign)) {
            *op = operators[i].op;
            return next(p);
        }
    return wrong(p, p->token.column, "expected one of = != < <= > >= ~");
}

static bool parse_value(struct parser *p, struct filter_value *value)
{
    *value = (struct filter_value){.kind = FILTER_NULL};
    if (p->token.kind == TOKEN_NUMBER) {
        value->kind = FILTER_NUMBER;
        value->number = p->token.number;
    } else if (p->token.kind == TOKEN_TEXT) {
        value->kind = FILTER_TEXT;
        value->text = p->token.text;
    } else if (is_keyword(p, "true") || is_keyword(p, "false")) {
        value->kind = FILTER_TRUTH;
        value->number = is_keyword(p, "true");
    } else if (!is_keyword(p, "null")) {
        return wrong(p, p->token.column, "expected a number, 'text', true, false or null");
    }
    return next(p);
}

static const char *kind_name(enum filter_kind kind)
{
    static const char *const names[] = {"null", "a number", "a text", "true or false", "any"};
    return names[kind];
}

/* What can never be true is more likely a mistake than meant. */
static bool check_kinds(const struct parser *p, const struct filter *filter,
                        enum filter_kind kind, int column)
{
    enum filter_kind is = filter->value.kind;
    bool equal = filter->op == OP_EQUAL || filter->op == OP_UNEQUAL;
    if (filter->op == OP_HAS && is != FILTER_TEXT)
        return wrong(p, column, "~ takes a text");
    if ((is == FILTER_NULL || is == FILTER_TRUTH) && !equal)
        return wrong(p, column, "only = and != go with true, false and null");
    if (kind != FILTER_ANY && is != FILTER_NULL && is != kind)
        return fail(p->err, INVALID, "filter, column %d: %.100s is %s, not %s", column,
                    filter->field, kind_name(kind), kind_name(is));
    return true;
}

static const struct filter *parse_comparison(struct parser *p)
{
    int column = p->token.column;
    enum filter_kind kind;
    if (p->token.kind != TOKEN_WORD && p->token.kind != TOKEN_QUOTED_WORD) {
        (void)wrong(p, column, "expected the name of a field");
        return NULL;
    }
    struct filter *filter = node(p, OP_EQUAL, NULL, NULL);
    if (!filter)
        return NULL;
    filter->field = p->token.text;
    if (!p->field(filter->field, &kind, p->err)) {
        (void)error_prefix(p->err, "filter, column %d: ", column);
        return NULL;
    }
    if (!next(p) || !parse_operator(p, &filter->op))
        return NULL;
    column = p->token.column;
    return parse_value(p, &filter->value) && check_kinds(p, filter, kind, column) ? filter
                                                                                  : NULL;
}

static const struct filter *parse_not(struct parser *p, int depth)
{
    if (depth > DEPTH_MAX) {
        (void)wrong(p, p->token.column, "nested too deep");
        return NULL;
    }
    if (is_keyword(p, "not")) {
        const struct filter *inner = next(p) ? parse_not(p, depth + 1) : NULL;
        return inner ? node(p, OP_NOT, inner, NULL) : NULL;
    }
    if (!is_sign(p, "("))
        return parse_comparison(p);
    const struct filter *inner = next(p) ? parse_or(p, depth + 1) : NULL;
    if (!inner)
        return NULL;
    if (!is_sign(p, ")")) {
        (void)wrong(p, p->token.column, "expected and, or, or a closing parenthesis");
        return NULL;
    }
    return next(p) ? inner : NULL;
}

static const struct filter *parse_and(struct parser *p, int depth)
{
    const struct filter *left = parse_not(p, depth);
    while (left && is_keyword(p, "and")) {
        const struct filter *right = next(p) ? parse_not(p, depth) : NULL;
        left = right ? node(p, OP_AND, left, right) : NULL;
    }
    return left;
}

static const struct filter *parse_or(struct parser *p, int depth)
{
    const struct filter *left = parse_and(p, depth);
    while (left && is_keyword(p, "or")) {
        const struct filter *right = next(p) ? parse_and(p, depth) : NULL;
        left = right ? node(p, OP_OR, left, right) : NULL;
    }
    return left;
}

struct filter *filter_parse(struct arena *arena, const char *text, filter_field *field,
                            struct error *err)
{
    struct parser p = {.arena = arena, .text = text, .at = text, .field = field, .err = err};
    const struct filter *filter = next(&p) ? parse_or(&p, 0) : NULL;
    if (filter && p.token.kind != TOKEN_END) {
        (void)wrong(&p, p.token.column, "expected and, or, or the end");
        return NULL;
    }
    return (struct filter *)filter;
}

/* --- a row --- */

static bool is_within(const char *text, const char *part)
{
    return strcasestr(text, part) != NULL;
}

static bool compare(enum filter_op op, const struct filter_value *is,
                    const struct filter_value *wanted)
{
    bool text = is->kind == FILTER_TEXT;
    if (is->kind != wanted->kind)
        return false;
    if (is->kind == FILTER_NULL)
        return op == OP_EQUAL;
    int order = text ? strcmp(is->text, wanted->text) : 0;
    double a = text ? order : is->number, b = text ? 0 : wanted->number;
    switch (op) {
    case OP_EQUAL:
        return a == b;
    case OP_LESS:
        return a < b;
    case OP_MOST:
        return a <= b;
    case OP_MORE:
        return a > b;
    case OP_LEAST:
        return a >= b;
    case OP_HAS:
        return text && is_within(is->text, wanted->text);
    case OP_UNEQUAL:
    case OP_OR:
    case OP_AND:
    case OP_NOT:
        break;
    }
    return false;
}

/* Of a list, whether any of it is such. */
static bool compare_any(enum filter_op op, const struct filter_value *is,
                        const struct filter_value *wanted)
{
    if (!is->list)
        return compare(op, is, wanted);
    for (int i = 0; i < is->list_count; i++) {
        struct filter_value one = {.kind = FILTER_TEXT, .text = is->list[i]};
        if (compare(op, &one, wanted))
            return true;
    }
    return false;
}

static bool match_comparison(const struct filter *filter, filter_lookup *lookup, void *row,
                             bool *matches, struct error *err)
{
    struct filter_value is = {.kind = FILTER_NULL};
    if (!lookup(row, filter->field, &is, err))
        return false;
    if (filter->op == OP_UNEQUAL)
        *matches = !compare_any(OP_EQUAL, &is, &filter->value);
    else
        *matches = compare_any(filter->op, &is, &filter->value);
    return true;
}

bool filter_match(const struct filter *filter, filter_lookup *lookup, void *row, bool *matches,
                  struct error *err)
{
    switch (filter->op) {
    case OP_OR:
    case OP_AND:
        if (!filter_match(filter->left, lookup, row, matches, err))
            return false;
        if (*matches == (filter->op == OP_OR))
            return true;
        return filter_match(filter->right, lookup, row, matches, err);
    case OP_NOT:
        if (!filter_match(filter->left, lookup, row, matches, err))
            return false;
        *matches = !*matches;
        return true;
    case OP_EQUAL:
    case OP_UNEQUAL:
    case OP_LESS:
    case OP_MOST:
    case OP_MORE:
    case OP_LEAST:
    case OP_HAS:
        break;
    }
    return match_comparison(filter, lookup, row, matches, err);
}
