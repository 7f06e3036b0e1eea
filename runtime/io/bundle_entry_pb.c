/* bundle_entry_pb.c - the values in a checkpoint's index, as protobuf messages. */

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "proto/message.h"
#include "runtime/io/internal.h"

#include "tensorflow/checkpoint.pb-c.h"

#define BUNDLE_VERSION 1
#define BUNDLE_SHARDS_MAX 100000
#define BUNDLE_SLICES_MAX 10000 /* of one tensor: each is compared with all others */

void bundle_entry_add_header(struct str *out, int shards_count)
{
    Tensorflow__VersionDef version = TENSORFLOW__VERSION_DEF__INIT;
    version.producer = BUNDLE_VERSION;
    Tensorflow__BundleHeaderProto header = TENSORFLOW__BUNDLE_HEADER_PROTO__INIT;
    header.num_shards = shards_count;
    header.version = &version;
    message_pack(&header.base, out);
}

bool bundle_entry_parse_header(const void *bytes, size_t size, int *shards_count,
                               struct error *err)
{
    bool ok = false;
    struct arena *arena = arena_new();
    const Tensorflow__BundleHeaderProto *header =
        message_unpack(&tensorflow__bundle_header_proto__descriptor, bytes, size, arena, err);
    if (!header) {
        err->code = DATA_LOSS;
    } else if (header->num_shards < 0 || header->num_shards > BUNDLE_SHARDS_MAX) {
        fail(err, DATA_LOSS, "checkpoint claims %d data files", header->num_shards);
    } else if (header->endianness != TENSORFLOW__BUNDLE_HEADER_PROTO__ENDIANNESS__LITTLE) {
        fail(err, UNIMPLEMENTED, "checkpoint was written by a big-endian machine");
    } else if (header->version && header->version->min_consumer > BUNDLE_VERSION) {
        fail(err, INVALID, "checkpoint needs a reader of version %d, this is version %d",
             header->version->min_consumer, BUNDLE_VERSION);
    } else {
        *shards_count = header->num_shards;
        ok = true;
    }
    arena_free(arena);
    return ok;
}

static Tensorflow__TensorShapeProto *shape_pack(const struct shape *shape, struct arena *arena)
{
    Tensorflow__TensorShapeProto *proto = arena_alloc(arena, sizeof(*proto));
    tensorflow__tensor_shape_proto__init(proto);
    proto->n_dim = (size_t)shape->rank;
    proto->dim = arena_array(arena, proto->n_dim, sizeof(*proto->dim));
    for (int d = 0; d < shape->rank; d++) {
        proto->dim[d] = arena_alloc(arena, sizeof(**proto->dim));
        tensorflow__tensor_shape_proto__dim__init(proto->dim[d]);
        proto->dim[d]->size = shape->dims[d];
    }
    return proto;
}

Tensorflow__TensorSliceProto *bundle_entry_pack_slice(const struct bundle_slice *slice,
                                                      struct arena *arena)
{
    Tensorflow__TensorSliceProto *proto = arena_alloc(arena, sizeof(*proto));
    tensorflow__tensor_slice_proto__init(proto);
    proto->n_extent = (size_t)slice->rank;
    proto->extent = arena_array(arena, proto->n_extent, sizeof(*proto->extent));
    for (int d = 0; d < slice->rank; d++) {
        Tensorflow__TensorSliceProto__Extent *extent = arena_alloc(arena, sizeof(*extent));
        tensorflow__tensor_slice_proto__extent__init(extent);
        if (slice->length[d] >= 0) {
            extent->start = slice->start[d];
            extent->has_length_case = TENSORFLOW__TENSOR_SLICE_PROTO__EXTENT__HAS_LENGTH_LENGTH;
            extent->length = slice->length[d];
        }
        proto->extent[d] = extent;
    }
    return proto;
}

