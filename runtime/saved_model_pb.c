/* saved_model_pb.c - takes SavedModel and MetaGraphDef messages apart. */

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "proto/message.h"
#include "proto/text.h"
#include "runtime/saved_model_internal.h"
#include "runtime/tensor_pb.h"
#include "tensorflow/meta_graph.pb-c.h"

typedef Tensorflow__MetaGraphDef meta_proto;
typedef Tensorflow__SavedModel model_proto;
typedef Tensorflow__TensorInfo info_proto;
typedef Tensorflow__TrackableObjectGraph keys_proto;

#define INIT_SIGNATURE "__saved_model_init_op"
#define DEFAULTS_FILLED_MAX (INT64_C(16) << 20) /* bytes, of all signatures of a model */
#define KEY_STEPS_MAX 100000000 /* comparisons of names, so that no file costs minutes */

/* --- which meta graph --- */

static bool has_tag(const meta_proto *meta, const char *tag, size_t size)
{
    for (size_t i = 0; meta->meta_info_def && i < meta->meta_info_def->n_tags; i++) {
        const char *own = meta->meta_info_def->tags[i];
        if (strlen(own) == size && !memcmp(own, tag, size))
            return true;
    }
    return false;
}

/* Whether `tags`, "serve,gpu", are its tags, all of them and no others. */
static bool has_tags(const meta_proto *meta, const char *tags)
{
    size_t count = 0, own = meta->meta_info_def ? meta->meta_info_def->n_tags : 0;
    for (const char *at = tags; *at; count++) {
        size_t size = strcspn(at, ",");
        if (!has_tag(meta, at, size))
            return false;
        at += size + (at[size] == ',');
    }
    return count == own;
}

static void add_tags(const meta_proto *meta, struct str *out)
{
    for (size_t i = 0; meta->meta_info_def && i < meta->meta_info_def->n_tags; i++)
        str_printf(out, "%s%s", i ? "," : "", meta->meta_info_def->tags[i]);
}

static const meta_proto *choose(const model_proto *model, const char *tags, struct error *err)
{
    struct str all = {0};
    for (size_t i = 0; i < model->n_meta_graphs; i++) {
        const meta_proto *meta = model->meta_graphs[i];
        if (tags ? has_tags(meta, tags)
                 : model->n_meta_graphs == 1 || has_tags(meta, "serve")) {
            str_release(&all);
            return meta;
        }
        str_add(&all, i ? ", \"" : "\"");
        add_tags(meta, &all);
        str_add(&all, "\"");
    }
    if (tags)
        fail(err, NOT_FOUND, "no meta graph has the tags \"%s\", there are: %s", tags,
             str_text(&all));
    else
        fail(err, INVALID, "it has %zu meta graphs: choose one by its tags, %s",
             model->n_meta_graphs, str_text(&all));
    str_release(&all);
    return NULL;
}

/* --- its parts --- */

static void clear_devices(Tensorflow__NodeDef **nodes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        nodes[i]->device = (char *)"";
}

static bool take_graph(struct saved_meta *out, const meta_proto *meta, struct error *err)
{
    Tensorflow__GraphDef *graph = meta->graph_def;
    if (!graph)
        return fail(err, INVALID, "it has no graph");
    clear_devices(graph->node, graph->n_node);
    for (size_t i = 0; graph->library && i < graph->library->n_function; i++)
        clear_devices(graph->library->function[i]->node_def,
                      graph->library->function[i]->n_node_def);
    message_pack(&graph->base, &out->graph_def);
    return true;
}

static const Tensorflow__CollectionDef *find_collection(const meta_proto *meta,
                                                        const char *name)
{
    for (size_t i = 0; i < meta->n_collection_def; i++) {
        if (!strcmp(meta->collection_def[i]->key, name))
            return meta->collection_def[i]->value;
    }
    return NULL;
}

/* The node that `name`, "init:0" or "init", is of. */
static const char *node_of(struct arena *arena, const char *name)
{
    return arena_text_n(arena, name, strcspn(name, ":"));
}

