/*
 * tokenizer_pairs.c - which pairs of tokens are joined: byte-pair encoding learned from a text.
 *
 * DESIGN: each different piece of the text stands once in one line of symbols, linked to their
 * neighbours and weighted by how often the piece came.  Every pair of neighbours knows its
 * weight and the places where it (perhaps still) stands.  A heap gives the heaviest pair;
 * joining it touches its places alone.  Weights in the heap may be out of date: they only ever
 * fall, so an entry that is found too heavy goes back with what the pair weighs now.
 */

#include "base/alloc.h"
#include "runtime/dataset/tokenizer_internal.h"

struct symbol {
    int32_t token; /* -1: joined to the one before it */
    int32_t piece;
    int64_t before, after; /* -1: the piece begins or ends here */
};

struct pair {
    struct tokenizer_pair tokens;
    int64_t weight;
    int64_t *places;
    int64_t places_count, places_capacity;
};

struct entry {
    int64_t weight;
    int64_t pair;
};

struct learner {
    struct tokenizer_pieces pieces;
    struct symbol *symbols;
    int64_t symbols_count;
    struct pair *pairs;
    int64_t pairs_count, pairs_capacity;
    int64_t *slots; /* of pairs: index + 1 */
    int64_t slots_count;
    struct entry *heap; /* the heaviest first */
    int64_t heap_count, heap_capacity;
};

/* --- pairs by their tokens --- */

static int64_t slot_of(const struct learner *l, struct tokenizer_pair tokens)
{
    uint64_t key = (uint64_t)(uint32_t)tokens.left << 32 | (uint32_t)tokens.right;
    uint64_t slot = (key * UINT64_C(0x9e3779b97f4a7c15)) >> 20;
    for (;; slot++) {
        slot &= (uint64_t)l->slots_count - 1;
        int64_t index = l->slots[slot];
        if (!index || (l->pairs[index - 1].tokens.left == tokens.left &&
                       l->pairs[index - 1].tokens.right == tokens.right))
            return (int64_t)slot;
    }
}

static struct pair *pair_of(struct learner *l, int32_t left, int32_t right)
{
    const struct tokenizer_pair tokens = {left, right};
    if (l->pairs_count == l->pairs_capacity) {
        l->pairs_capacity = l->pairs_capacity ? 2 * l->pairs_capacity : 1024;
        l->pairs = alloc_resize(l->pairs, (size_t)l->pairs_capacity * sizeof(*l->pairs));
        free(l->slots);
        l->slots_count = 4 * l->pairs_capacity;
        l->slots = alloc_array((size_t)l->slots_count, sizeof(*l->slots));
        for (int64_t i = 0; i < l->pairs_count; i++)
            l->slots[slot_of(l, l->pairs[i].tokens)] = i + 1;
    }
    int64_t *slot = &l->slots[slot_of(l, tokens)];
    if (!*slot) {
        l->pairs[l->pairs_count] = (struct pair){.tokens = tokens};
        *slot = ++l->pairs_count;
    }
    return &l->pairs[*slot - 1];
}

static int64_t weight_at(const struct learner *l, int64_t place)
{
    return l->pieces.all[l->symbols[place].piece].count;
}

static void add_place(struct learner *l, int64_t place)
{
    const struct symbol *symbol = &l->symbols[place];
    struct pair *pair = pair_of(l, symbol->token, l->symbols[symbol->after].token);
    if (pair->places_count == pair->places_capacity) {
        pair->places_capacity = pair->places_capacity ? 2 * pair->places_capacity : 4;
        pair->places =
            alloc_resize(pair->places, (size_t)pair->places_capacity * sizeof(*pair->places));
    }
    pair->places[pair->places_count++] = place;
    pair->weight += weight_at(l, place);
}

/* --- the heap --- */

/* Whether `a` is to be joined before `b`. */
static bool is_before(const struct learner *l, struct entry a, struct entry b)
{
    const struct tokenizer_pair *x = &l->pairs[a.pair].tokens, *y = &l->pairs[b.pair].tokens;
    if (a.weight != b.weight)
        return a.weight > b.weight;
    return x->left != y->left ? x->left < y->left : x->right < y->right;
}

static void heap_push(struct learner *l, struct entry entry)
{
    if (l->heap_count == l->heap_capacity) {
        l->heap_capacity = l->heap_capacity ? 2 * l->heap_capacity : 1024;
        l->heap = alloc_resize(l->heap, (size_t)l->heap_capacity * sizeof(*l->heap));
    }
    int64_t at = l->heap_count++;
    for (; at && is_before(l, entry, l->heap[(at - 1) / 2]); at = (at - 1) / 2)
        l->heap[at] = l->heap[(at - 1) / 2];
    l->heap[at] = entry;
}

