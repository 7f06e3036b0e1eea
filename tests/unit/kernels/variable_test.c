/* variable_test.c - variables that are cleared, assigned and updated while others use them. */

#include <pthread.h>

#include "runtime/op.h"
#include "tests/unit/kernels/world.h"

enum { ROUNDS = 150, ELEMENTS = 300 };

static const struct shape vector = {.rank = 1, .dims = {ELEMENTS}};

static struct edge filled(struct world *world, double value, int64_t count)
{
    struct error err;
    struct tensor t;
    CHECK_OK(tensor_init(&t, F32, &SHAPE(count), &err), &err);
    for (int64_t i = 0; i < count; i++)
        tensor_set_number(&t, i, value);
    struct edge edge = builder_const(&world->b, "Const", &t);
    tensor_release(&t);
    return edge;
}

static struct edge variable(struct world *world, const char *op, const char *name)
{
    return builder_add(&world->b, op, name, NO_INPUTS,
                       ATTRS(attr_type("dtype", F32), attr_shape("shape", &vector),
                             attr_string("shared_name", name)));
}

/* By handle: h with a slot m.  By reference: r.  Both are assigned, updated and read. */
static void build(struct world *world)
{
    struct builder *b = &world->b;
    struct edge h = variable(world, "VarHandleOp", "h"),
                m = variable(world, "VarHandleOp", "m");
    struct edge r = variable(world, "VariableV2", "r"), ones = filled(world, 1, ELEMENTS);
    struct edge lr = builder_scalar(b, "lr", F32, 0.5);
    builder_add(b, "AssignVariableOp", "set_h", INPUTS(h, ones), NO_ATTRS);
    builder_add(b, "AssignVariableOp", "set_m", INPUTS(m, ones), NO_ATTRS);
    builder_add(b, "AssignVariableOp", "shrink_h", INPUTS(h, filled(world, 2, 7)), NO_ATTRS);
    builder_add(b, "Assign", "set_r", INPUTS(r, ones), NO_ATTRS);
    builder_add(b, "Assign", "shrink_r", INPUTS(r, filled(world, 2, 7)),
                ATTRS(attr_bool("validate_shape", false)));
    builder_add(b, "AssignAddVariableOp", "add_h", INPUTS(h, ones), NO_ATTRS);
    builder_add(b, "AssignAdd", "add_r", INPUTS(r, ones), NO_ATTRS);
    builder_add(b, "ResourceApplyMomentum", "step_h", INPUTS(h, m, lr, ones, lr),
                ATTRS(attr_bool("use_locking", true)));
    builder_add(b, "ApplyGradientDescent", "step_r", INPUTS(r, lr, ones),
                ATTRS(attr_bool("use_locking", true)));
    builder_add(b, "ResourceScatterAdd", "scatter_h",
                INPUTS(h, builder_ints(b, "rows", I32, (const int64_t[]){3, 3}, 2),
                       filled(world, 1, 2)),
                ATTRS(attr_type("dtype", F32)));
    builder_add(b, "ReadVariableOp", "read_h", INPUTS(h), ATTRS(attr_type("dtype", F32)));
    builder_add(b, "VariableShape", "shape_h", INPUTS(h), NO_ATTRS);
    builder_add(b, "Identity", "read_r", INPUTS(r), NO_ATTRS);
    builder_add(b, "DestroyResourceOp", "destroy_h", INPUTS(h), NO_ATTRS);
    world_begin(world);
}

static const char *const targets[] = {"set_h",    "set_m",  "set_r",     "add_h",    "add_r",
                                      "step_h",   "step_r", "scatter_h", "shrink_h", "set_h",
                                      "shrink_r", "set_r",  "step_h",    "destroy_h"};
static const char *const fetches[] = {"read_h:0", "shape_h:0", "read_r:0"};

/* Whatever happens to the variables, a run succeeds or says why not. */
static bool is_expected(enum error_code code)
{
    return code == NOT_FOUND || code == PRECONDITION || code == INTERNAL || code == INVALID;
}

static void *run_all(void *arg)
{
    struct world *world = arg;
    for (int i = 0; i < ROUNDS; i++) {
        struct error err;
        for (int t = 0; t < ARRAY_LEN(targets); t++)
            if (!world_run(world, targets[t], NULL, &err) && !is_expected(err.code))
                CHECK_STOP("%s: %s", targets[t], err.text);
        for (int f = 0; f < ARRAY_LEN(fetches); f++) {
            struct tensor out = {0};
            if (!world_run(world, fetches[f], &out, &err) && !is_expected(err.code))
                CHECK_STOP("%s: %s", fetches[f], err.text);
            tensor_release(&out);
        }
    }
    return NULL;
}

TEST(a_container_is_cleared_while_its_variables_are_used)
{
    struct world *world = world_new(&(struct session_options){.threads = 1});
    pthread_t threads[2];
    build(world);
    for (int i = 0; i < 2; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, run_all, world), 0);
    for (int i = 0; i < ROUNDS; i++) {
        resources_clear(session_resources(world->session), "");
        sched_yield();
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    world_free(world);
}

/* After a clear the variable is as if never made, and can be made again. */
TEST(what_was_cleared_is_made_anew)
{
    struct world *world = world_new(NULL);
    struct error err;
    struct tensor out = {0};
    build(world);
    for (int i = 0; i < 2; i++) {
        CHECK_FAILS(world_run(world, "read_h:0", &out, &err), &err, PRECONDITION);
        CHECK_FAILS(world_run(world, "read_r:0", &out, &err), &err, PRECONDITION);
        CHECK_OK(world_run(world, "set_h", NULL, &err), &err);
        CHECK_OK(world_run(world, "set_r", NULL, &err), &err);
        CHECK_OK(world_run(world, "add_h", NULL, &err), &err);
        CHECK_OK(world_run(world, "read_h:0", &out, &err), &err);
        CHECK(tensor_f32(&out)[ELEMENTS - 1] == 2);
        tensor_release(&out);
        resources_clear(session_resources(world->session), "localhost");
    }
    world_free(world);
}

/* Two threads that want the same locks in another order do not wait for each other. */
static void *lock_often(void *arg)
{
    struct variable *const *v = arg;
    for (int i = 0; i < 20000; i++) {
        struct variable *const order[] = {v[i % 2], v[1 - i % 2], v[i % 2]};
        variable_lock_all(order, 3);
        v[0]->dtype = F32;
        variable_unlock_all(order, 3);
    }
    return NULL;
}

TEST(locks_of_several_variables_have_one_order)
{
    struct variable *v[2];
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        v[i] = variable_new("v", F32, &vector);
    for (int i = 0; i < 2; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, lock_often, v), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 2; i++)
        resource_unref(&v[i]->resource);
}

static void *run_steps(void *arg)
{
    struct error err;
    for (int i = 0; i < ROUNDS; i++)
        CHECK_OK(world_run(arg, "step_r", NULL, &err), &err);
    return NULL;
}

/* With use_locking no update is lost, whoever else updates. */
TEST(locked_updates_all_count)
{
    struct world *world = world_new(&(struct session_options){.threads = 1});
    pthread_t threads[2];
    struct error err;
    struct tensor out;
    build(world);
    CHECK_OK(world_run(world, "set_r", NULL, &err), &err);
    for (int i = 0; i < 2; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, run_steps, world), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    CHECK_OK(world_run(world, "read_r:0", &out, &err), &err);
    for (int64_t i = 0; i < out.count; i++)
        CHECK(tensor_number(&out, i) == 1 - 0.5 * 2 * ROUNDS);
    tensor_release(&out);
    world_free(world);
}
