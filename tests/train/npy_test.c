/* npy_test.c - datasets of numpy's arrays: which array is which column of which part. */

#include "base/alloc.h"
#include "base/str.h"
#include "runtime/dataset/dataset_batch.h"
#include "runtime/io/archive.h"
#include "runtime/io/npy.h"
#include "runtime/spec/spec.h"
#include "tests/unit/folder.h"

/* An array 0, 1, 2 ... of a type and shape. */
static struct tensor counting(enum dtype dtype, const struct shape *shape)
{
    struct tensor tensor;
    struct error err;
    CHECK_OK(tensor_init(&tensor, dtype, shape, &err), &err);
    for (int64_t i = 0; i < tensor.count; i++)
        tensor_set_number(&tensor, i, (double)i);
    return tensor;
}

static void put(const char *folder, const char *file, enum dtype dtype,
                const struct shape *shape)
{
    struct tensor tensor = counting(dtype, shape);
    struct error err;
    char *path = folder_file(folder, file);
    CHECK_OK(npy_write(path, &tensor, &err), &err);
    free(path);
    tensor_release(&tensor);
}

static const struct model_feature *open_one(const char *folder, const struct spec_data *data,
                                            struct dataset *dataset)
{
    struct error err;
    CHECK_OK(dataset_open(folder_path(folder), data, 1, dataset, &err), &err);
    return dataset->feeds.data.features;
}

static void check_refused(const char *folder, const struct spec_data *data,
                          enum error_code code, const char *text)
{
    struct dataset dataset;
    struct error err;
    CHECK_FAILS(dataset_open(folder_path(folder), data, 1, &dataset, &err), &err, code);
    if (!strstr(err.text, text))
        CHECK_STOP("%s, not: %s", err.text, text);
}

TEST(npy_reads_a_file_for_each_column_and_part)
{
    put("files", "x_train.npy", F64, &SHAPE(4, 3));
    put("files", "y_train.npy", I64, &SHAPE(4, 1));
    put("files", "x_test.npy", F64, &SHAPE(2, 3));
    put("files", "y_test.npy", I64, &SHAPE(2, 1));
    put("files", "x_val.npy", F64, &SHAPE(1, 3));
    put("files", "y_val.npy", I64, &SHAPE(1, 1));
    struct dataset dataset;
    const struct model_feature *x = open_one("files", NULL, &dataset);
    CHECK_INT(dataset.feeds.count, 2);
    CHECK_TEXT(x->name, "x");
    CHECK_INT(x->dtype, F32);
    CHECK(shape_equal(&x->shape, &SHAPE(3)));
    CHECK_TEXT(dataset.feeds.data.target.name, "y");
    CHECK_INT(dataset.feeds.data.target.shape.rank, 0);
    CHECK_INT(dataset.feeds.data.classes, 4);
    CHECK_INT(dataset.train.count, 4);
    CHECK_INT(dataset.validation.count, 1);
    CHECK_INT(dataset.test.count, 2);
    struct dataset_batch batch;
    struct error err;
    CHECK_OK(dataset_batch_read(&batch, &dataset, &dataset.train, 1, 2, &err), &err);
    CHECK(tensor_f32(&batch.feeds[0])[5] == 8);
    CHECK_INT(tensor_i32(&batch.feeds[1])[1], 2);
    dataset_batch_release(&batch);
    dataset_close(&dataset);
    struct spec_data held = {.validation = 1};
    check_refused("files", &held, INVALID, "a part of 1 examples for validation");
}

static void put_archive(const char *folder, const char *file, const char *const *names,
                        const struct tensor *tensors, int count)
{
    struct archive_entry entries[8];
    struct str bytes[8] = {{0}};
    struct error err;
    for (int i = 0; i < count; i++) {
        CHECK_OK(npy_header_add(&bytes[i], tensors[i].dtype, &tensors[i].shape, &err), &err);
        str_add_bytes(&bytes[i], tensors[i].data, tensor_bytes(&tensors[i]));
        entries[i] = (struct archive_entry){names[i], bytes[i].data, bytes[i].size, i % 2};
    }
    char *path = folder_file(folder, file);
    CHECK_OK(archive_write(path, entries, count, &err), &err);
    free(path);
    for (int i = 0; i < count; i++)
        str_release(&bytes[i]);
}

/* As Keras's mnist.npz: pictures of bytes become (H,W,1) from 0 to 1. */
TEST(npy_reads_an_archive)
{
    const char *const names[] = {"x_test.npy", "x_train.npy", "y_train.npy", "y_test.npy"};
    struct tensor tensors[] = {counting(U8, &SHAPE(2, 3, 5)), counting(U8, &SHAPE(4, 3, 5)),
                               counting(U8, &SHAPE(4)), counting(U8, &SHAPE(2))};
    put_archive("keras", "mnist.npz", names, tensors, 4);
    struct dataset dataset;
    const struct model_feature *x = open_one("keras", NULL, &dataset);
    CHECK(shape_equal(&x->shape, &SHAPE(3, 5, 1)));
    struct dataset_batch batch;
    struct error err;
    CHECK_OK(dataset_batch_read(&batch, &dataset, &dataset.train, 3, 1, &err), &err);
    CHECK(tensor_f32(&batch.feeds[0])[1] == 46 * (1.0f / 255));
    dataset_batch_release(&batch);
    CHECK_INT(dataset.feeds.data.classes, 4);
    dataset_close(&dataset);

    const struct spec_column column = {.name = "x",
                                       .rank = 1,
                                       .dims = {15},
                                       .has_scale = true,
                                       .scale = 2,
                                       .pointer = "/data/columns/x"};
    const struct spec_data data = {.columns = &column, .columns_count = 1};
    x = open_one("keras", &data, &dataset);
    CHECK(shape_equal(&x->shape, &SHAPE(15)));
    CHECK_OK(dataset_batch_read(&batch, &dataset, &dataset.train, 3, 1, &err), &err);
    CHECK(tensor_f32(&batch.feeds[0])[1] == 92);
    dataset_batch_release(&batch);
    dataset_close(&dataset);
    for (int i = 0; i < 4; i++)
        tensor_release(&tensors[i]);
}

