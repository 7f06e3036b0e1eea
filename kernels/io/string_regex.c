/* string_regex.c - strings matched by regular expressions, and rewritten. */

#include "kernels/io/regex.h"
#include "kernels/ref/numbers.h"

#include "base/alloc.h"
#include "base/str.h"

static struct kernel_regex *compile(const char *pattern, size_t size, struct error *err)
{
    struct kernel_regex *regex = kernel_regex_new(pattern, size, err);
    if (!regex)
        (void)error_prefix(
            err, "Invalid pattern: %.*s, error: ", (int)(size < 200 ? size : 200), pattern);
    return regex;
}

/* The bytes of a string attribute, NULs too. */
static struct attr_bytes bytes_attr(const struct node *node, const char *name)
{
    const struct attr *attr = node_attr(node, name);
    return attr && attr->kind == ATTR_STRING && attr->count == 1 ? attr->strings[0]
                                                                 : (struct attr_bytes){"", 0};
}

/* Static ones are compiled when a graph is; a wrong pattern is then told by the run. */
static bool prepare(const struct node *node, void **state, struct error *err)
{
    struct attr_bytes pattern = bytes_attr(node, "pattern");
    *state = compile(pattern.data, pattern.size, err);
    return *state != NULL;
}

static void release(void *state)
{
    kernel_regex_free(state);
}

static struct kernel_regex *from_input(const struct kernel_call *call, struct error *err)
{
    const struct tensor *pattern = kernel_in(call, 1);
    char text[SHAPE_TEXT_BYTES];
    if (pattern->shape.rank != 0)
        return fail_null(err, INVALID, "Pattern must be scalar, but received %s",
                         shape_text(&pattern->shape, text, sizeof(text)));
    const struct tensor_string *bytes = tensor_strings(pattern);
    return compile(bytes->data ? bytes->data : "", bytes->size, err);
}

static const char *text_of(const struct tensor_string *text)
{
    return text->data ? text->data : "";
}

/* --- whole matches --- */

static bool match_all(struct kernel_call *call, const struct kernel_regex *regex,
                      struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    for (int64_t i = 0; out && i < out->count; i++) {
        const struct tensor_string *text = tensor_strings(in) + i;
        ((bool *)out->data)[i] =
            kernel_regex_match(regex, text_of(text), text->size, 0, true, NULL, 0);
    }
    return out != NULL;
}

static bool static_match_run(struct kernel_call *call, struct error *err)
{
    return match_all(call, call->state, err);
}

static bool match_run(struct kernel_call *call, struct error *err)
{
    struct kernel_regex *regex = from_input(call, err);
    bool ok = regex && match_all(call, regex, err);
    kernel_regex_free(regex);
    return ok;
}

/* --- replacing --- */

struct rewrite {
    const char *text;
    size_t size;
    int groups; /* that it may name: the match and those up to the highest it does name */
};

static struct rewrite rewrite_of(const char *text, size_t size)
{
    struct rewrite rewrite = {text ? text : "", size, 1};
    for (size_t i = 0; i + 1 < size; i++)
        if (text[i] == '\\') {
            char c = text[++i];
            if (c >= '0' && c <= '9' && c - '0' + 1 > rewrite.groups)
                rewrite.groups = c - '0' + 1;
        }
    return rewrite;
}

/* Appends the rewrite with its groups filled in; false where it is malformed. */
static bool write_match(struct str *out, const struct rewrite *rewrite, const char *text,
                        const struct kernel_regex_span *spans)
{
    for (size_t i = 0; i < rewrite->size; i++) {
        char c = rewrite->text[i];
        if (c != '\\') {
            str_add_char(out, c);
            continue;
        }
        c = ++i < rewrite->size ? rewrite->text[i] : 0;
        if (c >= '0' && c <= '9') {
            const struct kernel_regex_span *span = &spans[c - '0'];
            if (span->from >= 0)
                str_add_bytes(out, text + span->from, (size_t)(span->to - span->from));
        } else if (c == '\\') {
            str_add_char(out, '\\');
        } else {
            return false;
        }
    }
    return true;
}

