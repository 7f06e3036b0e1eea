/* format_tfrecord_find.c - the columns of a dataset, from its first tf.Examples. */

#include "base/alloc.h"
#include "base/error.h"
#include "base/map.h"
#include "base/str.h"
#include "runtime/dataset/format_tfrecord.h"
#include "runtime/io/image.h"
#include "runtime/spec/spec.h"

#define TFRECORD_FEATURES_MAX 10000

/* What the first records say of a feature. */
struct found {
    char *name;
    enum dtype dtype;          /* I64, F32, STRING; DTYPE_NONE while it was only empty */
    int64_t count;             /* values; -1: they vary */
    int64_t bytes;             /* of the first text; -1: they vary */
    bool is_image;             /* every text begins as one */
    struct tensor_string text; /* the first */
};

struct finding {
    struct found *items;
    int count, capacity;
    struct map *numbers; /* by name: index + 1, as a pointer */
    struct feature_values values;
};

/* --- looking --- */

static struct found *found_of(struct finding *finding, struct wire name)
{
    size_t size = wire_left(&name);
    intptr_t number = (intptr_t)map_find_n(finding->numbers, (const char *)name.at, size);
    if (number)
        return &finding->items[number - 1];
    finding->items =
        alloc_grow(finding->items, finding->count, &finding->capacity, sizeof(*finding->items));
    struct found *found = &finding->items[finding->count++];
    *found = (struct found){.name = alloc_text_n((const char *)name.at, size)};
    map_set(finding->numbers, found->name, (void *)(intptr_t)finding->count);
    return found;
}

static bool look_at_texts(const struct feature_values *values, struct found *found)
{
    const struct tensor_string *texts = values->data;
    for (int64_t i = 0; i < values->count; i++) {
        bool is_image = image_format(texts[i].data, texts[i].size) != IMAGE_NONE;
        if (!found->text.data) {
            found->text = texts[i];
            found->bytes = (int64_t)texts[i].size;
            found->is_image = is_image;
        }
        if (found->bytes != (int64_t)texts[i].size)
            found->bytes = -1;
        found->is_image &= is_image;
    }
    return true;
}

static bool look_at_feature(struct finding *finding, struct wire name, struct wire value,
                            struct error *err)
{
    enum dtype dtype;
    if (memchr(name.at, 0, wire_left(&name)) ||
        !str_is_utf8((const char *)name.at, wire_left(&name)))
        return fail(err, INVALID, "the name of a feature is no text");
    if (finding->count == TFRECORD_FEATURES_MAX)
        return fail(err, EXHAUSTED, "more than %d features", TFRECORD_FEATURES_MAX);
    struct found *found = found_of(finding, name);
    struct feature_values *values = &finding->values;
    if (!feature_dtype(value, &dtype))
        return fail(err, INVALID, "feature \"%.100s\" is of no known type", found->name);
    if (dtype == DTYPE_NONE)
        return true;
    if (found->dtype && found->dtype != dtype)
        return fail(err, INVALID, "feature \"%.100s\" is a list of %s, before of %s",
                    found->name, feature_list_name(dtype), feature_list_name(found->dtype));
    feature_values_release(values);
    values->dtype = dtype;
    if (!feature_append(value, values))
        return fail(err, INVALID, "feature \"%.100s\" is damaged", found->name);
    if (!found->dtype)
        found->count = values->count;
    else if (found->count != values->count)
        found->count = -1;
    found->dtype = dtype;
    return dtype != STRING || look_at_texts(values, found);
}

static bool look_at_features(struct finding *finding, struct wire features, struct error *err)
{
    while (features.at < features.end) {
        struct wire name, value;
        uint64_t tag;
        bool ok = wire_varint(&features, &tag);
        if (ok && tag != WIRE_TAG(1, WIRE_BYTES)) {
            if (wire_skip(&features, tag))
                continue;
            ok = false;
        }
        if (!ok || !feature_entry(&features, &name, &value))
            return fail(err, INVALID, "this is no tf.Example");
        if (!look_at_feature(finding, name, value, err))
            return false;
    }
    return true;
}

static bool look_at_record(struct finding *finding, const struct tensor_string *record,
                           struct error *err)
{
    struct wire example = wire_of(record->data, record->size), features;
    while (example.at < example.end) {
        uint64_t tag;
        bool ok = wire_varint(&example, &tag);
        if (ok && tag == WIRE_TAG(1, WIRE_BYTES)) {
            if (!wire_piece(&example, &features))
                return fail(err, INVALID, "this is no tf.Example");
            if (!look_at_features(finding, features, err))
                return false;
            continue;
        }
        if (!ok || !wire_skip(&example, tag))
            return fail(err, INVALID, "this is no tf.Example");
    }
    return true;
}

