/* capi_test.c - the C API: what it gives back, what it refuses, and that nothing leaks. */

#include <pthread.h>

#include "runtime/trainyard.h"
#include "tests/unit/test.h"

static struct ty_status *status;

#define OK_NOW()                                                                               \
    do {                                                                                       \
        if (ty_status_code(status) != TY_OK)                                                   \
            CHECK_STOP("%s", ty_status_message(status));                                       \
    } while (0)
#define FAILED(code)                                                                           \
    do {                                                                                       \
        CHECK_INT(ty_status_code(status), code);                                               \
        CHECK(*ty_status_message(status));                                                     \
    } while (0)

static struct ty_tensor *floats(const float *values, int64_t count)
{
    struct ty_tensor *tensor =
        ty_tensor_new_copy(TY_FLOAT, &count, 1, values, (size_t)count * sizeof(float), status);
    OK_NOW();
    return tensor;
}

static struct ty_output finish(struct ty_description *description)
{
    struct ty_output output = {ty_finish_operation(description, status), 0};
    OK_NOW();
    return output;
}

static struct ty_output placeholder(struct ty_graph *graph, const char *name)
{
    struct ty_description *d = ty_new_operation(graph, "Placeholder", name);
    ty_set_attr_type(d, "dtype", TY_FLOAT);
    ty_set_attr_shape(d, "shape", (const int64_t[]){-1}, 1);
    return finish(d);
}

static struct ty_output add(struct ty_graph *graph, const char *name, struct ty_output x,
                            struct ty_output y)
{
    struct ty_description *d = ty_new_operation(graph, "AddV2", name);
    ty_add_input(d, x);
    ty_add_input(d, y);
    return finish(d);
}

/* The only element of what a run with x = `value` gives. */
static float run(struct ty_session *session, struct ty_output x, struct ty_output y,
                 float value)
{
    struct ty_tensor *feed = floats(&value, 1), *result = NULL;
    ty_session_run(session, &x, &feed, 1, &y, &result, 1, NULL, 0, NULL, status);
    OK_NOW();
    CHECK_INT(ty_tensor_rank(result), 1);
    CHECK_INT(ty_tensor_dim(result, 0), 1);
    float got = *(const float *)ty_tensor_data(result);
    ty_tensor_free(feed);
    ty_tensor_free(result);
    return got;
}

TEST(a_status_keeps_code_and_text)
{
    status = ty_status_new();
    CHECK_INT(ty_status_code(status), TY_OK);
    CHECK_TEXT(ty_status_message(status), "");
    ty_status_set(status, TY_ABORTED, "why");
    CHECK_INT(ty_status_code(status), TY_ABORTED);
    CHECK_TEXT(ty_status_message(status), "why");
    ty_status_free(status);
    ty_status_free(NULL);
}

static int released;

static void count_release(void *data, void *arg)
{
    (void)data;
    CHECK(arg == &released);
    released++;
}

TEST(tensors_hold_what_they_are_given)
{
    status = ty_status_new();
    const int64_t dims[] = {2, 3};
    const int32_t values[] = {1, 2, 3, 4, 5, 6};
    struct ty_tensor *t = ty_tensor_new_copy(TY_INT32, dims, 2, values, sizeof(values), status);
    OK_NOW();
    CHECK_INT(ty_tensor_count(t), 6);
    CHECK_INT(ty_tensor_size(t), 24);
    CHECK_INT(ty_tensor_dtype(t), TY_INT32);
    CHECK(!memcmp(ty_tensor_data(t), values, sizeof(values)));
    ty_tensor_free(t);

    CHECK(!ty_tensor_new_copy(TY_INT32, dims, 2, values, 20, status));
    FAILED(TY_INVALID_ARGUMENT);
    CHECK(!ty_tensor_new(TY_FLOAT, (const int64_t[]){-1}, 1, status));
    FAILED(TY_INVALID_ARGUMENT);
    CHECK(!ty_tensor_new(TY_FLOAT, NULL, 1000, status));
    FAILED(TY_INVALID_ARGUMENT);
    CHECK(!ty_tensor_new((enum ty_dtype)77, NULL, 0, status));
    FAILED(TY_INVALID_ARGUMENT);
    CHECK(!ty_tensor_new(TY_DOUBLE, (const int64_t[]){INT64_MAX / 4}, 1, status));
    CHECK(ty_status_code(status) != TY_OK);

    t = ty_tensor_new(TY_STRING, (const int64_t[]){2}, 1, status);
    OK_NOW();
    size_t size;
    ty_tensor_set_string(t, 1, "a\0b", 3);
    CHECK_TEXT(ty_tensor_string(t, 0, &size), "");
    CHECK(!memcmp(ty_tensor_string(t, 1, &size), "a\0b", 3));
    CHECK_INT(size, 3);
    ty_tensor_free(t);
    ty_tensor_free(NULL);

    /* The caller's memory: aligned it is used, else copied; given back either way, once. */
    static _Alignas(64) float lent[17];
    for (int offset = 0; offset < 2; offset++) {
        released = 0;
        t = ty_tensor_new_over(TY_FLOAT, (const int64_t[]){16}, 1, lent + offset, 64,
                               count_release, &released, status);
        OK_NOW();
        CHECK_INT(ty_tensor_data(t) == lent + offset, !offset);
        CHECK_INT(released, offset);
        ty_tensor_free(t);
        CHECK_INT(released, 1);
    }
    released = 0;
    CHECK(!ty_tensor_new_over(TY_FLOAT, (const int64_t[]){16}, 1, lent, 60, count_release,
                              &released, status));
    FAILED(TY_INVALID_ARGUMENT);
    CHECK_INT(released, 1);
    ty_status_free(status);
}

