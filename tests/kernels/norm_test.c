/* norm_test.c - batch normalisation and its gradient against their references; see sample.h.
 */

#include "tests/kernels/sample.h"

/* Of one channel and of many, of few rows and of many blocks of them, and far from zero. */
static const int64_t sizes[][4] = {
    {1, 1, 1, 1},   {2, 1, 1, 5},  {3, 5, 7, 3},    {4, 8, 8, 16},
    {1, 3, 3, 100}, {2, 9, 9, 64}, {2, 40, 41, 17}, {1, 2, 3, 5000},
};

static struct tensor moved(struct tensor t, float by)
{
    for (int64_t i = 0; i < t.count; i++)
        tensor_f32_mut(&t)[i] += by;
    return t;
}

static void check(const struct shape *image, bool training, float middle)
{
    const struct shape channels = SHAPE(image->dims[3]);
    const struct attr attrs[] = {attr_type("T", F32), attr_type("U", F32),
                                 attr_bool("is_training", training),
                                 attr_float("epsilon", 1e-3f)};
    struct sample forward = {.op = "FusedBatchNormV3",
                             .inputs = {moved(random_tensor(*image), middle),
                                        random_tensor(channels), random_tensor(channels),
                                        random_tensor(channels),
                                        moved(random_tensor(channels), 2)},
                             .inputs_count = 5,
                             .attrs = attrs,
                             .attrs_count = 4,
                             .outputs_count = 5,
                             .tolerance = 2e-6 * (1 + middle)};
    check_sample(&forward);
    struct sample backward = {
        .op = "FusedBatchNormGradV3",
        .inputs = {random_tensor(*image), moved(random_tensor(*image), middle),
                   random_tensor(channels), moved(random_tensor(channels), middle),
                   moved(random_tensor(channels), 2), random_tensor(channels)},
        .inputs_count = 6,
        .attrs = attrs,
        .attrs_count = 4,
        .outputs_count = 3,
        .tolerance = 2e-5 * (1 + middle)};
    check_sample(&backward);
}

TEST(batch_normalisation_and_its_gradient)
{
    for (int i = 0; i < ARRAY_LEN(sizes); i++) {
        struct shape shape = {.rank = 4};
        memcpy(shape.dims, sizes[i], sizeof(sizes[i]));
        check(&shape, true, 0);
        check(&shape, true, 30);
        check(&shape, false, 0);
    }
}

TEST(sums_of_many)
{
    for (int count = 1; count <= 5; count++) {
        for (int64_t size = 1; size < 100000; size = size * 7 + 3) {
            const struct attr attrs[] = {attr_int("N", count)};
            struct sample s = {.op = "AddN",
                               .inputs_count = count,
                               .attrs = attrs,
                               .attrs_count = 1,
                               .outputs_count = 1,
                               .tolerance = 1e-6};
            for (int i = 0; i < count; i++)
                s.inputs[i] = random_tensor(SHAPE(size));
            check_sample(&s);
        }
    }
}