static void take_init(struct saved_meta *out, const meta_proto *meta)
{
    static const char *const names[] = {"saved_model_main_op", "legacy_init_op"};
    for (int i = 0; i < ARRAY_LEN(names) && !out->init_op; i++) {
        const Tensorflow__CollectionDef *list = find_collection(meta, names[i]);
        if (list && list->kind_case == TENSORFLOW__COLLECTION_DEF__KIND_NODE_LIST &&
            list->node_list->n_value)
            out->init_op = node_of(out->arena, list->node_list->value[0]);
    }
    for (size_t i = 0; i < meta->n_signature_def && !out->init_op; i++) {
        const Tensorflow__SignatureDef *signature = meta->signature_def[i]->value;
        if (!strcmp(meta->signature_def[i]->key, INIT_SIGNATURE) && signature &&
            signature->n_outputs && signature->outputs[0]->value &&
            signature->outputs[0]->value->encoding_case ==
                TENSORFLOW__TENSOR_INFO__ENCODING_NAME)
            out->init_op = node_of(out->arena, signature->outputs[0]->value->name);
    }
}

static void add_asset(struct saved_meta *out, struct saved_asset *assets,
                      const Tensorflow__AssetFileDef *asset)
{
    if (asset->tensor_info &&
        asset->tensor_info->encoding_case == TENSORFLOW__TENSOR_INFO__ENCODING_NAME)
        assets[out->assets_count++] =
            (struct saved_asset){arena_text(out->arena, asset->tensor_info->name),
                                 arena_text(out->arena, asset->filename)};
}

/* TensorFlow 1 keeps them in a collection, 2 in a field of their own. */
static bool take_assets(struct saved_meta *out, const meta_proto *meta, struct error *err)
{
    const Tensorflow__CollectionDef *list = find_collection(meta, "saved_model_assets");
    size_t more = list && list->kind_case == TENSORFLOW__COLLECTION_DEF__KIND_ANY_LIST &&
                          !meta->n_asset_file_def
                      ? list->any_list->n_value
                      : 0;
    struct saved_asset *assets =
        arena_array(out->arena, meta->n_asset_file_def + more + 1, sizeof(*assets));
    for (size_t i = 0; i < meta->n_asset_file_def; i++)
        add_asset(out, assets, meta->asset_file_def[i]);
    for (size_t i = 0; i < more; i++) {
        const ProtobufCBinaryData *bytes = &list->any_list->value[i]->value;
        const Tensorflow__AssetFileDef *asset =
            message_unpack(&tensorflow__asset_file_def__descriptor, bytes->data, bytes->len,
                           out->messages, err);
        if (!asset)
            return error_prefix(err, "an asset: ");
        add_asset(out, assets, asset);
    }
    out->assets = assets;
    return true;
}

/* --- signatures --- */

struct list {
    struct signature_tensor *items;
    int count, capacity;
};

static bool add_tensor(struct list *list, struct arena *arena, const char *name,
                       const char *tensor, const info_proto *info, struct error *err)
{
    struct signature_tensor item = {.name = name,
                                    .tensor = arena_text(arena, tensor),
                                    .dtype = (int)info->dtype,
                                    .shape = SHAPE_UNKNOWN};
    if (info->tensor_shape && !tensor_unpack_shape(&item.shape, info->tensor_shape, err))
        return error_prefix(err, "\"%s\" of a signature: ", name);
    list->items = alloc_grow(list->items, list->count, &list->capacity, sizeof(*list->items));
    list->items[list->count++] = item;
    return true;
}

static struct signature_tensor *copy_of(const struct list *list, struct arena *arena)
{
    struct signature_tensor *items =
        arena_array(arena, (size_t)list->count + 1, sizeof(*items));
    if (list->count)
        memcpy(items, list->items, (size_t)list->count * sizeof(*items));
    return items;
}