TEST(mistakes_in_a_description_are_told_at_its_end)
{
    status = ty_status_new();
    struct ty_graph *graph = ty_graph_new();
    CHECK(!ty_finish_operation(ty_new_operation(graph, "NoSuchOp", "a"), status));
    FAILED(TY_NOT_FOUND);
    CHECK(!ty_finish_operation(ty_new_operation(graph, "Placeholder", "a"), status));
    FAILED(TY_NOT_FOUND); /* no dtype */
    struct ty_description *d = ty_new_operation(graph, "Placeholder", "a");
    ty_set_attr_type(d, "dtype", TY_FLOAT);
    ty_set_attr_shape(d, "shape", (const int64_t[]){-2}, 1);
    CHECK(!ty_finish_operation(d, status));
    FAILED(TY_INVALID_ARGUMENT);
    d = ty_new_operation(graph, "Neg", "neg");
    ty_add_input(d, (struct ty_output){0});
    CHECK(!ty_finish_operation(d, status));
    FAILED(TY_INVALID_ARGUMENT);
    struct ty_output x = placeholder(graph, "x");
    d = ty_new_operation(graph, "Neg", "neg");
    ty_add_input(d, (struct ty_output){x.operation, 5});
    CHECK(!ty_finish_operation(d, status));
    FAILED(TY_INVALID_ARGUMENT);
    CHECK(!ty_finish_operation(ty_new_operation(graph, "NoOp", "x"), status));
    FAILED(TY_ALREADY_EXISTS);
    ty_graph_free(graph);
    ty_graph_free(NULL);
    ty_status_free(status);
}

TEST(operations_tell_what_they_are)
{
    status = ty_status_new();
    struct ty_graph *graph = ty_graph_new();
    struct ty_output x = placeholder(graph, "x");
    const int64_t strides[] = {1, 2, 2, 1};
    struct ty_description *d = ty_new_operation(graph, "NoOp", "wait");
    ty_add_control_input(d, x.operation);
    ty_colocate_with(d, x.operation);
    ty_set_device(d, "/cpu:0");
    ty_set_attr_int_list(d, "_strides", strides, 4);
    ty_set_attr_int(d, "_int", 42);
    ty_set_attr_float(d, "_float", 0.5f);
    ty_set_attr_bool(d, "_bool", true);
    ty_set_attr_string(d, "_string", "text", 4);
    struct ty_operation *wait = finish(d).operation;
    CHECK_TEXT(ty_operation_name(wait), "wait");
    CHECK_TEXT(ty_operation_op(wait), "NoOp");
    CHECK_TEXT(ty_operation_device(wait), "/cpu:0");
    CHECK_INT(ty_operation_control_inputs(wait), 1);
    CHECK(ty_operation_control_input(wait, 0) == x.operation);
    CHECK_INT(ty_operation_outputs(x.operation), 1);
    CHECK_INT(ty_operation_output_type(x.operation, 0), TY_FLOAT);
    CHECK_INT(ty_operation_attr_int(wait, "_int", status), 42);
    CHECK(ty_operation_attr_float(wait, "_float", status) == 0.5f);
    CHECK(ty_operation_attr_bool(wait, "_bool", status));
    size_t size;
    CHECK_TEXT(ty_operation_attr_string(wait, "_string", &size, status), "text");
    CHECK_INT(size, 4);
    CHECK_INT(ty_operation_attr_type(x.operation, "dtype", status), TY_FLOAT);
    OK_NOW();
    ty_operation_attr_int(wait, "_none", status);
    FAILED(TY_NOT_FOUND);
    ty_operation_attr_int(wait, "_strides", status);
    FAILED(TY_INVALID_ARGUMENT);

    CHECK(ty_graph_operation(graph, "wait") == wait);
    CHECK(!ty_graph_operation(graph, "other"));
    size_t position = 0, count = 0;
    while (ty_graph_next_operation(graph, &position))
        count++;
    CHECK_INT(count, 2);
    ty_graph_free(graph);
    ty_status_free(status);
}

