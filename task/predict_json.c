/* predict_json.c - nested lists to tensors and back, without recursion. */

#include "task/predict_json.h"

#include <math.h>

#include "base/error.h"
#include "base/str.h"
#include "runtime/dataset/vocabulary.h"
#include "runtime/io/base64.h"
#include "runtime/spec/spec_read.h"

/* --- a tensor --- */

/* Where in the lists one is. */
struct place {
    const json_t *lists[LIMIT_TENSOR_RANK + 1];
    size_t at[LIMIT_TENSOR_RANK + 1];
    int depth;
};

static const char *place_text(const struct place *place, char *out, size_t size)
{
    size_t used = 0;
    out[0] = 0;
    for (int i = 0; i < place->depth && used < size - 24; i++)
        used += (size_t)snprintf(out + used, size - used, "[%zu]", place->at[i]);
    return out;
}

static bool refuse(const struct signature_tensor *input, const struct place *place,
                   const json_t *found, const char *wanted, struct error *err)
{
    char where[200], text[SPEC_FOUND_BYTES];
    return fail(err, INVALID, "input \"%s\": %s%sfound %s, wanted %s", input->name,
                place_text(place, where, sizeof(where)), place->depth ? " " : "",
                spec_read_found(found, text, sizeof(text)), wanted);
}

/* How deep the lists are, by their first elements. */
static int depth_of(const json_t *value)
{
    int depth = 0;
    while (json_is_array(value) && depth <= LIMIT_TENSOR_RANK) {
        depth++;
        value = json_array_get(value, 0);
    }
    return depth;
}

static bool shape_of(const struct signature_tensor *input, const json_t *value,
                     struct shape *shape, struct error *err)
{
    *shape = (struct shape){.rank = depth_of(value)};
    if (shape->rank > LIMIT_TENSOR_RANK)
        return fail(err, INVALID, "input \"%s\": lists are nested more than %d deep",
                    input->name, LIMIT_TENSOR_RANK);
    for (int i = 0; i < shape->rank; i++) {
        shape->dims[i] = (int64_t)json_array_size(value);
        value = json_array_get(value, 0);
    }
    return true;
}

static bool number_of(const json_t *value, double *out)
{
    static const struct {
        const char *text;
        double value;
    } words[] = {{"NaN", NAN}, {"Infinity", INFINITY}, {"-Infinity", -INFINITY}};
    if (json_is_number(value)) {
        *out = json_number_value(value);
        return true;
    }
    for (int i = 0; json_is_string(value) && i < ARRAY_LEN(words); i++) {
        if (!strcmp(json_string_value(value), words[i].text)) {
            *out = words[i].value;
            return true;
        }
    }
    return false;
}

/* A string, or bytes as {"b64": "..."}. */
static bool set_text(struct tensor *out, int64_t index, const json_t *value)
{
    const json_t *b64 = json_object_get(value, "b64");
    if (json_is_string(value)) {
        tensor_set_string(out, index, json_string_value(value), json_string_length(value));
        return true;
    }
    struct str bytes = {0};
    bool ok = json_is_string(b64) && base64_decode(json_string_value(b64), &bytes);
    if (ok)
        tensor_set_string(out, index, str_text(&bytes), bytes.size);
    str_release(&bytes);
    return ok;
}

static const char *wanted_by(const struct signature_tensor *input)
{
    int dtype = input->dtype;
    if (input->words_count)
        return "a word that the training met, or its number";
    if (dtype == STRING)
        return "a string, or {\"b64\": \"...\"}";
    if (dtype == BOOL)
        return "true or false";
    if (BIT(dtype) & DTYPES_INTEGER)
        return "an integer that its type can hold";
    return "a number";
}

/* The number of a word of the data; of one that training has not met, if there is one for it.
 */
static bool set_word(const struct signature_tensor *input, struct tensor *out, int64_t index,
                     const json_t *value)
{
    for (int64_t i = 0; i < input->words_count; i++) {
        if (strcmp(input->words[i], json_string_value(value)) != 0)
            continue;
        tensor_set_number(out, index, (double)i);
        return true;
    }
    tensor_set_number(out, index, 0);
    return !strcmp(input->words[0], VOCABULARY_UNKNOWN);
}

static bool set_element(const struct signature_tensor *input, struct tensor *out, int64_t index,
                        const json_t *value)
{
    double number;
    if (input->words_count && json_is_string(value) && BIT(out->dtype) & DTYPES_INTEGER)
        return set_word(input, out, index, value);
    if (out->dtype == STRING)
        return set_text(out, index, value);
    if (out->dtype == BOOL) {
        ((bool *)out->data)[index] = json_is_true(value);
        return json_is_boolean(value);
    }
    if (BIT(out->dtype) & DTYPES_INTEGER) {
        if (!json_is_integer(value))
            return false;
        if (out->dtype == I64) {
            ((int64_t *)out->data)[index] = json_integer_value(value);
            return true;
        }
        number = (double)json_integer_value(value);
        if (number < -2147483648.0 || number > 4294967295.0)
            return false;
        tensor_set_number(out, index, number);
        return tensor_number(out, index) == number;
    }
    if (!number_of(value, &number))
        return false;
    tensor_set_number(out, index, number);
    return true;
}

