/*
 * regex.c - the program of a pattern, and the machine that runs it.
 *
 * The program is written from the tree's end to its begin, so that each code knows what comes
 * next.  The machine keeps a list of places in the program, in the order in which Perl would
 * try them, and takes all of them one character further at a time; one byte, if the pattern has
 * \C: then a place may be inside of a character.
 */

#include "kernels/io/regex_program.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"

#define CODES_MAX 100000

/* --- writing --- */

static int emit_code(struct kernel_regex *r, int kind, int next, int other)
{
    r->codes = alloc_grow(r->codes, r->count, &r->capacity, sizeof(*r->codes));
    r->codes[r->count] = (struct regex_code){.kind = kind, .next = next, .other = other};
    return r->count++;
}

static int emit(struct kernel_regex *r, const struct regex_tree *tree, int next);

/* A choice between `first` and `second`, the other way round if lazy. */
static int emit_split(struct kernel_regex *r, int first, int second, bool lazy)
{
    return emit_code(r, CODE_SPLIT, lazy ? second : first, lazy ? first : second);
}

static int emit_repeat(struct kernel_regex *r, const struct regex_tree *tree, int next)
{
    int at = next;
    if (tree->max < 0) { /* one or more, then perhaps none */
        int loop = emit_split(r, next, next, tree->lazy);
        at = emit(r, tree->first, loop);
        if (tree->lazy)
            r->codes[loop].other = at;
        else
            r->codes[loop].next = at;
        if (tree->min == 0)
            at = emit_split(r, at, next, tree->lazy);
    }
    for (int i = tree->min; i < tree->max && r->count < CODES_MAX; i++)
        at = emit_split(r, emit(r, tree->first, at), next, tree->lazy);
    int copies = tree->max < 0 ? tree->min - 1 : tree->min;
    for (int i = 0; i < copies && r->count < CODES_MAX; i++)
        at = emit(r, tree->first, at);
    return at;
}

static int emit_either(struct kernel_regex *r, const struct regex_tree *tree, int next)
{
    const struct regex_tree *last = tree->first;
    while (last->next)
        last = last->next;
    int at = emit(r, last, next);
    for (const struct regex_tree *item = last->before; item; item = item->before)
        at = emit_split(r, emit(r, item, next), at, false);
    return at;
}

/* Where the tree's codes begin; `next` is what follows them. */
static int emit(struct kernel_regex *r, const struct regex_tree *tree, int next)
{
    switch (tree->kind) {
    case TREE_CLASS:
        return emit_code(r, CODE_CLASS, next, tree->which);
    case TREE_ASSERT:
        return emit_code(r, CODE_ASSERT, next, tree->which);
    case TREE_CONCAT: {
        const struct regex_tree *last = tree->first;
        while (last && last->next)
            last = last->next;
        for (; last; last = last->before)
            next = emit(r, last, next);
        return next;
    }
    case TREE_EITHER:
        return emit_either(r, tree, next);
    case TREE_REPEAT:
        return emit_repeat(r, tree, next);
    case TREE_GROUP:
        if (tree->which >= KERNEL_REGEX_GROUPS)
            return emit(r, tree->first, next);
        next = emit_code(r, CODE_SAVE, next, 2 * tree->which + 1);
        return emit_code(r, CODE_SAVE, emit(r, tree->first, next), 2 * tree->which);
    default:
        return next;
    }
}

struct kernel_regex *kernel_regex_new(const char *pattern, size_t size, struct error *err)
{
    struct kernel_regex *regex = alloc_bytes(sizeof(*regex));
    struct arena *arena = arena_new();
    struct regex_tree *tree = kernel_regex_parse(regex, arena, pattern, size, err);
    bool ok = tree != NULL;
    if (ok) {
        int match = emit_code(regex, CODE_MATCH, 0, 0);
        regex->start = emit(regex, tree, match);
        ok = regex->count < CODES_MAX ||
             fail(err, INVALID, "pattern too large - compile failed");
    }
    arena_free(arena);
    if (ok)
        return regex;
    kernel_regex_free(regex);
    return NULL;
}

void kernel_regex_free(struct kernel_regex *regex)
{
    if (!regex)
        return;
    for (int i = 0; i < regex->classes_count; i++)
        free(regex->classes[i].items);
    free(regex->classes);
    free(regex->codes);
    free(regex);
}

int kernel_regex_groups(const struct kernel_regex *regex)
{
    return regex->groups;
}

/* --- running --- */

/* Places in the program, in order; each with what the groups have matched on the way there. */
struct places {
    int *codes; /* times INSIDE_MAX, plus how many bytes of the class's character are left */
    int64_t *saved; /* `slots` for each */
    int count;
};

/* What is still to do while a place's successors are found: a code, or a slot to put back. */
struct pending {
    int code;
    int slot; /* -1: none */
    int64_t before;
};

enum { INSIDE_MAX = 4 };

struct machine {
    const struct kernel_regex *regex;
    const char *text;
    size_t size;
    int slots;
    size_t *seen; /* for each code, the step that it was last listed in; then inside of it */
    size_t step;
    struct pending *pending;
    int64_t *saved; /* on the way to the place at hand */
};

static bool is_word(const struct machine *m, size_t at)
{
    unsigned char c = at < m->size ? (unsigned char)m->text[at] : 0;
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           c == '_';
}

static bool holds(const struct machine *m, int assertion, size_t at)
{
    bool word_edge = (at > 0 && is_word(m, at - 1)) != is_word(m, at);
    switch ((enum regex_assert)assertion) {
    case ASSERT_TEXT_BEGIN:
        return at == 0;
    case ASSERT_TEXT_END:
        return at == m->size;
    case ASSERT_LINE_BEGIN:
        return at == 0 || m->text[at - 1] == '\n';
    case ASSERT_LINE_END:
        return at == m->size || m->text[at] == '\n';
    case ASSERT_WORD_EDGE:
        return word_edge;
    default:
        return !word_edge;
    }
}

