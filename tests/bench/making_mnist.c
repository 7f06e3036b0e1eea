/* making_mnist.c - softmax regression, a perceptron and a convolutional network; see making.h.
 */

#include "tests/bench/making.h"

struct edge making_softmax(struct making *m, const struct bench_case *c, struct edge x)
{
    (void)c;
    return making_dense(m, x, 784, 10);
}

struct edge making_perceptron(struct making *m, const struct bench_case *c, struct edge x)
{
    x = making_add(m, "Relu", INPUTS(making_dense(m, x, 784, c->hidden)));
    x = making_add(m, "Relu", INPUTS(making_dense(m, x, c->hidden, c->hidden)));
    return making_dense(m, x, c->hidden, 10);
}

/* 5x5, then Relu and 2x2 pooling. */
static struct edge pooled(struct making *m, struct edge x, int64_t in, int64_t out)
{
    static const int64_t ones[] = {1, 1, 1, 1}, two[] = {1, 2, 2, 1};
    struct edge filter = making_weights(m, &SHAPE(5, 5, in, out));
    struct edge y =
        builder_add(&m->b, "Conv2D", "conv", INPUTS(x, filter),
                    ATTRS(attr_int_list("strides", ones, 4), attr_string("padding", "SAME")));
    y = making_add(m, "BiasAdd", INPUTS(y, making_vector(m, out, 0)));
    y = making_add(m, "Relu", INPUTS(y));
    return builder_add(&m->b, "MaxPool", "pool", INPUTS(y),
                       ATTRS(attr_int_list("ksize", two, 4), attr_int_list("strides", two, 4),
                             attr_string("padding", "VALID")));
}

struct edge making_network(struct making *m, const struct bench_case *c, struct edge x)
{
    const int64_t flat[] = {c->examples, 3136};
    x = pooled(m, pooled(m, x, 1, 32), 32, 64);
    x = making_add(m, "Reshape", INPUTS(x, builder_ints(&m->b, "flat", I32, flat, 2)));
    x = making_add(m, "Relu", INPUTS(making_dense(m, x, 3136, c->hidden)));
    return making_dense(m, x, c->hidden, 10);
}