TEST(a_session_runs_what_was_added_since)
{
    status = ty_status_new();
    struct ty_graph *graph = ty_graph_new();
    struct ty_output x = placeholder(graph, "x");
    struct ty_output y = add(graph, "y", x, x);
    struct ty_session *session = ty_session_new(graph, NULL, status);
    OK_NOW();
    for (int i = 0; i < 3; i++)
        CHECK(run(session, x, y, 2) == 4);
    struct ty_output z = add(graph, "z", y, x);
    CHECK(run(session, x, z, 2) == 6);
    CHECK(run(session, x, y, 3) == 6);
    ty_graph_free(graph); /* the session keeps it */
    CHECK(run(session, x, z, 5) == 15);

    struct ty_tensor *result = NULL;
    ty_session_run(session, NULL, NULL, 0, &z, &result, 1, NULL, 0, NULL, status);
    FAILED(TY_INVALID_ARGUMENT);
    CHECK(strstr(ty_status_message(status), "must feed a value for placeholder tensor 'x'"));
    CHECK(!result);
    CHECK(run(session, x, z, 5) == 15);
    ty_session_free(session);
    ty_session_free(NULL);
    ty_status_free(status);
}

TEST(a_traced_run_fills_the_buffer)
{
    status = ty_status_new();
    struct ty_graph *graph = ty_graph_new();
    struct ty_output x = placeholder(graph, "x"), y = add(graph, "sum_of_x", x, x);
    struct ty_session *session = ty_session_new(graph, NULL, status);
    struct ty_buffer *trace = ty_buffer_new();
    float value = 1;
    struct ty_tensor *feed = floats(&value, 1), *result = NULL;
    ty_session_run(session, &x, &feed, 1, &y, &result, 1, NULL, 0, trace, status);
    OK_NOW();
    CHECK(memmem(ty_buffer_data(trace), ty_buffer_size(trace), "sum_of_x", 8));
    ty_tensor_free(feed);
    ty_tensor_free(result);
    ty_buffer_free(trace);
    ty_session_free(session);
    ty_graph_free(graph);
    ty_status_free(status);
}

TEST(graphs_are_imported_under_other_names)
{
    status = ty_status_new();
    struct ty_graph *first = ty_graph_new(), *second = ty_graph_new();
    struct ty_output x = placeholder(first, "x");
    add(first, "y", x, x);
    struct ty_buffer *bytes = ty_buffer_new();
    ty_graph_export(first, bytes, status);
    OK_NOW();

    struct ty_output input = placeholder(second, "input");
    struct ty_import_options *options = ty_import_options_new();
    ty_import_options_set_prefix(options, "part");
    ty_import_options_map(options, "x", 0, input);
    ty_graph_import(second, bytes, options, status);
    OK_NOW();
    struct ty_output y = {ty_graph_operation(second, "part/y"), 0};
    CHECK(y.operation);
    CHECK(ty_operation_input(y.operation, 0).operation == input.operation);
    ty_graph_import(second, bytes, options, status);
    CHECK(ty_status_code(status) != TY_OK); /* the names are taken */
    ty_import_options_free(options);
    ty_graph_import(second, bytes, NULL, status);
    OK_NOW();
    CHECK(ty_graph_operation(second, "y"));

    struct ty_session *session = ty_session_new(second, NULL, status);
    CHECK(run(session, input, y, 4) == 8);
    ty_session_free(session);
    struct ty_buffer *bad = ty_buffer_new_copy("\xff\xff\xff", 3);
    ty_graph_import(second, bad, NULL, status);
    CHECK(ty_status_code(status) != TY_OK);
    ty_buffer_free(bad);
    ty_buffer_free(bytes);
    ty_graph_free(first);
    ty_graph_free(second);
    ty_status_free(status);
}

