/*
 * gradient_test.c - every op with a gradient, against finite differences in double.
 *
 * An op is made as its recipe says (recipe.h).  The scalar sum(weights * output) is compared,
 * for every element of every double input, with its central difference.  An op that has a
 * gradient and no recipe fails the test.
 */

#include "tests/kernels/recipes_array.h"
#include "tests/kernels/recipes_math.h"
#include "tests/kernels/recipes_matrix.h"
#include "tests/kernels/recipes_nn.h"
#include "tests/kernels/recipes_rare.h"
#include "tests/kernels/recipes_sparse.h"
#include "tests/unit/test.h"

#include <math.h>

#include "base/alloc.h"
#include "kernels/list.h"
#include "runtime/gradient.h"
#include "runtime/op.h"
#include "runtime/session.h"

#define STEP 1e-5
#define TOLERANCE 2e-6

static const struct {
    const struct recipe *recipes;
    int count;
} families[] = {
    {recipes_math, ARRAY_LEN(recipes_math)},     {recipes_array, ARRAY_LEN(recipes_array)},
    {recipes_matrix, ARRAY_LEN(recipes_matrix)}, {recipes_sparse, ARRAY_LEN(recipes_sparse)},
    {recipes_nn, ARRAY_LEN(recipes_nn)},         {recipes_rare, ARRAY_LEN(recipes_rare)},
};

/*
 * Ops with gradients that finite differences cannot check here, and where they are checked:
 * variables by the recorded cases, float-only types likewise, arrays and lists in
 * list_gradient_test.c; the last one only says that there is none.
 */
static const char *const elsewhere[] = {"FFT",
                                        "Eig",
                                        "FakeQuantWithMinMaxArgs",
                                        "FakeQuantWithMinMaxVars",
                                        "FakeQuantWithMinMaxVarsPerChannel",
                                        "QuantizeAndDequantize",
                                        "QuantizeAndDequantizeV2",
                                        "QuantizeAndDequantizeV3",
                                        "QuantizeAndDequantizeV4",
                                        "RaggedTensorToSparse",
                                        "RaggedTensorToTensor",
                                        "IFFT",
                                        "FFT2D",
                                        "IFFT2D",
                                        "FFT3D",
                                        "IFFT3D",
                                        "RFFT",
                                        "RFFT2D",
                                        "IRFFT",
                                        "IRFFT2D",
                                        "ReadVariableOp",
                                        "ResourceGatherNd",
                                        "TensorArrayWriteV3",
                                        "TensorArrayReadV3",
                                        "TensorArrayGatherV3",
                                        "TensorArrayScatterV3",
                                        "TensorArrayConcatV3",
                                        "TensorArraySplitV3",
                                        "OptionalFromValue",
                                        "OptionalGetValue",
                                        "TensorListPushBack",
                                        "TensorListPopBack",
                                        "TensorListGetItem",
                                        "TensorListSetItem",
                                        "TensorListResize",
                                        "TensorListStack",
                                        "TensorListFromTensor",
                                        "TensorListGather",
                                        "TensorListScatter",
                                        "TensorListScatterV2",
                                        "TensorListScatterIntoExistingList",
                                        "TensorListConcat",
                                        "TensorListConcatV2",
                                        "TensorListSplit",
                                        "ResourceGather",
                                        "SparseMatMul",
                                        "Conj",
                                        "PreventGradient",
                                        "Print",
                                        "FusedBatchNorm",
                                        "FusedBatchNormV2",
                                        "FusedBatchNormV3",
                                        "RandomGamma",
                                        "LRN",
                                        "ResizeBilinear",
                                        "ResizeBicubic",
                                        "CropAndResize",
                                        "BlockLSTM",
                                        "BlockLSTMV2",
                                        "MaxPool3DGrad",
                                        "MaxPool3DGradGrad",
                                        "Real",
                                        "Imag",
                                        "Angle",
                                        "ComplexAbs",
                                        "Complex",
                                        "Cholesky"};

