/*
 * collective_ring.c - reduce and gather: chunks go round the ring of the members.
 *
 * There are as many chunks as members (and rings).  In a first pass each chunk is handed from
 * member to member, each adds its own to it, and the last has the whole; in a second it goes
 * round once more, to all.  To gather, one pass is enough.  Each chunk goes its way by itself.
 */

#include "kernels/state/collective.h"

#include <stdlib.h>

#include "base/alloc.h"

enum {
    ALIGN_BYTES = 64,          /* TensorFlow's, of chunks */
    CHUNK_BYTES_MAX = 4 << 20, /* ... from which on there are several rings */
    RINGS_OF_DEVICE_DEFAULT = 2,
};

struct field {
    struct kernel_collective *op;
    int number; /* of the chunk, among all rings' */
    int chunk;  /* among the members' */
    int rank;   /* of this member in the ring */
    int before; /* the member before it */
    char *data;
    size_t size;
    int64_t count;
    bool second; /* pass */
    void *came;  /* in the first pass of a reduction */
};

/* --- merging --- */

#define GREATER(a, b) ((a) > (b) || (a) != (a) ? (a) : (b)) /* what is no number stays */
#define SMALLER(a, b) ((a) < (b) || (a) != (a) ? (a) : (b))

#define EACH(type, wide, load, store, result)                                                  \
    for (int64_t i = 0; i < count; i++) {                                                      \
        wide a = load(((const type *)into)[i]), b = load(((const type *)from)[i]);             \
        ((type *)into)[i] = (type)store(result);                                               \
    }

#define MERGE_OF(name, type, wide, load, store)                                                \
    static void merge_##name(enum collective_merge how, void *into, const void *from,          \
                             int64_t count)                                                    \
    {                                                                                          \
        if (how == MERGE_ADD)                                                                  \
            EACH(type, wide, load, store, a + b)                                               \
        else if (how == MERGE_MUL)                                                             \
            EACH(type, wide, load, store, a *b)                                                \
        else if (how == MERGE_MIN)                                                             \
            EACH(type, wide, load, store, SMALLER(a, b))                                       \
        else                                                                                   \
            EACH(type, wide, load, store, GREATER(a, b))                                       \
    }                                                                                          \
    static void divide_##name(void *into, int by, int64_t count)                               \
    {                                                                                          \
        for (int64_t i = 0; i < count; i++)                                                    \
            ((type *)into)[i] = (type)store(load(((const type *)into)[i]) / (wide)by);         \
    }

MERGE_OF(f32, float, float, , )
MERGE_OF(f64, double, double, , )
MERGE_OF(f16, uint16_t, float, dtype_f16_to_f32, dtype_f32_to_f16)
MERGE_OF(bf16, uint16_t, float, dtype_bf16_to_f32, dtype_f32_to_bf16)

/* Sums of integers wrap around, which signed ones may not. */
#define WRAP_OF(name, type, unsigned_type)                                                     \
    static void merge_##name(enum collective_merge how, void *into, const void *from,          \
                             int64_t count)                                                    \
    {                                                                                          \
        type *to = into;                                                                       \
        const type *with = from;                                                               \
        for (int64_t i = 0; i < count; i++) {                                                  \
            unsigned_type a = (unsigned_type)to[i], b = (unsigned_type)with[i];                \
            to[i] = how == MERGE_ADD   ? (type)(a + b)                                         \
                    : how == MERGE_MUL ? (type)(a * b)                                         \
                    : how == MERGE_MIN ? (with[i] < to[i] ? with[i] : to[i])                   \
                                       : (with[i] > to[i] ? with[i] : to[i]);                  \
        }                                                                                      \
    }                                                                                          \
    static void divide_##name(void *into, int by, int64_t count)                               \
    {                                                                                          \
        for (int64_t i = 0; i < count; i++)                                                    \
            ((type *)into)[i] /= by;                                                           \
    }

WRAP_OF(i32, int32_t, uint32_t)
WRAP_OF(i64, int64_t, uint64_t)