/* A tensor, or the ones that a sparse or composite one is made of. */
static bool add_info(struct list *list, struct arena *arena, const char *key,
                     const info_proto *info, struct error *err)
{
    const char *name = arena_text(arena, key);
    info_proto of_shape = *info;
    of_shape.tensor_shape = NULL;
    of_shape.dtype = TENSORFLOW__DATA_TYPE__DT_INT64;
    switch (info->encoding_case) {
    case TENSORFLOW__TENSOR_INFO__ENCODING_NAME:
        return add_tensor(list, arena, name, info->name, info, err);
    case TENSORFLOW__TENSOR_INFO__ENCODING_COO_SPARSE: {
        const Tensorflow__TensorInfo__CooSparse *sparse = info->coo_sparse;
        info_proto values = *info;
        values.tensor_shape = NULL;
        return add_tensor(list, arena, arena_printf(arena, "%s/indices", key),
                          sparse->indices_tensor_name, &of_shape, err) &&
               add_tensor(list, arena, arena_printf(arena, "%s/values", key),
                          sparse->values_tensor_name, &values, err) &&
               add_tensor(list, arena, arena_printf(arena, "%s/dense_shape", key),
                          sparse->dense_shape_tensor_name, &of_shape, err);
    }
    case TENSORFLOW__TENSOR_INFO__ENCODING_COMPOSITE_TENSOR:
        for (size_t i = 0; i < info->composite_tensor->n_components; i++) {
            const info_proto *part = info->composite_tensor->components[i];
            if (part->encoding_case != TENSORFLOW__TENSOR_INFO__ENCODING_NAME)
                return fail(err, UNIMPLEMENTED, "\"%s\" of a signature has parts in parts",
                            key);
            if (!add_tensor(list, arena, arena_printf(arena, "%s/%zu", key, i), part->name,
                            part, err))
                return false;
        }
        return true;
    default:
        return fail(err, INVALID, "\"%s\" of a signature names no tensor", key);
    }
}

static int compare_tensors(const void *a, const void *b)
{
    return strcmp(((const struct signature_tensor *)a)->name,
                  ((const struct signature_tensor *)b)->name);
}

/* A few bytes may ask for a large tensor of one value: what all defaults take that the file
 * does not hold byte by byte is bounded, and counted in `*filled`. */
static bool check_default(const Tensorflow__TensorProto *value, int64_t *filled,
                          struct error *err)
{
    struct shape shape = SHAPE_SCALAR;
    char text[SHAPE_TEXT_BYTES];
    if (!dtype_known((int)value->dtype) || dtype_is_ref((int)value->dtype))
        return true; /* tensor_unpack() tells */
    if (value->tensor_content.len && BIT(value->dtype) & DTYPES_PLAIN)
        return true;
    if (value->tensor_shape && !tensor_unpack_shape(&shape, value->tensor_shape, err))
        return false;
    int64_t count = shape_count(&shape);
    if (count < 0)
        return true;
    int64_t size = (int64_t)tensor_element_bytes((enum dtype)value->dtype);
    if (count > (DEFAULTS_FILLED_MAX - *filled) / size)
        return fail(err, EXHAUSTED,
                    "a value of shape %s of %s, allowed for all that are filled with theirs: "
                    "%lld bytes",
                    shape_text(&shape, text, sizeof(text)), dtype_name((int)value->dtype),
                    (long long)DEFAULTS_FILLED_MAX);
    *filled += count * size;
    return true;
}

/* The values that inputs, sorted by their names, have when nobody gives them. */
static bool take_defaults(struct signature_tensor *inputs, int count, struct arena *arena,
                          const Tensorflow__SignatureDef *from, int64_t *filled,
                          struct error *err)
{
    for (size_t d = 0; d < from->n_defaults; d++) {
        const struct signature_tensor wanted = {.name = from->defaults[d]->key};
        struct signature_tensor *input =
            bsearch(&wanted, inputs, (size_t)count, sizeof(*inputs), compare_tensors);
        if (!input || !from->defaults[d]->value || input->when_absent)
            continue;
        struct tensor *value = arena_alloc(arena, sizeof(*value));
        if (!check_default(from->defaults[d]->value, filled, err) ||
            !tensor_unpack(value, from->defaults[d]->value, err))
            return error_prefix(err, "the default of \"%s\": ", input->name);
        input->when_absent = value;
    }
    return true;
}

static bool take_signature(struct signature *out, struct arena *arena, const char *name,
                           const Tensorflow__SignatureDef *from, int64_t *filled,
                           struct error *err)
{
    struct list in = {0}, given = {0};
    bool ok = true;
    for (size_t i = 0; ok && i < from->n_inputs; i++)
        ok = from->inputs[i]->value
                 ? add_info(&in, arena, from->inputs[i]->key, from->inputs[i]->value, err)
                 : fail(err, INVALID, "an input of it is empty");
    for (size_t i = 0; ok && i < from->n_outputs; i++)
        ok = from->outputs[i]->value
                 ? add_info(&given, arena, from->outputs[i]->key, from->outputs[i]->value, err)
                 : fail(err, INVALID, "an output of it is empty");
    if (ok) {
        if (in.count)
            qsort(in.items, (size_t)in.count, sizeof(*in.items), compare_tensors);
        if (given.count)
            qsort(given.items, (size_t)given.count, sizeof(*given.items), compare_tensors);
        struct signature_tensor *inputs = copy_of(&in, arena);
        *out = (struct signature){.name = arena_text(arena, name),
                                  .inputs = inputs,
                                  .inputs_count = in.count,
                                  .outputs = copy_of(&given, arena),
                                  .outputs_count = given.count};
        ok = take_defaults(inputs, in.count, arena, from, filled, err);
    }
    free(in.items);
    free(given.items);
    return ok || error_prefix(err, "signature \"%s\": ", name);
}

