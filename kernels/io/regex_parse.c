/*
 * regex_parse.c - from a pattern to a tree, whose depth is bounded by that of the parentheses.
 */

#include "kernels/io/regex_program.h"

#include <unicode/uchar.h>
#include <unicode/uscript.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"

#define DEPTH_MAX 1000  /* of parentheses */
#define REPEAT_MAX 1000 /* of x{n,m}, nested ones multiplied */

enum flags { FOLD = 1, MULTILINE = 2, DOT_NEWLINE = 4, SWAP_LAZY = 8 };

struct parser {
    struct kernel_regex *regex;
    struct arena *arena;
    const char *at, *end;
    int flags;
    int depth;
    struct error *err;
};

static struct regex_tree *leaf(struct parser *p, int kind, int which)
{
    struct regex_tree *tree = arena_alloc(p->arena, sizeof(*tree));
    tree->kind = kind;
    tree->which = which;
    tree->size = 1;
    return tree;
}

static void *bad_part(struct parser *p, const char *what, const char *from, const char *to)
{
    size_t size = (size_t)(to - from);
    return fail_null(p->err, INVALID, "%s: %.*s", what, (int)(size < 100 ? size : 100), from);
}

static void *bad(struct parser *p, const char *what, const char *from)
{
    return bad_part(p, what, from, p->end);
}

/* --- classes --- */

static int new_class(struct parser *p)
{
    struct kernel_regex *r = p->regex;
    r->classes =
        alloc_grow(r->classes, r->classes_count, &r->classes_capacity, sizeof(*r->classes));
    r->classes[r->classes_count] = (struct regex_class){.fold = p->flags & FOLD};
    return r->classes_count++;
}

static void add_item(struct parser *p, int class, struct regex_item item)
{
    struct regex_class *set = &p->regex->classes[class];
    set->items = alloc_grow(set->items, set->count, &set->capacity, sizeof(item));
    set->items[set->count++] = item;
}

static void add_range(struct parser *p, int class, uint32_t low, uint32_t high)
{
    add_item(p, class, (struct regex_item){ITEM_RANGE, false, low, high});
}

static bool next_is(const struct parser *p, const char *text)
{
    size_t size = strlen(text);
    return (size_t)(p->end - p->at) >= size && memcmp(p->at, text, size) == 0;
}

/* \d \s \w and their opposites. */
static bool perl_class(struct parser *p, int class)
{
    static const struct {
        char letter;
        const char *set;
    } perl[] = {{'d', "digit"}, {'s', "perl-space"}, {'w', "word"}};
    for (int i = 0; p->end - p->at >= 2 && p->at[0] == '\\' && i < ARRAY_LEN(perl); i++) {
        bool negated = p->at[1] == perl[i].letter - 'a' + 'A';
        if (p->at[1] != perl[i].letter && !negated)
            continue;
        int set = kernel_regex_ascii_set(perl[i].set, strlen(perl[i].set));
        add_item(p, class, (struct regex_item){ITEM_ASCII, negated, (uint32_t)set, 0});
        p->at += 2;
        return true;
    }
    return false;
}

