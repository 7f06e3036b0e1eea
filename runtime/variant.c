/* variant.c - the kinds of values that can be sent. */

#include "runtime/variant.h"

enum { KINDS_MAX = 8 };

static const struct variant_kind *kinds[KINDS_MAX];
static int kinds_count;

void variant_add_kind(const struct variant_kind *kind)
{
    if (variant_kind_of(kind->kind))
        return;
    assert(kinds_count < KINDS_MAX);
    kinds[kinds_count++] = kind;
}

const struct variant_kind *variant_kind_of(const char *kind)
{
    for (int i = 0; i < kinds_count; i++)
        if (!strcmp(kinds[i]->kind, kind))
            return kinds[i];
    return NULL;
}

const struct variant_kind *variant_kind_named(const char *type_name)
{
    for (int i = 0; i < kinds_count; i++)
        if (!strcmp(kinds[i]->type_name, type_name))
            return kinds[i];
    return NULL;
}
