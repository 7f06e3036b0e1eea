/* pool_rules.c - what TensorFlow refuses of pooling; see rules.h. */

#include "kernels/ref/rules.h"

#include "base/error.h"
#include "kernels/ref/numbers.h"

/* What the ops are like; each is one of these. */
enum kind {
    MAX,
    MAX_GRAD,
    MAX_GRAD_GRAD,
    ARGMAX,
    ARGMAX_GRAD,
    AVG,
    AVG_GRAD,
};

struct pool {
    const struct kernel_call *call;
    enum kind kind;
    int dims, rank; /* 2 or 3; with batch and channels */
    bool channels_first;
    bool by_inputs; /* sizes are the last two inputs */
    int64_t from_input[2][4];
    const int64_t *ksize, *strides, *pads;
    int ksize_count, strides_count, pads_count;
    bool same, is_explicit;
};

static enum kind kind_of(const char *name)
{
    if (strncmp(name, "Avg", 3) == 0)
        return strstr(name, "Grad") ? AVG_GRAD : AVG;
    if (strstr(name, "Argmax"))
        return strstr(name, "Grad") ? ARGMAX_GRAD : ARGMAX;
    return strstr(name, "GradGrad") ? MAX_GRAD_GRAD : strstr(name, "Grad") ? MAX_GRAD : MAX;
}

static struct pool pool_of(const struct kernel_call *call)
{
    const struct node *node = call->node;
    const char *name = node->op->name, *padding = node_attr_string(node, "padding", "VALID");
    int dims = strstr(name, "3D") ? 3 : 2;
    struct pool p = {
        .call = call,
        .kind = kind_of(name),
        .dims = dims,
        .rank = dims + 2,
        .channels_first = strncmp(node_attr_string(node, "data_format", ""), "NC", 2) == 0,
        .by_inputs = !node_attr(node, "ksize"),
        .same = strcmp(padding, "SAME") == 0,
        .is_explicit = strcmp(padding, "EXPLICIT") == 0,
    };
    p.ksize = node_attr_ints(node, "ksize", &p.ksize_count);
    p.strides = node_attr_ints(node, "strides", &p.strides_count);
    p.pads = node_attr_ints(node, "explicit_paddings", &p.pads_count);
    return p;
}

/* --- sizes of windows and strides --- */

static bool check_count(const struct pool *p, const char *name, int64_t count,
                        struct error *err)
{
    return count == p->rank ||
           fail(err, INVALID, "Sliding window %s field must specify %d dimensions", name,
                p->rank);
}

/* "stride", where the op has it so. */
static const char *strides_name(const struct pool *p)
{
    bool one = p->kind == MAX || p->kind == AVG || p->kind == ARGMAX || p->kind == ARGMAX_GRAD;
    return one || (p->dims == 3 && p->kind != MAX_GRAD_GRAD) ? "stride" : "strides";
}

/* Sizes that are inputs, in whatever shape. */
static bool read_inputs(struct pool *p, struct error *err)
{
    int index = p->call->in_count - 2;
    const char *names[] = {"ksize", p->kind == MAX ? "stride" : "strides"};
    for (int i = 0; i < 2; i++) {
        const struct tensor *in = kernel_in(p->call, index + i);
        if (!check_count(p, names[i], in->count, err))
            return false;
        for (int d = 0; d < 4; d++)
            p->from_input[i][d] = tensor_integer(in, d);
        for (int d = 0; d < 4 && p->kind == MAX && i == 0; d++)
            if (p->from_input[0][d] <= 0)
                return fail(err, INVALID, "Sliding window ksize must be positive.");
    }
    p->ksize = p->from_input[0];
    p->strides = p->from_input[1];
    return true;
}

static bool check_positive(const struct pool *p, struct error *err)
{
    const int64_t *k = p->ksize;
    for (int d = 0; d < p->rank; d++) {
        if (k[d] > 0)
            continue;
        if (p->dims == 3)
            return (p->kind != MAX && p->kind != AVG) ||
                   fail(err, INVALID,
                        "Sliding window ksize field must have non-negative dimensions");
        if (p->kind == AVG || p->kind == ARGMAX)
            return fail(err, INVALID, "ksize must be a positive int32 value, got:%lld",
                        (long long)k[d]);
        if (p->kind == MAX || p->kind == ARGMAX_GRAD)
            return fail(
                err, INVALID,
                "Sliding window ksize must be positive. The specified or inferred ksize "
                "is: %lld,%lld,%lld,%lld",
                (long long)k[0], (long long)k[1], (long long)k[2], (long long)k[3]);
    }
    return true;
}

