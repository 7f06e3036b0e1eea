/* config.c - reads and gives the arguments of a class by its table, see config.h. */

#include "runtime/spec/config.h"

#include <ctype.h>

#include "base/arena.h"
#include "base/limits.h"
#include "base/str.h"

#define CONFIG_CLASSES_MAX 128
#define CONFIG_LIST_MAX 65536
#define CONFIG_TEXT_BYTES 4096

struct reading {
    const struct spec_object *object;
    const struct config_argument *argument;
    bool keras;
};

static bool refuse(const struct reading *r, const char *allowed)
{
    char found[SPEC_FOUND_BYTES];
    const char *name = r->argument->name;
    json_t *json = spec_read_value(r->object, name);
    return error_at(r->object->err, spec_read_pointer(r->object, name, -1), INVALID,
                    "%s is %s, allowed: %s", name, spec_read_found(json, found, sizeof(found)),
                    allowed);
}

/* --- numbers and lists of them --- */

static bool is_bounded(const struct config_argument *argument)
{
    return argument->min != 0 || argument->max != 0;
}

static bool integer_fits(const struct config_argument *argument, const json_t *json)
{
    if (!json_is_integer(json))
        return false;
    double value = (double)json_integer_value(json);
    return !is_bounded(argument) || (value >= argument->min && value <= argument->max);
}

static bool real_fits(const struct config_argument *argument, const json_t *json)
{
    double value = json_number_value(json);
    return json_is_number(json) &&
           (!is_bounded(argument) || (value >= argument->min && value <= argument->max));
}

/* "an integer from 1 to 9, or a list of 2 of them". */
static bool refuse_number(const struct reading *r, const char *kind, bool list)
{
    const struct config_argument *argument = r->argument;
    struct str text = {0};
    str_add(&text, kind);
    if (is_bounded(argument))
        str_printf(&text, " from %.15g to %.15g", argument->min, argument->max);
    if (list && argument->count)
        str_printf(&text, ", or a list of %d of them", argument->count);
    else if (list)
        str_add(&text, ", or a list of them");
    refuse(r, str_text(&text));
    str_release(&text);
    return false;
}

static bool read_ints(const struct reading *r, const json_t *json, struct config_value *out)
{
    const struct config_argument *argument = r->argument;
    bool is_list = json_is_array(json);
    size_t given = is_list ? json_array_size(json) : 1;
    size_t count = argument->count ? (size_t)argument->count : given;
    if (given > CONFIG_LIST_MAX || (is_list && given != count))
        return refuse_number(r, "an integer", true);
    int64_t *values = arena_array(r->object->arena, count + 1, sizeof(*values));
    for (size_t i = 0; i < count; i++) {
        const json_t *item = is_list ? json_array_get(json, i) : json;
        if (r->keras && json_is_null(item)) {
            values[i] = -1;
            continue;
        }
        if (!integer_fits(argument, item))
            return refuse_number(r, "an integer", true);
        values[i] = json_integer_value(item);
    }
    out->ints = values;
    out->count = (int)count;
    return true;
}

/* Before and after of each dimension. */
static bool read_sides(const struct reading *r, const json_t *json, struct config_value *out)
{
    int dims = r->argument->count;
    int64_t *values = arena_array(r->object->arena, 2 * (size_t)dims, sizeof(*values));
    bool per_dim = json_is_array(json) && json_array_size(json) == (size_t)dims;
    bool pair = dims == 1 && json_is_array(json) && json_array_size(json) == 2;
    for (int i = 0; i < 2 * dims; i++) {
        const json_t *item = json;
        if (pair) {
            item = json_array_get(json, (size_t)i);
        } else if (per_dim) {
            item = json_array_get(json, (size_t)i / 2);
            if (json_is_array(item) && json_array_size(item) == 2)
                item = json_array_get(item, (size_t)i % 2);
        }
        if (!integer_fits(r->argument, item))
            return refuse_number(r, "an integer", true);
        values[i] = json_integer_value(item);
    }
    out->ints = values;
    out->count = 2 * dims;
    return true;
}

