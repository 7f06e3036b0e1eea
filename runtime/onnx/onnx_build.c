/* onnx_build.c - nodes and constants of the model that is made. */

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/map.h"
#include "base/str.h"
#include "runtime/model/model.h"
#include "runtime/onnx/internal.h"

int onnx_type(int dtype)
{
    static const struct {
        enum dtype dtype;
        int number;
    } types[] = {{F32, 1},  {U8, 2},   {I8, 3},   {U16, 4},  {I16, 5},  {I32, 6}, {I64, 7},
                 {BOOL, 9}, {F16, 10}, {F64, 11}, {U32, 12}, {U64, 13}, {BF16, 1}};
    for (int i = 0; i < ARRAY_LEN(types); i++) {
        if ((int)types[i].dtype == dtype)
            return types[i].number;
    }
    return 0;
}

/* "dense" of "eval/dense/MatMul"; "" for what is no layer's. */
static const char *layer_name(struct onnx *o)
{
    const char *name = o->node->name;
    size_t scope = strlen(MODEL_EVAL);
    if (!strncmp(name, MODEL_EVAL, scope))
        name += scope;
    const char *slash = strchr(name, '/');
    return slash ? arena_text_n(o->arena, name, (size_t)(slash - name)) : "";
}

void onnx_refuse(struct onnx *o, const char *format, ...)
{
    char text[600];
    va_list args;
    if (o->failed)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    const char *layer = layer_name(o);
    o->failed = true;
    fail(o->err, UNIMPLEMENTED, "%s%s%sop %s (%s): %s", *layer ? "layer '" : "", layer,
         *layer ? "', " : "", o->node->op->name, o->node->name, text);
}

const char **onnx_add_outputs(struct onnx *o, const char *op, const char *const *inputs,
                              int inputs_count, int outputs_count,
                              const struct onnx_attr *attrs, int attrs_count)
{
    const char **outputs = arena_array(o->arena, (size_t)outputs_count + 1, sizeof(*outputs));
    for (int i = 0; i < outputs_count; i++)
        outputs[i] = "";
    if (o->failed)
        return outputs;
    const char *base = o->node ? o->node->name : "output";
    const char *name = arena_printf(o->arena, "%s/%s_%d", base, op, o->names++);
    for (int i = 0; i < outputs_count; i++)
        outputs[i] = outputs_count == 1 ? name : arena_printf(o->arena, "%s:%d", name, i);
    o->nodes = alloc_grow(o->nodes, o->nodes_count, &o->nodes_capacity, sizeof(*o->nodes));
    struct onnx_node *node = &o->nodes[o->nodes_count++];
    *node = (struct onnx_node){.op = op,
                               .name = name,
                               .outputs = outputs,
                               .inputs_count = inputs_count,
                               .outputs_count = outputs_count,
                               .attrs_count = attrs_count};
    node->inputs = arena_array(o->arena, (size_t)inputs_count + 1, sizeof(*node->inputs));
    memcpy(node->inputs, inputs, (size_t)inputs_count * sizeof(*inputs));
    node->attrs = arena_array(o->arena, (size_t)attrs_count + 1, sizeof(*attrs));
    for (int i = 0; i < attrs_count; i++) {
        node->attrs[i] = attrs[i];
        if (attrs[i].kind == ONNX_INTS)
            node->attrs[i].ints =
                arena_copy(o->arena, attrs[i].ints, (size_t)attrs[i].count * sizeof(int64_t));
    }
    return outputs;
}

const char *onnx_add(struct onnx *o, const char *op, const char *const *inputs,
                     int inputs_count, const struct onnx_attr *attrs, int attrs_count)
{
    return onnx_add_outputs(o, op, inputs, inputs_count, 1, attrs, attrs_count)[0];
}

/* --- constants --- */

/* Two hashes of type, shape and bytes: enough to find candidates, which are then compared. */
static const char *content_key(struct onnx *o, const struct tensor *value)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ (uint64_t)value->dtype;
    const unsigned char *bytes = value->data;
    size_t size = (size_t)value->count * dtype_size(value->dtype);
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    struct str key = {0};
    str_printf(&key, "%d %016llx ", (int)value->dtype, (unsigned long long)hash);
    shape_print(&value->shape, &key);
    const char *text = arena_text(o->arena, str_text(&key));
    str_release(&key);
    return text;
}

/* The same numbers as floats; false after failing. */
static bool widen(struct onnx *o, const struct tensor *value, struct tensor *out)
{
    o->failed = !tensor_init(out, F32, &value->shape, o->err);
    for (int64_t i = 0; !o->failed && i < value->count; i++)
        tensor_f32_mut(out)[i] = dtype_bf16_to_f32(((const uint16_t *)value->data)[i]);
    return !o->failed;
}