#define BY_TYPE(X, ...)                                                                        \
    switch (dtype) {                                                                           \
    case F32:                                                                                  \
        X##_f32(__VA_ARGS__);                                                                  \
        break;                                                                                 \
    case F64:                                                                                  \
        X##_f64(__VA_ARGS__);                                                                  \
        break;                                                                                 \
    case F16:                                                                                  \
        X##_f16(__VA_ARGS__);                                                                  \
        break;                                                                                 \
    case BF16:                                                                                 \
        X##_bf16(__VA_ARGS__);                                                                 \
        break;                                                                                 \
    case I32:                                                                                  \
        X##_i32(__VA_ARGS__);                                                                  \
        break;                                                                                 \
    default:                                                                                   \
        X##_i64(__VA_ARGS__);                                                                  \
        break;                                                                                 \
    }

static void merge(enum dtype dtype, enum collective_merge how, void *into, const void *from,
                  int64_t count)
{
    BY_TYPE(merge, how, into, from, count)
}

static void divide(enum dtype dtype, void *into, int by, int64_t count)
{
    BY_TYPE(divide, into, by, count)
}

/* --- a chunk on its way --- */

static void advance(struct field *field);

static bool is_at(const struct field *field, int back)
{
    int size = field->op->group->size;
    return field->rank == (field->chunk + size - back) % size;
}

static char *key_of(const struct field *field, int rank)
{
    return alloc_printf("%s:%d:%d:%d", field->op->key, field->second, field->number, rank);
}

/* It has been here; where there is a second pass, that begins. */
static void passed(struct field *field)
{
    struct kernel_collective *op = field->op;
    if (field->second || op->wish.type == COLLECTIVE_GATHER) {
        kernel_collective_drop(op, NULL);
        return;
    }
    field->second = true;
    advance(field);
}

static void taken(void *arg, const struct error *err)
{
    struct field *field = arg;
    if (err)
        kernel_collective_drop(field->op, err);
    else
        passed(field);
}

static void hand_on(struct field *field)
{
    struct kernel_collective *op = field->op;
    if (is_at(field, field->second ? 2 : 1)) {
        passed(field);
        return;
    }
    struct tensor value;
    tensor_share(&value, op->out);
    value.data = field->data;
    value.count = field->count;
    value.shape = SHAPE(field->count);
    char *key = key_of(field, field->rank);
    collective_provide(op->collective, key, &value, taken, field);
    free(key);
    tensor_release(&value);
}

static void came(void *arg, const struct error *err)
{
    struct field *field = arg;
    struct kernel_collective *op = field->op;
    if (!err && field->came) {
        merge(op->wish.dtype, op->merge, field->data, field->came, field->count);
        if (op->mean && is_at(field, 1))
            divide(op->wish.dtype, field->data, op->group->size, field->count);
    }
    free(field->came);
    field->came = NULL;
    if (err)
        kernel_collective_drop(op, err);
    else
        hand_on(field);
}

static void advance(struct field *field)
{
    struct kernel_collective *op = field->op;
    int size = op->group->size;
    if (field->second ? is_at(field, 1) : field->chunk == field->rank) {
        hand_on(field);
        return;
    }
    bool merges = !field->second && op->wish.type == COLLECTIVE_REDUCE;
    if (merges)
        field->came = alloc_bytes(field->size);
    char *key = key_of(field, (field->rank + size - 1) % size);
    collective_take(op->collective, &op->group->devices[field->before], key,
                    merges ? field->came : field->data, field->size, came, field);
    free(key);
}

/* --- the rings --- */

static int tasks_of(const struct collective_group *group)
{
    int tasks = 0, first;
    for (int i = 0; i < group->devices_count; tasks++)
        i += kernel_collective_task(group, i, &first);
    return tasks;
}

/* As many as keep chunks small, by TensorFlow's rule. */
static void choose_rings(struct kernel_collective *op)
{
    int size = op->group->size, of_task = size / tasks_of(op->group);
    int max = (op->rings_max > 0 ? op->rings_max : RINGS_OF_DEVICE_DEFAULT) * of_task;
    int64_t bytes = (int64_t)tensor_bytes(op->out);
    int count = 1;
    while (op->rings_max >= 0 && bytes / (size * count) > CHUNK_BYTES_MAX && count < max)
        count++;
    int stride = of_task / count > 0 ? of_task / count : 1;
    free(op->rings);
    op->rings = alloc_array((size_t)count, sizeof(*op->rings));
    op->rings_count = count;
    for (int i = 0; i < count; i++)
        op->rings[i] = i % 2 ? -stride * i : stride * i;
}

