/*
 * clustering.c - KMeans: each example becomes the nearest of some centroids.
 *
 * With the example itself as target ("target" in the spec's data) and the mean squared error as
 * loss, a step of gradient descent moves each centroid towards the examples that it is nearest
 * to, which is k-means in small batches.  Keras has no such layer.
 */

#include "runtime/model/layer.h"

static const struct config_argument arguments[] = {
    {CONFIG_ARG("clusters", CONFIG_INT, NULL), CONFIG_RANGE(1, LAYER_UNITS_MAX),
     .wanted = "how many centroids there are"},
    LAYER_CONFIG("centroids_initializer", "\"random_normal\"", build_initializer_family)};

/* The nearest has the least |x - c|^2, thus the most 2 x c - |c|^2. */
static void k_means(struct layer_call *call)
{
    struct build *m = call->m;
    struct edge x = call->inputs[0];
    const struct shape shape = *layer_shape(call, 0);
    if (build_ok(m) && shape.rank != 2) {
        layer_refuse(call, "examples of one dimension (put Flatten before it)");
        return;
    }
    int64_t width = shape.rank == 2 ? shape.dims[1] : 1;
    int weight =
        layer_state(call, "centroids", &SHAPE(config_int(call->config, "clusters"), width),
                    "random_normal", true);
    if (!build_ok(m) || weight < 0)
        return;
    struct edge centroids = build_weight_read(m, weight);
    const int64_t last = -1;
    struct edge square =
        build_reduce(m, "Sum", build_unary(m, "Square", centroids), &last, 1, false);
    struct edge near = build_binary(
        m, "Sub", build_with_number(m, "Mul", build_matmul(m, x, centroids, false, true), 2),
        square);
    struct edge nearest = build_argmax(m, near, -1, I32);
    if (!build_ok(m))
        return;
    layer_give(call, builder_add(&m->b, "ResourceGather", "nearest",
                                 INPUTS(build_weight_handle(m, weight), nearest),
                                 ATTRS(attr_type("dtype", F32))));
}

const struct layer_class layer_k_means = {
    .config = {.name = "KMeans", CONFIG_ARGUMENTS(arguments)},
    .call = k_means,
};
