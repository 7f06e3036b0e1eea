/* predict_model.c - opens what predictions are asked of, and fits values to its inputs. */

#include "task/predict_model.h"

#include <math.h>

#include "base/error.h"
#include "runtime/session.h"
#include "runtime/tensor.h"

/* --- opening --- */

static bool open_dimension(const struct signature_tensor *tensors, int count)
{
    for (int i = 0; i < count; i++) {
        if (tensors[i].shape.rank < 1 || tensors[i].shape.dims[0] != -1)
            return false;
    }
    return count > 0;
}

bool predict_model_open(const struct predict_wish *wish, struct predict_model *out,
                        struct error *err)
{
    const struct session_options options = {.threads = wish->threads};
    bool ok;
    struct predict_model model = {.is_graph = saved_model_is_file(wish->path)};
    model.is_trained = !model.is_graph && !saved_model_is(wish->path);
    if (model.is_graph && wish->tags)
        return fail(err, INVALID, "%s is one graph: it has no tags to choose by (--tags)",
                    wish->path);
    if (model.is_trained) {
        if (wish->signature || wish->tags)
            return fail(err, INVALID, "%s is no SavedModel: it has no %s", wish->path,
                        wish->signature ? "signatures to choose (--signature)"
                                        : "tags to choose by (--tags)");
        if (!trained_is(wish->path))
            return fail(
                err, NOT_FOUND,
                "%s is no run's folder, no checkpoint, no .keras file, no SavedModel and no "
                "graph (.meta, .pb)",
                wish->path);
        ok = trained_open(wish->path, &options, &model.trained, err);
        if (ok && !trained_predicts(&model.trained, err)) {
            trained_close(&model.trained);
            ok = false;
        }
        model.session = model.trained.session;
    } else {
        ok = model.is_graph
                 ? saved_model_open_file(wish->path, &options, &model.saved, err)
                 : saved_model_open(wish->path, wish->tags, &options, &model.saved, err);
        model.session = model.saved.session;
    }
    if (!ok)
        return false;
    model.signature =
        model.is_trained ? NULL : saved_model_signature(&model.saved, wish->signature, err);
    if (!model.is_trained && !model.signature) {
        predict_model_close(&model);
        return false;
    }
    *out = model;
    if (model.is_trained)
        out->signature = &out->trained.signature;
    out->batches = open_dimension(out->signature->inputs, out->signature->inputs_count) &&
                   open_dimension(out->signature->outputs, out->signature->outputs_count);
    return true;
}

void predict_model_close(struct predict_model *model)
{
    if (model->is_trained)
        trained_close(&model->trained);
    else
        saved_model_close(&model->saved);
    *model = (struct predict_model){0};
}

/* --- values --- */

static bool is_float(int dtype)
{
    return dtype != DTYPE_NONE && BIT(dtype) & DTYPES_FLOAT;
}

static bool is_integer(int dtype)
{
    return dtype != DTYPE_NONE && BIT(dtype) & DTYPES_INTEGER;
}

/* Element by element, times `scale`. */
static bool cast(const struct tensor *from, int dtype, double scale, const char *name,
                 struct tensor *out, struct error *err)
{
    if (!tensor_init(out, (enum dtype)dtype, &from->shape, err))
        return false;
    for (int64_t i = 0; i < from->count; i++) {
        double value = tensor_number(from, i);
        tensor_set_number(out, i, value * scale);
        if (is_integer(dtype) && (tensor_number(out, i) != value)) {
            tensor_release(out);
            return fail(err, INVALID, "input \"%s\" takes %s, which cannot hold %.9g", name,
                        dtype_name(dtype), value);
        }
    }
    return true;
}

/* Examples as files store them, by what training does with them where nothing is random. */
static bool transform(const struct dataset_transform *transform,
                      const struct dataset_column *column, const struct tensor *from,
                      struct tensor *out, struct error *err)
{
    int64_t count = from->shape.dims[0];
    struct shape shape = {.rank = transform->shape.rank + 1, .dims = {count}};
    memcpy(shape.dims + 1, transform->shape.dims,
           (size_t)transform->shape.rank * sizeof(*shape.dims));
    if (!tensor_init(out, column->dtype, &shape, err))
        return false;
    size_t step = (size_t)shape_count(&column->shape) * dtype_size(column->stored);
    size_t out_step = (size_t)shape_count(&transform->shape) * dtype_size(column->dtype);
    for (int64_t i = 0; i < count; i++)
        transform->run(transform, column, (const char *)from->data + (size_t)i * step,
                       (char *)out->data + (size_t)i * out_step, -1);
    return true;
}

static bool is_stored(const struct dataset_column *column, const struct tensor *value)
{
    struct shape example = value->shape;
    if (value->dtype != column->stored || example.rank < 1)
        return false;
    example.rank--;
    memmove(example.dims, example.dims + 1, (size_t)example.rank * sizeof(*example.dims));
    return shape_equal(&example, &column->shape);
}

static bool convert(const struct predict_model *model, int index, double scale,
                    const struct tensor *value, struct tensor *out, struct error *err)
{
    const struct signature_tensor *input = &model->signature->inputs[index];
    const struct dataset *dataset = &model->trained.dataset;
    const struct dataset_column *column = model->is_trained ? &dataset->columns[index] : NULL;
    if (column && dataset->transforms && dataset->transforms[index] && !scale &&
        is_stored(column, value))
        return transform(dataset->transforms[index], column, value, out, err);
    if ((int)value->dtype != input->dtype && is_integer(value->dtype) &&
        is_float(input->dtype)) {
        double own = column && value->dtype == column->stored ? column->scale : 0;
        double factor = scale ? scale : own;
        return cast(value, input->dtype, factor ? factor : 1, input->name, out, err);
    }
    bool same = (is_float(value->dtype) && is_float(input->dtype)) ||
                (is_integer(value->dtype) && is_integer(input->dtype));
    if ((int)value->dtype != input->dtype && same)
        return cast(value, input->dtype, 1, input->name, out, err);
    tensor_share(out, value);
    return true;
}

bool predict_model_convert(const struct predict_model *model, int index, double scale,
                           struct tensor *value, struct error *err)
{
    struct tensor out;
    bool ok = convert(model, index, scale, value, &out, err);
    tensor_release(value);
    *value = ok ? out : (struct tensor){0};
    return ok;
}
