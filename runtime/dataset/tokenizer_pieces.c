/* tokenizer_pieces.c - pieces of a text counted, and where a text is cut into them. */

#include "base/alloc.h"
#include "runtime/dataset/tokenizer_internal.h"

static uint64_t hash_of(const char *text, size_t size)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 32;
}

/* Where the piece is, or a free slot for it. */
static int64_t slot_of(const struct tokenizer_pieces *pieces, const char *text, size_t size)
{
    uint64_t slot = hash_of(text, size);
    for (;; slot++) {
        slot &= (uint64_t)pieces->slots_count - 1;
        int64_t index = pieces->slots[slot];
        if (!index)
            return (int64_t)slot;
        const struct tokenizer_piece *piece = &pieces->all[index - 1];
        if (piece->size == size && !memcmp(piece->text, text, size))
            return (int64_t)slot;
    }
}

static void grow(struct tokenizer_pieces *pieces)
{
    if (pieces->count == pieces->capacity) {
        pieces->capacity = pieces->capacity ? 2 * pieces->capacity : 1024;
        pieces->all =
            alloc_resize(pieces->all, (size_t)pieces->capacity * sizeof(*pieces->all));
    }
    if (2 * (pieces->count + 1) <= pieces->slots_count)
        return;
    free(pieces->slots);
    pieces->slots_count = 4 * pieces->capacity; /* a power of two */
    pieces->slots = alloc_array((size_t)pieces->slots_count, sizeof(*pieces->slots));
    for (int64_t i = 0; i < pieces->count; i++)
        pieces->slots[slot_of(pieces, pieces->all[i].text, pieces->all[i].size)] = i + 1;
}

struct tokenizer_piece *tokenizer_pieces_add(struct tokenizer_pieces *pieces, const char *text,
                                             size_t size)
{
    assert(size <= UINT32_MAX);
    grow(pieces);
    int64_t *slot = &pieces->slots[slot_of(pieces, text, size)];
    if (!*slot) {
        pieces->all[pieces->count] =
            (struct tokenizer_piece){.text = text, .size = (uint32_t)size};
        *slot = ++pieces->count;
    }
    return &pieces->all[*slot - 1];
}

const struct tokenizer_piece *tokenizer_pieces_find(const struct tokenizer_pieces *pieces,
                                                    const char *text, size_t size)
{
    if (!pieces->slots_count)
        return NULL;
    int64_t index = pieces->slots[slot_of(pieces, text, size)];
    return index ? &pieces->all[index - 1] : NULL;
}

void tokenizer_pieces_release(struct tokenizer_pieces *pieces)
{
    free(pieces->all);
    free(pieces->slots);
    *pieces = (struct tokenizer_pieces){0};
}

/* --- where byte pairs end --- */

enum sort { SPACE, LETTER, DIGIT, SIGN };

static enum sort sort_of(char c)
{
    unsigned char byte = (unsigned char)c;
    if (byte == ' ' || (byte >= '\t' && byte <= '\r'))
        return SPACE;
    if (byte >= 0x80 || (unsigned)((byte | 0x20) - 'a') < 26)
        return LETTER;
    return (unsigned)(byte - '0') < 10 ? DIGIT : SIGN;
}

/* A run of one sort, with the blank in front of it; blanks more than that are one of their own.
 */
size_t tokenizer_piece_next(const char *text, size_t size)
{
    bool blank = text[0] == ' ' && size > 1 && sort_of(text[1]) != SPACE;
    enum sort sort = sort_of(text[blank]);
    size_t end = (size_t)blank + 1;
    while (end < size && end < TOKENIZER_PIECE_MAX && sort_of(text[end]) == sort)
        end++;
    if (sort == SPACE && end > 1 && end < size && sort_of(text[end]) != SPACE &&
        text[end - 1] == ' ')
        end--;
    return end;
}