/* --- deciding --- */

static bool is_wanted(const struct dataset_opening *opening, const char *name)
{
    const struct spec_data *data = opening->data;
    bool wanted =
        !data->features_count || format_is_target(data, name) || format_is_weight(data, name);
    for (int i = 0; i < data->features_count; i++)
        wanted |= !strcmp(data->features[i], name);
    return wanted;
}

/* Refuses a feature as it is; the spec may say more of it. */
static bool refuse(const struct found *found, const struct spec_column *spec, const char *why,
                   const char *instead, struct error *err)
{
    char pointer[128];
    snprintf(pointer, sizeof(pointer), "/data/columns/%.90s", found->name);
    return error_at(err, spec ? spec->pointer : pointer, INVALID, "feature \"%.100s\" %s; %s",
                    found->name, why, instead);
}

/* The shape that the spec gives, or `count` in one dimension (none for 1). */
static bool set_shape(const struct found *found, const struct spec_column *spec, int64_t count,
                      struct shape *out, struct error *err)
{
    *out = count == 1 ? SHAPE_SCALAR : SHAPE(count);
    if (!spec || spec->rank < 0)
        return true;
    out->rank = spec->rank;
    memcpy(out->dims, spec->dims, (size_t)spec->rank * sizeof(*out->dims));
    char why[120], text[SHAPE_TEXT_BYTES];
    snprintf(why, sizeof(why), "has %lld values, which do not make %.60s", (long long)count,
             shape_text(out, text, sizeof(text)));
    return shape_count(out) == count ||
           refuse(found, spec, why, "give the shape of its values", err);
}

static bool decide_numbers(const struct found *found, const struct spec_column *spec,
                           struct dataset_column *column,
                           struct format_tfrecord_column *reading, struct error *err)
{
    enum spec_column_type type = spec ? spec->type : COLUMN_FOUND;
    bool integers = found->dtype == I64;
    if (type == COLUMN_CATEGORICAL || type == COLUMN_IMAGE ||
        (type == COLUMN_INTEGER && !integers))
        return refuse(found, spec, integers ? "is a list of int64" : "is a list of floats",
                      "that type does not go with it", err);
    if (found->count < 1)
        return refuse(found, spec, "has lists of different lengths",
                      "name the features to read in \"features\", or call it \"ignored\"", err);
    reading->kind = integers ? TFRECORD_INTEGERS : TFRECORD_FLOATS;
    reading->count = found->count;
    column->stored = integers ? I32 : F32;
    column->dtype = integers && type != COLUMN_NUMERIC ? I32 : F32;
    return set_shape(found, spec, found->count, &column->shape, err);
}

static bool decide_image(const struct found *found, const struct spec_column *spec,
                         struct dataset_column *column, struct format_tfrecord_column *reading,
                         struct error *err)
{
    reading->kind = TFRECORD_IMAGE;
    column->stored = U8;
    column->dtype = F32;
    column->scale = 1.0 / 255;
    if (spec && spec->rank >= 0) {
        set_shape(found, NULL, 1, &column->shape, err);
        column->shape.rank = spec->rank;
        memcpy(column->shape.dims, spec->dims,
               (size_t)spec->rank * sizeof(*column->shape.dims));
        const int64_t *dims = column->shape.dims;
        bool ok = spec->rank == 3 && dims[0] <= IMAGE_SIDE_MAX && dims[1] <= IMAGE_SIDE_MAX &&
                  (dims[2] == 1 || dims[2] == 3);
        return ok || refuse(found, spec, "holds images",
                            "their shape is [height, width, 1 or 3]", err);
    }
    struct image image;
    if (!image_read(found->text.data, found->text.size, 3, &image, err))
        return error_prefix(err, "feature \"%.100s\": ", found->name);
    column->shape = SHAPE(image.height, image.width, 3);
    image_release(&image);
    return true;
}

static bool decide_texts(const struct found *found, const struct spec_column *spec,
                         struct dataset_column *column, struct format_tfrecord_column *reading,
                         struct error *err)
{
    enum spec_column_type type = spec ? spec->type : COLUMN_FOUND;
    if (found->count != 1)
        return refuse(found, spec, "is not one text in every record",
                      "name the features to read in \"features\", or call it \"ignored\"", err);
    if (type == COLUMN_IMAGE || (type == COLUMN_FOUND && found->is_image))
        return decide_image(found, spec, column, reading, err);
    if (type == COLUMN_CATEGORICAL) {
        reading->kind = TFRECORD_WORD;
        reading->vocabulary = vocabulary_new(column->role != DATASET_TARGET);
        column->stored = column->dtype = I32;
        return true;
    }
    if (found->bytes < 1)
        return refuse(found, spec, "holds texts of different lengths",
                      "say whether it is \"categorical\", \"image\" or \"ignored\"", err);
    reading->kind = TFRECORD_BYTES;
    reading->count = found->bytes;
    column->stored = U8;
    column->dtype = type == COLUMN_INTEGER || column->role == DATASET_TARGET ? I32 : F32;
    column->scale = column->dtype == F32 ? 1.0 / 255 : 0;
    return set_shape(found, spec, found->bytes, &column->shape, err);
}