/* The bytes of the character at `at`, 1 where there is none. */
static size_t character_bytes(const char *text, size_t size, size_t at)
{
    size_t bytes = 1;
    while (at + bytes < size && bytes < 4 && (text[at + bytes] & 0xc0) == 0x80)
        bytes++;
    return str_is_utf8(text + at, bytes) ? bytes : 1;
}

/* Appends the text with its first match, or every one, rewritten. */
static void replace(struct str *out, const struct kernel_regex *regex, const char *text,
                    size_t size, const struct rewrite *rewrite, bool everywhere)
{
    struct kernel_regex_span spans[KERNEL_REGEX_GROUPS];
    size_t at = 0, last_end = SIZE_MAX;
    bool possible = rewrite->groups <= 1 + kernel_regex_groups(regex);
    while (possible && at <= size &&
           kernel_regex_match(regex, text, size, at, false, spans, rewrite->groups)) {
        size_t from = (size_t)spans[0].from, to = (size_t)spans[0].to;
        str_add_bytes(out, text + at, from - at);
        if (from == to && from == last_end) { /* nothing, where the match before ended */
            size_t bytes = from < size ? character_bytes(text, size, from) : 0;
            str_add_bytes(out, text + from, bytes);
            at = bytes ? from + bytes : size + 1;
            continue;
        }
        size_t before = out->size;
        bool written = write_match(out, rewrite, text, spans);
        if (!written && !everywhere) { /* malformed: all stays as it was */
            out->size = before;
            str_add_bytes(out, text + from, to - from);
        }
        at = last_end = to;
        if (!everywhere)
            break;
    }
    if (at < size)
        str_add_bytes(out, text + at, size - at);
}

static bool replace_all(struct kernel_call *call, const struct kernel_regex *regex,
                        struct rewrite rewrite, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    bool everywhere = node_attr_bool(call->node, "replace_global", true);
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    struct str text = {0};
    for (int64_t i = 0; out && i < out->count; i++) {
        const struct tensor_string *from = tensor_strings(in) + i;
        str_clear(&text);
        replace(&text, regex, text_of(from), from->size, &rewrite, everywhere);
        tensor_set_string(out, i, str_text(&text), text.size);
    }
    str_release(&text);
    return out != NULL;
}

static bool static_replace_run(struct kernel_call *call, struct error *err)
{
    struct attr_bytes rewrite = bytes_attr(call->node, "rewrite");
    return replace_all(call, call->state, rewrite_of(rewrite.data, rewrite.size), err);
}

static bool replace_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *rewrite = kernel_in(call, 2);
    char text[SHAPE_TEXT_BYTES];
    struct kernel_regex *regex = from_input(call, err);
    if (!regex)
        return false;
    bool ok = rewrite->shape.rank == 0 ||
              fail(err, INVALID, "Rewrite must be scalar, but received %s",
                   shape_text(&rewrite->shape, text, sizeof(text)));
    if (ok) {
        const struct tensor_string *bytes = tensor_strings(rewrite);
        ok = replace_all(call, regex, rewrite_of(bytes->data, bytes->size), err);
    }
    kernel_regex_free(regex);
    return ok;
}

const struct kernel kernel_regex_full_match = {
    .op = "RegexFullMatch", .device = CPU, .run = match_run};
const struct kernel kernel_static_regex_full_match = {.op = "StaticRegexFullMatch",
                                                      .device = CPU,
                                                      .prepare = prepare,
                                                      .release = release,
                                                      .run = static_match_run};
const struct kernel kernel_regex_replace = {
    .op = "RegexReplace", .device = CPU, .run = replace_run};
const struct kernel kernel_static_regex_replace = {.op = "StaticRegexReplace",
                                                   .device = CPU,
                                                   .prepare = prepare,
                                                   .release = release,
                                                   .run = static_replace_run};
