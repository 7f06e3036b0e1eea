/* tensor_list_test.c - lists of tensors: who sees which items, what is copied, what is freed.
 */

#include "base/clock.h"
#include "base/limits.h"
#include "kernels/state/tensor_list.h"
#include "runtime/op.h"
#include "tests/unit/kernels/world.h"

static struct error err;

static struct tensor number(float value)
{
    struct tensor t;
    CHECK_OK(tensor_init_scalar(&t, F32, (double)value, &err), &err);
    return t;
}

static struct tensor_list *list_new(enum dtype dtype)
{
    const struct tensor_list like = {.dtype = dtype, .shape = SHAPE_UNKNOWN, .max = -1};
    return kernel_list_like(&like);
}

static void set(struct tensor_list *list, int64_t i, float value)
{
    struct tensor t = number(value);
    CHECK_OK(kernel_list_set(list, i, &t, &err), &err);
    tensor_release(&t);
}

static float get(const struct tensor_list *list, int64_t i)
{
    const struct tensor *item = kernel_list_item(list, i);
    return item->dtype == DTYPE_NONE ? -1 : tensor_f32(item)[0];
}

/* Items have places from the first to the last that was written, in whatever order. */
TEST(items_are_where_they_were_written)
{
    static const int orders[][5] = {
        {0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {2, 4, 0, 3, 1}, {3, 3, 3, 0, 3}};
    for (int o = 0; o < ARRAY_LEN(orders); o++) {
        struct tensor_list *list = list_new(F32);
        float wanted[1000];
        CHECK_OK(kernel_list_resize(list, 1000, &err), &err);
        for (int i = 0; i < 1000; i++)
            wanted[i] = -1;
        for (int round = 0; round < 40; round++)
            for (int k = 0; k < 5; k++) {
                int i = (orders[o][k] * 211 + round * 17) % 1000;
                set(list, i, (float)(round * 5 + k));
                wanted[i] = (float)(round * 5 + k);
            }
        for (int i = 0; i < 1000; i++)
            CHECK(get(list, i) == wanted[i]);
        struct tensor_list *copy = kernel_list_copy(list, &err);
        CHECK_OK(copy, &err);
        set(copy, 7, 777);
        for (int i = 0; i < 1000; i++)
            CHECK(get(list, i) == wanted[i] && get(copy, i) == (i == 7 ? 777 : wanted[i]));
        resource_unref(&list->resource);
        CHECK_OK(kernel_list_resize(copy, 100, &err), &err);
        CHECK_OK(kernel_list_resize(copy, 300, &err), &err);
        for (int i = 0; i < 300; i++)
            CHECK(get(copy, i) == (i == 7 ? 777 : i < 100 ? wanted[i] : -1));
        resource_unref(&copy->resource);
    }
}

/* A million items of which one was written cost one. */
TEST(items_not_written_take_no_room)
{
    uint64_t start = clock_monotonic_ns();
    for (int i = 0; i < 20000; i++) {
        struct tensor_list *list = list_new(F32);
        CHECK_OK(kernel_list_resize(list, 1000000, &err), &err);
        set(list, 999999 - i, 1);
        CHECK_INT(list->used, 1);
        resource_unref(&list->resource);
    }
    CHECK(clock_monotonic_ns() - start < UINT64_C(20000000000));
    struct tensor_list *list = list_new(F32);
    CHECK_FAILS(kernel_list_resize(list, LIMIT_LIST_ITEMS + INT64_C(1), &err), &err, EXHAUSTED);
    resource_unref(&list->resource);
}

/* Freeing a list frees the lists in it: how deep they go is bounded. */
TEST(lists_in_lists_have_a_bound)
{
    struct tensor_list *inner = list_new(VARIANT);
    bool ok = true;
    int depth = 1;
    while (ok) {
        struct tensor handle;
        CHECK_OK(tensor_init(&handle, VARIANT, &SHAPE_SCALAR, &err), &err);
        kernel_list_set_element(&handle, 0, inner);
        struct tensor_list *outer = list_new(VARIANT);
        CHECK_OK(kernel_list_resize(outer, 1, &err), &err);
        ok = kernel_list_set(outer, 0, &handle, &err);
        tensor_release(&handle);
        inner = outer;
        depth += ok;
    }
    CHECK_INT(err.code, INVALID);
    CHECK_INT(depth, LIMIT_LIST_DEPTH);
    resource_unref(&inner->resource);
}

/* --- through a session --- */

static struct edge reserve(struct world *world, int64_t count)
{
    struct builder *b = &world->b;
    return builder_add(b, "TensorListReserve", "reserve",
                       INPUTS(builder_ints(b, "none", I32, NULL, 0),
                              builder_scalar(b, "n", I32, (double)count)),
                       ATTRS(attr_type("element_dtype", F32), attr_type("shape_type", I32)));
}

static struct edge set_item(struct world *world, struct edge list, int index, double value)
{
    struct builder *b = &world->b;
    return builder_add(
        b, "TensorListSetItem", "set",
        INPUTS(list, builder_scalar(b, "i", I32, index), builder_scalar(b, "x", F32, value)),
        NO_ATTRS);
}

static struct edge stack(struct world *world, const char *name, struct edge list)
{
    struct builder *b = &world->b;
    return builder_add(b, "TensorListStack", name,
                       INPUTS(list, builder_ints(b, "none", I32, NULL, 0)),
                       ATTRS(attr_type("element_dtype", F32)));
}

/* Two changes of one list: neither sees the other, nor does who reads the list itself. */
TEST(a_list_does_not_change_while_others_see_it)
{
    for (int no_optimise = 0; no_optimise < 2; no_optimise++) {
        struct world *world =
            world_new(&(struct session_options){.threads = 1, .no_optimise = no_optimise});
        struct edge both = set_item(world, reserve(world, 2), 0, 1);
        stack(world, "a", set_item(world, both, 1, 2));
        stack(world, "b", set_item(world, both, 1, 3));
        stack(world, "c", both);
        world_begin(world);
        static const char *const names[] = {"a", "b", "c"};
        static const float second[] = {2, 3, 0};
        for (int round = 0; round < 3; round++) {
            struct tensor out[3];
            const struct session_run run = {.fetches = names, .fetches_count = 3};
            CHECK_OK(session_run(world->session, &run, out, &err), &err);
            for (int i = 0; i < 3; i++) {
                CHECK(tensor_f32(&out[i])[0] == 1);
                CHECK(tensor_f32(&out[i])[1] == second[i]);
                tensor_release(&out[i]);
            }
        }
        world_free(world);
    }
}

/* A chain of n changes copies no items: with copies this would take minutes. */
TEST(a_chain_of_changes_takes_linear_time)
{
    enum { LENGTH = 6000 };
    struct world *world =
        world_new(&(struct session_options){.threads = 1, .no_optimise = true});
    struct edge list = reserve(world, LENGTH);
    for (int i = 0; i < LENGTH; i++)
        list = set_item(world, list, i, i);
    stack(world, "all", list);
    world_begin(world);
    struct tensor out;
    CHECK_OK(world_run(world, "all", &out, &err), &err); /* makes the plan */
    tensor_release(&out);
    uint64_t start = clock_monotonic_ns();
    CHECK_OK(world_run(world, "all", &out, &err), &err);
    uint64_t took = clock_monotonic_ns() - start;
    for (int i = 0; i < LENGTH; i++)
        CHECK(tensor_f32(&out)[i] == (float)i);
    tensor_release(&out);
    /* 18 million items of 304 bytes would be 5 GB. */
    CHECK(took < UINT64_C(4000000000));
    world_free(world);
}
