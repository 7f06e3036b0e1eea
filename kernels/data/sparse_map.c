/*
 * sparse_map.c - sparse tensors that wait in the task under numbers, so that queues can hold
 * them: AddSparseToTensorsMap, AddManySparseToTensorsMap, TakeManySparseFromTensorsMap.
 */

#include <stdlib.h>

#include "base/alloc.h"
#include "kernels/data/sparse.h"

#define SPARSE_MAP_KIND "sparse tensors"

struct held {
    struct held *next;
    int64_t number;
    struct tensor parts[3];
};

struct sparse_map {
    struct resource resource; /* first */
    pthread_mutex_t lock;     /* guards: all below */
    struct held *first;       /* oldest first, as they are mostly taken */
    struct held **end;
    int64_t count;
    int64_t next_number;
};

static void map_destroy(struct resource *resource)
{
    struct sparse_map *map = (struct sparse_map *)resource;
    while (map->first) {
        struct held *held = map->first;
        map->first = held->next;
        kernel_row_release(held->parts, 3);
        free(held);
    }
    pthread_mutex_destroy(&map->lock);
    free(map);
}

static struct resource *map_make(const void *arg, struct error *err)
{
    (void)arg;
    (void)err;
    struct sparse_map *map = alloc_bytes(sizeof(*map));
    map->resource =
        (struct resource){.kind = SPARSE_MAP_KIND, .references = 1, .destroy = map_destroy};
    pthread_mutex_init(&map->lock, NULL);
    map->end = &map->first;
    return &map->resource;
}

static const char *name_of(const struct kernel_call *call)
{
    const char *shared = node_attr_string(call->node, "shared_name", "");
    return shared[0] ? shared : call->node->name;
}

static struct sparse_map *map_for(struct kernel_call *call, struct error *err)
{
    return (struct sparse_map *)resources_find_or_make(
        call->resources, node_attr_string(call->node, "container", ""), SPARSE_MAP_KIND,
        name_of(call), map_make, NULL, err);
}

/* --- putting in --- */

/* Takes the three tensors over. */
static bool put(struct sparse_map *map, struct tensor parts[3], int64_t *number,
                struct error *err)
{
    pthread_mutex_lock(&map->lock);
    bool room = map->count < LIMIT_LIST_ITEMS;
    if (room) {
        struct held *held = alloc_bytes(sizeof(*held));
        *number = held->number = map->next_number++;
        memcpy(held->parts, parts, sizeof(held->parts));
        *map->end = held;
        map->end = &held->next;
        map->count++;
    }
    pthread_mutex_unlock(&map->lock);
    if (!room)
        kernel_row_release(parts, 3);
    return room ||
           fail(err, EXHAUSTED, "%d sparse tensors wait to be taken already", LIMIT_LIST_ITEMS);
}

static bool add_run(struct kernel_call *call, struct error *err)
{
    if (!kernel_sparse_check_sizes(kernel_in(call, 0), kernel_in(call, 1), kernel_in(call, 2),
                                   err))
        return false;
    struct sparse_map *map = map_for(call, err);
    struct tensor *out = map ? kernel_output(call, 0, &SHAPE_SCALAR, err) : NULL;
    struct tensor parts[3];
    for (int i = 0; out && i < 3; i++)
        tensor_share(&parts[i], kernel_in(call, i));
    bool ok = out && put(map, parts, (int64_t *)out->data, err);
    if (map)
        resource_unref(&map->resource);
    return ok;
}

/* Puts the rows that have values, or those that have none. */
static bool put_rows(struct kernel_call *call, struct sparse_map *map, struct tensor *numbers,
                     bool empty, struct error *err)
{
    int64_t at = 0;
    bool ok = true;
    for (int64_t row = 0; ok && row < numbers->count; row++) {
        struct tensor parts[3];
        ok = kernel_sparse_row(call, row, &at, parts, err);
        if (ok && (parts[1].count == 0) == empty)
            ok = put(map, parts, (int64_t *)numbers->data + row, err);
        else if (ok)
            kernel_row_release(parts, 3);
    }
    return ok;
}

/* TensorFlow gives the rows without values their numbers last. */
static bool add_many_run(struct kernel_call *call, struct error *err)
{
    int64_t rows;
    if (!kernel_sparse_rows(call, &rows, err))
        return false;
    struct sparse_map *map = map_for(call, err);
    struct tensor *out = map ? kernel_output(call, 0, &SHAPE(rows), err) : NULL;
    bool ok =
        out && put_rows(call, map, out, false, err) && put_rows(call, map, out, true, err);
    if (map)
        resource_unref(&map->resource);
    return ok;
}

/* --- taking out --- */

static struct held *take(struct sparse_map *map, int64_t number)
{
    pthread_mutex_lock(&map->lock);
    struct held **at = &map->first;
    while (*at && (*at)->number != number)
        at = &(*at)->next;
    struct held *held = *at;
    if (held) {
        *at = held->next;
        map->end = held->next ? map->end : at;
        map->count--;
    }
    pthread_mutex_unlock(&map->lock);
    return held;
}

/* Moves them into `tensors`, three each; those that came before a missing one are gone. */
static bool take_all(struct sparse_map *map, const struct tensor *numbers,
                     struct tensor *tensors, const char *name, struct error *err)
{
    for (int64_t i = 0; i < numbers->count; i++) {
        struct held *held = take(map, tensor_i64(numbers)[i]);
        if (!held)
            return fail(err, INVALID, "Unable to find SparseTensor: %lld in map: %s",
                        (long long)tensor_i64(numbers)[i], name);
        memcpy(tensors + 3 * i, held->parts, sizeof(held->parts));
        free(held);
    }
    return true;
}

static bool take_many_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *numbers = kernel_in(call, 0);
    char text[SHAPE_TEXT_BYTES];
    if (numbers->shape.rank != 1)
        return fail(err, INVALID, "sparse_handles should be a vector but received shape %s",
                    shape_text(&numbers->shape, text, sizeof(text)));
    if (!numbers->count)
        return fail(err, INVALID, "Must have at least 1 serialized SparseTensor, got %lld",
                    (long long)numbers->count);
    struct sparse_map *map = map_for(call, err);
    if (!map)
        return false;
    struct tensor *tensors = alloc_array((size_t)numbers->count * 3, sizeof(*tensors));
    bool ok = take_all(map, numbers, tensors, name_of(call), err) &&
              kernel_sparse_join(call, tensors, numbers->count, &numbers->shape,
                                 (enum dtype)node_attr_type(call->node, "dtype"), err);
    for (int64_t i = 0; i < numbers->count * 3; i++)
        tensor_release(&tensors[i]);
    free(tensors);
    resource_unref(&map->resource);
    return ok;
}

const struct kernel kernel_add_sparse_to_tensors_map = {
    .op = "AddSparseToTensorsMap", .device = CPU, .run = add_run};
const struct kernel kernel_add_many_sparse_to_tensors_map = {
    .op = "AddManySparseToTensorsMap", .device = CPU, .run = add_many_run};
const struct kernel kernel_take_many_sparse_from_tensors_map = {
    .op = "TakeManySparseFromTensorsMap", .device = CPU, .run = take_many_run};