/* train.npz and test.npz with the columns' names; integers stay integers, for embeddings. */
TEST(npy_reads_an_archive_for_each_part)
{
    const char *const names[] = {"words.npy", "labels.npy", "size.npy"};
    struct tensor tensors[] = {counting(I32, &SHAPE(4, 2)), counting(BOOL, &SHAPE(4)),
                               counting(F16, &SHAPE(4))};
    put_archive("parts", "train.npz", names, tensors, 3);
    put_archive("parts", "test.npz", names, tensors, 3);
    struct dataset dataset;
    const struct model_feature *features = open_one("parts", NULL, &dataset);
    CHECK_INT(dataset.feeds.count, 3);
    CHECK_TEXT(features[0].name, "words");
    CHECK_INT(features[0].dtype, I32);
    CHECK_INT(features[1].dtype, F32);
    CHECK_INT(dataset.feeds.data.target.dtype, I32);
    CHECK_INT(dataset.test.count, 4);
    struct dataset_batch batch;
    struct error err;
    CHECK_OK(dataset_batch_read(&batch, &dataset, &dataset.train, 2, 2, &err), &err);
    CHECK_INT(tensor_i32(&batch.feeds[0])[3], 7);
    CHECK(tensor_f32(&batch.feeds[1])[1] == 3);
    dataset_batch_release(&batch);
    dataset_close(&dataset);
    for (int i = 0; i < 3; i++)
        tensor_release(&tensors[i]);
}

TEST(npy_refuses_what_does_not_fit)
{
    put("counts", "x.npy", F32, &SHAPE(4, 3));
    put("counts", "y.npy", I32, &SHAPE(5));
    check_refused("counts", NULL, INVALID, "column \"y\" has shape [5], wanted: [4]");
    put("half", "x_train.npy", F32, &SHAPE(4));
    put("half", "y_train.npy", F32, &SHAPE(4));
    put("half", "x_test.npy", F32, &SHAPE(4));
    check_refused("half", NULL, NOT_FOUND, "part \"test\" has no array \"y\"");
    put("more", "x_train.npy", F32, &SHAPE(4));
    put("more", "z_test.npy", F32, &SHAPE(4));
    check_refused("more", NULL, NOT_FOUND, "z_test.npy: there is no such array to train on");
    put("only", "x_test.npy", F32, &SHAPE(4));
    check_refused("only", NULL, NOT_FOUND, "no arrays to train on");
    put("scalar", "x.npy", F32, &SHAPE_SCALAR);
    check_refused("scalar", NULL, INVALID, "x.npy is one number");
    put("none", "x.npy", F32, &SHAPE(0, 2));
    put("none", "y.npy", I32, &SHAPE(0));
    check_refused("none", NULL, INVALID, "holds no examples");
    put("hollow", "x.npy", F32, &SHAPE(1000000000, 0));
    put("hollow", "y.npy", I32, &SHAPE(1000000000, 0));
    check_refused("hollow", NULL, INVALID, "its examples have no values");
    put("mixed", "x_train.npy", F32, &SHAPE(4));
    put("mixed", "x_test.npy", F64, &SHAPE(4));
    check_refused("mixed", &(struct spec_data){.target = "x"}, INVALID, "is of double");
    put("no-target", "a.npy", F32, &SHAPE(4));
    put("no-target", "b.npy", F32, &SHAPE(4));
    check_refused("no-target", NULL, INVALID, "name one of its columns: \"a\", \"b\"");
    put("complex", "x.npy", C64, &SHAPE(4));
    check_refused("complex", NULL, UNIMPLEMENTED, "holds complex64, wanted: real numbers");
    put("wide", "x.npy", I64, &SHAPE(4));
    struct tensor wide = counting(I64, &SHAPE(3));
    struct error err;
    ((int64_t *)wide.data)[1] = INT64_C(1) << 40;
    CHECK_OK(npy_write(folder_path("wide/y.npy"), &wide, &err), &err);
    tensor_release(&wide);
    check_refused("wide", NULL, INVALID, "element 1 is 1099511627776");
}

/* A target of floats is no class; a negative class is refused. */
TEST(npy_tells_numbers_from_classes)
{
    put("price", "x.npy", I8, &SHAPE(4));
    put("price", "y.npy", F32, &SHAPE(4));
    struct dataset dataset;
    open_one("price", NULL, &dataset);
    CHECK_INT(dataset.feeds.data.target.dtype, F32);
    CHECK_INT(dataset.feeds.data.classes, 0);
    dataset_close(&dataset);
    struct tensor y = counting(I32, &SHAPE(4));
    struct error err;
    ((int32_t *)y.data)[2] = -1;
    CHECK_OK(npy_write(folder_path("price/y.npy"), &y, &err), &err);
    tensor_release(&y);
    check_refused("price", NULL, INVALID, "y.npy: \"y\" holds -1");
}