/* \pL, \p{Greek}, \P{^Lu}; `*failed` when there is no such thing. */
static bool unicode_class(struct parser *p, int class, bool *failed)
{
    const char *start = p->at;
    char name[40];
    if (p->end - p->at < 3 || p->at[0] != '\\' || (p->at[1] != 'p' && p->at[1] != 'P'))
        return false;
    bool negated = p->at[1] == 'P';
    const char *from = p->at + 2, *to = from + 1;
    p->at += 3;
    if (*from == '{') {
        to = memchr(from, '}', (size_t)(p->end - from));
        *failed = !to;
        if (!to)
            return bad(p, "invalid character class range", start) != NULL;
        p->at = to + 1;
        from++;
    }
    if (from < to && *from == '^') {
        negated = !negated;
        from++;
    }
    snprintf(name, sizeof(name), "%.*s", (int)(to - from), from);
    if (strcmp(name, "Any") == 0) {
        add_item(p, class, (struct regex_item){ITEM_RANGE, negated, 0, 0x10ffff});
        return true;
    }
    int32_t category = strlen(name) <= 2
                           ? u_getPropertyValueEnum(UCHAR_GENERAL_CATEGORY_MASK, name)
                           : UCHAR_INVALID_CODE;
    int32_t script = u_getPropertyValueEnum(UCHAR_SCRIPT, name);
    if (category != UCHAR_INVALID_CODE)
        add_item(p, class, (struct regex_item){ITEM_CATEGORY, negated, (uint32_t)category, 0});
    else if (script != UCHAR_INVALID_CODE && strlen(name) > 2)
        add_item(p, class, (struct regex_item){ITEM_SCRIPT, negated, (uint32_t)script, 0});
    else
        *failed = !bad(p, "invalid character class range", start);
    return !*failed;
}

/* --- characters --- */

static int digit_of(char c, int base)
{
    int digit = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : 16;
    return digit < base ? digit : -1;
}

/* \x7F, \x{10FFFF}, at the x. */
static int32_t hexadecimal(struct parser *p)
{
    int32_t value = 0;
    bool braces = ++p->at < p->end && *p->at == '{';
    p->at += braces;
    int digits = 0;
    for (; p->at < p->end && digits < (braces ? 8 : 2) && digit_of(*p->at, 16) >= 0; digits++)
        value = value > 0x10ffff ? value : value * 16 + digit_of(*p->at++, 16);
    bool closed = !braces || (p->at < p->end && *p->at == '}');
    p->at += braces && closed;
    return closed && value <= 0x10ffff && (braces ? digits > 0 : digits == 2) ? value : -1;
}

/* An escape that stands for one character; -1 (the error set) if it does not. */
static int32_t escaped(struct parser *p)
{
    static const char letters[] = "aftnrv", values[] = "\a\f\t\n\r\v";
    const char *start = p->at++;
    int32_t value = -1;
    if (p->at == p->end) {
        bad(p, "trailing \\", start);
        return -1;
    }
    unsigned char c = (unsigned char)*p->at;
    const char *letter = c ? strchr(letters, c) : NULL;
    bool octal =
        c == '0' || (c >= '1' && c <= '7' && p->at + 1 < p->end && digit_of(p->at[1], 8) >= 0);
    if (octal) {
        value = 0;
        for (int i = 0; i < 3 && p->at < p->end && digit_of(*p->at, 8) >= 0; i++)
            value = value * 8 + digit_of(*p->at++, 8);
    } else if (c == 'x') {
        value = hexadecimal(p);
    } else if (letter) {
        value = values[letter - letters];
        p->at++;
    } else if (c < 0x80 && digit_of((char)c, 10) < 0 && !((c | 32) >= 'a' && (c | 32) <= 'z')) {
        value = c;
        p->at++;
    }
    if (value < 0)
        bad(p, "invalid escape sequence", start);
    return value;
}

/* One character as itself; -1 with the error set. */
static int32_t literal(struct parser *p)
{
    size_t bytes;
    int32_t c = kernel_regex_character(p->at, (size_t)(p->end - p->at), 0, &bytes);
    if (c < 0)
        bad(p, "invalid UTF-8", p->end);
    else
        p->at += bytes;
    return c;
}

static int32_t class_character(struct parser *p, const char *start)
{
    if (p->at == p->end) {
        bad(p, "missing ]", start);
        return -1;
    }
    return *p->at == '\\' ? escaped(p) : literal(p);
}

/* [:alpha:] or [:^alpha:], at the bracket. */
static bool posix_class(struct parser *p, int class, bool *failed)
{
    const char *close =
        next_is(p, "[:") ? memmem(p->at + 2, (size_t)(p->end - p->at - 2), ":]", 2) : NULL;
    if (!close)
        return false;
    const char *name = p->at + 2;
    bool negated = name < close && *name == '^';
    name += negated;
    int set = kernel_regex_ascii_set(name, (size_t)(close - name));
    *failed = set < 0 && !bad(p, "invalid character class range", p->at);
    if (!*failed)
        add_item(p, class, (struct regex_item){ITEM_ASCII, negated, (uint32_t)set, 0});
    p->at = close + 2;
    return true;
}

