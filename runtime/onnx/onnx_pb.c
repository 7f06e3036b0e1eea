/* onnx_pb.c - the model as ONNX's message. */

#include "onnx/onnx.pb-c.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "proto/message.h"
#include "runtime/onnx/internal.h"
#include "runtime/signature.h"

enum { IR_VERSION = 8 };

/* Messages are only read while they are packed. */
static char *text(const char *value)
{
    return (char *)(uintptr_t)value;
}

#define NEW(o, type, init, name)                                                               \
    type *name = arena_alloc((o)->arena, sizeof(*name));                                       \
    *name = (type)init

static Onnx__AttributeProto *pack_attr(const struct onnx *o, const struct onnx_attr *attr)
{
    NEW(o, Onnx__AttributeProto, ONNX__ATTRIBUTE_PROTO__INIT, out);
    out->name = text(attr->name);
    out->has_type = true;
    switch (attr->kind) {
    case ONNX_INT:
        out->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
        out->has_i = true;
        out->i = attr->i;
        break;
    case ONNX_FLOAT:
        out->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
        out->has_f = true;
        out->f = attr->f;
        break;
    case ONNX_TEXT:
        out->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
        out->has_s = true;
        out->s = (ProtobufCBinaryData){strlen(attr->s), (uint8_t *)text(attr->s)};
        break;
    case ONNX_INTS:
        out->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
        out->n_ints = (size_t)attr->count;
        out->ints = (int64_t *)(uintptr_t)attr->ints;
        break;
    }
    return out;
}

static Onnx__NodeProto *pack_node(const struct onnx *o, const struct onnx_node *node)
{
    NEW(o, Onnx__NodeProto, ONNX__NODE_PROTO__INIT, out);
    out->name = text(node->name);
    out->op_type = text(node->op);
    out->n_input = (size_t)node->inputs_count;
    out->input = (char **)(uintptr_t)node->inputs;
    out->n_output = (size_t)node->outputs_count;
    out->output = (char **)(uintptr_t)node->outputs;
    out->n_attribute = (size_t)node->attrs_count;
    out->attribute = arena_array(o->arena, out->n_attribute + 1, sizeof(*out->attribute));
    for (int i = 0; i < node->attrs_count; i++)
        out->attribute[i] = pack_attr(o, &node->attrs[i]);
    return out;
}

static Onnx__TensorProto *pack_tensor(const struct onnx *o,
                                      const struct onnx_initializer *initializer)
{
    const struct tensor *value = &initializer->value;
    NEW(o, Onnx__TensorProto, ONNX__TENSOR_PROTO__INIT, out);
    out->name = text(initializer->name);
    out->has_data_type = out->has_raw_data = true;
    out->data_type = onnx_type(value->dtype);
    out->n_dims = (size_t)value->shape.rank;
    out->dims = (int64_t *)(uintptr_t)value->shape.dims;
    out->raw_data.data = value->data;
    out->raw_data.len = (size_t)value->count * dtype_size(value->dtype);
    return out;
}

static Onnx__TensorShapeProto__Dimension *pack_dim(const struct onnx *o, int index,
                                                   int64_t size)
{
    NEW(o, Onnx__TensorShapeProto__Dimension, ONNX__TENSOR_SHAPE_PROTO__DIMENSION__INIT, out);
    if (size >= 0) {
        out->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        out->dim_value = size;
    } else if (!index) {
        out->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
        out->dim_param = text("batch");
    }
    return out;
}

static Onnx__ValueInfoProto *pack_value(const struct onnx *o,
                                        const struct signature_tensor *tensor)
{
    NEW(o, Onnx__ValueInfoProto, ONNX__VALUE_INFO_PROTO__INIT, out);
    NEW(o, Onnx__TypeProto, ONNX__TYPE_PROTO__INIT, type);
    NEW(o, Onnx__TypeProto__Tensor, ONNX__TYPE_PROTO__TENSOR__INIT, of);
    out->name = text(tensor->name);
    out->type = type;
    type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    type->tensor_type = of;
    of->has_elem_type = true;
    of->elem_type = onnx_type(tensor->dtype);
    if (tensor->shape.rank < 0)
        return out;
    NEW(o, Onnx__TensorShapeProto, ONNX__TENSOR_SHAPE_PROTO__INIT, shape);
    of->shape = shape;
    shape->n_dim = (size_t)tensor->shape.rank;
    shape->dim = arena_array(o->arena, shape->n_dim + 1, sizeof(*shape->dim));
    for (int d = 0; d < tensor->shape.rank; d++)
        shape->dim[d] = pack_dim(o, d, tensor->shape.dims[d]);
    return out;
}

static Onnx__ValueInfoProto **pack_values(const struct onnx *o,
                                          const struct signature_tensor *tensors, int count)
{
    Onnx__ValueInfoProto **out = arena_array(o->arena, (size_t)count + 1, sizeof(*out));
    for (int i = 0; i < count; i++)
        out[i] = pack_value(o, &tensors[i]);
    return out;
}

static Onnx__GraphProto *pack_graph(const struct onnx *o)
{
    const struct signature *signature = o->source->signature;
    NEW(o, Onnx__GraphProto, ONNX__GRAPH_PROTO__INIT, out);
    out->name = text(o->source->name);
    out->n_node = (size_t)o->nodes_count;
    out->node = arena_array(o->arena, out->n_node + 1, sizeof(*out->node));
    for (int i = 0; i < o->nodes_count; i++)
        out->node[i] = pack_node(o, &o->nodes[i]);
    out->n_initializer = (size_t)o->initializers_count;
    out->initializer = arena_array(o->arena, out->n_initializer + 1, sizeof(*out->initializer));
    for (int i = 0; i < o->initializers_count; i++)
        out->initializer[i] = pack_tensor(o, &o->initializers[i]);
    out->n_input = (size_t)signature->inputs_count;
    out->input = pack_values(o, signature->inputs, signature->inputs_count);
    out->n_output = (size_t)signature->outputs_count;
    out->output = pack_values(o, signature->outputs, signature->outputs_count);
    return out;
}

bool onnx_pack(const struct onnx *o, struct str *out, struct error *err)
{
    Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
    Onnx__OperatorSetIdProto operators = ONNX__OPERATOR_SET_ID_PROTO__INIT;
    Onnx__OperatorSetIdProto *sets[] = {&operators};
    int64_t bytes = 0;
    for (int i = 0; i < o->initializers_count; i++)
        bytes += o->initializers[i].value.count *
                 (int64_t)dtype_size(o->initializers[i].value.dtype);
    if (bytes >= LIMIT_MESSAGE_BYTES)
        return fail(err, EXHAUSTED,
                    "the weights have %lld bytes: an ONNX file holds less than %lld",
                    (long long)bytes, (long long)LIMIT_MESSAGE_BYTES);
    operators.domain = text("");
    operators.has_version = true;
    operators.version = ONNX_OPSET;
    model.has_ir_version = true;
    model.ir_version = IR_VERSION;
    model.producer_name = text("trainyard");
    model.graph = pack_graph(o);
    model.n_opset_import = 1;
    model.opset_import = sets;
    message_pack(&model.base, out);
    return true;
}