static void add_place(struct machine *m, struct places *places, int code, int inside)
{
    memcpy(places->saved + (size_t)places->count * (size_t)m->slots, m->saved,
           (size_t)m->slots * sizeof(*m->saved));
    places->codes[places->count++] = code * INSIDE_MAX + inside;
}

/* Lists all places that are reached from `code` without taking a character. */
static void follow(struct machine *m, struct places *places, int code, size_t at)
{
    int left = 0;
    m->pending[left++] = (struct pending){code, -1, 0};
    while (left > 0) {
        struct pending todo = m->pending[--left];
        if (todo.slot >= 0) {
            m->saved[todo.slot] = todo.before;
            continue;
        }
        if (m->seen[todo.code] == m->step)
            continue;
        m->seen[todo.code] = m->step;
        const struct regex_code *c = &m->regex->codes[todo.code];
        switch (c->kind) {
        case CODE_SPLIT:
            m->pending[left++] = (struct pending){c->other, -1, 0};
            m->pending[left++] = (struct pending){c->next, -1, 0};
            break;
        case CODE_SAVE:
            if (c->other < m->slots) {
                m->pending[left++] = (struct pending){0, c->other, m->saved[c->other]};
                m->saved[c->other] = (int64_t)at;
            }
            m->pending[left++] = (struct pending){c->next, -1, 0};
            break;
        case CODE_ASSERT:
            if (holds(m, c->other, at))
                m->pending[left++] = (struct pending){c->next, -1, 0};
            break;
        default:
            add_place(m, places, todo.code, 0);
        }
    }
}

/* The place of a class goes over a character of `bytes` bytes, of which it may be inside. */
static void take(struct machine *m, struct places *to, int code, size_t at, size_t bytes)
{
    size_t *seen = &m->seen[m->regex->count + code];
    if (!m->regex->bytes || bytes == 1) {
        follow(m, to, m->regex->codes[code].next, at + bytes);
    } else if (*seen != m->step) {
        *seen = m->step;
        add_place(m, to, code, (int)bytes - 1);
    }
}

/* Takes all places over the character at `at`; true if one of them is the end of a match, whose
 * groups go to `found`: those behind it are then given up. */
static bool step(struct machine *m, const struct places *from, struct places *to, size_t at,
                 int32_t character, size_t bytes, bool whole, int64_t *found)
{
    m->step++;
    to->count = 0;
    for (int i = 0; i < from->count; i++) {
        int code = from->codes[i] / INSIDE_MAX, inside = from->codes[i] % INSIDE_MAX;
        const struct regex_code *c = &m->regex->codes[code];
        const int64_t *saved = from->saved + (size_t)i * (size_t)m->slots;
        if (c->kind == CODE_MATCH) {
            if (whole && at != m->size)
                continue;
            memcpy(found, saved, (size_t)m->slots * sizeof(*found));
            if (m->slots)
                found[1] = (int64_t)at;
            return true;
        }
        const struct regex_class *set = &m->regex->classes[c->other];
        if (at < m->size && (inside || kernel_regex_in_class(set, character))) {
            memcpy(m->saved, saved, (size_t)m->slots * sizeof(*saved));
            take(m, to, code, at, inside ? (size_t)inside : set->bytes ? 1 : bytes);
        }
    }
    return false;
}

static bool run(struct machine *m, struct places *now, struct places *then, size_t start,
                bool whole, int64_t *found)
{
    bool matched = false;
    m->step = 1;
    for (size_t at = start, bytes = 0;; at += bytes) {
        if (!matched && (at == start || !whole)) {
            for (int s = 0; s < m->slots; s++)
                m->saved[s] = -1;
            if (m->slots)
                m->saved[0] = (int64_t)at;
            follow(m, now, m->regex->start, at);
        }
        if (now->count == 0 && (matched || whole))
            return matched;
        int32_t character = -1;
        bytes = 1;
        if (at < m->size)
            character = kernel_regex_character(m->text, m->size, at, &bytes);
        matched = step(m, now, then, at, character, bytes, whole, found) || matched;
        if (m->regex->bytes)
            bytes = 1;
        if (at >= m->size || (matched && m->slots == 0))
            return matched;
        struct places swapped = *now;
        *now = *then;
        *then = swapped;
    }
}

bool kernel_regex_match(const struct kernel_regex *regex, const char *text, size_t size,
                        size_t start, bool whole, struct kernel_regex_span *spans, int count)
{
    size_t codes = (size_t)regex->count * 2, slots = (size_t)count * 2;
    struct machine m = {.regex = regex, .text = text, .size = size, .slots = (int)slots};
    struct places now = {0}, then = {0};
    m.seen = alloc_array(codes, sizeof(*m.seen));
    m.pending = alloc_array(2 * codes + 2, sizeof(*m.pending));
    now.codes = alloc_array(2 * codes, sizeof(*now.codes));
    then.codes = now.codes + codes;
    now.saved = alloc_array(2 * (codes + 1) * slots + 1, sizeof(*now.saved));
    then.saved = now.saved + codes * slots;
    m.saved = then.saved + codes * slots;
    int64_t *all_saved = now.saved, *found = m.saved + slots;
    int *all_codes = now.codes;
    bool matched = run(&m, &now, &then, start, whole, found);
    for (int i = 0; matched && i < count; i++)
        spans[i] = (struct kernel_regex_span){found[2 * i], found[2 * i + 1]};
    free(m.seen);
    free(m.pending);
    free(all_codes);
    free(all_saved);
    return matched;
}