/* Windows over examples, and over channels where the op never has them. */
static bool check_outer(const struct pool *p, struct error *err)
{
    int channels = p->channels_first ? 1 : p->rank - 1;
    if (p->ksize[0] != 1 || p->strides[0] != 1)
        return fail(err, UNIMPLEMENTED, "Pooling is not yet supported on the batch dimension.");
    if (p->ksize[channels] == 1 && p->strides[channels] == 1)
        return true;
    if (p->kind == MAX_GRAD_GRAD)
        return fail(err, UNIMPLEMENTED,
                    "%sGradGrad is not yet supported on the depth dimension.",
                    p->dims == 3 ? "MaxPooling3d" : "MaxPooling");
    return (p->dims == 2 && p->kind != MAX_GRAD) ||
           fail(err, UNIMPLEMENTED, "%s is not yet supported on the depth dimension.",
                p->kind == MAX_GRAD && p->dims == 2 ? "MaxPoolingGrad" : "Pooling");
}

static bool check_padding(const struct pool *p, struct error *err)
{
    if (!p->is_explicit)
        return true;
    if (p->pads_count != 2 * p->rank)
        return fail(err, INVALID,
                    "explicit_paddings attribute must contain %d values, but got: %d",
                    2 * p->rank, p->pads_count);
    for (int i = 0; i < p->pads_count; i++)
        if (p->pads[i] < 0 || p->pads[i] > INT32_MAX)
            return fail(err, INVALID, "All elements of explicit_paddings must be nonnegative");
    const int64_t *depth = p->pads + (ptrdiff_t)(p->channels_first ? 2 : 2 * (p->rank - 1));
    return (p->pads[0] == 0 && p->pads[1] == 0 && depth[0] == 0 && depth[1] == 0) ||
           fail(err, INVALID,
                "Nonzero explicit padding in the batch or depth dimensions is not supported");
}

static bool check_sizes(const struct pool *p, struct error *err)
{
    if (p->kind == AVG && p->dims == 2)
        return check_outer(p, err) && check_positive(p, err);
    return check_positive(p, err) && check_outer(p, err) && check_padding(p, err);
}

/* --- inputs --- */

static bool check_rank(const struct pool *p, const char *name, int input, struct error *err)
{
    bool second = p->kind == ARGMAX || p->kind == ARGMAX_GRAD;
    return kernel_in(p->call, input)->shape.rank == p->rank ||
           fail(err, INVALID, "%s must be %d-dimensional%s", name, p->rank,
                second ? " (2)" : "");
}

/* As TensorFlow counts data formats. */
enum { NHWC, NCHW, VECT_C };

static int format_number(const struct pool *p)
{
    const char *format = node_attr_string(p->call->node, "data_format", "NHWC");
    return strcmp(format, "NCHW") == 0          ? NCHW
           : strcmp(format, "NCHW_VECT_C") == 0 ? VECT_C
                                                : NHWC;
}

static bool check_depth(const struct pool *p, const struct shape *input, struct error *err)
{
    int axis = p->channels_first ? 1 : 3;
    int64_t window = p->ksize[axis];
    if (input->dims[axis] % window != 0)
        return fail(
            err, UNIMPLEMENTED,
            "Depthwise max pooling requires the depth window to evenly divide the input "
            "depth");
    if (p->strides[axis] != window)
        return fail(
            err, UNIMPLEMENTED,
            "Depthwise max pooling requires the depth window to equal the depth stride");
    if (p->kind == AVG)
        return fail(err, UNIMPLEMENTED,
                    "Non-spatial pooling is not yet supported. Volunteers? :)");
    return p->kind == MAX ||
           fail(err, UNIMPLEMENTED, "Pooling is not yet supported on the depth dimension.");
}

