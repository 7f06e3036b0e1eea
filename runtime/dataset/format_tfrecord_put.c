/* format_tfrecord_put.c - the features of one tf.Example, put into a row. */

#include "base/error.h"
#include "runtime/dataset/format_tfrecord.h"
#include "runtime/io/image.h"
#include "runtime/spec/spec.h"

struct putting {
    struct format_tfrecord_reader *reader;
    const struct format_tfrecord_column *columns;
    struct rows *rows;
    int next; /* the column that probably comes next */
};

/* --- one feature --- */

static bool put_integers(const struct feature_values *values, int32_t *to, struct error *err)
{
    const int64_t *numbers = values->data;
    for (int64_t i = 0; i < values->count; i++) {
        if (numbers[i] < INT32_MIN || numbers[i] > INT32_MAX)
            return fail(err, INVALID, "%lld, allowed: what int32 holds", (long long)numbers[i]);
        to[i] = (int32_t)numbers[i];
    }
    return true;
}

/* Pixels in the column's shape; of another size they are made to fit when the spec gave it. */
static bool put_image(const struct format_tfrecord_column *reading, const struct shape *shape,
                      const struct tensor_string *text, void *to, struct error *err)
{
    struct image image, resized;
    const int64_t *dims = shape->dims;
    if (!image_read(text->data, text->size, (int)dims[2], &image, err))
        return false;
    bool fits = image.height == dims[0] && image.width == dims[1], ok = true;
    if (!fits && reading->spec && reading->spec->rank == 3) {
        ok = image_resize(&image, dims[0], dims[1], &resized, err);
        image_release(&image);
        if (!ok)
            return false;
        image = resized;
    } else if (!fits) {
        ok = fail(err, INVALID,
                  "an image of %lld by %lld pixels, the first has %lld by %lld; \"shape\" in "
                  "\"columns\" makes them fit",
                  (long long)image.height, (long long)image.width, (long long)dims[0],
                  (long long)dims[1]);
    }
    if (ok)
        memcpy(to, image.pixels, (size_t)shape_count(shape));
    image_release(&image);
    return ok;
}

static bool put_word(const struct format_tfrecord_column *reading, const char *word,
                     size_t size, int32_t *to, struct error *err)
{
    *to = vocabulary_number(reading->vocabulary, word, size, err);
    return *to >= 0;
}

static bool put_text(const struct format_tfrecord_column *reading, const struct shape *shape,
                     const struct tensor_string *text, void *to, struct error *err)
{
    if (reading->kind == TFRECORD_IMAGE)
        return put_image(reading, shape, text, to, err);
    if (reading->kind == TFRECORD_WORD)
        return put_word(reading, text->data, text->size, to, err);
    if ((int64_t)text->size != reading->count)
        return fail(err, INVALID, "%zu bytes, the first record has %lld", text->size,
                    (long long)reading->count);
    memcpy(to, text->data, text->size);
    return true;
}

static bool put_values(struct putting *putting, int index, struct wire value, struct error *err)
{
    static const enum dtype dtypes[] = {[TFRECORD_INTEGERS] = I64,
                                        [TFRECORD_FLOATS] = F32,
                                        [TFRECORD_BYTES] = STRING,
                                        [TFRECORD_IMAGE] = STRING,
                                        [TFRECORD_WORD] = STRING};
    const struct format_tfrecord_column *reading = &putting->columns[index];
    struct feature_values *values = &putting->reader->values;
    enum dtype dtype, wanted = dtypes[reading->kind];
    int64_t count = wanted == STRING ? 1 : reading->count;
    if (!feature_dtype(value, &dtype) || dtype != wanted)
        return fail(err, INVALID, "no list of %s", feature_list_name(wanted));
    if (values->dtype != dtype)
        feature_values_release(values);
    values->dtype = dtype;
    values->count = 0;
    if (!feature_append(value, values))
        return fail(err, INVALID, "the list is damaged");
    if (values->count != count)
        return fail(err, INVALID, "%lld values, wanted: %lld", (long long)values->count,
                    (long long)count);
    void *to = rows_at(putting->rows, index);
    if (dtype == I64)
        return put_integers(values, to, err);
    if (dtype == STRING)
        return put_text(reading, &putting->reader->table->table.dataset->columns[index].shape,
                        values->data, to, err);
    memcpy(to, values->data, (size_t)count * sizeof(float));
    return true;
}

/* What the spec gives in the place of a feature that is not there. */
static bool put_initial(struct putting *putting, int index, struct error *err)
{
    const struct format_tfrecord_column *reading = &putting->columns[index];
    const char *text = reading->spec ? reading->spec->initial : NULL;
    void *to = rows_at(putting->rows, index);
    if (!text)
        return fail(err, INVALID,
                    "is not there (\"default\" in \"columns\" says what to take in its place)");
    if (reading->kind == TFRECORD_WORD)
        return put_word(reading, text, strlen(text), to, err);
    double number = strtod(text, NULL); /* which suits the type: that was looked at before */
    bool integer = reading->kind == TFRECORD_INTEGERS;
    for (int64_t i = 0; i < reading->count; i++) {
        if (integer)
            ((int32_t *)to)[i] = (int32_t)number;
        else if (reading->kind == TFRECORD_BYTES)
            ((uint8_t *)to)[i] = (uint8_t)number;
        else
            ((float *)to)[i] = (float)number;
    }
    return true;
}

/* --- one Example --- */

static int compare_name(struct wire name, const struct format_tfrecord_column *column)
{
    size_t size = wire_left(&name), less = size < column->name_size ? size : column->name_size;
    int order = less ? memcmp(name.at, column->name, less) : 0;
    return order ? order : (size > column->name_size) - (size < column->name_size);
}

/* The column of a feature, -1 when it has none; columns are sorted, and most Examples of a file
 * have their features in the same order. */
static int column_of(struct putting *putting, struct wire name)
{
    int count = putting->reader->table->columns_count;
    int low = 0, high = count - 1, at = putting->next % count;
    while (low <= high) {
        int order = compare_name(name, &putting->columns[at]);
        if (!order) {
            putting->next = at + 1;
            return at;
        }
        if (order < 0)
            high = at - 1;
        else
            low = at + 1;
        at = low + (high - low) / 2;
    }
    return -1;
}

static bool put_features(struct putting *putting, struct wire features, struct error *err)
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
        int index = column_of(putting, name);
        if (index < 0 || value.at == value.end)
            continue;
        if (!put_values(putting, index, value, err))
            return error_prefix(err, "feature \"%.100s\": ", putting->columns[index].name);
        putting->reader->seen[index] = putting->reader->number;
    }
    return true;
}

bool format_tfrecord_put(struct format_tfrecord_reader *reader, struct rows *rows,
                         struct error *err)
{
    struct putting putting = {reader, reader->table->columns, rows, 0};
    struct wire example = wire_of(reader->record, reader->size), features;
    reader->number++;
    while (example.at < example.end) {
        uint64_t tag;
        bool ok = wire_varint(&example, &tag);
        if (ok && tag == WIRE_TAG(1, WIRE_BYTES)) {
            ok = wire_piece(&example, &features);
            if (ok && !put_features(&putting, features, err))
                return false;
        } else {
            ok = ok && wire_skip(&example, tag);
        }
        if (!ok)
            return fail(err, INVALID, "this is no tf.Example");
    }
    for (int i = 0; i < reader->table->columns_count; i++) {
        if (reader->seen[i] != reader->number && !put_initial(&putting, i, err))
            return error_prefix(err, "feature \"%.100s\": ", putting.columns[i].name);
    }
    return true;
}