/*
 * Visits the elements in order; with `out` NULL only looks whether the lists are as regular as
 * `shape` has them, so that nothing is allocated for what is not there.
 */
static bool walk(const struct signature_tensor *input, const json_t *value,
                 const struct shape *shape, struct tensor *out, struct error *err)
{
    struct place place = {.lists = {value}};
    int64_t index = 0;
    char wanted[60];
    for (;;) {
        const json_t *list = place.lists[place.depth];
        if (place.depth < shape->rank) {
            snprintf(wanted, sizeof(wanted), "a list of %lld as the first one",
                     (long long)shape->dims[place.depth]);
            if (!json_is_array(list) ||
                (int64_t)json_array_size(list) != shape->dims[place.depth])
                return refuse(input, &place, list, wanted, err);
            if (json_array_size(list)) {
                place.at[place.depth] = 0;
                place.lists[place.depth + 1] = json_array_get(list, 0);
                place.depth++;
                continue;
            }
        } else if (!out && json_is_array(list)) {
            return refuse(input, &place, list, wanted_by(input), err);
        } else if (out && !set_element(input, out, index++, list)) {
            return refuse(input, &place, list, wanted_by(input), err);
        }
        while (place.depth &&
               ++place.at[place.depth - 1] == json_array_size(place.lists[place.depth - 1]))
            place.depth--;
        if (!place.depth)
            return true;
        place.lists[place.depth] =
            json_array_get(place.lists[place.depth - 1], place.at[place.depth - 1]);
    }
}

static bool read_tensor(const struct signature_tensor *input, const json_t *value,
                        struct tensor *out, struct error *err)
{
    struct shape shape;
    if (!dtype_known(input->dtype) ||
        !(BIT(input->dtype) & (DTYPES_REAL | BIT(STRING) | BIT(BOOL))))
        return fail(err, UNIMPLEMENTED, "input \"%s\" takes %s, which JSON cannot say",
                    input->name, dtype_name(input->dtype));
    if (!shape_of(input, value, &shape, err) || !walk(input, value, &shape, NULL, err))
        return false;
    struct tensor made;
    if (!tensor_init(&made, (enum dtype)input->dtype, &shape, err))
        return false;
    if (!walk(input, value, &shape, &made, err)) {
        tensor_release(&made);
        return false;
    }
    *out = made;
    return true;
}

/* --- documents --- */

static bool is_value_object(const json_t *value)
{
    return json_is_object(value) && json_object_get(value, "b64");
}

static bool only_input(const struct signature *signature, const char *form, struct error *err)
{
    struct str all = {0};
    bool ok = signature->inputs_count == 1;
    signature_print(signature->inputs, signature->inputs_count, &all);
    if (!ok)
        fail(err, INVALID, "%s must name its inputs, there are %d: %s", form,
             signature->inputs_count, str_text(&all));
    str_release(&all);
    return ok;
}

static bool check_names(const json_t *object, const struct signature *signature,
                        struct error *err)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value)
    {
        if (signature_find_input(signature, name) >= 0)
            continue;
        struct str all = {0};
        signature_print(signature->inputs, signature->inputs_count, &all);
        fail(err, INVALID, "there is no input \"%.60s\", there are: %s", name, str_text(&all));
        str_release(&all);
        return false;
    }
    return true;
}

/* Whether the value is one example of the input, not a list of them. */
static bool is_one(const struct signature_tensor *input, const json_t *value)
{
    return input->shape.rank >= 1 && input->shape.dims[0] == -1 &&
           depth_of(value) == input->shape.rank - 1;
}

/* A value, or one example, which becomes a batch of one. */
static bool read_value(const struct signature_tensor *input, const json_t *value,
                       struct tensor *out, struct error *err)
{
    if (!is_one(input, value))
        return read_tensor(input, value, out, err);
    json_t *batch = json_pack("[O]", value);
    bool ok = read_tensor(input, batch, out, err);
    json_decref(batch);
    return ok;
}

static bool read_columns(const json_t *inputs, const struct signature *signature,
                         struct tensor *out, struct error *err)
{
    if (!json_is_object(inputs) || is_value_object(inputs))
        return only_input(signature, "\"inputs\"", err) &&
               read_value(&signature->inputs[0], inputs, &out[0], err);
    if (!check_names(inputs, signature, err))
        return false;
    for (int i = 0; i < signature->inputs_count; i++) {
        const json_t *value = json_object_get(inputs, signature->inputs[i].name);
        if (value && !read_value(&signature->inputs[i], value, &out[i], err))
            return false;
    }
    return true;
}

