/*
 * use.c - runs the op of a library: ./use ./libclamp.so [GRAPH]
 *
 * It leaves the graph in the file GRAPH, for `trainyard graph show GRAPH --load-library ...`.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/trainyard.h"

static struct ty_status *status;

static void check(const char *what)
{
    if (ty_status_code(status) == TY_OK)
        return;
    fprintf(stderr, "%s: %s\n", what, ty_status_message(status));
    exit(1);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: use LIBRARY [GRAPH]\n");
        return 2;
    }
    status = ty_status_new();
    ty_load_library(argv[1], status);
    check("loading");

    struct ty_graph *graph = ty_graph_new();
    struct ty_description *d = ty_new_operation(graph, "Placeholder", "x");
    ty_set_attr_type(d, "dtype", TY_FLOAT);
    ty_set_attr_shape(d, "shape", (const int64_t[]){3}, 1);
    struct ty_output x = {ty_finish_operation(d, status), 0};
    check("x");
    d = ty_new_operation(graph, "SoftClamp", "y");
    ty_add_input(d, x);
    ty_set_attr_float(d, "bound", 2);
    struct ty_output y = {ty_finish_operation(d, status), 0};
    check("y");
    int64_t dim = 0;
    int rank = ty_graph_shape(graph, y, &dim, 1, status);

    if (argc > 2) {
        struct ty_buffer *bytes = ty_buffer_new();
        ty_graph_export(graph, bytes, status);
        check("exporting the graph");
        FILE *file = fopen(argv[2], "wb");
        if (!file || !fwrite(ty_buffer_data(bytes), ty_buffer_size(bytes), 1, file) ||
            fclose(file)) {
            perror(argv[2]);
            return 1;
        }
        ty_buffer_free(bytes);
    }

    const float values[] = {-10, 0.5f, 10};
    struct ty_session *session = ty_session_new(graph, NULL, status);
    check("a session");
    struct ty_tensor *result = NULL,
                     *feed = ty_tensor_new_copy(TY_FLOAT, (const int64_t[]){3}, 1, values,
                                                sizeof(values), status);
    ty_session_run(session, &x, &feed, 1, &y, &result, 1, NULL, 0, NULL, status);
    check("running");
    const float *got = ty_tensor_data(result);
    printf("rank %d, %lld elements: %.4f %.4f %.4f\n", rank, (long long)dim, got[0], got[1],
           got[2]);
    int wrong = rank != 1 || dim != 3 || fabsf(got[1] - 2 * tanhf(0.25f)) > 1e-6f;
    ty_tensor_free(feed);
    ty_tensor_free(result);
    ty_session_free(session);
    ty_graph_free(graph);
    ty_status_free(status);
    return wrong;
}
