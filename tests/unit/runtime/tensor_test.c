/* tensor_test.c - types, shapes, tensors and device names. */

#include <math.h>

#include "base/limits.h"
#include "base/str.h"
#include "runtime/device.h"
#include "runtime/tensor.h"
#include "tests/unit/test.h"

static struct error err;

TEST(types_have_tensorflows_names_and_numbers)
{
    CHECK_INT(F32, 1);
    CHECK_INT(BF16, 14);
    CHECK_TEXT(dtype_name(F32 + DTYPE_REF), "float_ref");
    CHECK_TEXT(dtype_name(26), "invalid");
    CHECK_TEXT(dtype_name(-1), "invalid");
    CHECK_INT(dtype_find("float32"), F32);
    CHECK_INT(dtype_find("half"), F16);
    CHECK_INT(dtype_find("nothing"), DTYPE_NONE);
    CHECK_INT(dtype_size(C128), 16);
    CHECK(!dtype_known(DTYPE_REF));
    CHECK(dtype_known(123));
}

/* Every half there is goes to a float and back; values between two round to even. */
TEST(sixteen_bit_floats_round_to_nearest_even)
{
    for (uint32_t h = 0; h < 65536; h++) {
        float f = dtype_f16_to_f32((uint16_t)h);
        if (isnan(f))
            CHECK(isnan(dtype_f16_to_f32(dtype_f32_to_f16(f))));
        else
            CHECK_INT(dtype_f32_to_f16(f), h);
        float b = dtype_bf16_to_f32((uint16_t)h);
        if (!isnan(b))
            CHECK_INT(dtype_f32_to_bf16(b), h);
    }
    CHECK_INT(dtype_f32_to_f16(65520.0f), 0x7c00);
    CHECK_INT(dtype_f32_to_f16(65519.0f), 0x7bff);
    CHECK_INT(dtype_f32_to_f16(1.0f + 1.0f / 2048), 0x3c00);
    CHECK_INT(dtype_f32_to_f16(1.0f + 3.0f / 2048), 0x3c02);
    CHECK_INT(dtype_f32_to_f16(ldexpf(1, -25)), 0);
    CHECK_INT(dtype_f32_to_f16(ldexpf(1.5f, -25)), 1);
    CHECK_INT(dtype_f32_to_bf16(1.0f + 1.0f / 256), 0x3f80);
    CHECK_INT(dtype_f32_to_bf16(1.0f + 3.0f / 256), 0x3f82);
}

TEST(shapes_broadcast_and_merge)
{
    struct shape out;
    CHECK_OK(shape_broadcast(&SHAPE(2, 1), &SHAPE(3), &out, &err), &err);
    CHECK(shape_equal(&out, &SHAPE(2, 3)));
    CHECK_OK(shape_broadcast(&SHAPE(-1, 1), &SHAPE(4, 3), &out, &err), &err);
    CHECK(shape_equal(&out, &SHAPE(4, 3)));
    CHECK_OK(shape_broadcast(&SHAPE(0), &SHAPE(1), &out, &err), &err);
    CHECK(shape_equal(&out, &SHAPE(0)));
    CHECK_FAILS(shape_broadcast(&SHAPE(2), &SHAPE(3), &out, &err), &err, INVALID);
    CHECK_TEXT(err.text, "Incompatible shapes: [2] vs. [3]");
    CHECK_OK(shape_merge(&SHAPE(-1, 3), &SHAPE(2, -1), &out, &err), &err);
    CHECK(shape_equal(&out, &SHAPE(2, 3)));
    CHECK_FAILS(shape_merge(&SHAPE(2), &SHAPE(3), &out, &err), &err, INVALID);
    CHECK(shape_compatible(&SHAPE_UNKNOWN, &SHAPE(3)));
    CHECK_INT(shape_count(&SHAPE(3, -1)), -1);
    CHECK_INT(shape_count(&SHAPE(INT64_MAX, 3)), -1);
    CHECK_INT(shape_count(&SHAPE(INT64_MAX, 3, 0)), -1); /* as TensorFlow */
    CHECK_INT(shape_count(&SHAPE_SCALAR), 1);
    struct str text = {0};
    shape_print(&SHAPE(2, -1), &text);
    shape_print(&SHAPE_SCALAR, &text);
    shape_print(&SHAPE_UNKNOWN, &text);
    CHECK_TEXT(str_text(&text), "[2,?][]<unknown>");
    str_release(&text);
}

TEST(tensors_are_counted_and_aligned)
{
    struct tensor a, b;
    CHECK_OK(tensor_init(&a, F32, &SHAPE(2, 3), &err), &err);
    CHECK_INT((uintptr_t)a.data % TENSOR_ALIGN, 0);
    CHECK(tensor_is_exclusive(&a));
    tensor_share_as(&b, &a, &SHAPE(6));
    CHECK(!tensor_is_exclusive(&a));
    CHECK(b.data == a.data);
    tensor_release(&a);
    CHECK(tensor_is_exclusive(&b));
    CHECK_INT(a.dtype, DTYPE_NONE);
    tensor_release(&a);
    tensor_release(&b);
}