TEST(gradients_are_added_to_the_graph)
{
    status = ty_status_new();
    struct ty_graph *graph = ty_graph_new();
    struct ty_output x = placeholder(graph, "x"), other = placeholder(graph, "other");
    struct ty_description *d = ty_new_operation(graph, "Square", "y");
    ty_add_input(d, x);
    struct ty_output y = finish(d), gradients[2];
    const struct ty_output xs[] = {x, other};
    ty_add_gradients(graph, &y, 1, xs, 2, NULL, gradients, status);
    OK_NOW();
    CHECK(!gradients[1].operation);
    struct ty_session *session = ty_session_new(graph, NULL, status);
    CHECK(run(session, x, gradients[0], 3) == 6);
    int64_t dim = 0;
    CHECK_INT(ty_graph_shape(graph, y, &dim, 1, status), 1);
    CHECK_INT(dim, -1);
    ty_session_free(session);
    ty_graph_free(graph);
    ty_status_free(status);
}

TEST(passes_are_switched_off_by_name)
{
    status = ty_status_new();
    struct ty_session_options *options = ty_session_options_new();
    ty_session_options_set_threads(options, 1);
    ty_session_options_set_memory(options, 1 << 20);
    ty_session_options_disable_passes(options, "fold,chain", status);
    OK_NOW();
    ty_session_options_disable_passes(options, "all", status);
    OK_NOW();
    ty_session_options_disable_passes(options, "nonsense", status);
    FAILED(TY_NOT_FOUND);
    struct ty_graph *graph = ty_graph_new();
    struct ty_output x = placeholder(graph, "x"), y = add(graph, "y", x, x);
    struct ty_session *session = ty_session_new(graph, options, status);
    CHECK(run(session, x, y, 2) == 4);
    ty_session_options_free(options);
    ty_session_free(session);
    ty_graph_free(graph);
    ty_status_free(status);
}

/* --- threads --- */

struct shared {
    struct ty_session *session;
    struct ty_output x, y, z;
};

static void *run_many(void *arg)
{
    struct shared *shared = arg;
    struct ty_status *mine = ty_status_new();
    bool ok = true;
    for (int i = 0; i < 200; i++) {
        float value = (float)i;
        const int64_t one = 1;
        struct ty_tensor *feed =
            ty_tensor_new_copy(TY_FLOAT, &one, 1, &value, sizeof(value), mine);
        struct ty_tensor *result = NULL;
        ty_session_run(shared->session, &shared->x, &feed, 1, i % 2 ? &shared->y : &shared->z,
                       &result, 1, NULL, 0, NULL, mine);
        ok = ok && ty_status_code(mine) == TY_OK &&
             *(const float *)ty_tensor_data(result) == value * (i % 2 ? 2.0f : 3.0f);
        ty_tensor_free(feed);
        ty_tensor_free(result);
    }
    ty_status_free(mine);
    return ok ? arg : NULL;
}

TEST(threads_share_a_session)
{
    status = ty_status_new();
    struct ty_graph *graph = ty_graph_new();
    struct ty_output x = placeholder(graph, "x"), y = add(graph, "y", x, x);
    struct shared shared = {ty_session_new(graph, NULL, status), x, y, add(graph, "z", y, x)};
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        CHECK(!pthread_create(&threads[i], NULL, run_many, &shared));
    for (int i = 0; i < 3; i++) {
        void *result;
        pthread_join(threads[i], &result);
        CHECK(result);
    }
    ty_session_free(shared.session);
    ty_graph_free(graph);
    ty_status_free(status);
}

/* --- ops of one's own --- */

static int created, dropped;

static void *half_create(struct ty_kernel_construction *construction)
{
    struct ty_status *mine = ty_status_new();
    int64_t fail =
        ty_operation_attr_int(ty_kernel_construction_operation(construction), "fail", mine);
    if (fail == 1)
        ty_kernel_construction_fail(construction, TY_INVALID_ARGUMENT, "fail is 1");
    ty_status_free(mine);
    created++;
    return malloc(1);
}