/* The windows over an input of that shape: `out` is that of the output. */
static bool slide(const struct pool *p, const struct shape *input, struct shape *out,
                  struct error *err)
{
    *out = *input;
    for (int i = 0; i < p->dims; i++) {
        int d = p->dims == 3 ? 2 - i : i; /* which is told first */
        int axis = (p->channels_first ? 2 : 1) + d;
        struct slide s = {.size = input->dims[axis],
                          .window = p->ksize[axis],
                          .dilation = 1,
                          .stride = p->strides[axis],
                          .before = p->is_explicit ? p->pads[2 * axis] : 0,
                          .after = p->is_explicit ? p->pads[2 * axis + 1] : 0,
                          .same = p->same};
        if (!kernel_slide(&s, &out->dims[axis], err))
            return false;
    }
    return true;
}

static bool check_windows(const struct pool *p, const struct shape *input, struct shape *out,
                          struct error *err)
{
    if (p->dims == 3)
        return slide(p, input, out, err);
    int format = format_number(p);
    if (input->rank != 4 || format == VECT_C)
        return fail(err, INVALID, "tensor_in_shape must have 2 spatial dimensions. %d %d",
                    input->rank, format);
    int axis = p->channels_first ? 1 : 3, rows = p->channels_first ? 2 : 1;
    if (p->ksize[axis] != 1 && (p->ksize[rows] != 1 || p->ksize[rows + 1] != 1))
        return fail(err, UNIMPLEMENTED,
                    "MaxPooling supports exactly one of pooling across depth or pooling across "
                    "width/height.");
    if (p->ksize[axis] != 1)
        return check_depth(p, input, err);
    return slide(p, input, out, err);
}

static bool check_shape(const char *what, const struct shape *wanted, const struct shape *got,
                        struct error *err)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    return shape_equal(wanted, got) ||
           fail(err, INVALID, "Expected %s shape to be %s, but got %s", what,
                shape_text(wanted, a, sizeof(a)), shape_text(got, b, sizeof(b)));
}

static bool check_max_gradient(struct pool *p, const struct shape *input, struct error *err)
{
    bool second = p->kind == MAX_GRAD_GRAD;
    if (!check_rank(p, "tensor_in", 0, err) || !check_rank(p, "tensor_out", 1, err) ||
        !check_rank(p, second ? "out_grad_backprop" : "out_backprop", 2, err))
        return false;
    struct shape out;
    if (p->by_inputs && (!read_inputs(p, err) || !check_sizes(p, err)))
        return false;
    return check_windows(p, input, &out, err) &&
           check_shape("orig_output", &out, &kernel_in(p->call, 1)->shape, err) &&
           check_shape("grad", second ? input : &out, &kernel_in(p->call, 2)->shape, err);
}

/* Places that a mean's gradient has may be more than the windows have. */
static bool check_places(const struct pool *p, const struct shape *input,
                         const struct shape *grad, struct error *err)
{
    for (int d = 0; d < p->dims; d++) {
        int axis = (p->channels_first ? 2 : 1) + d;
        if (grad->dims[axis] > 0 &&
            (grad->dims[axis] - 1) * p->strides[axis] > input->dims[axis])
            return fail(err, INVALID,
                        "index * stride must be less than or equal to input size");
    }
    return true;
}

