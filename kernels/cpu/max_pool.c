/*
 * max_pool.c - MaxPool and MaxPoolGrad in float, NHWC, and _MaxPoolGradReluGradBiasAddGrad:
 * back through bias, Relu and pooling at once.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "kernels/cpu/columns.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"
#include "kernels/list.h"
#include "kernels/ref/rules.h"

struct max_pool {
    int64_t window[2], strides[2];
    bool same;
};

/* What is none is left to the reference kernel, which says so. */
static bool is_size(int64_t value)
{
    return value > 0 && value <= INT32_MAX;
}

static bool max_pool_accepts(const struct node *node)
{
    if (strcmp(node_attr_string(node, "data_format", "NHWC"), "NHWC"))
        return false;
    static const char *const lists[] = {"ksize", "strides"};
    for (int i = 0; i < ARRAY_LEN(lists); i++) {
        int count;
        const int64_t *values = node_attr_ints(node, lists[i], &count);
        if (count != 4 || values[0] != 1 || values[3] != 1 || !is_size(values[1]) ||
            !is_size(values[2]))
            return false;
    }
    return strcmp(node_attr_string(node, "padding", "VALID"), "EXPLICIT") != 0;
}

static bool max_pool_prepare(const struct node *node, void **state, struct error *err)
{
    (void)err;
    struct max_pool *m = alloc_bytes(sizeof(*m));
    int count;
    const int64_t *window = node_attr_ints(node, "ksize", &count);
    const int64_t *strides = node_attr_ints(node, "strides", &count);
    for (int i = 0; i < 2; i++) {
        m->window[i] = window[i + 1];
        m->strides[i] = strides[i + 1];
    }
    m->same = !strcmp(node_attr_string(node, "padding", "VALID"), "SAME");
    *state = m;
    return true;
}

static bool size_axis(const struct max_pool *m, int axis, int64_t in, int64_t *out,
                      int64_t *before, struct error *err)
{
    int64_t stride = m->strides[axis], window = m->window[axis];
    *before = 0;
    if (!m->same) {
        int64_t room = in - window + stride;
        if (room < 0)
            return fail(err, INVALID,
                        "Computed output size would be negative: %lld [input_size: %lld, "
                        "effective_filter_size: %lld, stride: %lld]",
                        (long long)(room / stride), (long long)in, (long long)window,
                        (long long)stride);
        *out = room / stride;
        return true;
    }
    *out = (in + stride - 1) / stride;
    int64_t pad = (*out - 1) * stride + window - in;
    *before = pad > 0 ? pad / 2 : 0;
    return true;
}

static bool pool_shape(const struct max_pool *m, const struct shape *in, struct isa_pool *pool,
                       struct error *err)
{
    char text[SHAPE_TEXT_BYTES];
    if (in->rank != 4)
        return fail(err, INVALID, "tensor_in must be 4-dimensional: %s",
                    shape_text(in, text, sizeof(text)));
    *pool = (struct isa_pool){
        .height = in->dims[1],
        .width = in->dims[2],
        .channels = in->dims[3],
        .window_height = m->window[0],
        .window_width = m->window[1],
        .stride_height = m->strides[0],
        .stride_width = m->strides[1],
    };
    return size_axis(m, 0, pool->height, &pool->out_height, &pool->pad_top, err) &&
           size_axis(m, 1, pool->width, &pool->out_width, &pool->pad_left, err);
}

static bool max_pool_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *x = kernel_in(call, 0);
    struct isa_pool pool;
    struct shape shape;
    if (!kernel_pool_rules(call, &shape, err) || !pool_shape(call->state, &shape, &pool, err))
        return false;
    int64_t batch = x->shape.dims[0];
    struct tensor *out = kernel_output(
        call, 0, &SHAPE(batch, pool.out_height, pool.out_width, pool.channels), err);
    if (!out)
        return false;
    const float *from = tensor_f32(x);
    float *to = tensor_f32_mut(out);
    int threads = parallel_threads(call, x->count);
    int64_t images = out->count ? batch : 0;
    int64_t in_size = pool.height * pool.width * pool.channels;
    int64_t out_size = pool.out_height * pool.out_width * pool.channels;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t n = 0; n < images; n++)
        isa()->max_pool(&pool, 0, pool.out_height, from + n * in_size, to + n * out_size);
    return true;
}