/* At the bracket. */
static struct regex_tree *parse_class(struct parser *p)
{
    const char *start = p->at++;
    int class = new_class(p);
    bool negated = p->at < p->end && *p->at == '^', failed = false;
    p->at += negated;
    p->regex->classes[class].negated = negated;
    for (bool first = true; first || p->at == p->end || *p->at != ']'; first = false) {
        if (p->at == p->end)
            return bad(p, "missing ]", start);
        if (posix_class(p, class, &failed) || perl_class(p, class) ||
            unicode_class(p, class, &failed)) {
            if (failed)
                return NULL;
            continue;
        }
        if (failed)
            return NULL;
        const char *range = p->at;
        int32_t low = class_character(p, start), high = low;
        if (low >= 0 && p->end - p->at >= 2 && p->at[0] == '-' && p->at[1] != ']') {
            p->at++;
            high = class_character(p, start);
            if (high >= 0 && high < low)
                return bad_part(p, "invalid character class range", range, p->at);
        }
        if (low < 0 || high < 0)
            return NULL;
        add_range(p, class, (uint32_t)low, (uint32_t)high);
    }
    p->at++;
    return leaf(p, TREE_CLASS, class);
}

static struct regex_tree *one_character(struct parser *p, int32_t c)
{
    if (c < 0)
        return NULL;
    int class = new_class(p);
    add_range(p, class, (uint32_t)c, (uint32_t)c);
    return leaf(p, TREE_CLASS, class);
}

/* --- the rest of an expression --- */

static void append(struct regex_tree *list, struct regex_tree **last, struct regex_tree *item)
{
    item->before = *last;
    if (*last)
        (*last)->next = item;
    else
        list->first = item;
    *last = item;
    if (item->size > list->size)
        list->size = item->size;
}

/* \A \z \b \B, classes, characters; \Q...\E is taken care of before. */
static struct regex_tree *parse_escape(struct parser *p)
{
    static const char letters[] = "AzbB";
    static const enum regex_assert asserts[] = {ASSERT_TEXT_BEGIN, ASSERT_TEXT_END,
                                                ASSERT_WORD_EDGE, ASSERT_NO_WORD_EDGE};
    char letter = p->end - p->at >= 2 ? p->at[1] : 0;
    const char *found = letter ? strchr(letters, letter) : NULL;
    bool failed = false;
    if (found) {
        p->at += 2;
        return leaf(p, TREE_ASSERT, (int)asserts[found - letters]);
    }
    if (letter == 'C' || strchr("dDsSwWpP", letter ? letter : 'x')) {
        int class = new_class(p);
        if (letter == 'C') {
            p->at += 2;
            add_range(p, class, 0, 0x10ffff);
            p->regex->classes[class].bytes = p->regex->bytes = true;
        } else if (!perl_class(p, class)) {
            failed = !unicode_class(p, class, &failed);
            if (failed && p->err->code == OK)
                return bad(p, "invalid escape sequence", p->at);
        }
        return failed ? NULL : leaf(p, TREE_CLASS, class);
    }
    return one_character(p, escaped(p));
}

static struct regex_tree *parse_either(struct parser *p);

/* Flags in (?i-s:...) or (?i); at the question mark.  True if a group begins. */
static bool parse_flags(struct parser *p, bool *failed)
{
    static const char letters[] = "imsU";
    static const int values[] = {FOLD, MULTILINE, DOT_NEWLINE, SWAP_LAZY};
    const char *start = p->at - 1;
    bool off = false, seen = false;
    int flags = p->flags;
    for (p->at++; p->at < p->end; p->at++) {
        const char *letter = *p->at ? strchr(letters, *p->at) : NULL;
        if (letter) {
            int flag = values[letter - letters];
            flags = off ? flags & ~flag : flags | flag;
            seen = true;
        } else if (*p->at == '-' && !off) {
            off = true;
            seen = false;
        } else if ((*p->at == ':' || *p->at == ')') && (!off || seen)) {
            p->flags = flags;
            return *p->at++ == ':';
        } else {
            break;
        }
    }
    *failed = !bad_part(p, "invalid perl operator", start, p->at + (p->at < p->end));
    return false;
}