/* --- numbers that are the same at every run --- */

static uint64_t random_state;

static double random_between(double low, double high)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return low + (high - low) * (double)(random_state >> 11) / 9007199254740992.0;
}

/* --- one recipe --- */

struct trial {
    const struct recipe *recipe;
    struct session *session;
    int count;
    bool smooth[INPUTS_MAX]; /* doubles, fed */
    struct tensor values[INPUTS_MAX];
    char names[INPUTS_MAX][16];
    char grads[INPUTS_MAX][128]; /* "" where there is none */
};

static void make_value(const struct input *input, struct tensor *out)
{
    struct error err;
    bool smooth = input->type == 'd' || input->type == 'e';
    enum dtype dtype = smooth               ? F64
                       : input->type == 'b' ? BOOL
                       : input->type == 'l' ? I64
                                            : I32;
    CHECK_OK(tensor_init(out, dtype, &input->shape, &err), &err);
    for (int64_t i = 0; i < out->count; i++)
        tensor_set_number(out, i,
                          input->type == 'd'
                              ? random_between(input->values[0], input->values[1])
                              : input->values[i]);
}

static int attrs_count(const struct recipe *recipe)
{
    int count = 0;
    while (count < ATTRS_MAX && recipe->attrs[count].name &&
           op_signature_attr(op_signature(op_find(recipe->op)), recipe->attrs[count].name))
        count++;
    return count;
}

static void build(struct trial *trial, struct graph *graph, struct error *err)
{
    const struct recipe *recipe = trial->recipe;
    struct builder b = {.graph = graph, .scope = "", .err = err};
    struct edge inputs[INPUTS_MAX], grads[INPUTS_MAX] = {{0}}, xs[INPUTS_MAX];
    int xs_count = 0;
    for (trial->count = 0; trial->count < INPUTS_MAX && recipe->inputs[trial->count].type;
         trial->count++) {
        int i = trial->count;
        make_value(&recipe->inputs[i], &trial->values[i]);
        trial->smooth[i] = recipe->inputs[i].type == 'd';
        snprintf(trial->names[i], sizeof(trial->names[i]), "x%d", i);
        inputs[i] = trial->smooth[i] ? builder_add(&b, "Placeholder", trial->names[i],
                                                   NO_INPUTS, ATTRS(attr_type("dtype", F64)))
                                     : builder_const(&b, trial->names[i], &trial->values[i]);
        if (trial->smooth[i])
            xs[xs_count++] = inputs[i];
    }
    struct edge y = builder_add(&b, recipe->op, "y", inputs, trial->count, recipe->attrs,
                                attrs_count(recipe));
    CHECK_OK(builder_ok(&b), err);
    y = builder_output(y, recipe->output);
    /* Weights that differ: cos of the place. */
    struct edge size = builder_add(&b, "Size", "size", INPUTS(y), NO_ATTRS);
    struct edge places = builder_add(
        &b, "Range", "places",
        INPUTS(builder_scalar(&b, "zero", I32, 0), size, builder_scalar(&b, "one", I32, 1)),
        NO_ATTRS);
    struct edge angles =
        builder_add(&b, "Cast", "angles", INPUTS(places), ATTRS(attr_type("DstT", F64)));
    struct edge weights = builder_add(&b, "Cos", "weights", INPUTS(angles), NO_ATTRS);
    struct edge flat = builder_add(
        &b, "Reshape", "flat",
        INPUTS(y, builder_ints(&b, "any", I32, (const int64_t[]){-1}, 1)), NO_ATTRS);
    struct edge products = builder_add(&b, "Mul", "products", INPUTS(flat, weights), NO_ATTRS);
    struct edge loss = builder_add(
        &b, "Sum", "loss",
        INPUTS(products, builder_ints(&b, "axis", I32, (const int64_t[]){0}, 1)), NO_ATTRS);
    CHECK_OK(builder_ok(&b), err);
    CHECK_OK(gradient_build(graph, &loss, 1, NULL, xs, xs_count, grads, err), err);
    for (int i = 0, x = 0; i < trial->count; i++) {
        if (trial->smooth[i] && grads[x].from)
            snprintf(trial->grads[i], sizeof(trial->grads[i]), "%s:%d", grads[x].from->name,
                     grads[x].output);
        x += trial->smooth[i];
    }
}