/* Puts the numbers of a list, or of the lists in it, behind each other; -1 for what is none. */
static int flatten(const struct reading *r, const json_t *json, double *values, int room)
{
    if (!json_is_array(json)) {
        if (room < 1 || !real_fits(r->argument, json))
            return -1;
        values[0] = json_number_value(json);
        return 1;
    }
    int count = 0;
    for (size_t i = 0; i < json_array_size(json); i++) {
        int more = flatten(r, json_array_get(json, i), values + count, room - count);
        if (more < 0)
            return -1;
        count += more;
    }
    return count;
}

static bool read_reals(const struct reading *r, const json_t *json, struct config_value *out)
{
    double *values = arena_array(r->object->arena, LIMIT_JSON_MEMBERS + 1, sizeof(*values));
    out->count = flatten(r, json, values, LIMIT_JSON_MEMBERS);
    if (out->count < 0 || (r->argument->count && out->count != r->argument->count))
        return refuse_number(r, "a number", true);
    out->reals = values;
    return true;
}

/* --- one argument --- */

/* Keras writes functions as {"class_name": "function", "config": "relu"}. */
static const json_t *function_name(const json_t *json)
{
    const json_t *config = json_object_get(json, "config");
    return json_is_string(config) ? config : json;
}

static bool read_choice(const struct reading *r, const json_t *json, struct config_value *out)
{
    const struct config_argument *argument = r->argument;
    if (r->keras)
        json = function_name(json);
    const char *pointer = spec_read_pointer(r->object, argument->name, -1);
    char found[SPEC_FOUND_BYTES], what[80];
    if (!json_is_string(json))
        return spec_read_suggest(r->object->err, pointer, argument->name,
                                 spec_read_found(json, found, sizeof(found)),
                                 argument->choices);
    int index = spec_read_find(argument->choices, json_string_value(json));
    snprintf(what, sizeof(what), "unknown %s", argument->name);
    if (index < 0)
        return spec_read_suggest(r->object->err, pointer, what, json_string_value(json),
                                 argument->choices);
    out->number = index;
    return true;
}

static bool read_value(const struct reading *r, struct config_value *out)
{
    const struct config_argument *argument = r->argument;
    const struct spec_object *object = r->object;
    const json_t *json = spec_read_value(object, argument->name);
    if (!json) {
        out->is_null = true;
        return true;
    }
    switch (argument->type) {
    case CONFIG_BOOL:
        out->flag = json_is_true(json);
        return json_is_boolean(json) || refuse(r, "true or false");
    case CONFIG_INT:
        out->number = json_integer_value(json);
        return integer_fits(argument, json) || refuse_number(r, "an integer", false);
    case CONFIG_REAL:
        out->real = json_number_value(json);
        return real_fits(argument, json) || refuse_number(r, "a number", false);
    case CONFIG_TEXT:
        return spec_read_text(object, argument->name, CONFIG_TEXT_BYTES, &out->text);
    case CONFIG_CHOICE:
        return read_choice(r, json, out);
    case CONFIG_INTS:
        return read_ints(r, json, out);
    case CONFIG_REALS:
        return read_reals(r, json, out);
    case CONFIG_SIDES:
        return read_sides(r, json, out);
    case CONFIG_OBJECT:
        break;
    }
    return r->keras ? config_read_keras(object, argument->name, argument->family, &out->object)
                    : config_read(object, argument->name, argument->family, &out->object);
}

/* What was not said: the default goes the same way as what is said. */
static bool read_initial(const struct reading *r, struct config_value *out)
{
    const struct config_argument *argument = r->argument;
    json_t *value = json_loads(argument->initial, JSON_DECODE_ANY, NULL);
    assert(value);
    json_t *json = json_pack("{s:o}", argument->name, value);
    struct spec_object object = {json, r->object->pointer, r->object->arena, r->object->err};
    struct reading inner = {&object, argument, false};
    bool ok = read_value(&inner, out);
    json_decref(json);
    return ok;
}

