/* spec_data.c - the data section of a job spec. */

#include "base/arena.h"
#include "base/limits.h"
#include "base/str.h"
#include "runtime/spec/config.h"
#include "runtime/spec/spec_internal.h"

#define SPEC_SHUFFLE_MAX 1000000000
#define SPEC_VALIDATION_MAX 1000000000
#define SPEC_SKIP_MAX 1000000000
#define SPEC_COLUMNS_MAX 10000
#define SPEC_COLUMN_NAME_BYTES 1000
#define SPEC_COLUMN_TEXT_BYTES 10000
#define SPEC_SCALE_MAX 1e30

static const char *const column_types[] = {[COLUMN_FOUND] = "found",
                                           [COLUMN_NUMERIC] = "numeric",
                                           [COLUMN_INTEGER] = "integer",
                                           [COLUMN_CATEGORICAL] = "categorical",
                                           [COLUMN_IMAGE] = "image",
                                           [COLUMN_IGNORED] = "ignored",
                                           NULL};

/* Refuses what `field` holds. */
static bool refuse(const struct spec_object *object, const char *field, const char *allowed)
{
    char found[SPEC_FOUND_BYTES];
    return error_at(
        object->err, spec_read_pointer(object, field, -1), INVALID, "%s is %s, allowed: %s",
        field, spec_read_found(spec_read_value(object, field), found, sizeof(found)), allowed);
}

/* --- columns --- */

static bool shape_parse(const struct spec_object *object, struct spec_column *out)
{
    json_t *shape = spec_read_value(object, "shape");
    if (!shape)
        return true;
    bool ok = json_is_array(shape) && json_array_size(shape) <= SPEC_COLUMN_RANK;
    int64_t count = 1;
    for (size_t i = 0; ok && i < json_array_size(shape); i++) {
        json_t *dim = json_array_get(shape, i);
        out->dims[i] = json_integer_value(dim);
        ok = json_is_integer(dim) && out->dims[i] > 0 &&
             !__builtin_mul_overflow(count, out->dims[i], &count) &&
             count <= LIMIT_TENSOR_BYTES / 8;
    }
    if (!ok)
        return refuse(object, "shape", "a list of at most 8 dimensions from 1, as [28, 28]");
    out->rank = (int)json_array_size(shape);
    return true;
}

/* A default may be a number or a text; kept as the text that a file would have. */
static bool initial_parse(const struct spec_object *object, struct spec_column *out)
{
    json_t *value = spec_read_value(object, "default");
    if (!value || json_is_string(value))
        return spec_read_text(object, "default", SPEC_COLUMN_TEXT_BYTES, &out->initial);
    if (!json_is_number(value))
        return refuse(object, "default", "a number or a text");
    struct str text = {0};
    if (json_is_integer(value))
        str_printf(&text, "%lld", (long long)json_integer_value(value));
    else
        config_write_number(json_real_value(value), &text);
    out->initial = arena_text(object->arena, str_text(&text));
    str_release(&text);
    return true;
}

static bool column_parse(const struct spec_object *columns, const char *name, json_t *json,
                         struct spec_column *out)
{
    static const char *const allowed[] = {"type", "shape", "default", "scale", "alone", NULL};
    const char *pointer = spec_read_pointer(columns, name, -1);
    *out = (struct spec_column){
        .name = arena_text(columns->arena, name), .rank = -1, .pointer = pointer};
    if (!*name || strlen(name) > SPEC_COLUMN_NAME_BYTES)
        return error_at(columns->err, pointer, INVALID,
                        "the name of a column has %zu bytes, allowed: 1 to %d", strlen(name),
                        SPEC_COLUMN_NAME_BYTES);
    int type = COLUMN_FOUND;
    if (json_is_string(json)) {
        if (!spec_read_choice(columns, name, column_types, &type))
            return false;
        out->type = (enum spec_column_type)type;
        return true;
    }
    if (!json_is_object(json))
        return refuse(columns, name, "a type, as \"categorical\", or an object");
    const struct spec_object object = {json, pointer, columns->arena, columns->err};
    out->has_scale = spec_read_value(&object, "scale");
    if (!spec_read_only(&object, allowed) ||
        !spec_read_choice(&object, "type", column_types, &type) || !shape_parse(&object, out) ||
        !initial_parse(&object, out) ||
        !spec_read_number(&object, "scale", -SPEC_SCALE_MAX, SPEC_SCALE_MAX, &out->scale) ||
        !spec_read_bool(&object, "alone", &out->alone))
        return false;
    out->type = (enum spec_column_type)type;
    return true;
}

