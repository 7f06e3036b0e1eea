/* slice_file_pb.c - the values in a file of the V1 format, as protobuf messages. */

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "proto/message.h"
#include "runtime/io/internal.h"
#include "runtime/tensor_pb.h"

#include "tensorflow/checkpoint.pb-c.h"

enum { SLICE_FILE_VERSION = 1 };

/* --- meta --- */

static Tensorflow__SavedSliceMeta *pack_tensor(const struct slice_file_tensor *tensor,
                                               struct arena *arena)
{
    Tensorflow__SavedSliceMeta *meta = arena_alloc(arena, sizeof(*meta));
    tensorflow__saved_slice_meta__init(meta);
    meta->name = arena_text(arena, tensor->name);
    meta->shape = tensor_pack_shape(&tensor->shape, arena);
    meta->type = (Tensorflow__DataType)tensor->dtype;
    meta->n_slice = (size_t)tensor->slices_count;
    meta->slice = arena_array(arena, meta->n_slice, sizeof(*meta->slice));
    for (int i = 0; i < tensor->slices_count; i++)
        meta->slice[i] = bundle_entry_pack_slice(&tensor->slices[i], arena);
    return meta;
}

void slice_file_add_meta(struct str *out, const struct slice_file_tensor *tensors, int count)
{
    struct arena *arena = arena_new();
    Tensorflow__VersionDef version = TENSORFLOW__VERSION_DEF__INIT;
    version.producer = SLICE_FILE_VERSION;
    Tensorflow__SavedTensorSliceMeta meta = TENSORFLOW__SAVED_TENSOR_SLICE_META__INIT;
    meta.versions = &version;
    meta.n_tensor = (size_t)count;
    meta.tensor = arena_array(arena, meta.n_tensor, sizeof(*meta.tensor));
    for (int i = 0; i < count; i++)
        meta.tensor[i] = pack_tensor(&tensors[i], arena);
    Tensorflow__SavedTensorSlices proto = TENSORFLOW__SAVED_TENSOR_SLICES__INIT;
    proto.meta = &meta;
    message_pack(&proto.base, out);
    arena_free(arena);
}

static bool parse_tensor(const Tensorflow__SavedSliceMeta *meta, struct arena *arena,
                         struct slice_file_tensor *tensor, struct error *err)
{
    *tensor = (struct slice_file_tensor){
        .name = arena_text(arena, meta->name), .dtype = (int)meta->type, .shape = SHAPE_SCALAR};
    if (meta->shape && !tensor_unpack_shape(&tensor->shape, meta->shape, err))
        return false;
    tensor->slices_count = tensor->slices_capacity = (int)meta->n_slice;
    tensor->slices = arena_array(arena, meta->n_slice, sizeof(*tensor->slices));
    for (int i = 0; i < tensor->slices_count; i++)
        if (shape_count(&tensor->shape) < 0 ||
            !bundle_entry_unpack_slice(meta->slice[i], &tensor->shape, &tensor->slices[i]))
            return fail(err, DATA_LOSS, "tensor '%s': a slice does not fit its shape",
                        tensor->name);
    return true;
}

bool slice_file_parse_meta(const void *bytes, size_t size, struct arena *arena,
                           struct slice_file_tensor **tensors, int *count, struct error *err)
{
    struct arena *scratch = arena_new();
    const Tensorflow__SavedTensorSlices *proto =
        message_unpack(&tensorflow__saved_tensor_slices__descriptor, bytes, size, scratch, err);
    bool ok = proto && (proto->meta || fail(err, DATA_LOSS,
                                            "the file does not say what is in "
                                            "it"));
    if (ok) {
        *count = (int)proto->meta->n_tensor;
        *tensors = arena_array(arena, proto->meta->n_tensor + 1, sizeof(**tensors));
    }
    for (int i = 0; ok && i < *count; i++)
        ok = parse_tensor(proto->meta->tensor[i], arena, &(*tensors)[i], err);
    if (!ok)
        err->code = DATA_LOSS;
    arena_free(scratch);
    return ok;
}

/* --- elements, in the field of their type: nobody reads them from another --- */