static bool check_grad(const struct tensor *y, const struct tensor *grad,
                       const struct isa_pool *pool, int64_t batch, struct error *err)
{
    char is[SHAPE_TEXT_BYTES], wanted[SHAPE_TEXT_BYTES];
    struct shape shape = SHAPE(batch, pool->out_height, pool->out_width, pool->channels);
    const struct tensor *both[] = {y, grad};
    for (int i = 0; i < 2; i++) {
        if (!shape_equal(&both[i]->shape, &shape))
            return fail(err, INVALID, "Expected %s shape to be %s, but got %s",
                        i ? "grad" : "orig_output", shape_text(&shape, wanted, sizeof(wanted)),
                        shape_text(&both[i]->shape, is, sizeof(is)));
    }
    return true;
}

/* Windows that do not overlap, and together cover all: each element of dx is written once. */
static bool covers(const struct isa_pool *p)
{
    return p->stride_height == p->window_height && p->stride_width == p->window_width &&
           p->out_height * p->stride_height - p->pad_top >= p->height &&
           p->out_width * p->stride_width - p->pad_left >= p->width;
}

/* dx of checked inputs, whose gradient is `g`. */
static bool spread(struct kernel_call *call, const struct isa_pool *pool, const float *g,
                   struct error *err)
{
    const struct tensor *x = kernel_in(call, 0);
    struct tensor *dx = kernel_output(call, 0, &x->shape, err);
    if (!dx)
        return false;
    const float *image = tensor_f32(x), *most = tensor_f32(kernel_in(call, 1));
    float *to = tensor_f32_mut(dx);
    int threads = parallel_threads(call, x->count);
    int64_t images = dx->count ? x->shape.dims[0] : 0;
    int64_t in_size = pool->height * pool->width * pool->channels;
    int64_t out_size = pool->out_height * pool->out_width * pool->channels;
    bool clear = !covers(pool);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t n = 0; n < images; n++) {
        if (clear)
            memset(to + n * in_size, 0, (size_t)in_size * sizeof(float));
        isa()->max_pool_grad(pool, 0, pool->out_height, image + n * in_size,
                             most + n * out_size, g + n * out_size, to + n * in_size);
    }
    return true;
}

static bool check_inputs(struct kernel_call *call, struct isa_pool *pool, struct error *err)
{
    const struct tensor *x = kernel_in(call, 0);
    return pool_shape(call->state, &x->shape, pool, err) &&
           check_grad(kernel_in(call, 1), kernel_in(call, 2), pool, x->shape.dims[0], err);
}

static bool max_pool_grad_run(struct kernel_call *call, struct error *err)
{
    struct isa_pool pool;
    struct shape shape;
    return kernel_pool_rules(call, &shape, err) && check_inputs(call, &pool, err) &&
           spread(call, &pool, tensor_f32(kernel_in(call, 2)), err);
}

/*
 * Each pooled gradient goes to one element, which passed the Relu if the maximum did: so
 * masking and summing can be done on the pooled, smaller, arrays.
 */
static bool max_pool_relu_bias_grad_run(struct kernel_call *call, struct error *err)
{
    struct isa_pool pool;
    if (!check_inputs(call, &pool, err))
        return false;
    const struct tensor *y = kernel_in(call, 1);
    const struct tensor *grad = kernel_in(call, 2);
    struct tensor *sums = kernel_output(call, 1, &SHAPE(pool.channels), err);
    float *masked =
        sums ? kernel_scratch(call, (size_t)grad->count * sizeof(float), err) : NULL;
    int64_t rows = pool.channels ? grad->count / pool.channels : 0;
    return masked &&
           columns_sum(call, rows, pool.channels, tensor_f32(grad), tensor_f32(y), masked,
                       tensor_f32_mut(sums), err) &&
           spread(call, &pool, masked, err);
}

const struct kernel kernel_max_pool_cpu = {
    .op = "MaxPool",
    .device = CPU,
    .dtypes = BIT(F32),
    .accepts = max_pool_accepts,
    .prepare = max_pool_prepare,
    .release = free,
    .run = max_pool_run,
};

const struct kernel kernel_max_pool_grad_cpu = {
    .op = "MaxPoolGrad",
    .device = CPU,
    .dtypes = BIT(F32),
    .accepts = max_pool_accepts,
    .prepare = max_pool_prepare,
    .release = free,
    .run = max_pool_grad_run,
};

const struct kernel kernel_max_pool_relu_bias_grad_cpu = {
    .op = "_MaxPoolGradReluGradBiasAddGrad",
    .device = CPU,
    .dtypes = BIT(F32),
    .accepts = max_pool_accepts,
    .prepare = max_pool_prepare,
    .release = free,
    .run = max_pool_relu_bias_grad_run,
};