/* The values of one input, of all examples; NULL when the examples do not name it. */
static json_t *column_of(const json_t *rows, const char *name)
{
    json_t *column = json_array();
    const json_t *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        json_t *value = json_object_get(row, name);
        if (value)
            json_array_append(column, value);
    }
    return column;
}

bool predict_json_read_rows(const json_t *rows, const struct signature *signature,
                            struct tensor *out, struct error *err)
{
    const json_t *row;
    size_t i, count = json_array_size(rows);
    if (!count)
        return fail(err, INVALID, "there are no examples");
    const json_t *first = json_array_get(rows, 0);
    if (!json_is_object(first) || is_value_object(first))
        return only_input(signature, "an example", err) &&
               read_tensor(&signature->inputs[0], rows, &out[0], err);
    json_array_foreach(rows, i, row)
    {
        if (!json_is_object(row))
            return fail(err, INVALID, "example %zu is no object of inputs by their names", i);
        if (!check_names(row, signature, err))
            return error_prefix(err, "example %zu: ", i);
    }
    for (int k = 0; k < signature->inputs_count; k++) {
        const struct signature_tensor *input = &signature->inputs[k];
        json_t *column = column_of(rows, input->name);
        size_t have = json_array_size(column);
        bool ok = !have || have == count ||
                  fail(err, INVALID, "input \"%s\" is missing in %zu of the %zu examples",
                       input->name, count - have, count);
        ok = ok && (!have || read_tensor(input, column, &out[k], err));
        json_decref(column);
        if (!ok)
            return false;
    }
    return true;
}

bool predict_json_read(const json_t *root, const struct signature *signature,
                       struct tensor *inputs, enum predict_form *form, struct error *err)
{
    const json_t *rows = json_object_get(root, "instances");
    const json_t *columns = json_object_get(root, "inputs");
    *form = PREDICT_ROWS;
    if (rows && signature_find_input(signature, "instances") < 0)
        return json_is_array(rows) ? predict_json_read_rows(rows, signature, inputs, err)
                                   : fail(err, INVALID, "\"instances\" is no list");
    /* Keras calls an input so too. */
    bool names = json_is_object(columns) && !is_value_object(columns);
    if (columns && (names || signature_find_input(signature, "inputs") < 0)) {
        *form = PREDICT_COLUMNS;
        return read_columns(columns, signature, inputs, err);
    }
    if (json_is_array(root) && json_is_object(json_array_get(root, 0)) &&
        !is_value_object(json_array_get(root, 0)))
        return predict_json_read_rows(root, signature, inputs, err);
    return read_columns(root, signature, inputs, err);
}

/* --- writing --- */

static void add_element(const struct tensor *tensor, int64_t index, struct str *out)
{
    if (tensor->dtype == STRING) {
        const struct tensor_string *text = &tensor_strings(tensor)[index];
        if (str_is_utf8(text->data, text->size)) {
            str_add_json(out, text->data, text->size);
        } else {
            str_add(out, "{\"b64\": \"");
            base64_encode(text->data, text->size, out);
            str_add(out, "\"}");
        }
    } else if (tensor->dtype == BOOL) {
        str_add(out, ((const bool *)tensor->data)[index] ? "true" : "false");
    } else if (tensor->dtype == I64) {
        str_printf(out, "%lld", (long long)tensor_i64(tensor)[index]);
    } else if (BIT(tensor->dtype) & DTYPES_INTEGER) {
        str_printf(out, "%.0f", tensor_number(tensor, index));
    } else if (BIT(tensor->dtype) & DTYPES_FLOAT) {
        double value = tensor_number(tensor, index);
        if (!isfinite(value))
            str_add(out, isnan(value) ? "\"NaN\""
                         : value < 0  ? "\"-Infinity\""
                                      : "\"Infinity\"");
        else
            str_printf(out, tensor->dtype == F64 ? "%.17g" : "%.9g", value);
    } else {
        str_printf(out, "\"(%s)\"", dtype_name(tensor->dtype));
    }
}

void predict_json_add(const struct tensor *tensor, int64_t row, struct str *out)
{
    int first = row >= 0, rank = tensor->shape.rank;
    int64_t inner = 1, at[LIMIT_TENSOR_RANK] = {0};
    for (int i = first; i < rank; i++)
        inner *= tensor->shape.dims[i];
    int64_t start = row >= 0 ? row * inner : 0;
    if (rank == first) {
        add_element(tensor, start, out);
        return;
    }
    int depth = first;
    str_add_char(out, '[');
    for (int64_t index = start; depth >= first;) {
        if (at[depth] == tensor->shape.dims[depth]) {
            str_add_char(out, ']');
            at[depth--] = 0;
            if (depth >= first)
                at[depth]++;
            continue;
        }
        if (at[depth])
            str_add(out, ", ");
        if (depth + 1 < rank) {
            str_add_char(out, '[');
            depth++;
        } else {
            add_element(tensor, index++, out);
            at[depth]++;
        }
    }
}