static bool read_argument(const struct reading *r, struct config_value *out)
{
    if (spec_read_value(r->object, r->argument->name))
        return read_value(r, out);
    if (r->argument->initial)
        return read_initial(r, out);
    return spec_read_required(r->object, r->argument->name,
                              r->argument->wanted ? r->argument->wanted : "it has no default");
}

/* --- all arguments --- */

/* Fails at the first field that is neither an argument nor one of the others. */
static bool check_fields(const struct spec_object *object, const struct config *config,
                         const char *const *others)
{
    int count = config_arguments_count(config), others_count = 0;
    while (others[others_count])
        others_count++;
    const char **allowed =
        arena_array(object->arena, (size_t)(others_count + count) + 1, sizeof(*allowed));
    for (int i = 0; i < others_count; i++)
        allowed[i] = others[i];
    for (int i = 0; i < count; i++)
        allowed[others_count + i] = config_spelling(config_argument_at(config, i));
    return spec_read_only(object, allowed);
}

static bool read_all(const struct spec_object *object, const struct config_class *class,
                     const struct config_family *family, const char *const *others, bool keras,
                     const struct config **out)
{
    struct config *config = arena_alloc(object->arena, sizeof(*config));
    *config = (struct config){class, family, object->pointer, NULL};
    int count = config_arguments_count(config);
    struct config_value *values =
        arena_array(object->arena, (size_t)count + 1, sizeof(*values));
    config->values = values;
    if (!keras && object->json && !check_fields(object, config, others))
        return false;
    for (int i = 0; i < count; i++) {
        struct config_argument argument = *config_argument_at(config, i);
        struct reading r = {object, &argument, keras};
        if (!keras)
            argument.name = config_spelling(&argument);
        values[i] = (struct config_value){0};
        if (!read_argument(&r, &values[i]))
            return false;
    }
    *out = config;
    return !class->check || class->check(config, object->err);
}

bool config_read_object(const struct spec_object *object, const struct config_class *class,
                        const struct config_family *family, const char *const *others,
                        const struct config **out)
{
    return read_all(object, class, family, others, false, out);
}

bool config_read_keras_object(const struct spec_object *object,
                              const struct config_class *class,
                              const struct config_family *family, const struct config **out)
{
    return read_all(object, class, family, NULL, true, out);
}

const struct config *config_default(const struct config_class *class,
                                    const struct config_family *family, struct arena *arena)
{
    struct error err;
    const struct config *config = NULL;
    struct spec_object object = {NULL, "", arena, &err};
    bool ok = read_all(&object, class, family, NULL, false, &config);
    assert(ok);
    (void)ok;
    return config;
}

/* --- classes by their names --- */

const struct config_class *config_find(const struct config_family *family, const char *name)
{
    const struct config_class *class;
    for (int i = 0; (class = family->at(i)); i++) {
        const char *const names[] = {class->name, NULL};
        if (spec_read_find(names, name) >= 0 ||
            (class->aliases && spec_read_find(class->aliases, name) >= 0))
            return class;
    }
    return NULL;
}

const struct config_class *config_find_at(const struct config_family *family, const char *name,
                                          const char *pointer, struct error *err)
{
    const struct config_class *found = config_find(family, name), *class;
    if (found)
        return found;
    const char *names[CONFIG_CLASSES_MAX + 1] = {0};
    for (int i = 0; (class = family->at(i)) && i < CONFIG_CLASSES_MAX; i++)
        names[i] = class->name;
    char what[80];
    snprintf(what, sizeof(what), "unknown %s", family->what);
    spec_read_suggest(err, pointer, what, name, names);
    return NULL;
}

