/* sparse_test.c - sparse tensors in odd orders and of mixed types. */

#include <math.h>

#include "runtime/tensor.h"
#include "tests/unit/kernels/world.h"

static struct edge numbers(struct builder *b, enum dtype dtype, int rows, int columns,
                           const int64_t *values)
{
    struct tensor tensor;
    struct shape shape = columns ? SHAPE(rows, columns) : SHAPE(rows);
    CHECK_OK(tensor_init(&tensor, dtype, &shape, b->err), b->err);
    for (int64_t i = 0; i < tensor.count; i++)
        tensor_set_number(&tensor, i, (double)values[i]);
    struct edge edge = builder_const(b, "numbers", &tensor);
    tensor_release(&tensor);
    return edge;
}
#define NUMBERS(dtype, rows, columns, ...)                                                     \
    numbers(&w->b, dtype, rows, columns, (const int64_t[]){__VA_ARGS__})

static void check(struct world *w, const char *name, int count, const double *expected)
{
    struct tensor got;
    CHECK_OK(world_run(w, name, &got, &w->err), &w->err);
    CHECK_INT(got.count, count);
    for (int i = 0; i < count; i++)
        if (!(fabs(tensor_number(&got, i) - expected[i]) <= 1e-6 * fabs(expected[i])))
            CHECK_STOP("%s[%d] is %.17g, not %.17g", name, i, tensor_number(&got, i),
                       expected[i]);
    tensor_release(&got);
}

/* Rows are found wherever their values are; the answers are in the order of places. */
TEST(softmax_takes_values_in_any_order)
{
    struct world *w = world_new(NULL);
    struct edge index = NUMBERS(I64, 3, 2, 1, 1, 0, 2, 0, 0);
    builder_add(&w->b, "SparseSoftmax", "y",
                INPUTS(index, NUMBERS(F32, 3, 0, 1, 2, 3), NUMBERS(I64, 2, 0, 2, 3)), NO_ATTRS);
    world_begin(w);
    check(w, "y:0", 3, (const double[]){0.7310585786, 0.2689414214, 1});
    world_free(w);
}

/* The type asked for says whether to hash; of integers the low four bytes are hashed. */
TEST(crosses_hash_by_type)
{
    static const int sparse[] = {I64};
    struct world *w = world_new(NULL);
    struct edge index = NUMBERS(I64, 2, 2, 0, 0, 1, 0), values = NUMBERS(I64, 2, 0, 7, 1);
    struct edge shape = NUMBERS(I64, 2, 0, 2, 1), zero = builder_scalar(&w->b, "zero", I64, 0);
    struct edge weak = builder_scalar(&w->b, "weak", BOOL, 0);
    const struct attr types[] = {attr_int("N", 1), attr_type_list("sparse_types", sparse, 1),
                                 attr_type_list("dense_types", sparse, 0)};
    builder_add(&w->b, "SparseCrossHashed", "h",
                INPUTS(index, values, shape, zero, weak, NUMBERS(I64, 2, 0, 5, 9)), types, 3);
    builder_add(&w->b, "SparseCross", "s", INPUTS(index, values, shape),
                ATTRS(types[0], types[1], types[2], attr_bool("hashed_output", true),
                      attr_int("num_buckets", 0), attr_int("hash_key", 1),
                      attr_type("out_type", STRING), attr_type("internal_type", I64)));
    world_begin(w);
    check(w, "h:1", 2, (const double[]){456183119178236718, 7601041269982238804});
    struct tensor text;
    CHECK_OK(world_run(w, "s:1", &text, &w->err), &w->err);
    CHECK_INT(text.dtype, STRING);
    CHECK_INT(tensor_strings(&text)[0].size, 1);
    CHECK(tensor_strings(&text)[0].data[0] == '7');
    tensor_release(&text);
    world_free(w);
}
