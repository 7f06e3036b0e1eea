/*
 * fit.c - a line fitted to points with the C API: variables, gradients, a loop of steps.
 *
 *   cc fit.c $(pkg-config --cflags --libs trainyard) -lm -o fit && ./fit
 *
 * With a name of a file it leaves the graph there, for `trainyard graph show FILE`.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/trainyard.h"

static struct ty_status *status;

static void check(const char *what)
{
    if (ty_status_code(status) == TY_OK)
        return;
    fprintf(stderr, "%s: %s\n", what, ty_status_message(status));
    exit(1);
}

static struct ty_output finish(struct ty_description *description)
{
    struct ty_operation *operation = ty_finish_operation(description, status);
    check("adding an operation");
    return (struct ty_output){operation, 0};
}

static struct ty_output constant(struct ty_graph *graph, const char *name, float value)
{
    struct ty_tensor *tensor =
        ty_tensor_new_copy(TY_FLOAT, NULL, 0, &value, sizeof(value), status);
    check("a tensor");
    struct ty_description *d = ty_new_operation(graph, "Const", name);
    ty_set_attr_type(d, "dtype", TY_FLOAT);
    ty_set_attr_tensor(d, "value", tensor);
    ty_tensor_free(tensor);
    return finish(d);
}

static struct ty_output placeholder(struct ty_graph *graph, const char *name)
{
    struct ty_description *d = ty_new_operation(graph, "Placeholder", name);
    ty_set_attr_type(d, "dtype", TY_FLOAT);
    ty_set_attr_shape(d, "shape", (const int64_t[]){-1}, 1);
    return finish(d);
}

static struct ty_output apply(struct ty_graph *graph, const char *op, const char *name,
                              struct ty_output x, struct ty_output y)
{
    struct ty_description *d = ty_new_operation(graph, op, name);
    ty_add_input(d, x);
    ty_add_input(d, y);
    return finish(d);
}

/* A variable that starts at 0; `*init` is the operation that sets it. */
static struct ty_output variable(struct ty_graph *graph, const char *name,
                                 struct ty_operation **init)
{
    char init_name[64], zero_name[64];
    snprintf(init_name, sizeof(init_name), "%s/init", name);
    snprintf(zero_name, sizeof(zero_name), "%s/zero", name);
    struct ty_description *d = ty_new_operation(graph, "VariableV2", name);
    ty_set_attr_type(d, "dtype", TY_FLOAT);
    ty_set_attr_shape(d, "shape", NULL, 0);
    struct ty_output variable = finish(d);
    *init =
        apply(graph, "Assign", init_name, variable, constant(graph, zero_name, 0)).operation;
    return variable;
}

static float fetch(struct ty_session *session, struct ty_output output)
{
    struct ty_tensor *value = NULL;
    ty_session_run(session, NULL, NULL, 0, &output, &value, 1, NULL, 0, NULL, status);
    check("fetching");
    float number = *(const float *)ty_tensor_data(value);
    ty_tensor_free(value);
    return number;
}

static void write_graph(struct ty_graph *graph, const char *path)
{
    struct ty_buffer *bytes = ty_buffer_new();
    ty_graph_export(graph, bytes, status);
    check("exporting the graph");
    FILE *file = fopen(path, "wb");
    size_t size = ty_buffer_size(bytes);
    if (!file || fwrite(ty_buffer_data(bytes), 1, size, file) != size || fclose(file)) {
        perror(path);
        exit(1);
    }
    ty_buffer_free(bytes);
}

int main(int argc, char **argv)
{
    enum { POINTS = 64, STEPS = 500 };
    float xs[POINTS], ys[POINTS];
    for (int i = 0; i < POINTS; i++) {
        xs[i] = (float)i / POINTS;
        ys[i] = 3 * xs[i] - 1;
    }
    status = ty_status_new();
    struct ty_graph *graph = ty_graph_new();

    /* loss = mean((slope * x + shift - y)^2) */
    struct ty_operation *inits[2];
    struct ty_output x = placeholder(graph, "x"), y = placeholder(graph, "y");
    struct ty_output parameters[] = {variable(graph, "slope", &inits[0]),
                                     variable(graph, "shift", &inits[1])};
    struct ty_output product = apply(graph, "Mul", "product", x, parameters[0]);
    struct ty_output guess = apply(graph, "AddV2", "guess", product, parameters[1]);
    struct ty_output squares = apply(graph, "SquaredDifference", "squares", guess, y);
    const int32_t zero = 0;
    struct ty_tensor *axis =
        ty_tensor_new_copy(TY_INT32, (const int64_t[]){1}, 1, &zero, sizeof(zero), status);
    struct ty_description *d = ty_new_operation(graph, "Const", "axis");
    ty_set_attr_type(d, "dtype", TY_INT32);
    ty_set_attr_tensor(d, "value", axis);
    ty_tensor_free(axis);
    struct ty_output loss = apply(graph, "Mean", "loss", squares, finish(d));

    struct ty_output gradients[2];
    ty_add_gradients(graph, &loss, 1, parameters, 2, NULL, gradients, status);
    check("gradients");
    struct ty_operation *updates[2];
    struct ty_output rate = constant(graph, "rate", 0.5f);
    for (int i = 0; i < 2; i++) {
        d = ty_new_operation(graph, "ApplyGradientDescent",
                             i ? "update_shift" : "update_slope");
        ty_add_input_list(d, (const struct ty_output[]){parameters[i], rate, gradients[i]}, 3);
        updates[i] = finish(d).operation;
    }

    if (argc > 1)
        write_graph(graph, argv[1]);
    struct ty_session *session = ty_session_new(graph, NULL, status);
    check("a session");
    ty_session_run(session, NULL, NULL, 0, NULL, NULL, 0, inits, 2, NULL, status);
    check("initialising");
    const int64_t dims[] = {POINTS};
    struct ty_tensor *feeds[] = {ty_tensor_new_copy(TY_FLOAT, dims, 1, xs, sizeof(xs), status),
                                 ty_tensor_new_copy(TY_FLOAT, dims, 1, ys, sizeof(ys), status)};
    float last = 0;
    for (int step = 1; step <= STEPS; step++) {
        struct ty_tensor *value = NULL;
        ty_session_run(session, (const struct ty_output[]){x, y}, feeds, 2, &loss, &value, 1,
                       updates, 2, NULL, status);
        check("a step");
        last = *(const float *)ty_tensor_data(value);
        ty_tensor_free(value);
        if (step % 100 == 0)
            printf("step %3d  loss %.6f\n", step, last);
    }
    float slope = fetch(session, parameters[0]), shift = fetch(session, parameters[1]);
    printf("y = %.3f x %+.3f\n", slope, shift);

    ty_tensor_free(feeds[0]);
    ty_tensor_free(feeds[1]);
    ty_session_free(session);
    ty_graph_free(graph);
    ty_status_free(status);
    return fabsf(slope - 3) < 0.01f && fabsf(shift + 1) < 0.01f ? 0 : 1;
}
