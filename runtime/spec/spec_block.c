/* spec_block.c - puts the layers of blocks in the place of their uses. */

#include "runtime/spec/spec_block.h"

#include "base/arena.h"
#include "base/limits.h"
#include "base/nearest.h"

#define SPEC_FILLED_BYTES (8 << 20) /* of layers that were made out of blocks */

struct expansion {
    const struct spec_object *model;
    struct spec_object blocks;
    struct spec_entries *out;
    size_t left; /* of SPEC_FILLED_BYTES */
};

/* --- definitions --- */

static bool definition_parse(const struct expansion *e, const char *name,
                             struct spec_object *definition)
{
    static const char *const allowed[] = {"arguments", "layers", NULL};
    struct spec_object arguments;
    return spec_read_object(&e->blocks, name, definition) &&
           spec_read_only(definition, allowed) &&
           spec_read_object(definition, "arguments", &arguments) &&
           spec_read_required(definition, "layers", "a list of layers");
}

static bool definitions_check(const struct expansion *e)
{
    const char *name;
    json_t *value;
    json_object_foreach(e->blocks.json, name, value)
    {
        struct spec_object definition;
        if (!spec_is_name(name))
            return error_at(e->model->err, e->blocks.pointer, INVALID,
                            "\"%.80s\" is no name for a block: letters, digits, '.', '_' and "
                            "'-', at most %d",
                            name, LIMIT_NAME_BYTES);
        if (!definition_parse(e, name, &definition))
            return false;
    }
    return true;
}

static bool refuse_block(const struct expansion *e, const char *pointer, const char *name)
{
    const char **names =
        arena_array(e->model->arena, json_object_size(e->blocks.json) + 1, sizeof(*names));
    const char *key;
    json_t *value;
    int count = 0;
    json_object_foreach(e->blocks.json, key, value) names[count++] = key;
    return count ? spec_read_suggest(e->model->err, pointer, "block", name, names)
                 : error_at(e->model->err, pointer, INVALID,
                            "there is no block \"%.80s\": the model has no \"blocks\"", name);
}

/* --- arguments --- */

/* What the use says, else the block's own value; NULL: it takes no such argument. */
static json_t *argument(const json_t *arguments, const json_t *use, const char *name)
{
    json_t *own = json_object_get(arguments, name), *said = json_object_get(use, name);
    return own && said ? said : own;
}

static bool spend(struct expansion *e, size_t bytes, const char *pointer)
{
    if (bytes > e->left)
        return error_at(e->model->err, pointer, EXHAUSTED,
                        "with all its blocks the model is larger than %d bytes",
                        SPEC_FILLED_BYTES);
    e->left -= bytes;
    return true;
}

/*
 * A copy with "$name" replaced (`use` NULL: nothing is); NULL after setting the error.
 * As deep as documents may be.
 */
static json_t *fill(struct expansion *e, const json_t *from, const json_t *arguments,
                    const json_t *use, const char *pointer)
{
    const char *text = json_string_value(from), *key;
    if (!spend(e, text ? json_string_length(from) + 1 : 8, pointer))
        return NULL;
    if (use && text && *text == '$') {
        json_t *value = argument(arguments, use, text + 1);
        if (!value)
            (void)error_at(e->model->err, pointer, INVALID,
                           "\"%.80s\" is no argument of this block (\"arguments\" lists them)",
                           text);
        return value ? fill(e, value, NULL, NULL, pointer) : NULL;
    }
    if (!json_is_object(from) && !json_is_array(from))
        return json_copy((json_t *)from);
    json_t *to = json_is_object(from) ? json_object() : json_array(), *part, *value;
    bool ok = true;
    json_object_foreach((json_t *)from, key, value)
    {
        part = ok && spend(e, strlen(key), pointer) ? fill(e, value, arguments, use, pointer)
                                                    : NULL;
        ok = part && json_object_set_new(to, key, part) == 0;
    }
    for (size_t i = 0; ok && i < json_array_size(from); i++) {
        part = fill(e, json_array_get(from, i), arguments, use, pointer);
        ok = part && json_array_append_new(to, part) == 0;
    }
    if (ok)
        return to;
    json_decref(to);
    return NULL;
}

static bool arguments_check(const struct spec_object *use, const json_t *arguments)
{
    size_t count = json_object_size(arguments);
    const char **allowed = arena_array(use->arena, count + 5, sizeof(*allowed));
    const char *name;
    json_t *value;
    int known = 0;
    json_object_foreach((json_t *)arguments, name, value)
    {
        allowed[known++] = name;
        if (json_is_null(value) && !spec_read_value(use, name))
            return error_at(use->err, use->pointer, INVALID,
                            "the block needs its argument \"%.80s\"", name);
    }
    allowed[known++] = "block";
    allowed[known++] = "name";
    allowed[known++] = "inputs";
    allowed[known++] = "repeat";
    return spec_read_only(use, allowed);
}

/* --- uses --- */

/* As layers are numbered: "residual", "residual_1"; in a row "stage_1", "stage_2". */
static const char *use_name(const struct expansion *e, const struct spec_use *outer,
                            const char *given, const char *block, int number, int64_t repeat)
{
    struct arena *arena = e->model->arena;
    const char *stem = given ? given : block, *name;
    if (outer)
        stem = arena_printf(arena, "%s.%s", outer->name, stem);
    if (given)
        return repeat > 1 ? arena_printf(arena, "%s_%d", stem, number + 1) : stem;
    for (int i = 0;; i++) {
        name = i ? arena_printf(arena, "%s_%d", stem, i) : stem;
        if (!spec_block_find(e->out, INT32_MAX, name))
            return name;
    }
}