/* (?P<name>, at the question mark. */
static bool parse_name(struct parser *p, bool *failed)
{
    if (!next_is(p, "?P<"))
        return false;
    const char *start = p->at - 1, *name = p->at + 3;
    const char *close = memchr(name, '>', (size_t)(p->end - name));
    *failed = !close || close == name;
    for (const char *c = name; close && c < close; c++)
        *failed = *failed || !(*c == '_' || digit_of(*c, 10) >= 0 ||
                               ((*c | 32) >= 'a' && (*c | 32) <= 'z'));
    if (*failed)
        bad(p, "invalid named capture group", start);
    else
        p->at = close + 1;
    return true;
}

/* At the parenthesis.  Flags alone give an empty tree and hold until the group around ends. */
static struct regex_tree *parse_group(struct parser *p)
{
    const char *start = p->at++;
    int flags = p->flags, number = -1;
    bool failed = false;
    if (p->at < p->end && *p->at == '?' && !parse_name(p, &failed)) {
        if (!parse_flags(p, &failed))
            return failed ? NULL : leaf(p, TREE_EMPTY, 0);
    } else if (!failed) {
        number = ++p->regex->groups;
    }
    if (failed)
        return NULL;
    if (++p->depth > DEPTH_MAX)
        return bad(p, "expression nests too deeply", start);
    struct regex_tree *inner = parse_either(p);
    p->depth--;
    if (!inner)
        return NULL;
    if (p->at == p->end)
        return bad(p, "missing )", start);
    p->at++;
    p->flags = flags;
    if (number < 0)
        return inner;
    struct regex_tree *group = leaf(p, TREE_GROUP, number);
    group->first = inner;
    group->size = inner->size;
    return group;
}

static struct regex_tree *parse_atom(struct parser *p)
{
    switch (*p->at) {
    case '(':
        return parse_group(p);
    case '[':
        return parse_class(p);
    case '\\':
        return parse_escape(p);
    case '.': {
        int class = new_class(p);
        add_range(p, class, 0, 0x10ffff);
        if (!(p->flags & DOT_NEWLINE)) {
            p->regex->classes[class].items[0] =
                (struct regex_item){ITEM_RANGE, true, '\n', '\n'};
            p->regex->classes[class].fold = false;
        }
        p->at++;
        return leaf(p, TREE_CLASS, class);
    }
    case '^':
        p->at++;
        return leaf(p, TREE_ASSERT,
                    p->flags & MULTILINE ? ASSERT_LINE_BEGIN : ASSERT_TEXT_BEGIN);
    case '$':
        p->at++;
        return leaf(p, TREE_ASSERT, p->flags & MULTILINE ? ASSERT_LINE_END : ASSERT_TEXT_END);
    default:
        return one_character(p, literal(p));
    }
}

/* Digits; -1 if there are none, more than allowed when there are many. */
static int parse_count(struct parser *p)
{
    int value = -1;
    for (; p->at < p->end && digit_of(*p->at, 10) >= 0; p->at++)
        value = value > REPEAT_MAX ? value : (value < 0 ? 0 : value) * 10 + (*p->at - '0');
    return value;
}