static void run(struct trial *trial, const char *fetch, struct tensor *out)
{
    const char *feeds[INPUTS_MAX];
    struct tensor values[INPUTS_MAX];
    struct error err;
    int count = 0;
    for (int i = 0; i < trial->count; i++) {
        if (trial->smooth[i]) {
            feeds[count] = trial->names[i];
            values[count++] = trial->values[i];
        }
    }
    const struct session_run what = {.feeds = feeds,
                                     .feed_values = values,
                                     .feeds_count = count,
                                     .fetches = &fetch,
                                     .fetches_count = 1};
    CHECK_OK(session_run(trial->session, &what, out, &err), &err);
}

static double loss_at(struct trial *trial, int input, int64_t element, double value)
{
    double *data = trial->values[input].data, kept = data[element];
    struct tensor loss = {0};
    data[element] = value;
    run(trial, "loss:0", &loss);
    data[element] = kept;
    double result = tensor_number(&loss, 0);
    tensor_release(&loss);
    return result;
}

/* Where there is no gradient, the slope must be zero. */
static void compare(struct trial *trial, int input)
{
    struct tensor gradient = {0};
    bool flows = trial->grads[input][0] != 0;
    if (flows) {
        run(trial, trial->grads[input], &gradient);
        CHECK(shape_equal(&gradient.shape, &trial->values[input].shape));
    }
    for (int64_t i = 0; i < trial->values[input].count; i++) {
        double x = tensor_number(&trial->values[input], i);
        double rise = loss_at(trial, input, i, x + STEP) - loss_at(trial, input, i, x - STEP);
        double slope = rise / (2 * STEP), own = flows ? tensor_number(&gradient, i) : 0;
        if (!(fabs(own - slope) <= TOLERANCE * (1 + fabs(slope))))
            CHECK_STOP("%s: d/d input %d [%lld] is %.9g, the difference quotient %.9g",
                       trial->recipe->op, input, (long long)i, own, slope);
    }
    tensor_release(&gradient);
}

static void check_recipe(const struct recipe *recipe)
{
    struct trial trial = {.recipe = recipe};
    struct error err = {0};
    struct graph *graph = graph_new();
    random_state = 1;
    build(&trial, graph, &err);
    trial.session = session_new(NULL, &err);
    CHECK(trial.session != NULL);
    CHECK_OK(session_extend_graph(trial.session, graph, &err), &err);
    for (int i = 0; i < trial.count; i++)
        if (trial.smooth[i])
            compare(&trial, i);
    for (int i = 0; i < trial.count; i++)
        tensor_release(&trial.values[i]);
    session_free(trial.session);
    graph_free(graph);
}

TEST(every_gradient_agrees_with_finite_differences)
{
    kernels_add(true);
    for (int f = 0; f < ARRAY_LEN(families); f++)
        for (int i = 0; i < families[f].count; i++)
            check_recipe(&families[f].recipes[i]);
}

/* A gradient that nobody checks is not to be had. */
TEST(every_op_with_a_gradient_has_a_recipe)
{
    int missing = 0;
    for (int i = 0; i < op_count(); i++) {
        const struct op *op = op_at(i);
        bool found = !op->gradient;
        for (int f = 0; !found && f < ARRAY_LEN(families); f++)
            for (int r = 0; !found && r < families[f].count; r++)
                found = strcmp(families[f].recipes[r].op, op->name) == 0;
        for (int e = 0; !found && e < ARRAY_LEN(elsewhere); e++)
            found = strcmp(elsewhere[e], op->name) == 0;
        if (!found)
            print_error("no recipe: %s\n", op->name);
        missing += !found;
    }
    CHECK_INT(missing, 0);
}