const char *onnx_tensor(struct onnx *o, const struct tensor *value)
{
    struct tensor wide;
    if (o->failed)
        return "";
    if (value->dtype == BF16) {
        if (!widen(o, value, &wide))
            return "";
        const char *name = onnx_tensor(o, &wide);
        tensor_release(&wide);
        return name;
    }
    if (!onnx_type(value->dtype)) {
        onnx_refuse(o, "a constant of type %s cannot be stored", dtype_name(value->dtype));
        return "";
    }
    const char *key = content_key(o, value);
    const void *found = map_find(o->initializers_by_content, key);
    if (found) {
        struct onnx_initializer *same = &o->initializers[(intptr_t)found - 1];
        if (tensor_equal(&same->value, value))
            return same->name;
    }
    o->initializers = alloc_grow(o->initializers, o->initializers_count,
                                 &o->initializers_capacity, sizeof(*o->initializers));
    struct onnx_initializer *made = &o->initializers[o->initializers_count++];
    made->name =
        arena_printf(o->arena, "%s/const_%d", o->node ? o->node->name : "output", o->names++);
    tensor_share(&made->value, value);
    map_set(o->initializers_by_content, key, (void *)(intptr_t)o->initializers_count);
    return made->name;
}

/* Takes the tensor. */
static const char *take(struct onnx *o, struct tensor *value)
{
    const char *name = onnx_tensor(o, value);
    tensor_release(value);
    return name;
}

const char *onnx_tensor_as(struct onnx *o, const struct tensor *value,
                           const struct shape *shape)
{
    struct tensor other;
    tensor_share_as(&other, value, shape);
    return take(o, &other);
}

/* A new tensor; false after failing. */
static bool make(struct onnx *o, struct tensor *out, enum dtype dtype,
                 const struct shape *shape)
{
    o->failed = o->failed || !tensor_init(out, dtype, shape, o->err);
    return !o->failed;
}

const char *onnx_ints(struct onnx *o, const int64_t *values, int count)
{
    struct tensor tensor;
    if (!make(o, &tensor, I64, &SHAPE(count)))
        return "";
    if (count)
        memcpy(tensor.data, values, (size_t)count * sizeof(*values));
    return take(o, &tensor);
}

const char *onnx_number(struct onnx *o, enum dtype dtype, double value)
{
    struct tensor tensor;
    if (!make(o, &tensor, dtype, &SHAPE_SCALAR))
        return "";
    tensor_set_number(&tensor, 0, value);
    return take(o, &tensor);
}

const char *onnx_turned(struct onnx *o, const struct tensor *value, const int64_t *order)
{
    struct shape shape = {.rank = value->shape.rank};
    int64_t index[LIMIT_TENSOR_RANK] = {0}, stride[LIMIT_TENSOR_RANK], from = 0;
    struct tensor tensor;
    for (int d = 0; d < shape.rank; d++) {
        shape.dims[d] = value->shape.dims[order[d]];
        stride[d] = 1;
        for (int k = (int)order[d] + 1; value->count && k < shape.rank; k++)
            stride[d] *= value->shape.dims[k];
    }
    if (!make(o, &tensor, value->dtype, &shape))
        return "";
    size_t size = dtype_size(value->dtype);
    for (int64_t i = 0; i < tensor.count; i++) {
        memcpy((char *)tensor.data + (size_t)i * size,
               (const char *)value->data + (size_t)from * size, size);
        int d = shape.rank - 1;
        for (; d >= 0 && ++index[d] == shape.dims[d]; d--) {
            from -= stride[d] * (index[d] - 1);
            index[d] = 0;
        }
        from += d >= 0 ? stride[d] : 0;
    }
    return take(o, &tensor);
}

/* --- nodes that many need --- */

const char *onnx_transpose(struct onnx *o, const char *x, const int64_t *order, int rank)
{
    bool moves = false;
    for (int d = 0; d < rank; d++)
        moves = moves || order[d] != d;
    return moves ? onnx_add(o, "Transpose", ONNX_IN(x), ONNX_ATTRS(ONNX_L("perm", order, rank)))
                 : x;
}

const char *onnx_reshape(struct onnx *o, const char *x, const int64_t *dims, int rank)
{
    bool empty = false; /* in ONNX a 0 would stand for the input's dimension */
    for (int d = 0; d < rank; d++)
        empty = empty || dims[d] == 0;
    return onnx_add(o, "Reshape", ONNX_IN(x, onnx_ints(o, dims, rank)),
                    ONNX_ATTRS(ONNX_I("allowzero", empty)));
}

const char *onnx_cast(struct onnx *o, const char *x, enum dtype dtype)
{
    if (!onnx_type(dtype))
        onnx_refuse(o, "ONNX has no type %s", dtype_name(dtype));
    return onnx_add(o, "Cast", ONNX_IN(x), ONNX_ATTRS(ONNX_I("to", onnx_type(dtype))));
}
