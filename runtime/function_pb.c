/* function_pb.c - functions from and to FunctionDef. */

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "proto/message.h"
#include "runtime/attr_pb.h"
#include "runtime/function_library.h"
#include "tensorflow/graph.pb-c.h"

typedef Tensorflow__FunctionDef function_proto;
typedef Tensorflow__OpDef__ArgDef arg_proto;
typedef Tensorflow__OpDef__AttrDef attr_def_proto;

static const char *text_or_null(const char *text, struct arena *arena)
{
    return text && text[0] ? arena_text(arena, text) : NULL;
}

/* --- the signature --- */

static const struct op_arg *read_args(arg_proto *const *protos, size_t count,
                                      struct arena *arena)
{
    struct op_arg *args = arena_array(arena, count, sizeof(*args));
    for (size_t i = 0; i < count; i++) {
        int dtype = (int)protos[i]->type;
        if (protos[i]->is_ref && dtype > 0 && dtype < DTYPE_REF)
            dtype += DTYPE_REF;
        args[i] = (struct op_arg){
            .name = arena_text(arena, protos[i]->name),
            .dtype = dtype,
            .is_ref = protos[i]->is_ref,
            .type_attr = text_or_null(protos[i]->type_attr, arena),
            .number_attr = text_or_null(protos[i]->number_attr, arena),
            .list_attr = text_or_null(protos[i]->type_list_attr, arena),
        };
    }
    return args;
}

/* "list(type)" and the like. */
static bool read_kind(const char *text, struct op_attr *attr, struct error *err)
{
    static const struct {
        const char *name;
        enum attr_kind kind;
    } kinds[] = {{"string", ATTR_STRING}, {"int", ATTR_INT},   {"float", ATTR_FLOAT},
                 {"bool", ATTR_BOOL},     {"type", ATTR_TYPE}, {"shape", ATTR_SHAPE},
                 {"tensor", ATTR_TENSOR}, {"func", ATTR_FUNC}};
    size_t size = strlen(text);
    const char *name = text;
    attr->is_list = size > 6 && !strncmp(text, "list(", 5) && text[size - 1] == ')';
    if (attr->is_list) {
        name += 5;
        size -= 6;
    }
    for (int i = 0; i < ARRAY_LEN(kinds); i++)
        if (strlen(kinds[i].name) == size && !strncmp(kinds[i].name, name, size)) {
            attr->kind = kinds[i].kind;
            return true;
        }
    return fail(err, INVALID, "attribute '%s': '%s' is not a kind of attribute", attr->name,
                text);
}

static bool read_attr_def(struct op_attr *attr, const attr_def_proto *proto,
                          struct arena *arena, struct error *err)
{
    *attr = (struct op_attr){.name = arena_text(arena, proto->name),
                             .types = DTYPES_ANY,
                             .has_minimum = proto->has_minimum,
                             .minimum = proto->minimum};
    if (!read_kind(proto->type, attr, err))
        return false;
    attr->has_default = proto->default_value != NULL;
    return !proto->default_value ||
           attr_unpack(&attr->value, proto->name, proto->default_value, arena, err);
}

static bool read_signature(struct op_signature *signature, const Tensorflow__OpDef *proto,
                           struct arena *arena, struct error *err)
{
    struct op_attr *attrs = arena_array(arena, proto->n_attr, sizeof(*attrs));
    signature->inputs = read_args(proto->input_arg, proto->n_input_arg, arena);
    signature->inputs_count = (int)proto->n_input_arg;
    signature->outputs = read_args(proto->output_arg, proto->n_output_arg, arena);
    signature->outputs_count = (int)proto->n_output_arg;
    signature->attrs = attrs;
    for (size_t i = 0; i < proto->n_attr; i++) {
        signature->attrs_count++;
        if (!read_attr_def(&attrs[i], proto->attr[i], arena, err))
            return false;
    }
    return true;
}

/* --- the body --- */

static bool read_node(struct function_node *node, const Tensorflow__NodeDef *proto,
                      struct arena *arena, struct error *err)
{
    const char **inputs = arena_array(arena, proto->n_input, sizeof(*inputs));
    struct attr *attrs = arena_array(arena, proto->n_attr, sizeof(*attrs));
    for (size_t i = 0; i < proto->n_input; i++)
        inputs[i] = arena_text(arena, proto->input[i]);
    *node = (struct function_node){.name = arena_text(arena, proto->name),
                                   .shown_name = attr_shown_name(proto, arena),
                                   .op = arena_text(arena, proto->op),
                                   .device = arena_text(arena, proto->device),
                                   .inputs = inputs,
                                   .inputs_count = (int)proto->n_input,
                                   .attrs = attrs};
    for (size_t i = 0; i < proto->n_attr; i++) {
        node->attrs_count++;
        if (!attr_unpack(&attrs[i], proto->attr[i]->key, proto->attr[i]->value, arena, err))
            return error_prefix(err, "node '%s' (%s): ", proto->name, proto->op);
    }
    return true;
}