/* The member at each place of a ring: each task's devices begin `offset` further, and go the
 * other way where it is negative. */
static void order_ring(const struct collective_group *group, int64_t offset, int *members)
{
    int first = 0;
    for (int at = 0; at < group->size;) {
        int count = kernel_collective_task(group, at, &first);
        for (int i = 0; i < count; i++) {
            int place = (int)((i + (offset < 0 ? -offset : offset)) % count);
            members[at + i] = first + (offset < 0 ? count - 1 - place : place);
        }
        at += count;
    }
}

/* Of all chunks but the last ones; TensorFlow's rounding, which adds where nothing is left. */
static int64_t chunk_count(const struct kernel_collective *op)
{
    int64_t chunks = (int64_t)op->group->size * op->rings_count;
    if (op->wish.type == COLLECTIVE_GATHER)
        return op->out->count / chunks;
    int64_t element = (int64_t)dtype_size(op->wish.dtype);
    int64_t count = (op->out->count + chunks - 1) / chunks;
    return count + (ALIGN_BYTES - count * element % ALIGN_BYTES) / element;
}

static void set_field(struct field *field, struct kernel_collective *op, int chunk, int ring,
                      const int *members)
{
    int size = op->group->size;
    int64_t each = chunk_count(op), element = (int64_t)dtype_size(op->wish.dtype);
    *field = (struct field){.op = op, .chunk = chunk, .number = chunk * op->rings_count + ring};
    for (int i = 0; i < size; i++)
        if (members[i] == op->rank)
            field->rank = i;
    field->before = members[(field->rank + size - 1) % size];
    int64_t begin = each * field->number, end = begin + each;
    begin = begin < op->out->count ? begin : op->out->count;
    end = end < op->out->count ? end : op->out->count;
    field->data = (char *)op->out->data + begin * element;
    field->count = end - begin;
    field->size = (size_t)(field->count * element);
}

/* Which ring is worth gathering in: TensorFlow has no other. */
static bool check_rings(struct kernel_collective *op, struct error *err)
{
    if (op->wish.type == COLLECTIVE_REDUCE && op->rings_count > op->group->size * 64)
        return fail(err, INVALID, "subdiv_offsets has %d entries, at most %d are allowed",
                    op->rings_count, op->group->size * 64);
    for (int i = 0; i < op->rings_count; i++)
        if (op->rings[i] < INT32_MIN || op->rings[i] > INT32_MAX)
            return fail(err, INVALID, "subdiv_offsets[%d] does not fit in 32 bits", i);
    return true;
}

void kernel_collective_ring(struct kernel_collective *op)
{
    struct error err;
    int size = op->group->size;
    if (!op->rings_count)
        choose_rings(op);
    if (!check_rings(op, &err)) {
        kernel_collective_hold(op);
        kernel_collective_drop(op, &err);
        return;
    }
    int count = size * op->rings_count;
    struct field *fields = alloc_array((size_t)count, sizeof(*fields));
    int *members = alloc_array((size_t)size, sizeof(*members));
    op->parts = fields;
    for (int r = 0; r < op->rings_count; r++) {
        order_ring(op->group, op->rings[r], members);
        for (int c = 0; c < size; c++)
            set_field(&fields[c * op->rings_count + r], op, c, r, members);
    }
    if (op->wish.type == COLLECTIVE_GATHER) {
        const struct tensor *in = kernel_in(op->call, 0);
        struct field *own = &fields[fields[0].rank];
        assert(own->size == tensor_bytes(in));
        if (own->size)
            memcpy(own->data, in->data, own->size);
    }
    free(members);
    /* What has nothing in it goes nowhere. */
    for (int i = 0; i < count; i++)
        if (fields[i].size && size > 1) {
            kernel_collective_hold(op);
            advance(&fields[i]);
        }
}