static bool check_mean_gradient(const struct pool *p, struct shape *input, struct error *err)
{
    const struct tensor *sizes = kernel_in(p->call, 0);
    const struct shape *grad = &kernel_in(p->call, 1)->shape;
    int channels = p->channels_first ? 1 : p->rank - 1;
    if (sizes->shape.rank != 1 || sizes->count != p->rank)
        return fail(err, INVALID, "%s must be 1-dimensional and %d elements",
                    p->dims == 3 ? "tensor_in" : "out_backprop", p->rank);
    if (!check_rank(p, "out_backprop", 1, err))
        return false;
    for (int d = 0; d < p->rank; d++)
        if (tensor_integer(sizes, d) < 0)
            return fail(err, INVALID, "Expected a non-negative size, got %lld",
                        (long long)tensor_integer(sizes, d));
    if (!kernel_shape_of(sizes, input, err))
        return false;
    struct shape out;
    int64_t window = p->ksize[channels];
    if (p->dims == 2 && shape_count(input) > 0 && window != 1)
        return fail(err, UNIMPLEMENTED,
                    "Non-spatial pooling is not yet supported. Volunteers? :)");
    for (int d = 0; d < p->rank && p->dims == 3; d++)
        if (p->ksize[d] <= 0)
            return fail(err, INVALID, "ksize must be positive, got: %lld",
                        (long long)p->ksize[d]);
    if (p->dims == 2 && shape_count(input) == 0)
        return true; /* nothing is looked at */
    if (p->dims == 3 && !slide(p, input, &out, err))
        return false;
    for (int i = 0; i < 2; i++) {
        int axis = i ? channels : 0;
        if (input->dims[axis] != grad->dims[axis])
            return fail(err, INVALID,
                        "Expected %s dimension of tensor_in_shape and out_backprop to match, "
                        "got %lld and %lld",
                        i ? "last" : "first", (long long)input->dims[axis],
                        (long long)grad->dims[axis]);
    }
    return (p->dims == 3 || slide(p, input, &out, err)) && check_places(p, input, grad, err);
}

static bool check_inputs(struct pool *p, struct shape *input, struct error *err)
{
    struct shape out;
    *input = kernel_in(p->call, 0)->shape;
    switch (p->kind) {
    case AVG_GRAD:
        return check_mean_gradient(p, input, err);
    case MAX_GRAD:
    case MAX_GRAD_GRAD:
        return check_max_gradient(p, input, err);
    case ARGMAX:
    case ARGMAX_GRAD:
        if (!check_rank(p, "tensor_in", 0, err))
            return false;
        if (p->kind == ARGMAX && kernel_in(p->call, 0)->count == 0)
            return fail(err, INVALID, "tensor_in must not be empty (2)");
        return check_windows(p, input, &out, err) &&
               (p->kind == ARGMAX ||
                (check_shape("grad", &out, &kernel_in(p->call, 1)->shape, err) &&
                 check_shape("argmax", &out, &kernel_in(p->call, 2)->shape, err)));
    default:
        if (p->by_inputs && (!read_inputs(p, err) || !check_sizes(p, err)))
            return false;
        if (p->dims == 3 && !check_rank(p, "tensor_in", 0, err))
            return false;
        return check_windows(p, input, &out, err);
    }
}

/*
 * TensorFlow's CPU has no pooling with the channels first.  We have; but what cannot be
 * computed here either it refuses for that.
 */
static bool fail_format(const struct pool *p, struct error *err)
{
    static const char *const images[] = {
        "MaxPoolingOp", "MaxPoolingGradOp", "MaxPoolingGradGradOp", "", "",
        "AvgPoolingOp", "AvgPoolingGradOp"};
    static const char *const volumes[] = {
        "Pooling3DOp", "MaxPooling3dGradOp", "MaxPooling3dGradGradOp", "", "",
        "Pooling3DOp", "AvgPooling3dGradOp"};
    if (p->kind == MAX && p->by_inputs)
        return fail(err, INVALID,
                    "MaxPoolingV2Op only supports NHWC or NCHW_VECT_C. Got: NCHW");
    if (p->kind == MAX_GRAD_GRAD && p->dims == 3)
        return fail(err, INVALID,
                    "Default MaxPooling3dGradGradOp only supportsNDHWC on CPU device type");
    return p->dims == 3
               ? fail(err, INVALID, "Default %s only supports NDHWC on device type CPU",
                      volumes[p->kind])
               : fail(err, INVALID, "Default %s only supports NHWC on device type CPU",
                      images[p->kind]);
}

bool kernel_pool_rules(const struct kernel_call *call, struct shape *input, struct error *err)
{
    struct pool p = pool_of(call);
    bool ok = p.by_inputs ||
              (check_count(&p, "ksize", p.ksize_count, err) &&
               check_count(&p, strides_name(&p), p.strides_count, err) && check_sizes(&p, err));
    ok = ok && check_inputs(&p, input, err);
    if (!ok && p.channels_first && p.kind != ARGMAX && p.kind != ARGMAX_GRAD &&
        !(p.by_inputs && format_number(&p) == VECT_C))
        return fail_format(&p, err);
    return ok;
}