#define PACK(field, type)                                                                      \
    do {                                                                                       \
        proto->n_##field = count;                                                              \
        proto->field = arena_array(arena, count, sizeof(*proto->field));                       \
        for (size_t i = 0; i < count; i++)                                                     \
            proto->field[i] = ((const type *)tensor->data)[i];                                 \
    } while (0)

static void pack_strings(const struct tensor *tensor, Tensorflow__TensorProto *proto,
                         struct arena *arena)
{
    const struct tensor_string *strings = tensor_strings(tensor);
    proto->n_string_val = (size_t)tensor->count;
    proto->string_val = arena_array(arena, proto->n_string_val, sizeof(*proto->string_val));
    for (int64_t i = 0; i < tensor->count; i++)
        proto->string_val[i] =
            (ProtobufCBinaryData){.len = strings[i].size, .data = (uint8_t *)strings[i].data};
}

static void pack_elements(const struct tensor *tensor, Tensorflow__TensorProto *proto,
                          struct arena *arena)
{
    size_t count = (size_t)tensor->count;
    switch (tensor->dtype) {
    case F32:
        PACK(float_val, float);
        break;
    case F64:
        PACK(double_val, double);
        break;
    case I64:
        PACK(int64_val, int64_t);
        break;
    case U32:
        PACK(uint32_val, uint32_t);
        break;
    case U64:
        PACK(uint64_val, uint64_t);
        break;
    case BOOL:
        PACK(bool_val, bool);
        break;
    case F16:
    case BF16:
        PACK(half_val, uint16_t);
        break;
    case C64:
        count *= 2;
        PACK(scomplex_val, float);
        break;
    case C128:
        count *= 2;
        PACK(dcomplex_val, double);
        break;
    case I32:
    case QI32:
        PACK(int_val, int32_t);
        break;
    case I16:
    case QI16:
        PACK(int_val, int16_t);
        break;
    case U16:
    case QU16:
        PACK(int_val, uint16_t);
        break;
    case I8:
    case QI8:
        PACK(int_val, int8_t);
        break;
    case U8:
    case QU8:
        PACK(int_val, uint8_t);
        break;
    default:
        assert(tensor->dtype == STRING);
        pack_strings(tensor, proto, arena);
    }
}

void slice_file_add_data(struct str *out, const char *name, const struct bundle_slice *slice,
                         const struct tensor *tensor)
{
    struct arena *arena = arena_new();
    Tensorflow__TensorProto elements = TENSORFLOW__TENSOR_PROTO__INIT;
    pack_elements(tensor, &elements, arena);
    Tensorflow__SavedSlice data = TENSORFLOW__SAVED_SLICE__INIT;
    data.name = (char *)name;
    data.slice = bundle_entry_pack_slice(slice, arena);
    data.data = &elements;
    Tensorflow__SavedTensorSlices proto = TENSORFLOW__SAVED_TENSOR_SLICES__INIT;
    proto.data = &data;
    message_pack(&proto.base, out);
    arena_free(arena);
}

/* How many elements the typed fields hold together; only one of them is used. */
static size_t elements_count(const Tensorflow__TensorProto *proto)
{
    return proto->n_float_val + proto->n_double_val + proto->n_int_val + proto->n_string_val +
           proto->n_scomplex_val / 2 + proto->n_int64_val + proto->n_bool_val +
           proto->n_dcomplex_val / 2 + proto->n_half_val + proto->n_uint32_val +
           proto->n_uint64_val;
}

bool slice_file_parse_data(const void *bytes, size_t size, enum dtype dtype,
                           const struct shape *shape, struct tensor *out, struct error *err)
{
    struct arena *arena = arena_new();
    const Tensorflow__SavedTensorSlices *proto =
        message_unpack(&tensorflow__saved_tensor_slices__descriptor, bytes, size, arena, err);
    bool ok = proto && proto->data && proto->data->data;
    if (ok) {
        Tensorflow__TensorProto *elements = proto->data->data;
        elements->dtype = (Tensorflow__DataType)dtype;
        elements->tensor_shape = tensor_pack_shape(shape, arena);
        ok = elements_count(elements) == (size_t)shape_count(shape) &&
             tensor_unpack(out, elements, err);
    }
    arena_free(arena);
    return ok || fail(err, DATA_LOSS, "the elements of a slice are damaged");
}