void bundle_entry_add(struct str *out, const struct bundle_entry *entry)
{
    struct arena *arena = arena_new();
    Tensorflow__BundleEntryProto proto = TENSORFLOW__BUNDLE_ENTRY_PROTO__INIT;
    proto.dtype = (Tensorflow__DataType)entry->dtype;
    proto.shape = shape_pack(&entry->shape, arena);
    proto.shard_id = entry->shard;
    proto.offset = entry->offset;
    proto.size = entry->size;
    proto.crc32c = entry->crc;
    proto.n_slices = (size_t)entry->slices_count;
    proto.slices = arena_array(arena, proto.n_slices, sizeof(*proto.slices));
    for (int i = 0; i < entry->slices_count; i++)
        proto.slices[i] = bundle_entry_pack_slice(&entry->slices[i], arena);
    message_pack(&proto.base, out);
    arena_free(arena);
}

static bool shape_parse(const Tensorflow__TensorShapeProto *proto, struct shape *shape)
{
    *shape = SHAPE_SCALAR;
    if (!proto)
        return true;
    if (proto->unknown_rank || proto->n_dim > LIMIT_TENSOR_RANK)
        return false;
    shape->rank = (int)proto->n_dim;
    for (int d = 0; d < shape->rank; d++)
        shape->dims[d] = proto->dim[d]->size;
    return shape_count(shape) >= 0;
}

bool bundle_entry_unpack_slice(const Tensorflow__TensorSliceProto *proto,
                               const struct shape *full, struct bundle_slice *slice)
{
    if (proto->n_extent != (size_t)full->rank)
        return false;
    slice->rank = full->rank;
    for (int d = 0; d < slice->rank; d++) {
        const Tensorflow__TensorSliceProto__Extent *extent = proto->extent[d];
        slice->start[d] = extent->start;
        slice->length[d] = -1;
        if (extent->has_length_case ==
            TENSORFLOW__TENSOR_SLICE_PROTO__EXTENT__HAS_LENGTH_LENGTH)
            slice->length[d] = extent->length;
    }
    struct shape shape;
    return bundle_slice_shape(slice, full, &shape);
}

bool bundle_entry_parse(const void *bytes, size_t size, struct arena *arena,
                        struct bundle_entry *entry, struct error *err)
{
    struct arena *scratch = arena_new();
    bool ok = false;
    const Tensorflow__BundleEntryProto *proto =
        message_unpack(&tensorflow__bundle_entry_proto__descriptor, bytes, size, scratch, err);
    if (!proto) {
        err->code = DATA_LOSS;
        goto out;
    }
    *entry = (struct bundle_entry){.dtype = (int)proto->dtype,
                                   .shard = proto->shard_id,
                                   .offset = proto->offset,
                                   .size = proto->size,
                                   .crc = proto->crc32c};
    if (!shape_parse(proto->shape, &entry->shape) || entry->offset < 0 || entry->size < 0 ||
        entry->shard < 0) {
        fail(err, DATA_LOSS, "shape, shard, offset or size is out of range");
        goto out;
    }
    if (proto->n_slices > BUNDLE_SLICES_MAX) {
        fail(err, EXHAUSTED, "it is stored in %zu slices, allowed: at most %d", proto->n_slices,
             BUNDLE_SLICES_MAX);
        goto out;
    }
    entry->slices_count = (int)proto->n_slices;
    entry->slices = arena_array(arena, proto->n_slices, sizeof(*entry->slices));
    for (int i = 0; i < entry->slices_count; i++) {
        if (!bundle_entry_unpack_slice(proto->slices[i], &entry->shape, &entry->slices[i])) {
            fail(err, DATA_LOSS, "a slice does not fit the shape");
            goto out;
        }
    }
    ok = true;
out:
    arena_free(scratch);
    return ok;
}

char *bundle_entry_shard_path(const char *prefix, int shard, int shards_count)
{
    return alloc_printf("%s.data-%05d-of-%05d", prefix, shard, shards_count);
}
