/* onnx_product.c - products of matrices. */

#include "runtime/onnx/internal.h"

/* An input with its last two dimensions swapped if `swap`. */
static const char *matrix(struct onnx *o, int input, bool swap)
{
    int rank = onnx_shape(o, input)->rank;
    int64_t order[LIMIT_TENSOR_RANK];
    if (!swap)
        return onnx_in(o, input);
    if (rank < 2) {
        onnx_refuse(o, "the dimensions of its input %d are not known", input);
        return "";
    }
    for (int d = 0; d < rank; d++)
        order[d] = d;
    order[rank - 2] = rank - 1;
    order[rank - 1] = rank - 2;
    const struct tensor *value = onnx_find_constant(o, input);
    return value ? onnx_turned(o, value, order)
                 : onnx_transpose(o, onnx_in(o, input), order, rank);
}

static void product(struct onnx *o, const char *swap_x, const char *swap_y)
{
    const char *x = matrix(o, 0, node_attr_bool(o->node, swap_x, false));
    const char *y = matrix(o, 1, node_attr_bool(o->node, swap_y, false));
    onnx_give(o, 0, ONNX_ADD(o, "MatMul", x, y));
}

static void convert_matmul(struct onnx *o)
{
    product(o, "transpose_a", "transpose_b");
}

static void convert_batch_matmul(struct onnx *o)
{
    product(o, "adj_x", "adj_y"); /* of real numbers: transposed */
}

static void convert_einsum(struct onnx *o)
{
    const char *names[2];
    if (o->node->inputs_count > 2) {
        onnx_refuse(o, "it has %d inputs, more than 2", o->node->inputs_count);
        return;
    }
    for (int i = 0; i < o->node->inputs_count; i++)
        names[i] = onnx_in(o, i);
    onnx_give(
        o, 0,
        onnx_add(o, "Einsum", names, o->node->inputs_count,
                 ONNX_ATTRS(ONNX_S("equation", node_attr_string(o->node, "equation", "")))));
}

const struct onnx_row onnx_product_rows[] = {{"BatchMatMul", convert_batch_matmul, NULL},
                                             {"BatchMatMulV2", convert_batch_matmul, NULL},
                                             {"Einsum", convert_einsum, NULL},
                                             {"MatMul", convert_matmul, NULL},
                                             {NULL, NULL, NULL}};
