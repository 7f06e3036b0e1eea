/* tensor_array_test.c - tensor arrays and stacks, from several threads at once. */

#include <pthread.h>

#include "base/limits.h"
#include "kernels/state/tensor_array.h"
#include "tests/unit/kernels/world.h"

enum { THREADS = 3, EACH = 500 };

static struct tensor_array *array_new(bool dynamic, int64_t size)
{
    struct error err;
    struct tensor_array *array =
        kernel_tensor_array_new(&(struct tensor_array_options){.name = "a",
                                                               .dtype = F32,
                                                               .element_shape = SHAPE_UNKNOWN,
                                                               .dynamic_size = dynamic,
                                                               .clear_after_read = true},
                                size, &err);
    CHECK_OK(array, &err);
    return array;
}

static bool write_number(struct tensor_array *array, int64_t index, float value,
                         struct error *err)
{
    struct tensor t;
    return tensor_init_scalar(&t, F32, (double)value, err) &&
           kernel_tensor_array_write(array, index, &t, err);
}

static float read_number(struct tensor_array *array, int64_t index)
{
    struct error err;
    struct tensor t;
    CHECK_OK(kernel_tensor_array_read(array, index, &t, &err), &err);
    float value = tensor_f32(&t)[0];
    tensor_release(&t);
    return value;
}

struct work {
    struct tensor_array *array;
    int number;
};

static void *write_own(void *arg)
{
    const struct work *work = arg;
    struct error err;
    for (int i = work->number; i < THREADS * EACH; i += THREADS)
        CHECK_OK(write_number(work->array, i, (float)i, &err), &err);
    return NULL;
}

static void *add_to_all(void *arg)
{
    const struct work *work = arg;
    struct error err;
    struct tensor_array *grad = kernel_tensor_array_grad(work->array, "g", NULL, &err);
    CHECK_OK(grad, &err);
    for (int i = 0; i < THREADS * EACH; i++)
        CHECK_OK(write_number(grad, i, 1, &err), &err);
    kernel_tensor_array_unref(grad);
    return NULL;
}

static void run_threads(struct tensor_array *array, void *(*function)(void *))
{
    pthread_t threads[THREADS];
    struct work works[THREADS];
    for (int i = 0; i < THREADS; i++) {
        works[i] = (struct work){array, i};
        CHECK_INT(pthread_create(&threads[i], NULL, function, &works[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* Elements come from all threads while the array grows; gradients of all are added up. */
TEST(threads_write_and_add_up)
{
    struct error err;
    struct tensor_array *array = array_new(true, 0);
    run_threads(array, write_own);
    run_threads(array, add_to_all);
    struct tensor_array *grad = kernel_tensor_array_grad(array, "g", NULL, &err);
    CHECK_OK(grad, &err);
    for (int i = 0; i < THREADS * EACH; i++) {
        CHECK(read_number(array, i) == (float)i);
        CHECK(read_number(grad, i) == THREADS);
    }
    kernel_tensor_array_unref(array);
    kernel_tensor_array_unref(grad);
}

/* What was read is gone, and the array of gradients knows its shape all the same. */
TEST(gradients_of_what_nobody_wrote_are_zeros)
{
    struct error err;
    struct tensor_array *array = array_new(false, 2);
    CHECK_OK(write_number(array, 1, 5, &err), &err);
    CHECK(read_number(array, 1) == 5);
    struct tensor t;
    CHECK_FAILS(kernel_tensor_array_read(array, 1, &t, &err), &err, INVALID);
    CHECK_FAILS(write_number(array, 1, 5, &err), &err, INVALID);
    struct tensor_array *grad = kernel_tensor_array_grad(array, "g", NULL, &err);
    struct tensor_array *other = kernel_tensor_array_grad(array, "h", NULL, &err);
    CHECK(grad && other && grad != other);
    CHECK(read_number(grad, 1) == 0);
    CHECK_FAILS(kernel_tensor_array_read(grad, 0, &t, &err), &err, INVALID);
    kernel_tensor_array_unref(grad);
    kernel_tensor_array_unref(other);
    kernel_tensor_array_unref(array);
}

TEST(sizes_have_bounds)
{
    struct error err;
    struct tensor_array *array = array_new(true, 1);
    CHECK_FAILS(write_number(array, LIMIT_LIST_ITEMS, 1, &err), &err, EXHAUSTED);
    CHECK_FAILS(write_number(array, -1, 1, &err), &err, INVALID);
    CHECK_OK(write_number(array, 7, 1, &err), &err);
    kernel_tensor_array_close(array);
    CHECK_FAILS(write_number(array, 8, 1, &err), &err, INVALID);
    kernel_tensor_array_unref(array);
    CHECK_FAILS(kernel_tensor_array_new(
                    &(struct tensor_array_options){.name = "b", .dtype = F32}, -1, &err),
                &err, INVALID);
}

/* --- stacks --- */

/* Push 1, push 2, pop, pop, in this order by control edges. */
TEST(a_stack_gives_back_the_last_first)
{
    struct world *world = world_new(&(struct session_options){.threads = 1});
    struct builder *b = &world->b;
    struct edge handle =
        builder_add(b, "StackV2", "stack", INPUTS(builder_scalar(b, "m", I32, 2)),
                    ATTRS(attr_type("elem_type", F32)));
    struct node *before = NULL;
    for (int i = 1; i <= 3; i++) {
        char name[16];
        snprintf(name, sizeof(name), "push%d", i);
        struct edge push = builder_add(
            b, "StackPushV2", name, INPUTS(handle, builder_scalar(b, "x", F32, i)), NO_ATTRS);
        if (before)
            graph_add_control(world->graph, push.from, before);
        before = push.from;
        if (i == 2) {
            struct edge pop = builder_add(b, "StackPopV2", "pop", INPUTS(handle),
                                          ATTRS(attr_type("elem_type", F32)));
            graph_add_control(world->graph, pop.from, before);
            struct edge again = builder_add(b, "StackPopV2", "again", INPUTS(handle),
                                            ATTRS(attr_type("elem_type", F32)));
            graph_add_control(world->graph, again.from, pop.from);
        }
    }
    world_begin(world);
    static const char *const names[] = {"pop", "again"};
    const struct session_run run = {.fetches = names, .fetches_count = 2};
    struct tensor out[2];
    struct error err;
    for (int round = 0; round < 2; round++) { /* each run has a stack of its own */
        CHECK_OK(session_run(world->session, &run, out, &err), &err);
        CHECK(tensor_f32(&out[0])[0] == 2 && tensor_f32(&out[1])[0] == 1);
        tensor_release(&out[0]);
        tensor_release(&out[1]);
        CHECK_FAILS(world_run(world, "push3", NULL, &err), &err, INVALID);
    }
    world_free(world);
}