/* * + ? {n} {n,} {n,m}; what looks otherwise is no repetition but text. */
static bool parse_operator(struct parser *p, int *min, int *max)
{
    const char *start = p->at;
    static const char signs[] = "*+?";
    const char *sign = *p->at ? strchr(signs, *p->at) : NULL;
    if (sign) {
        *min = *sign == '+';
        *max = *sign == '?' ? 1 : -1;
        p->at++;
        return true;
    }
    if (*p->at != '{')
        return false;
    p->at++;
    *max = *min = parse_count(p);
    if (*min >= 0 && p->at < p->end && *p->at == ',') {
        p->at++;
        *max = parse_count(p);
    }
    if (*min >= 0 && p->at < p->end && *p->at == '}') {
        p->at++;
        return true;
    }
    p->at = start;
    return false;
}

/* What may stand behind an atom. */
static struct regex_tree *parse_repeats(struct parser *p, struct regex_tree *inner)
{
    int min, max;
    const char *start = p->at;
    if (!inner || p->at == p->end || !parse_operator(p, &min, &max))
        return inner;
    struct regex_tree *repeat = leaf(p, TREE_REPEAT, 0);
    bool lazy = p->at < p->end && *p->at == '?';
    p->at += lazy;
    int times = max > min ? max : min;
    bool counted = start[0] == '{';
    if (counted && (times > REPEAT_MAX || (max >= 0 && max < min) ||
                    (times > 1 && inner->size > REPEAT_MAX / times)))
        return bad(p, "invalid repetition size", start);
    int ignored;
    if (p->at < p->end && parse_operator(p, &ignored, &ignored))
        return bad(p, "bad repetition operator", start);
    repeat->first = inner;
    repeat->min = min;
    repeat->max = max;
    repeat->lazy = lazy != !!(p->flags & SWAP_LAZY);
    repeat->size = inner->size * (counted && times > 1 ? times : 1);
    return repeat;
}

/* Between \Q and \E all stands for itself. */
static bool parse_quoted(struct parser *p, struct regex_tree *list, struct regex_tree **last)
{
    p->at += 2;
    while (p->at < p->end && !next_is(p, "\\E")) {
        struct regex_tree *item = one_character(p, literal(p));
        if (!item)
            return false;
        if (p->at == p->end || next_is(p, "\\E")) { /* a repetition is of the last one */
            p->at += p->at < p->end ? 2 : 0;
            item = parse_repeats(p, item);
            if (item)
                append(list, last, item);
            return item != NULL;
        }
        append(list, last, item);
    }
    p->at += p->at < p->end ? 2 : 0;
    return true;
}

static struct regex_tree *parse_concat(struct parser *p)
{
    struct regex_tree *list = leaf(p, TREE_CONCAT, 0), *last = NULL;
    while (p->at < p->end && *p->at != '|' && *p->at != ')') {
        const char *atom = p->at;
        int ignored;
        if (next_is(p, "\\Q")) {
            if (!parse_quoted(p, list, &last))
                return NULL;
            continue;
        }
        if (parse_operator(p, &ignored, &ignored))
            return bad(p, "no argument for repetition operator", atom);
        bool flags = next_is(p, "(?");
        struct regex_tree *item = parse_atom(p);
        if (flags && item && item->kind == TREE_EMPTY && p->at < p->end) {
            append(list, &last, item);
            continue;
        }
        item = parse_repeats(p, item);
        if (!item)
            return NULL;
        append(list, &last, item);
    }
    return list;
}

static struct regex_tree *parse_either(struct parser *p)
{
    struct regex_tree *either = leaf(p, TREE_EITHER, 0), *last = NULL;
    for (;;) {
        struct regex_tree *item = parse_concat(p);
        if (!item)
            return NULL;
        append(either, &last, item);
        if (p->at == p->end || *p->at != '|')
            return either->first->next ? either : either->first;
        p->at++;
    }
}

struct regex_tree *kernel_regex_parse(struct kernel_regex *regex, struct arena *arena,
                                      const char *pattern, size_t size, struct error *err)
{
    struct parser p = {
        .regex = regex, .arena = arena, .at = pattern, .end = pattern + size, .err = err};
    err->code = OK;
    struct regex_tree *tree = parse_either(&p);
    if (tree && p.at < p.end)
        return bad(&p, "unexpected )", pattern);
    return tree;
}