static bool columns_parse(const struct spec_object *data, struct spec_data *out)
{
    struct spec_object object;
    if (!spec_read_object(data, "columns", &object))
        return false;
    size_t count = json_object_size(object.json);
    if (count > SPEC_COLUMNS_MAX)
        return error_at(data->err, "/data/columns", INVALID, "%zu columns, allowed: at most %d",
                        count, SPEC_COLUMNS_MAX);
    struct spec_column *columns = arena_array(data->arena, count + 1, sizeof(*columns));
    const char *name;
    json_t *value;
    json_object_foreach(object.json, name, value)
    {
        if (!column_parse(&object, name, value, &columns[out->columns_count++]))
            return false;
    }
    out->columns = columns;
    return true;
}

static bool features_parse(const struct spec_object *data, struct spec_data *out)
{
    json_t *list = spec_read_value(data, "features");
    if (!list)
        return true;
    bool ok = json_is_array(list) && json_array_size(list) > 0 &&
              json_array_size(list) <= SPEC_COLUMNS_MAX;
    const char **features =
        arena_array(data->arena, json_array_size(list) + 1, sizeof(*features));
    for (size_t i = 0; ok && i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        ok = name && *name && strlen(name) <= SPEC_COLUMN_NAME_BYTES;
        for (size_t before = 0; ok && before < i; before++)
            ok = strcmp(features[before], name) != 0;
        features[i] = ok ? arena_text(data->arena, name) : "";
    }
    if (!ok)
        return refuse(data, "features", "a list of names of columns, each once");
    out->features = features;
    out->features_count = (int)json_array_size(list);
    return true;
}

/* --- the section --- */

/* A number of examples, or a part of them all. */
static bool validation_parse(const struct spec_object *data, struct spec_data *out)
{
    json_t *value = spec_read_value(data, "validation");
    if (!json_is_real(value))
        return spec_read_integer(data, "validation", 0, SPEC_VALIDATION_MAX, &out->validation);
    double fraction = json_real_value(value);
    if (!(fraction > 0 && fraction < 1))
        return refuse(data, "validation",
                      "a number of examples, or a part of them all above 0 and below 1");
    out->validation_fraction = fraction;
    return true;
}

static bool shuffle_parse(const struct spec_object *data, struct spec_data *out)
{
    json_t *shuffle = spec_read_value(data, "shuffle");
    if (json_is_boolean(shuffle)) {
        out->shuffle = json_is_true(shuffle) ? -1 : 0;
        return true;
    }
    if (shuffle && !json_is_integer(shuffle))
        return refuse(data, "shuffle", "true, false, or the size of the buffer");
    return spec_read_integer(data, "shuffle", 0, SPEC_SHUFFLE_MAX, &out->shuffle);
}

static bool skip_parse(const struct spec_object *data, struct spec_data *out)
{
    json_t *skip = spec_read_value(data, "skip_damaged");
    if (json_is_boolean(skip)) {
        out->skip_damaged = json_is_true(skip) ? -1 : 0;
        return true;
    }
    if (skip && !json_is_integer(skip))
        return refuse(data, "skip_damaged", "true, false, or how many records at most");
    return spec_read_integer(data, "skip_damaged", 0, SPEC_SKIP_MAX, &out->skip_damaged);
}

