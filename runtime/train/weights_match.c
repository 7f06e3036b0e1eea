/* weights_match.c - which of a file's weights belongs to which variable. */

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/model/model.h"
#include "runtime/train/weights.h"

enum by { BY_NAME, BY_PLACE, BY_WAYS };

static bool fits(const struct weights_place *place, const struct weights_entry *entry)
{
    const struct model_variable *variable = place->variable;
    bool floats = BIT(variable->dtype) & DTYPES_FLOAT;
    uint64_t types = floats ? DTYPES_FLOAT : DTYPES_INTEGER;
    return types >> entry->value->dtype & 1 &&
           shape_equal(&entry->value->shape, &variable->shape);
}

static bool same(const char *a, const char *b)
{
    return a && b && !strcmp(a, b);
}

static bool is_for(const struct weights_entry *entry, const struct weights_place *place,
                   enum by by)
{
    if (entry->name)
        return by == BY_NAME && !strcmp(entry->name, place->variable->name);
    if (!place->layer)
        return false;
    if (entry->inner) /* version 3 */
        return entry->index == place->index && same(entry->inner, place->inner) &&
               (by == BY_NAME ? same(entry->layer, place->layer)
                              : same(entry->place, place->place));
    size_t size = strcspn(place->layer, ".");
    return entry->index == place->layer_index &&
           (by == BY_PLACE
                ? entry->number == place->number
                : !strcmp(entry->layer, place->layer) ||
                      (!strncmp(entry->layer, place->layer, size) && !entry->layer[size]));
}

/* How many places have an entry that fits. */
static int match(const struct weights *weights, const struct weights_place *places, int count,
                 enum by by, struct weights_match *out)
{
    int good = 0;
    for (int i = 0; i < count; i++) {
        out[i] = (struct weights_match){.place = &places[i]};
        for (int n = 0; n < weights_count(weights) && !out[i].fits; n++) {
            const struct weights_entry *entry = weights_at(weights, n);
            if (is_for(entry, &places[i], by))
                out[i] = (struct weights_match){&places[i], entry, fits(&places[i], entry)};
        }
        good += out[i].fits;
    }
    return good;
}

struct weights_match *weights_match(const struct weights *weights,
                                    const struct weights_place *places, int count,
                                    struct arena *arena)
{
    struct weights_match *ways[BY_WAYS];
    for (int by = 0; by < BY_WAYS; by++) {
        ways[by] = arena_array(arena, (size_t)count + 1, sizeof(**ways));
        if (match(weights, places, count, (enum by)by, ways[by]) == count)
            return ways[by];
    }
    return ways[BY_NAME];
}

void weights_tell(const struct weights_match *match, struct str *out)
{
    const struct model_variable *variable = match->place->variable;
    char wanted[SHAPE_TEXT_BYTES], found[SHAPE_TEXT_BYTES];
    if (!match->entry)
        str_printf(out, "\"%s\" is not there", variable->name);
    else
        str_printf(out, "\"%s\" is %s %s there, %s %s in the model", variable->name,
                   dtype_name(match->entry->value->dtype),
                   shape_text(&match->entry->value->shape, found, sizeof(found)),
                   dtype_name(variable->dtype),
                   shape_text(&variable->shape, wanted, sizeof(wanted)));
}

bool weights_value(const struct weights_match *match, struct tensor *out, struct error *err)
{
    const struct tensor *value = match->entry->value;
    const struct model_variable *variable = match->place->variable;
    if ((int)value->dtype == variable->dtype)
        return tensor_init_copy(out, value->dtype, &value->shape, value->data, err);
    if (!tensor_init(out, (enum dtype)variable->dtype, &value->shape, err))
        return false;
    for (int64_t i = 0; i < value->count; i++)
        tensor_set_number(out, i, tensor_number(value, i));
    return true;
}