static struct entry heap_pop(struct learner *l)
{
    struct entry first = l->heap[0], last = l->heap[--l->heap_count];
    int64_t at = 0;
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child >= l->heap_count)
            break;
        if (child + 1 < l->heap_count && is_before(l, l->heap[child + 1], l->heap[child]))
            child++;
        if (!is_before(l, l->heap[child], last))
            break;
        l->heap[at] = l->heap[child];
        at = child;
    }
    l->heap[at] = last;
    return first;
}

/* --- learning --- */

static void read_text(struct learner *l, const char *text, size_t size)
{
    size_t step;
    for (size_t at = 0; at < size; at += step) {
        step = tokenizer_piece_next(text + at, size - at);
        tokenizer_pieces_add(&l->pieces, text + at, step)->count++;
    }
    int64_t symbols = 0;
    for (int64_t p = 0; p < l->pieces.count; p++)
        symbols += l->pieces.all[p].size;
    l->symbols = alloc_array((size_t)symbols, sizeof(*l->symbols));
    for (int64_t p = 0; p < l->pieces.count; p++) {
        const struct tokenizer_piece *piece = &l->pieces.all[p];
        for (uint32_t i = 0; i < piece->size; i++) {
            int64_t at = l->symbols_count++;
            l->symbols[at] =
                (struct symbol){(unsigned char)piece->text[i], (int32_t)p, i ? at - 1 : -1,
                                i + 1 < piece->size ? at + 1 : -1};
        }
    }
    for (int64_t at = 0; at < l->symbols_count; at++)
        if (l->symbols[at].after >= 0)
            add_place(l, at);
    for (int64_t p = 0; p < l->pairs_count; p++)
        heap_push(l, (struct entry){l->pairs[p].weight, p});
}

/* Takes from the weight of the pair that begins at `place`. */
static void drop_place(struct learner *l, int64_t place)
{
    const struct symbol *symbol = &l->symbols[place];
    pair_of(l, symbol->token, l->symbols[symbol->after].token)->weight -= weight_at(l, place);
}

static void join_at(struct learner *l, int64_t place, int32_t token)
{
    struct symbol *left = &l->symbols[place], *right = &l->symbols[left->after];
    if (left->before >= 0)
        drop_place(l, left->before);
    if (right->after >= 0)
        drop_place(l, left->after);
    left->token = token;
    left->after = right->after;
    right->token = -1;
    if (left->after >= 0)
        l->symbols[left->after].before = place;
    if (left->before >= 0)
        add_place(l, left->before);
    if (left->after >= 0)
        add_place(l, place);
}

static void join(struct learner *l, int64_t pair, int32_t token)
{
    struct tokenizer_pair tokens = l->pairs[pair].tokens;
    int64_t *places = l->pairs[pair].places, count = l->pairs[pair].places_count;
    int64_t first_new = l->pairs_count; /* every pair with the new token is new */
    l->pairs[pair].places = NULL;
    l->pairs[pair].places_count = l->pairs[pair].places_capacity = 0;
    for (int64_t i = 0; i < count; i++) {
        const struct symbol *symbol = &l->symbols[places[i]];
        if (symbol->token == tokens.left && symbol->after >= 0 &&
            l->symbols[symbol->after].token == tokens.right)
            join_at(l, places[i], token);
    }
    free(places);
    l->pairs[pair].weight = 0;
    for (int64_t p = first_new; p < l->pairs_count; p++)
        heap_push(l, (struct entry){l->pairs[p].weight, p});
}

static void learner_release(struct learner *l)
{
    for (int64_t p = 0; p < l->pairs_count; p++)
        free(l->pairs[p].places);
    tokenizer_pieces_release(&l->pieces);
    free(l->symbols);
    free(l->pairs);
    free(l->slots);
    free(l->heap);
}

int64_t tokenizer_pairs_learn(const char *text, size_t size, int64_t pairs_max,
                              struct tokenizer_pair *pairs)
{
    struct learner l = {0};
    int64_t count = 0;
    read_text(&l, text, size);
    while (count < pairs_max && l.heap_count) {
        struct entry entry = heap_pop(&l);
        int64_t weight = l.pairs[entry.pair].weight;
        if (weight < 2)
            continue;
        if (weight != entry.weight) {
            heap_push(&l, (struct entry){weight, entry.pair});
            continue;
        }
        pairs[count] = l.pairs[entry.pair].tokens;
        join(&l, entry.pair, (int32_t)(TOKENIZER_BYTES_MIN + count++));
    }
    learner_release(&l);
    return count;
}