bool spec_parse_data(const struct spec_object *data, struct spec *spec)
{
    static const char *const allowed[] = {
        "dataset", "format",    "batch_size", "shuffle",      "validation",
        "target",  "features",  "columns",    "skip_damaged", "sequence_length",
        "stride",  "tokenizer", "skip_gram",  "image_size",   "image_channels",
        "augment", "weight",    NULL};
    struct spec_data *out = &spec->data;
    out->batch_size = 32;
    out->shuffle = -1;
    return spec_read_only(data, allowed) &&
           spec_read_required(data, "dataset", "the name of a dataset, \"mnist\" for one") &&
           spec_read_name(data, "dataset", &out->dataset) &&
           spec_read_name(data, "format", &out->format) &&
           spec_read_integer(data, "batch_size", 1, SPEC_BATCH_MAX, &out->batch_size) &&
           validation_parse(data, out) && shuffle_parse(data, out) &&
           spec_read_text(data, "target", SPEC_COLUMN_NAME_BYTES, &out->target) &&
           spec_read_text(data, "weight", SPEC_COLUMN_NAME_BYTES, &out->weight) &&
           features_parse(data, out) && columns_parse(data, out) && skip_parse(data, out) &&
           spec_media_parse(data, out);
}

/* --- writing --- */

static void add_text(struct str *out, const char *text)
{
    str_add_json(out, text, strlen(text));
}

static void column_write(const struct spec_column *column, struct str *out)
{
    add_text(out, column->name);
    str_printf(out, ": {\"type\": \"%s\"", column_types[column->type]);
    for (int i = 0; i < column->rank; i++)
        str_printf(out, "%s%lld", i ? ", " : ", \"shape\": [", (long long)column->dims[i]);
    if (column->rank >= 0)
        str_add(out, column->rank ? "]" : ", \"shape\": []");
    if (column->initial) {
        str_add(out, ", \"default\": ");
        add_text(out, column->initial);
    }
    if (column->has_scale) {
        str_add(out, ", \"scale\": ");
        config_write_number(column->scale, out);
    }
    str_printf(out, ", \"alone\": %s}", column->alone ? "true" : "false");
}

void spec_data_write(const struct spec_data *data, struct str *out)
{
    str_add(out, "{\"dataset\": ");
    add_text(out, data->dataset);
    if (data->format) {
        str_add(out, ", \"format\": ");
        add_text(out, data->format);
    }
    str_printf(out, ", \"batch_size\": %lld, \"shuffle\": ", (long long)data->batch_size);
    if (data->shuffle > 0)
        str_printf(out, "%lld", (long long)data->shuffle);
    else
        str_add(out, data->shuffle ? "true" : "false");
    str_add(out, ", \"validation\": ");
    if (data->validation_fraction)
        config_write_number(data->validation_fraction, out);
    else
        str_printf(out, "%lld", (long long)data->validation);
    if (data->target) {
        str_add(out, ", \"target\": ");
        add_text(out, data->target);
    }
    if (data->weight) {
        str_add(out, ", \"weight\": ");
        add_text(out, data->weight);
    }
    for (int i = 0; i < data->features_count; i++) {
        str_add(out, i ? ", " : ", \"features\": [");
        add_text(out, data->features[i]);
    }
    str_add(out, data->features_count ? "]" : "");
    for (int i = 0; i < data->columns_count; i++) {
        str_add(out, i ? ", " : ", \"columns\": {");
        column_write(&data->columns[i], out);
    }
    str_add(out, data->columns_count ? "}" : "");
    str_add(out, ", \"skip_damaged\": ");
    if (data->skip_damaged > 0)
        str_printf(out, "%lld", (long long)data->skip_damaged);
    else
        str_add(out, data->skip_damaged ? "true" : "false");
    spec_media_write(data, out);
    str_add_char(out, '}');
}