static void half_release(void *state)
{
    dropped++;
    free(state);
}

static void half_compute(void *state, struct ty_kernel_context *context)
{
    CHECK(state);
    const struct ty_tensor *x = ty_kernel_input(context, 0);
    CHECK_INT(ty_kernel_inputs(context), 1);
    CHECK(ty_kernel_threads(context) >= 1);
    const int64_t count = ty_tensor_count(x);
    if (count == 2) {
        ty_kernel_fail(context, TY_OUT_OF_RANGE, "two are not wanted");
        return;
    }
    if (count == 3)
        return; /* forgets its output */
    struct ty_tensor *y = ty_kernel_output(context, 0, &count, 1);
    for (int64_t i = 0; y && i < count; i++)
        ((float *)ty_tensor_data(y))[i] = ((const float *)ty_tensor_data(x))[i] / 2;
}

static void register_half(void)
{
    struct ty_op *op = ty_op_new("Half");
    ty_op_add_input(op, "x: T");
    ty_op_add_output(op, "y: T");
    ty_op_add_attr(op, "T: {float}");
    ty_op_add_attr(op, "fail: int = 0");
    ty_op_register(op, status);
    OK_NOW();
    struct ty_kernel *kernel =
        ty_kernel_new("Half", "CPU", half_create, half_compute, half_release);
    const enum ty_dtype types[] = {TY_FLOAT};
    ty_kernel_set_types(kernel, "T", types, 1);
    ty_kernel_register(kernel, status);
    OK_NOW();
}

TEST(ops_of_ones_own_run_and_fail_as_they_say)
{
    status = ty_status_new();
    struct ty_graph *graph = ty_graph_new(); /* the runtime's own kernels are there */
    register_half();
    struct ty_output x = placeholder(graph, "x");
    struct ty_description *d = ty_new_operation(graph, "Half", "half");
    ty_add_input(d, x);
    struct ty_output y = finish(d);
    struct ty_session *session = ty_session_new(graph, NULL, status);
    CHECK(run(session, x, y, 3) == 1.5f);
    CHECK(run(session, x, y, 5) == 2.5f);
    const float three[3] = {1, 2, 3};
    for (int count = 2; count <= 3; count++) {
        struct ty_tensor *feed = floats(three, count), *result = NULL;
        ty_session_run(session, &x, &feed, 1, &y, &result, 1, NULL, 0, NULL, status);
        FAILED(count == 2 ? TY_OUT_OF_RANGE : TY_INTERNAL);
        CHECK(strstr(ty_status_message(status), "half"));
        ty_tensor_free(feed);
    }
    d = ty_new_operation(graph, "Half", "refused");
    ty_add_input(d, x);
    ty_set_attr_int(d, "fail", 1);
    struct ty_output refused = finish(d);
    struct ty_tensor *feed = floats(three, 1), *result = NULL;
    ty_session_run(session, &x, &feed, 1, &refused, &result, 1, NULL, 0, NULL, status);
    FAILED(TY_INVALID_ARGUMENT);
    ty_tensor_free(feed);
    ty_session_free(session);
    CHECK_INT(created, dropped);
    CHECK(created > 0);
    ty_graph_free(graph);
    ty_status_free(status);
}

TEST(what_is_registered_must_make_sense)
{
    status = ty_status_new();
    static const char *const bad[][2] = {
        {"x T", NULL}, {"x: Missing", NULL}, {"x: T", "T: {flot}"}};
    for (int i = 0; i < ARRAY_LEN(bad); i++) {
        struct ty_op *op = ty_op_new("Malformed");
        ty_op_add_input(op, bad[i][0]);
        if (bad[i][1])
            ty_op_add_attr(op, bad[i][1]);
        ty_op_register(op, status);
        FAILED(TY_INVALID_ARGUMENT);
    }
    struct ty_op *op = ty_op_new("MatMul");
    ty_op_register(op, status);
    FAILED(TY_ALREADY_EXISTS);
    ty_kernel_register(ty_kernel_new("NoSuchOp", "CPU", NULL, half_compute, NULL), status);
    FAILED(TY_NOT_FOUND);
    ty_kernel_register(ty_kernel_new("MatMul", "ABACUS", NULL, half_compute, NULL), status);
    FAILED(TY_INVALID_ARGUMENT);
    ty_load_library("/no/such/library.so", status);
    FAILED(TY_NOT_FOUND);
    ty_status_free(status);
}