static struct spec_use *use_add(struct expansion *e, const struct spec_object *object,
                                struct spec_use *outer, const char *name, int number)
{
    struct arena *arena = e->model->arena;
    if (!spec_is_name(name) || spec_block_find(e->out, INT32_MAX, name)) {
        (void)error_at(e->model->err, object->pointer, INVALID,
                       spec_is_name(name) ? "another block is named \"%.80s\" already"
                                          : "the name \"%.80s\" is too long",
                       name);
        return NULL;
    }
    if (e->out->uses_count == SPEC_LAYERS_MAX) {
        (void)error_at(e->model->err, object->pointer, INVALID,
                       "the model uses blocks more than %d times", SPEC_LAYERS_MAX);
        return NULL;
    }
    struct spec_use *use = arena_alloc(arena, sizeof(*use));
    *use = (struct spec_use){.name = name,
                             .outer = outer,
                             .json = object->json,
                             .number = number,
                             .pointer = object->pointer,
                             .first = e->out->count,
                             .last = -1};
    if (!e->out->uses)
        e->out->uses = arena_array(arena, SPEC_LAYERS_MAX, sizeof(*e->out->uses));
    e->out->uses[e->out->uses_count++] = use;
    return use;
}

static bool list_expand(struct expansion *e, const struct spec_object *list,
                        const json_t *arguments, struct spec_use *use, int depth);

static bool use_expand(struct expansion *e, const struct spec_object *object,
                       struct spec_use *outer, int depth)
{
    const char *block = NULL, *name = NULL;
    int64_t repeat = 1;
    struct spec_object definition, arguments;
    if (!spec_read_text(object, "block", LIMIT_NAME_BYTES, &block) ||
        !spec_read_name(object, "name", &name) ||
        !spec_read_integer(object, "repeat", 1, SPEC_LAYERS_MAX, &repeat))
        return false;
    if (!block || !json_object_get(e->blocks.json, block))
        return refuse_block(e, spec_read_pointer(object, "block", -1), block ? block : "");
    if (depth == SPEC_BLOCK_DEPTH)
        return error_at(e->model->err, object->pointer, INVALID,
                        "blocks in blocks in blocks, allowed: a depth of %d", SPEC_BLOCK_DEPTH);
    if (!definition_parse(e, block, &definition) ||
        !spec_read_object(&definition, "arguments", &arguments) ||
        !arguments_check(object, arguments.json))
        return false;
    for (int64_t i = 0; i < repeat; i++) {
        struct spec_use *use =
            use_add(e, object, outer, use_name(e, outer, name, block, (int)i, repeat), (int)i);
        if (!use || !list_expand(e, &definition, arguments.json, use, depth + 1))
            return false;
        use->last = e->out->count - 1;
    }
    return true;
}

/* --- lists of layers --- */

static bool entry_add(struct expansion *e, json_t *json, const char *pointer,
                      struct spec_use *use)
{
    if (e->out->count == SPEC_LAYERS_MAX)
        return error_at(e->model->err, pointer, INVALID,
                        "the model has more layers than %d with all its blocks",
                        SPEC_LAYERS_MAX);
    e->out->list[e->out->count++] = (struct spec_entry){json, pointer, use};
    return true;
}

/* The field "layers"; inside of a block its layers are filled with what `use` says. */
static bool list_expand(struct expansion *e, const struct spec_object *list,
                        const json_t *arguments, struct spec_use *use, int depth)
{
    json_t *layers = spec_read_value(list, "layers");
    size_t count = json_array_size(layers);
    if (!json_is_array(layers) || !count || count > SPEC_LAYERS_MAX) {
        char found[SPEC_FOUND_BYTES];
        return error_at(list->err, spec_read_pointer(list, "layers", -1), INVALID,
                        "layers is %s, allowed: a list of 1 to %d layers",
                        spec_read_found(layers, found, sizeof(found)), SPEC_LAYERS_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        const char *pointer = spec_read_pointer(list, "layers", (int)i);
        json_t *layer = json_array_get(layers, i);
        if (use) {
            layer = fill(e, layer, arguments, use->json, pointer);
            if (!layer || json_array_append_new(e->out->filled, layer))
                return false;
        }
        struct spec_object object = {layer, pointer, list->arena, list->err};
        bool is_use = json_object_get(layer, "block");
        if (!(is_use ? use_expand(e, &object, use, depth) : entry_add(e, layer, pointer, use)))
            return false;
    }
    return true;
}

bool spec_block_expand(const struct spec_object *model, struct spec_entries *out)
{
    struct expansion e = {.model = model, .out = out, .left = SPEC_FILLED_BYTES};
    *out = (struct spec_entries){
        .list = arena_array(model->arena, SPEC_LAYERS_MAX, sizeof(*out->list)),
        .filled = json_array()};
    return spec_read_object(model, "blocks", &e.blocks) && definitions_check(&e) &&
           list_expand(&e, model, NULL, NULL, 0);
}

void spec_block_release(struct spec_entries *entries)
{
    json_decref(entries->filled);
    entries->filled = NULL;
}

const struct spec_use *spec_block_find(const struct spec_entries *entries, int index,
                                       const char *name)
{
    for (int i = entries->uses_count - 1; i >= 0; i--) {
        const struct spec_use *use = entries->uses[i];
        bool before = index == INT32_MAX || (use->last >= 0 && use->last < index);
        if (before && !strcmp(use->name, name))
            return use;
    }
    return NULL;
}