static int compare_signatures(const void *a, const void *b)
{
    return strcmp(((const struct signature *)a)->name, ((const struct signature *)b)->name);
}

static bool take_signatures(struct saved_meta *out, const meta_proto *meta, struct error *err)
{
    int64_t filled = 0;
    out->signatures =
        arena_array(out->arena, meta->n_signature_def + 1, sizeof(*out->signatures));
    for (size_t i = 0; i < meta->n_signature_def; i++) {
        const Tensorflow__MetaGraphDef__SignatureDefEntry *entry = meta->signature_def[i];
        if (!entry->value || !strcmp(entry->key, INIT_SIGNATURE))
            continue;
        if (!take_signature(&out->signatures[out->signatures_count++], out->arena, entry->key,
                            entry->value, &filled, err))
            return false;
    }
    qsort(out->signatures, (size_t)out->signatures_count, sizeof(*out->signatures),
          compare_signatures);
    return true;
}

/* --- objects of TensorFlow 2 --- */

static void take_objects(struct saved_meta *out, const meta_proto *meta)
{
    const Tensorflow__SavedObjectGraph *objects = meta->object_graph_def;
    if (!objects)
        return;
    out->objects = arena_array(out->arena, objects->n_nodes + 1, sizeof(*out->objects));
    out->objects_count = (int)objects->n_nodes;
    for (size_t i = 0; i < objects->n_nodes; i++)
        out->objects[i].is_variable =
            objects->nodes[i]->kind_case == TENSORFLOW__SAVED_OBJECT__KIND_VARIABLE;
    struct saved_captures *captures =
        arena_array(out->arena, objects->n_concrete_functions + 1, sizeof(*captures));
    for (size_t i = 0; i < objects->n_concrete_functions; i++) {
        const Tensorflow__SavedConcreteFunction *function =
            objects->concrete_functions[i]->value;
        if (function && function->n_bound_inputs)
            captures[out->captures_count++] =
                (struct saved_captures){objects->concrete_functions[i]->key,
                                        function->bound_inputs, (int)function->n_bound_inputs};
    }
    out->captures = captures;
}

/* What walks both object graphs side by side, from their roots on. */
struct walk {
    const Tensorflow__SavedObjectGraph *model;
    const keys_proto *keys;
    int *found; /* by object of the model: that of the checkpoint, or -1 */
    int *queue;
    int queued;
    int64_t steps;
};

static void
walk_child(struct walk *walk, size_t place,
           const Tensorflow__TrackableObjectGraph__TrackableObject__ObjectReference *child,
           const Tensorflow__TrackableObjectGraph__TrackableObject *saved)
{
    int id = child->node_id;
    if (id < 0 || (size_t)id >= walk->model->n_nodes || walk->found[id] >= 0)
        return;
    /* Mostly they stand in the same order. */
    for (size_t i = 0; i < saved->n_children && walk->steps <= KEY_STEPS_MAX; i++) {
        size_t at = (place + i) % saved->n_children;
        int other = saved->children[at]->node_id;
        walk->steps++;
        if (strcmp(saved->children[at]->local_name, child->local_name) != 0)
            continue;
        if (other >= 0 && (size_t)other < walk->keys->n_nodes) {
            walk->found[id] = other;
            walk->queue[walk->queued++] = id;
        }
        return;
    }
}