static bool read_nodes(struct function_def *def, const function_proto *proto,
                       struct arena *arena, struct error *err)
{
    if (proto->n_node_def > LIMIT_GRAPH_NODES)
        return fail(err, EXHAUSTED, "it has more than %d nodes", LIMIT_GRAPH_NODES);
    struct function_node *nodes = arena_array(arena, proto->n_node_def, sizeof(*nodes));
    def->nodes = nodes;
    for (size_t i = 0; i < proto->n_node_def; i++) {
        def->nodes_count++;
        if (!read_node(&nodes[i], proto->node_def[i], arena, err))
            return false;
    }
    return true;
}

static void read_rets(struct function_def *def, const function_proto *proto,
                      struct arena *arena)
{
    struct function_ret *rets = arena_array(arena, proto->n_ret, sizeof(*rets));
    for (size_t i = 0; i < proto->n_ret; i++)
        rets[i] = (struct function_ret){arena_text(arena, proto->ret[i]->key),
                                        arena_text(arena, proto->ret[i]->value)};
    def->rets = rets;
    def->rets_count = (int)proto->n_ret;

    struct function_ret *controls = arena_array(arena, proto->n_control_ret, sizeof(*controls));
    for (size_t i = 0; i < proto->n_control_ret; i++)
        controls[i] = (struct function_ret){arena_text(arena, proto->control_ret[i]->key),
                                            arena_text(arena, proto->control_ret[i]->value)};
    def->control_rets = controls;
    def->control_rets_count = (int)proto->n_control_ret;
}

static bool read_attrs(struct function_def *def, const function_proto *proto,
                       struct arena *arena, struct error *err)
{
    struct attr *attrs = arena_array(arena, proto->n_attr, sizeof(*attrs));
    def->attrs = attrs;
    for (size_t i = 0; i < proto->n_attr; i++) {
        def->attrs_count++;
        if (!attr_unpack(&attrs[i], proto->attr[i]->key, proto->attr[i]->value, arena, err))
            return false;
    }
    return true;
}

static void keep_bytes(struct function_def *def, const function_proto *proto,
                       struct arena *arena)
{
    struct str bytes = {0};
    message_pack(&proto->base, &bytes);
    def->bytes = arena_copy(arena, bytes.data, bytes.size);
    def->size = bytes.size;
    str_release(&bytes);
}

static bool read_function(struct function_library *library, const function_proto *proto,
                          struct error *err)
{
    struct arena *arena = function_library_arena(library);
    if (!proto->signature || !proto->signature->name[0])
        return fail(err, INVALID, "a function of the library has no name");
    struct function_def *def = arena_alloc(arena, sizeof(*def));
    def->op = (struct op){.name = arena_text(arena, proto->signature->name),
                          .flags = proto->signature->is_stateful ? OP_STATEFUL : 0,
                          .signature = &def->signature};
    bool ok = read_signature(&def->signature, proto->signature, arena, err) &&
              read_nodes(def, proto, arena, err) && read_attrs(def, proto, arena, err);
    if (!ok) {
        function_library_drop(library, def);
        return error_prefix(err, "function '%s': ", def->op.name);
    }
    read_rets(def, proto, arena);
    keep_bytes(def, proto, arena);
    return function_library_add(library, def, err);
}

bool function_library_unpack(struct function_library *library,
                             const struct Tensorflow__FunctionDefLibrary *proto,
                             struct error *err)
{
    for (size_t i = 0; i < proto->n_function; i++)
        if (!read_function(library, proto->function[i], err))
            return false;
    for (size_t i = 0; i < proto->n_gradient; i++)
        if (!function_library_set_gradient(library, proto->gradient[i]->function_name,
                                           proto->gradient[i]->gradient_func, err))
            return false;
    return true;
}

bool function_library_parse(struct function_library *library, const void *bytes, size_t size,
                            struct error *err)
{
    struct arena *arena =
        arena_new_limited(size * LIMIT_MESSAGE_EXPANSION + LIMIT_MESSAGE_EXPANSION_BASE);
    const function_proto *proto =
        message_unpack(&tensorflow__function_def__descriptor, bytes, size, arena, err);
    bool ok = proto && read_function(library, proto, err);
    arena_free(arena);
    return ok;
}

/* --- writing --- */

static void add_varint(struct str *out, size_t value)
{
    for (; value >= 0x80; value >>= 7)
        str_add_char(out, (char)((value & 0x7f) | 0x80));
    str_add_char(out, (char)value);
}

static void add_field(struct str *out, int number, const void *bytes, size_t size)
{
    str_add_char(out, (char)(number << 3 | 2));
    add_varint(out, size);
    str_add_bytes(out, bytes, size);
}

void function_library_export(struct function_library *library, struct str *out)
{
    const struct function_library_mark count = function_library_mark(library);
    struct str text = {0};
    for (int i = 0; i < count.functions; i++) {
        const struct function_def *def = function_library_at(library, i);
        add_field(&text, 1, def->bytes, def->size);
    }
    for (int i = 0; i < count.gradients; i++) {
        const char *name;
        const char *gradient = function_library_gradient_at(library, i, &name);
        Tensorflow__GradientDef proto = TENSORFLOW__GRADIENT_DEF__INIT;
        proto.function_name = (char *)name;
        proto.gradient_func = (char *)gradient;
        struct str bytes = {0};
        message_pack(&proto.base, &bytes);
        add_field(&text, 2, bytes.data, bytes.size);
        str_release(&bytes);
    }
    if (text.size)
        add_field(out, 2, text.data, text.size);
    str_release(&text);
}