/* Whether the default of the spec, if there is one, is one for the column. */
static bool check_initial(const struct format_tfrecord_column *reading, struct error *err)
{
    const char *text = reading->spec ? reading->spec->initial : NULL;
    char *end;
    if (!text || reading->kind == TFRECORD_WORD)
        return true;
    double number = strtod(text, &end);
    bool ok = *text && !*end && reading->kind != TFRECORD_IMAGE;
    if (reading->kind == TFRECORD_INTEGERS)
        ok = ok && number >= INT32_MIN && number <= INT32_MAX && number == (int32_t)number;
    else if (reading->kind == TFRECORD_BYTES)
        ok = ok && number >= 0 && number <= 255;
    return ok || error_at(err, reading->spec->pointer, INVALID,
                          "the default \"%.60s\" is none for the values of the feature", text);
}

static bool decide(struct dataset_opening *opening, const struct found *found,
                   struct format_tfrecord_table *table, struct error *err)
{
    const struct spec_column *spec = format_column_spec(opening, found->name);
    if (!is_wanted(opening, found->name) || (spec && spec->type == COLUMN_IGNORED))
        return true;
    struct dataset_column column = {.name = found->name,
                                    .role = format_is_target(opening->data, found->name)
                                                ? DATASET_TARGET
                                                : DATASET_FEATURE};
    struct format_tfrecord_column reading = {.spec = spec};
    if (!found->dtype)
        return refuse(found, spec, "is empty in all of the first records",
                      "call it \"ignored\"", err);
    bool ok = found->dtype == STRING ? decide_texts(found, spec, &column, &reading, err)
                                     : decide_numbers(found, spec, &column, &reading, err);
    ok = ok && check_initial(&reading, err);
    if (ok && spec && spec->has_scale) {
        column.scale = spec->scale;
        column.dtype = F32;
    }
    if (!ok) {
        vocabulary_free(reading.vocabulary);
        return false;
    }
    int index = format_add_column(opening->dataset, &column);
    reading.name = opening->dataset->columns[index].name;
    reading.name_size = strlen(reading.name);
    table->columns = alloc_grow(table->columns, table->columns_count, &table->columns_capacity,
                                sizeof(*table->columns));
    table->columns[table->columns_count++] = reading;
    return true;
}

static int compare_found(const void *a, const void *b)
{
    return strcmp(((const struct found *)a)->name, ((const struct found *)b)->name);
}

bool format_tfrecord_find(struct dataset_opening *opening, const struct tensor_string *records,
                          const int64_t *offsets, int count,
                          struct format_tfrecord_table *table, struct error *err)
{
    struct finding finding = {.numbers = map_new()};
    bool ok = true;
    for (int i = 0; ok && i < count; i++)
        ok = look_at_record(&finding, &records[i], err) ||
             opening->data->skip_damaged || /* whoever reads it tells of it */
             error_prefix(err, "record %d at byte %lld: ", i + 1, (long long)offsets[i]);
    if (finding.count)
        qsort(finding.items, (size_t)finding.count, sizeof(*finding.items), compare_found);
    for (int i = 0; ok && i < finding.count; i++)
        ok = decide(opening, &finding.items[i], table, err);
    if (ok && !table->columns_count)
        ok = fail(err, INVALID, "its records have no features that could be read");
    table->table.vocabularies =
        alloc_array((size_t)table->columns_count + 1, sizeof(*table->table.vocabularies));
    for (int i = 0; i < table->columns_count; i++)
        table->table.vocabularies[i] = table->columns[i].vocabulary;
    for (int i = 0; i < finding.count; i++)
        free(finding.items[i].name);
    free(finding.items);
    map_free(finding.numbers);
    feature_values_release(&finding.values);
    return ok;
}

void format_tfrecord_release(struct format_tfrecord_table *table)
{
    for (int i = 0; i < table->columns_count; i++)
        vocabulary_free(table->columns[i].vocabulary);
    free(table->columns);
    free(table->table.vocabularies);
}