/* Memory that is only lent is copied by whoever wants to keep it. */
TEST(sharing_lent_memory_copies_it)
{
    float memory[2] = {1, 2};
    struct tensor lent = {.dtype = F32, .shape = SHAPE(2), .count = 2, .data = memory};
    struct tensor kept;
    tensor_share(&kept, &lent);
    memory[0] = 9;
    CHECK(kept.data != memory);
    CHECK(tensor_f32(&kept)[0] == 1);
    CHECK(!tensor_is_exclusive(&lent));
    tensor_release(&kept);
}

TEST(sizes_beyond_the_limit_are_refused)
{
    struct tensor t;
    CHECK_FAILS(tensor_init(&t, F32, &SHAPE(INT64_C(1) << 40), &err), &err, EXHAUSTED);
    CHECK_FAILS(tensor_init(&t, F32, &SHAPE(INT64_C(1) << 40, INT64_C(1) << 40), &err), &err,
                INVALID);
    CHECK_FAILS(tensor_init(&t, F32, &SHAPE(-1), &err), &err, INVALID);
    CHECK_OK(tensor_init(&t, F32, &SHAPE(0, 5), &err), &err);
    CHECK_INT(t.count, 0);
    tensor_release(&t);
}

TEST(strings_belong_to_their_tensor)
{
    struct tensor a, b;
    CHECK_OK(tensor_init(&a, STRING, &SHAPE(2), &err), &err);
    tensor_set_string(&a, 0, "a\0b", 3);
    tensor_set_string(&a, 0, "xyz", 3);
    CHECK_INT(tensor_strings(&a)[1].size, 0);
    CHECK_OK(tensor_init(&b, STRING, &SHAPE(2), &err), &err);
    CHECK(!tensor_equal(&a, &b));
    tensor_set_string(&b, 0, "xyz", 3);
    CHECK(tensor_equal(&a, &b));
    CHECK_INT(tensor_bytes(&a), 2 * sizeof(struct tensor_string) + 3);
    tensor_release(&a);
    tensor_release(&b);
}

TEST(numbers_of_any_type_are_read_and_set)
{
    const enum dtype types[] = {F32, F64, F16, BF16, I8,  U8,  I16,
                                U16, I32, U32, I64,  U64, BOOL};
    for (int i = 0; i < ARRAY_LEN(types); i++) {
        struct tensor t;
        CHECK_OK(tensor_init_scalar(&t, types[i], 1, &err), &err);
        CHECK(tensor_number(&t, 0) == 1);
        CHECK_INT(tensor_integer(&t, 0), 1);
        tensor_release(&t);
    }
    struct tensor t;
    CHECK_OK(tensor_init_scalar(&t, I8, -3, &err), &err);
    CHECK_INT(tensor_integer(&t, 0), -3);
    tensor_release(&t);
}

TEST(device_names_are_parsed_matched_and_merged)
{
    struct device_name a, b;
    char text[160];
    CHECK_OK(device_name_parse("/job:worker/replica:0/task:3/device:GPU:1", &a, &err), &err);
    CHECK_TEXT(device_name_text(&a, text, sizeof(text)),
               "/job:worker/replica:0/task:3/device:GPU:1");
    CHECK_OK(device_name_parse("/cpu:0", &b, &err), &err);
    CHECK_TEXT(device_name_text(&b, text, sizeof(text)), "/device:CPU:0");
    CHECK(!device_name_matches(&b, &a));
    CHECK_OK(device_name_parse("/device:GPU", &b, &err), &err);
    CHECK_TEXT(device_name_text(&b, text, sizeof(text)), "/device:GPU:*");
    CHECK(device_name_matches(&b, &a));
    CHECK_OK(device_name_parse("", &b, &err), &err);
    CHECK(device_name_matches(&b, &a));
    CHECK_OK(device_name_parse("/job:*/task:*", &b, &err), &err);
    CHECK(device_name_matches(&b, &a));
    const char *bad[] = {"x",
                         "/job:",
                         "/job:1x",
                         "/task:a",
                         "/device:GPU:x",
                         "/task:99999999999",
                         "/job:worker/",
                         "/tpu:0"};
    for (int i = 0; i < ARRAY_LEN(bad); i++)
        CHECK_FAILS(device_name_parse(bad[i], &b, &err), &err, INVALID);

    CHECK_OK(device_name_parse("/job:worker/device:CPU:0", &b, &err), &err);
    CHECK_FAILS(device_name_merge(&b, &a, false, &err), &err, INVALID);
    CHECK_OK(device_name_merge(&b, &a, true, &err), &err);
    CHECK_TEXT(device_name_text(&b, text, sizeof(text)), "/job:worker/replica:0/task:3");
    CHECK_OK(device_name_parse("/job:ps", &b, &err), &err);
    CHECK_FAILS(device_name_merge(&b, &a, true, &err), &err, INVALID);
}
