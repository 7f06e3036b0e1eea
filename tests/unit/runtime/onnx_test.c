/* onnx_test.c - graphs as ONNX models: which operators come of them, and what is refused. */

#include "base/str.h"
#include "kernels/list.h"
#include "runtime/builder.h"
#include "runtime/onnx/onnx.h"
#include "runtime/session.h"
#include "runtime/signature.h"
#include "runtime/tensor.h"
#include "tests/unit/test.h"

static struct builder b;
static struct error err;

static void begin(void)
{
    static bool added;
    if (!added)
        kernels_add(false);
    added = true;
    b = (struct builder){.graph = graph_new(), .scope = "", .err = &err};
}

static struct edge input(int dtype, struct shape shape)
{
    return builder_add(&b, "Placeholder", "x", NO_INPUTS,
                       ATTRS(attr_type("dtype", dtype), attr_shape("shape", &shape)));
}

static struct edge constant(const char *name, struct shape shape, double value)
{
    struct tensor tensor;
    CHECK_OK(tensor_init(&tensor, F32, &shape, &err), &err);
    for (int64_t i = 0; i < tensor.count; i++)
        tensor_set_number(&tensor, i, value + (double)i);
    struct edge edge = builder_const(&b, name, &tensor);
    tensor_release(&tensor);
    return edge;
}

/* Converts what gives `y` of "x:0"; frees the graph. */
static bool convert(struct edge y, struct shape shape, const char *output, struct str *out)
{
    char tensor[100];
    if (!builder_ok(&b))
        CHECK_STOP("%s", err.text);
    snprintf(tensor, sizeof(tensor), "%s:%d", y.from->name, y.output);
    const struct signature_tensor in = {
        .name = "x", .tensor = "x:0", .dtype = F32, .shape = shape};
    const struct signature_tensor result = {
        .name = output, .tensor = tensor, .dtype = F32, .shape = SHAPE_UNKNOWN};
    const struct signature signature = {.name = "serving_default",
                                        .inputs = &in,
                                        .outputs = &result,
                                        .inputs_count = 1,
                                        .outputs_count = 1};
    struct session *session = session_new(NULL, &err);
    CHECK_OK(session, &err);
    CHECK_OK(session_extend_graph(session, b.graph, &err), &err);
    const struct onnx_source source = {
        .name = "test", .graph = b.graph, .signature = &signature, .session = session};
    bool ok = onnx_convert(&source, out, &err);
    session_free(session);
    graph_free(b.graph);
    return ok;
}

/* How often the bytes hold an operator's name as a field of a node has it. */
static int count_of(const struct str *bytes, const char *op)
{
    char field[64];
    int size = snprintf(field, sizeof(field), "\"%c%s", (int)strlen(op), op), found = 0;
    for (size_t i = 0; i + (size_t)size <= bytes->size; i++)
        found += !memcmp(bytes->data + i, field, (size_t)size);
    return found;
}

static struct edge conv(struct edge x, const char *name, int64_t from, int64_t to)
{
    struct edge kernel = constant("kernel", SHAPE(3, 3, from, to), 0.5);
    return builder_add(&b, "Conv2D", name, INPUTS(x, kernel),
                       ATTRS(attr_int_list("strides", ((const int64_t[]){1, 1, 1, 1}), 4),
                             attr_string("padding", "SAME")));
}

TEST(onnx_turns_images_only_at_the_ends)
{
    struct str out = {0};
    const struct shape shape = SHAPE(-1, 8, 8, 3);
    begin();
    struct edge x = conv(input(F32, shape), "first", 3, 4);
    x = builder_add(&b, "Relu", "relu", INPUTS(x), NO_ATTRS);
    x = builder_add(&b, "BiasAdd", "bias", INPUTS(x, constant("b", SHAPE(4), 1)), NO_ATTRS);
    CHECK_OK(convert(conv(x, "second", 4, 2), shape, "y", &out), &err);
    CHECK_INT(count_of(&out, "Conv"), 2);
    CHECK_INT(count_of(&out, "Relu"), 1);
    CHECK_INT(count_of(&out, "Transpose"), 2);
    str_release(&out);
}