const char *config_snake(struct arena *arena, const char *class_name)
{
    char out[2 * LIMIT_NAME_BYTES];
    size_t size = 0;
    for (const char *c = class_name; *c && size + 2 < sizeof(out); c++) {
        bool upper = isupper((unsigned char)*c);
        bool after_lower = c > class_name && islower((unsigned char)c[-1]);
        bool before_lower = c > class_name && islower((unsigned char)c[1]);
        if (upper && (after_lower || before_lower))
            out[size++] = '_';
        out[size++] = (char)tolower((unsigned char)*c);
    }
    return arena_text_n(arena, out, size);
}

/* A number where a class may stand is the class that the family has for it. */
static bool read_number(const struct spec_object *object, const char *field,
                        const struct config_family *family, const struct config **out)
{
    const struct config_class *class = config_find(family, family->number);
    struct config_argument argument = class->arguments[0];
    argument.name = field; /* under which errors know it */
    struct reading r = {object, &argument, false};
    struct config *config = arena_alloc(object->arena, sizeof(*config));
    struct config_value *value = arena_alloc(object->arena, sizeof(*value));
    *value = (struct config_value){0};
    *config = (struct config){class, family, spec_read_pointer(object, field, -1), value};
    assert(class->arguments_count == 1 && !family->common_count);
    *out = config;
    return read_value(&r, value);
}

static bool read_name(const struct spec_object *object, const char *field,
                      const struct config_family *family, const struct config **out)
{
    const char *name = json_string_value(spec_read_value(object, field));
    const char *pointer = spec_read_pointer(object, field, -1);
    const struct config_class *class = config_find_at(family, name, pointer, object->err);
    struct spec_object empty = {NULL, pointer, object->arena, object->err};
    return class && read_all(&empty, class, family, NULL, false, out);
}

bool config_read(const struct spec_object *object, const char *field,
                 const struct config_family *family, const struct config **out)
{
    json_t *json = spec_read_value(object, field);
    *out = NULL;
    if (!json)
        return true;
    if (family->number && json_is_number(json))
        return read_number(object, field, family, out);
    if (json_is_string(json))
        return read_name(object, field, family, out);
    char found[SPEC_FOUND_BYTES];
    if (!json_is_object(json))
        return error_at(object->err, spec_read_pointer(object, field, -1), INVALID,
                        "%s is %s, allowed: %s %s, or an object with its \"%s\"", field,
                        spec_read_found(json, found, sizeof(found)), "the name of a",
                        family->what, family->key);
    struct spec_object inner = {json, spec_read_pointer(object, field, -1), object->arena,
                                object->err};
    if (!spec_read_required(&inner, family->key, "the class"))
        return false;
    json_t *name = spec_read_value(&inner, family->key);
    const char *pointer = spec_read_pointer(&inner, family->key, -1);
    if (!json_is_string(name))
        return error_at(object->err, pointer, INVALID, "%s is %s, allowed: the name of a %s",
                        family->key, spec_read_found(name, found, sizeof(found)), family->what);
    const struct config_class *class =
        config_find_at(family, json_string_value(name), pointer, object->err);
    const char *const others[] = {family->key, NULL};
    return class && read_all(&inner, class, family, others, false, out);
}

bool config_read_keras(const struct spec_object *object, const char *field,
                       const struct config_family *family, const struct config **out)
{
    json_t *json = spec_read_value(object, field);
    *out = NULL;
    if (!json || !json_is_object(json) || !json_object_get(json, "class_name"))
        return config_read(object, field, family, out);
    struct spec_object whole = {json, spec_read_pointer(object, field, -1), object->arena,
                                object->err};
    struct spec_object inner;
    const char *name = NULL;
    if (!spec_read_text(&whole, "class_name", LIMIT_NAME_BYTES, &name) ||
        !spec_read_object(&whole, "config", &inner))
        return false;
    const struct config_class *class =
        config_find_at(family, name, spec_read_pointer(&whole, "class_name", -1), object->err);
    return class && read_all(&inner, class, family, NULL, true, out);
}
