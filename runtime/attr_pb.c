/* attr_pb.c - attributes from and to AttrValue. */

#include "runtime/attr_pb.h"
#include "base/arena.h"
#include "base/error.h"
#include "runtime/tensor_pb.h"
#include "tensorflow/graph.pb-c.h"

typedef Tensorflow__AttrValue attr_proto;
typedef Tensorflow__AttrValue__ListValue list_proto;

/* --- reading --- */

static struct attr_bytes copy_bytes(const void *data, size_t size, struct arena *arena)
{
    return (struct attr_bytes){arena_text_n(arena, size ? data : "", size), size};
}

/* One level deeper for each level of the message, which message_scan() has bounded. */
static bool read_func(struct attr_func *out, const Tensorflow__NameAttrList *proto,
                      struct arena *arena, struct error *err)
{
    struct attr *attrs = arena_array(arena, proto->n_attr, sizeof(*attrs));
    for (size_t i = 0; i < proto->n_attr; i++)
        if (!attr_unpack(&attrs[i], proto->attr[i]->key, proto->attr[i]->value, arena, err))
            return false;
    *out = (struct attr_func){arena_text(arena, proto->name), attrs, (int)proto->n_attr};
    return true;
}

static bool read_list(struct attr *out, const list_proto *list, struct arena *arena,
                      struct error *err)
{
    out->is_list = true;
    if (list->n_s) {
        struct attr_bytes *strings = arena_array(arena, list->n_s, sizeof(*strings));
        for (size_t i = 0; i < list->n_s; i++)
            strings[i] = copy_bytes(list->s[i].data, list->s[i].len, arena);
        out->kind = ATTR_STRING, out->count = (int)list->n_s, out->strings = strings;
    } else if (list->n_i) {
        out->kind = ATTR_INT, out->count = (int)list->n_i;
        out->ints = arena_copy(arena, list->i, list->n_i * sizeof(*list->i));
    } else if (list->n_f) {
        out->kind = ATTR_FLOAT, out->count = (int)list->n_f;
        out->floats = arena_copy(arena, list->f, list->n_f * sizeof(*list->f));
    } else if (list->n_b) {
        bool *bools = arena_array(arena, list->n_b, sizeof(*bools));
        for (size_t i = 0; i < list->n_b; i++)
            bools[i] = list->b[i];
        out->kind = ATTR_BOOL, out->count = (int)list->n_b, out->bools = bools;
    } else if (list->n_type) {
        int *types = arena_array(arena, list->n_type, sizeof(*types));
        for (size_t i = 0; i < list->n_type; i++)
            types[i] = list->type[i];
        out->kind = ATTR_TYPE, out->count = (int)list->n_type, out->types = types;
    } else if (list->n_shape) {
        struct shape *shapes = arena_array(arena, list->n_shape, sizeof(*shapes));
        for (size_t i = 0; i < list->n_shape; i++)
            if (!tensor_unpack_shape(&shapes[i], list->shape[i], err))
                return false;
        out->kind = ATTR_SHAPE, out->count = (int)list->n_shape, out->shapes = shapes;
    } else if (list->n_tensor) {
        struct tensor *tensors = arena_array(arena, list->n_tensor, sizeof(*tensors));
        out->kind = ATTR_TENSOR, out->count = (int)list->n_tensor, out->tensors = tensors;
        for (size_t i = 0; i < list->n_tensor; i++)
            if (!tensor_unpack(&tensors[i], list->tensor[i], err))
                return false;
    } else if (list->n_func) {
        struct attr_func *funcs = arena_array(arena, list->n_func, sizeof(*funcs));
        for (size_t i = 0; i < list->n_func; i++)
            if (!read_func(&funcs[i], list->func[i], arena, err))
                return false;
        out->kind = ATTR_FUNC, out->count = (int)list->n_func, out->funcs = funcs;
    }
    return true;
}