TEST(onnx_computes_what_is_constant)
{
    struct str out = {0};
    const struct shape shape = SHAPE(-1, 4);
    begin();
    struct edge weights = constant("w", SHAPE(2, 4), 1);
    for (int i = 0; i < 3; i++)
        weights = builder_add(&b, "Exp", "exp", INPUTS(weights), NO_ATTRS);
    struct edge x = builder_add(&b, "MatMul", "product", INPUTS(input(F32, shape), weights),
                                ATTRS(attr_bool("transpose_b", true)));
    CHECK_OK(convert(x, shape, "y", &out), &err);
    CHECK_INT(count_of(&out, "MatMul"), 1);
    CHECK_INT(count_of(&out, "Exp"), 0);
    CHECK_INT(count_of(&out, "Transpose"), 0);
    CHECK(memmem(out.data, out.size, "batch", 5));
    str_release(&out);
}

/* 1.0 in bfloat16 is stored as 1.0, and no node works in 16 bits. */
TEST(onnx_computes_bfloat16_as_float)
{
    struct str out = {0};
    const struct shape shape = SHAPE(-1, 1);
    begin();
    struct edge x = builder_add(&b, "Cast", "narrow", INPUTS(input(F32, shape)),
                                ATTRS(attr_type("SrcT", F32), attr_type("DstT", BF16)));
    struct edge one = builder_scalar(&b, "one", BF16, 1);
    x = builder_add(&b, "AddV2", "sum", INPUTS(x, one), NO_ATTRS);
    x = builder_add(&b, "Cast", "wide", INPUTS(x),
                    ATTRS(attr_type("SrcT", BF16), attr_type("DstT", F32)));
    CHECK_OK(convert(x, shape, "y", &out), &err);
    CHECK(memmem(out.data, out.size, "J\4\0\0\x80\x3f", 6)); /* raw_data: four bytes, 1.0F */
    CHECK(!memmem(out.data, out.size, "J\2\x80\x3f", 4));
    CHECK_INT(count_of(&out, "Cast"), 2);
    str_release(&out);
}

TEST(onnx_names_the_layer_of_an_op_it_lacks)
{
    struct str out = {0};
    const struct shape shape = SHAPE(4, 4);
    begin();
    struct edge x =
        builder_add(&b, "Qr", "eval/odd_layer/Qr", INPUTS(input(F32, shape)), NO_ATTRS);
    CHECK_FAILS(convert(x, shape, "y", &out), &err, UNIMPLEMENTED);
    CHECK_TEXT(err.text,
               "layer 'odd_layer', op Qr (eval/odd_layer/Qr): it has no counterpart in ONNX "
               "here");
    CHECK_INT(out.size, 0);
    str_release(&out);
}

TEST(onnx_refuses_what_it_cannot_tell)
{
    struct str out = {0};
    begin();
    struct edge x = input(F32, SHAPE(-1, 3));
    struct edge axis = builder_add(&b, "Cast", "axis", INPUTS(x),
                                   ATTRS(attr_type("SrcT", F32), attr_type("DstT", I32)));
    struct edge sum = builder_add(&b, "Sum", "sum", INPUTS(x, axis), NO_ATTRS);
    CHECK_FAILS(convert(sum, SHAPE(-1, 3), "y", &out), &err, UNIMPLEMENTED);
    CHECK(strstr(err.text, "op Sum (sum): its input 1 (axis) is not constant"));
    begin();
    x = input(F32, SHAPE(-1, 3));
    CHECK_FAILS(
        convert(builder_add(&b, "Exp", "e", INPUTS(x), NO_ATTRS), SHAPE(-1, 3), "x", &out),
        &err, INVALID);
    CHECK(strstr(err.text, "both called \"x\""));
    str_release(&out);
}
