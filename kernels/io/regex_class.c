/* regex_class.c - which characters belong to a class. */

#include "kernels/io/regex_program.h"

#include <unicode/uchar.h>
#include <unicode/uscript.h>
#include <unicode/utf8.h>

static const struct {
    const char *name;
    const char *ranges; /* pairs of first and last */
} sets[] = {
    {"alnum", "09AZaz"},
    {"alpha", "AZaz"},
    {"ascii", "\x01\x7f"},
    {"blank", "\t\t  "},
    {"cntrl", "\x01\x1f\x7f\x7f"},
    {"digit", "09"},
    {"graph", "!~"},
    {"lower", "az"},
    {"print", " ~"},
    {"punct", "!/:@[`{~"},
    {"space", "\t\r  "},
    {"upper", "AZ"},
    {"word", "09AZaz__"},
    {"xdigit", "09AFaf"},
    {"perl-space", "\t\n\f\r  "},
};

int kernel_regex_ascii_set(const char *name, size_t size)
{
    for (int i = 0; i < ARRAY_LEN(sets); i++)
        if (strlen(sets[i].name) == size && memcmp(sets[i].name, name, size) == 0)
            return i;
    return -1;
}

static bool in_ascii_set(uint32_t set, int32_t c)
{
    const char *name = sets[set].name;
    if (c == 0)
        return strcmp(name, "ascii") == 0 || strcmp(name, "cntrl") == 0;
    for (const char *range = sets[set].ranges; *range; range += 2)
        if (c >= range[0] && c <= range[1])
            return true;
    return false;
}

static bool in_item(const struct regex_item *item, int32_t c)
{
    UErrorCode status = U_ZERO_ERROR;
    switch (item->kind) {
    case ITEM_RANGE:
        return (c >= (int32_t)item->low && c <= (int32_t)item->high) != item->negated;
    case ITEM_ASCII:
        return in_ascii_set(item->low, c) != item->negated;
    case ITEM_CATEGORY:
        return ((U_GET_GC_MASK(c) & item->low) != 0) != item->negated;
    default:
        return (uscript_getScript(c, &status) == (UScriptCode)item->low) != item->negated;
    }
}

static bool in_items(const struct regex_class *set, int32_t c)
{
    for (int i = 0; i < set->count; i++)
        if (in_item(&set->items[i], c))
            return true;
    return false;
}

/* The other case of a letter; a few have three forms. */
static bool in_folded(const struct regex_class *set, int32_t c)
{
    int32_t folded = u_foldCase(c, U_FOLD_CASE_DEFAULT);
    if (in_items(set, c) || in_items(set, folded) || in_items(set, u_toupper(c)) ||
        in_items(set, u_tolower(c)) || in_items(set, u_toupper(folded)))
        return true;
    /* K and the Kelvin sign, s and the long s: forms that fold to plain letters. */
    return (folded == 'k' && in_items(set, 0x212a)) ||
           (folded == 's' && in_items(set, 0x17f)) || (folded == 0xe5 && in_items(set, 0x212b));
}

bool kernel_regex_in_class(const struct regex_class *set, int32_t character)
{
    if (character < 0)
        return set->bytes;
    return (set->fold ? in_folded(set, character) : in_items(set, character)) != set->negated;
}

int32_t kernel_regex_character(const char *text, size_t size, size_t at, size_t *bytes)
{
    const uint8_t *s = (const uint8_t *)text;
    size_t window = size - at < 4 ? size - at : 4;
    int32_t used = 0, character;
    U8_NEXT(s + at, used, (int32_t)window, character);
    *bytes = character < 0 ? 1 : (size_t)used;
    return character;
}