static bool read_value(struct attr *out, const attr_proto *proto, struct arena *arena,
                       struct error *err)
{
    out->count = 1;
    switch (proto->value_case) {
    case TENSORFLOW__ATTR_VALUE__VALUE_LIST:
        out->count = 0;
        return read_list(out, proto->list, arena, err);
    case TENSORFLOW__ATTR_VALUE__VALUE_S: {
        struct attr_bytes bytes = copy_bytes(proto->s.data, proto->s.len, arena);
        out->kind = ATTR_STRING, out->strings = arena_copy(arena, &bytes, sizeof(bytes));
        return true;
    }
    case TENSORFLOW__ATTR_VALUE__VALUE_I:
        out->kind = ATTR_INT, out->ints = arena_copy(arena, &proto->i, sizeof(proto->i));
        return true;
    case TENSORFLOW__ATTR_VALUE__VALUE_F:
        out->kind = ATTR_FLOAT, out->floats = arena_copy(arena, &proto->f, sizeof(proto->f));
        return true;
    case TENSORFLOW__ATTR_VALUE__VALUE_B: {
        bool value = proto->b;
        out->kind = ATTR_BOOL, out->bools = arena_copy(arena, &value, sizeof(value));
        return true;
    }
    case TENSORFLOW__ATTR_VALUE__VALUE_TYPE: {
        int value = proto->type;
        out->kind = ATTR_TYPE, out->types = arena_copy(arena, &value, sizeof(value));
        return true;
    }
    case TENSORFLOW__ATTR_VALUE__VALUE_SHAPE: {
        struct shape *shape = arena_alloc(arena, sizeof(*shape));
        out->kind = ATTR_SHAPE, out->shapes = shape;
        return tensor_unpack_shape(shape, proto->shape, err);
    }
    case TENSORFLOW__ATTR_VALUE__VALUE_TENSOR: {
        struct tensor *tensor = arena_alloc(arena, sizeof(*tensor));
        out->kind = ATTR_TENSOR, out->tensors = tensor;
        return tensor_unpack(tensor, proto->tensor, err);
    }
    case TENSORFLOW__ATTR_VALUE__VALUE_PLACEHOLDER: {
        struct attr_bytes bytes =
            copy_bytes(proto->placeholder, strlen(proto->placeholder), arena);
        out->kind = ATTR_PLACEHOLDER, out->strings = arena_copy(arena, &bytes, sizeof(bytes));
        return true;
    }
    case TENSORFLOW__ATTR_VALUE__VALUE_FUNC: {
        struct attr_func *func = arena_alloc(arena, sizeof(*func));
        out->kind = ATTR_FUNC, out->funcs = func;
        return read_func(func, proto->func, arena, err);
    }
    default:
        out->count = 0;
        return true;
    }
}

bool attr_unpack(struct attr *out, const char *name, const attr_proto *proto,
                 struct arena *arena, struct error *err)
{
    *out = (struct attr){.name = arena_text(arena, name)};
    if (!proto)
        return true;
    if (!read_value(out, proto, arena, err)) {
        /* What was read of it is given back by the caller, who sees attributes up to this one.
         */
        return error_prefix(err, "attribute '%s': ", name);
    }
    return true;
}

/* --- writing --- */

struct writer {
    struct arena *arena;
    size_t const_bytes_max;
};

static Tensorflow__NameAttrList *write_func(const struct writer *writer,
                                            const struct attr_func *func)
{
    Tensorflow__NameAttrList *proto = arena_alloc(writer->arena, sizeof(*proto));
    tensorflow__name_attr_list__init(proto);
    proto->name = (char *)func->name;
    proto->n_attr = (size_t)func->attrs_count;
    proto->attr = arena_array(writer->arena, proto->n_attr, sizeof(*proto->attr));
    for (int i = 0; i < func->attrs_count; i++) {
        Tensorflow__NameAttrList__AttrEntry *entry = arena_alloc(writer->arena, sizeof(*entry));
        tensorflow__name_attr_list__attr_entry__init(entry);
        entry->key = (char *)func->attrs[i].name;
        entry->value = attr_pack(&func->attrs[i], writer->const_bytes_max, writer->arena);
        proto->attr[i] = entry;
    }
    return proto;
}

static Tensorflow__TensorProto *write_tensor(const struct writer *writer,
                                             const struct tensor *tensor)
{
    bool contents = !writer->const_bytes_max || tensor_bytes(tensor) <= writer->const_bytes_max;
    return tensor_pack(tensor, contents, writer->arena);
}

