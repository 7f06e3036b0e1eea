/* slice_file_test.c - checkpoints in the V1 format: every type, slices over files, damage. */

#include "base/str.h"
#include "runtime/io/file.h"
#include "runtime/io/slice_file.h"
#include "tests/unit/folder.h"
#include "tests/unit/test.h"

static struct error err;

/* Elements that differ, in any type. */
static struct tensor make(enum dtype dtype, const struct shape *shape)
{
    struct tensor t;
    CHECK_OK(tensor_init(&t, dtype, shape, &err), &err);
    unsigned char *bytes = t.data;
    for (size_t i = 0; (BIT(dtype) & DTYPES_PLAIN) && i < tensor_bytes(&t); i++)
        bytes[i] = dtype == BOOL ? i % 2 : (unsigned char)(i * 37 % 120);
    for (int64_t i = 0; dtype == STRING && i < t.count; i++)
        tensor_set_string(&t, i, "a\0bcdef", (size_t)i % 8);
    return t;
}

static void write_one(const char *path, const char *name, const struct tensor *t,
                      const struct shape *full, const struct bundle_slice *slice)
{
    struct slice_file_writer *writer = slice_file_writer_new();
    CHECK_OK(slice_file_writer_add(writer, name, full, slice, t, &err), &err);
    CHECK_OK(slice_file_writer_finish(writer, path, &err), &err);
    slice_file_writer_free(writer);
}

TEST(every_type_comes_back)
{
    const char *path = folder_path("all");
    struct slice_file_writer *writer = slice_file_writer_new();
    const uint64_t types = DTYPES_NUMBER | DTYPES_QUANTIZED | BIT(BOOL) | BIT(STRING);
    for (int d = 1; d < DTYPE_COUNT; d++) {
        struct tensor t = make((enum dtype)d, &SHAPE(2, 3));
        bool ok = slice_file_writer_add(writer, dtype_name(d), &t.shape, NULL, &t, &err);
        CHECK(ok == ((types & BIT(d)) != 0));
        CHECK(ok || err.code == UNIMPLEMENTED);
        tensor_release(&t);
    }
    CHECK_OK(slice_file_writer_finish(writer, path, &err), &err);
    slice_file_writer_free(writer);
    struct slice_file_reader *reader = slice_file_reader_open(path, &err);
    CHECK_OK(reader, &err);
    for (int d = 1; d < DTYPE_COUNT; d++) {
        struct tensor t = make((enum dtype)d, &SHAPE(2, 3)), is;
        if (types & BIT(d)) {
            CHECK_OK(slice_file_reader_read(reader, dtype_name(d), NULL, &is, &err), &err);
            CHECK(tensor_equal(&t, &is));
            tensor_release(&is);
        } else {
            CHECK_FAILS(slice_file_reader_read(reader, dtype_name(d), NULL, &is, &err), &err,
                        NOT_FOUND);
        }
        tensor_release(&t);
    }
    slice_file_reader_close(reader);
}

/* A matrix in two files; any part is put together, what is missing is said. */
TEST(slices_in_several_files_are_one_tensor)
{
    const struct shape full = SHAPE(4, 3);
    const struct bundle_slice top = {2, {0, 0}, {1, -1}}, rest = {2, {1, 0}, {3, -1}};
    struct tensor all = make(I32, &full), a = make(I32, &SHAPE(1, 3)),
                  b = make(I32, &SHAPE(3, 3));
    memcpy(a.data, all.data, 12);
    memcpy(b.data, (char *)all.data + 12, 36);
    const char *first = folder_path("part-0"), *second = folder_path("part-1");
    const char *pattern = folder_path("part-*");
    write_one(first, "x", &a, &full, &top);
    struct slice_file_reader *reader = slice_file_reader_open(pattern, &err);
    struct tensor is;
    CHECK_OK(reader, &err);
    CHECK_FAILS(slice_file_reader_read(reader, "x", NULL, &is, &err), &err, INVALID);
    slice_file_reader_close(reader);
    write_one(second, "x", &b, &full, &rest);
    reader = slice_file_reader_open(pattern, &err);
    CHECK_OK(reader, &err);
    CHECK_OK(slice_file_reader_read(reader, "x", NULL, &is, &err), &err);
    CHECK(tensor_equal(&is, &all));
    tensor_release(&is);
    const struct bundle_slice middle = {2, {0, 1}, {2, 2}};
    CHECK_OK(slice_file_reader_read(reader, "x", &middle, &is, &err), &err);
    CHECK(shape_equal(&is.shape, &SHAPE(2, 2)));
    CHECK_INT(tensor_i32(&is)[3], tensor_i32(&all)[5]);
    tensor_release(&is);
    slice_file_reader_close(reader);

    struct slice_file_writer *writer = slice_file_writer_new();
    CHECK_OK(slice_file_writer_add(writer, "x", &full, &top, &a, &err), &err);
    CHECK_FAILS(slice_file_writer_add(writer, "x", &full, NULL, &all, &err), &err, INTERNAL);
    CHECK_FAILS(slice_file_writer_add(writer, "x", &b.shape, NULL, &b, &err), &err, INTERNAL);
    slice_file_writer_free(writer);
    tensor_release(&all);
    tensor_release(&a);
    tensor_release(&b);
}

/* Each byte changed, each length cut: an error or the same elements, never a crash. */
TEST(damage_is_met_with_an_error)
{
    const char *path = folder_path("x"), *bad = folder_path("bad");
    struct tensor t = make(F32, &SHAPE(5)), is;
    struct str bytes = {0};
    write_one(path, "x", &t, &t.shape, NULL);
    CHECK_OK(file_read(path, 1 << 20, &bytes, &err), &err);
    for (size_t i = 0; i < 2 * bytes.size; i++) {
        struct str changed = {0};
        str_add_bytes(&changed, bytes.data, i < bytes.size ? bytes.size : i - bytes.size);
        if (i < bytes.size)
            changed.data[i] ^= 0x15;
        CHECK_OK(file_write(bad, changed.data ? changed.data : "", changed.size, &err), &err);
        struct slice_file_reader *reader = slice_file_reader_open(bad, &err);
        if (reader && slice_file_reader_read(reader, "x", NULL, &is, &err)) {
            CHECK(tensor_equal(&t, &is));
            tensor_release(&is);
        }
        slice_file_reader_close(reader);
        str_release(&changed);
    }
    CHECK_FAILS(slice_file_reader_open("/nowhere/*", &err), &err, NOT_FOUND);
    str_release(&bytes);
    tensor_release(&t);
}