static bool walk_all(struct walk *walk, struct error *err)
{
    walk->found[0] = 0;
    walk->queue[walk->queued++] = 0;
    for (int q = 0; q < walk->queued; q++) {
        int id = walk->queue[q];
        const Tensorflow__SavedObject *object = walk->model->nodes[id];
        for (size_t i = 0; i < object->n_children; i++)
            walk_child(walk, i, object->children[i], walk->keys->nodes[walk->found[id]]);
        if (walk->steps > KEY_STEPS_MAX)
            return fail(err, EXHAUSTED, "its object graph is too tangled");
    }
    return true;
}

static const char *key_of(const Tensorflow__TrackableObjectGraph__TrackableObject *object)
{
    for (size_t i = 0; i < object->n_attributes; i++) {
        if (!strcmp(object->attributes[i]->name, "VARIABLE_VALUE"))
            return object->attributes[i]->checkpoint_key;
    }
    return NULL;
}

bool saved_model_read_keys(struct saved_meta *meta, const void *bytes, size_t size,
                           struct error *err)
{
    const meta_proto *message = meta->message;
    struct arena *arena =
        arena_new_limited(size * LIMIT_MESSAGE_EXPANSION + LIMIT_MESSAGE_EXPANSION_BASE);
    const keys_proto *keys = message_unpack(&tensorflow__trackable_object_graph__descriptor,
                                            bytes, size, arena, err);
    bool ok = keys != NULL;
    if (ok && keys->n_nodes && meta->objects_count) {
        size_t count = (size_t)meta->objects_count;
        struct walk walk = {.model = message->object_graph_def, .keys = keys};
        walk.found = alloc_array(count, sizeof(int));
        walk.queue = alloc_array(count, sizeof(int));
        for (size_t i = 0; i < count; i++)
            walk.found[i] = -1;
        ok = walk_all(&walk, err);
        for (size_t i = 0; ok && i < count; i++) {
            const char *key = walk.found[i] < 0 ? NULL : key_of(keys->nodes[walk.found[i]]);
            if (key && meta->objects[i].is_variable)
                meta->objects[i].key = arena_text(meta->arena, key);
        }
        free(walk.found);
        free(walk.queue);
    }
    arena_free(arena);
    return ok || error_prefix(err, "the object graph of its checkpoint: ");
}

/* --- the whole --- */

static bool take(struct saved_meta *out, const meta_proto *meta, struct error *err)
{
    struct str tags = {0};
    const Tensorflow__SaverDef *saver = meta->saver_def;
    out->message = meta;
    add_tags(meta, &tags);
    out->tags = arena_text(out->arena, str_text(&tags));
    str_release(&tags);
    out->version = meta->meta_info_def
                       ? arena_text(out->arena, meta->meta_info_def->tensorflow_version)
                       : "";
    if (saver && *saver->filename_tensor_name && *saver->restore_op_name) {
        out->restore_file = arena_text(out->arena, saver->filename_tensor_name);
        out->restore_op = node_of(out->arena, saver->restore_op_name);
    }
    take_init(out, meta);
    take_objects(out, meta);
    return take_assets(out, meta, err) && take_signatures(out, meta, err) &&
           take_graph(out, meta, err);
}

bool saved_model_parse(const struct str *bytes, bool is_text, bool is_meta_graph,
                       const char *tags, struct arena *arena, struct saved_meta *out,
                       struct error *err)
{
    const ProtobufCMessageDescriptor *descriptor = is_meta_graph
                                                       ? &tensorflow__meta_graph_def__descriptor
                                                       : &tensorflow__saved_model__descriptor;
    struct str wire = {0};
    *out = (struct saved_meta){.arena = arena};
    if (is_text && !text_serialize(descriptor, str_text(bytes), bytes->size, &wire, err)) {
        str_release(&wire);
        return false;
    }
    const struct str *binary = is_text ? &wire : bytes;
    out->messages = arena_new_limited(binary->size * LIMIT_MESSAGE_EXPANSION +
                                      LIMIT_MESSAGE_EXPANSION_BASE);
    const void *message =
        message_unpack(descriptor, str_text(binary), binary->size, out->messages, err);
    str_release(&wire);
    const meta_proto *meta = !message        ? NULL
                             : is_meta_graph ? message
                                             : choose(message, tags, err);
    if (meta && take(out, meta, err))
        return true;
    saved_model_drop(out->signatures, out->signatures_count);
    saved_model_release(out);
    return false;
}

void saved_model_release(struct saved_meta *meta)
{
    str_release(&meta->graph_def);
    arena_free(meta->messages);
    *meta = (struct saved_meta){0};
}