static list_proto *write_list(const struct writer *writer, const struct attr *attr)
{
    struct arena *arena = writer->arena;
    size_t count = (size_t)attr->count;
    list_proto *list = arena_alloc(arena, sizeof(*list));
    tensorflow__attr_value__list_value__init(list);
    switch (attr->kind) {
    case ATTR_STRING:
        list->n_s = count;
        list->s = arena_array(arena, count, sizeof(*list->s));
        for (size_t i = 0; i < count; i++)
            list->s[i] =
                (ProtobufCBinaryData){attr->strings[i].size, (uint8_t *)attr->strings[i].data};
        break;
    case ATTR_INT:
        list->n_i = count;
        list->i = (int64_t *)attr->ints;
        break;
    case ATTR_FLOAT:
        list->n_f = count;
        list->f = (float *)attr->floats;
        break;
    case ATTR_BOOL:
        list->n_b = count;
        list->b = arena_array(arena, count, sizeof(*list->b));
        for (size_t i = 0; i < count; i++)
            list->b[i] = attr->bools[i];
        break;
    case ATTR_TYPE:
        list->n_type = count;
        list->type = arena_array(arena, count, sizeof(*list->type));
        for (size_t i = 0; i < count; i++)
            list->type[i] = (Tensorflow__DataType)attr->types[i];
        break;
    case ATTR_SHAPE:
        list->n_shape = count;
        list->shape = arena_array(arena, count, sizeof(*list->shape));
        for (size_t i = 0; i < count; i++)
            list->shape[i] = tensor_pack_shape(&attr->shapes[i], arena);
        break;
    case ATTR_TENSOR:
        list->n_tensor = count;
        list->tensor = arena_array(arena, count, sizeof(*list->tensor));
        for (size_t i = 0; i < count; i++)
            list->tensor[i] = write_tensor(writer, &attr->tensors[i]);
        break;
    case ATTR_FUNC:
        list->n_func = count;
        list->func = arena_array(arena, count, sizeof(*list->func));
        for (size_t i = 0; i < count; i++)
            list->func[i] = write_func(writer, &attr->funcs[i]);
        break;
    case ATTR_NONE:
    case ATTR_PLACEHOLDER:
        break;
    }
    return list;
}

static void write_value(const struct writer *writer, const struct attr *attr, attr_proto *proto)
{
    switch (attr->kind) {
    case ATTR_STRING:
        proto->value_case = TENSORFLOW__ATTR_VALUE__VALUE_S;
        proto->s = (ProtobufCBinaryData){attr->strings->size, (uint8_t *)attr->strings->data};
        break;
    case ATTR_INT:
        proto->value_case = TENSORFLOW__ATTR_VALUE__VALUE_I;
        proto->i = attr->ints[0];
        break;
    case ATTR_FLOAT:
        proto->value_case = TENSORFLOW__ATTR_VALUE__VALUE_F;
        proto->f = attr->floats[0];
        break;
    case ATTR_BOOL:
        proto->value_case = TENSORFLOW__ATTR_VALUE__VALUE_B;
        proto->b = attr->bools[0];
        break;
    case ATTR_TYPE:
        proto->value_case = TENSORFLOW__ATTR_VALUE__VALUE_TYPE;
        proto->type = (Tensorflow__DataType)attr->types[0];
        break;
    case ATTR_SHAPE:
        proto->value_case = TENSORFLOW__ATTR_VALUE__VALUE_SHAPE;
        proto->shape = tensor_pack_shape(attr->shapes, writer->arena);
        break;
    case ATTR_TENSOR:
        proto->value_case = TENSORFLOW__ATTR_VALUE__VALUE_TENSOR;
        proto->tensor = write_tensor(writer, attr->tensors);
        break;
    case ATTR_FUNC:
        proto->value_case = TENSORFLOW__ATTR_VALUE__VALUE_FUNC;
        proto->func = write_func(writer, attr->funcs);
        break;
    case ATTR_PLACEHOLDER:
        proto->value_case = TENSORFLOW__ATTR_VALUE__VALUE_PLACEHOLDER;
        proto->placeholder = (char *)attr->strings->data;
        break;
    case ATTR_NONE:
        break;
    }
}

attr_proto *attr_pack(const struct attr *attr, size_t const_bytes_max, struct arena *arena)
{
    const struct writer writer = {arena, const_bytes_max};
    attr_proto *proto = arena_alloc(arena, sizeof(*proto));
    tensorflow__attr_value__init(proto);
    if (attr->is_list) {
        proto->value_case = TENSORFLOW__ATTR_VALUE__VALUE_LIST;
        proto->list = write_list(&writer, attr);
    } else {
        write_value(&writer, attr, proto);
    }
    return proto;
}

const char *attr_shown_name(const Tensorflow__NodeDef *proto, struct arena *arena)
{
    const Tensorflow__NodeDef__ExperimentalDebugInfo *info = proto->experimental_debug_info;
    if (!info || !info->n_original_node_names ||
        !strcmp(info->original_node_names[0], proto->name))
        return NULL;
    return arena_text(arena, info->original_node_names[0]);
}
