/* hdf5_test.c - HDF5 files: what is written is read; damage is told, whatever libhdf5 does. */

#include "base/str.h"
#include "runtime/io/file.h"
#include "runtime/io/hdf5.h"
#include "runtime/io/hdf5_internal.h"
#include "tests/unit/folder.h"

static void make(struct str *out)
{
    struct error err;
    struct hdf5_item items[5] = {{.path = "layers/dense/vars", .group = true},
                                 {.path = "layers/dense/vars", .attribute = "name"},
                                 {.path = "layers/dense/vars/0"},
                                 {.path = "step"},
                                 {.path = "", .attribute = "backend"}};
    float numbers[6] = {1, 2, 3, 4, 5, 6.5f};
    int64_t step = 77;
    CHECK_OK(tensor_init_string(&items[1].value, "dense", 5, &err), &err);
    CHECK_OK(tensor_init_copy(&items[2].value, F32, &SHAPE(2, 3), numbers, &err), &err);
    CHECK_OK(tensor_init_copy(&items[3].value, I64, &SHAPE_SCALAR, &step, &err), &err);
    CHECK_OK(tensor_init(&items[4].value, STRING, &SHAPE(2), &err), &err);
    tensor_set_string(&items[4].value, 0, "tensor", 6);
    tensor_set_string(&items[4].value, 1, "flow", 4);
    CHECK_OK(hdf5_write(items, ARRAY_LEN(items), out, &err), &err);
    for (int i = 0; i < ARRAY_LEN(items); i++)
        tensor_release(&items[i].value);
}

static void check(const struct hdf5 *file)
{
    const struct hdf5_item *kernel = hdf5_find(file, "layers/dense/vars/0");
    CHECK(kernel && kernel->value.dtype == F32 && kernel->value.shape.rank == 2);
    CHECK(tensor_f32(&kernel->value)[5] == 6.5f);
    CHECK(hdf5_find(file, "layers") && hdf5_find(file, "layers")->group);
    CHECK(!hdf5_find(file, "nothing"));
    CHECK_INT(tensor_i64(&hdf5_find(file, "step")->value)[0], 77);
    const struct hdf5_item *name = hdf5_attribute(file, "layers/dense/vars", "name");
    CHECK(name && name->value.dtype == STRING && tensor_strings(&name->value)->size == 5);
    const struct hdf5_item *backend = hdf5_attribute(file, "", "backend");
    CHECK(backend && backend->value.count == 2);
    CHECK(!memcmp(tensor_strings(&backend->value)[1].data, "flow", 4));
}

TEST(what_is_written_is_read)
{
    struct error err;
    struct str bytes = {0}, again = {0};
    struct hdf5 file;
    make(&bytes);
    make(&again);
    CHECK_INT(bytes.size, again.size);
    CHECK(!memcmp(bytes.data, again.data, bytes.size));
    CHECK_OK(hdf5_read_bytes("memory", bytes.data, bytes.size, &file, &err), &err);
    check(&file);
    hdf5_release(&file);
    CHECK_OK(file_write(folder_path("a.h5"), bytes.data, bytes.size, &err), &err);
    CHECK_OK(hdf5_read(folder_path("a.h5"), &file, &err), &err);
    check(&file);
    hdf5_release(&file);
    str_release(&bytes);
    str_release(&again);
}

TEST(what_is_no_hdf5_file_is_refused)
{
    struct error err;
    struct hdf5 file;
    CHECK_FAILS(hdf5_read(folder_path("none.h5"), &file, &err), &err, NOT_FOUND);
    CHECK_FAILS(hdf5_read_bytes("x.h5", "hello", 5, &file, &err), &err, DATA_LOSS);
    CHECK(strstr(err.text, "x.h5"));
    CHECK_FAILS(hdf5_read_bytes("x.h5", "", 0, &file, &err), &err, DATA_LOSS);
}

/* Some bytes changed, and every length cut: never more than an error that names the file. */
TEST(damage_is_told)
{
    struct error err;
    struct str bytes = {0};
    struct hdf5 file;
    make(&bytes);
    int refused = 0, tries = 0;
    for (size_t i = 0; i < bytes.size; i += 1 + bytes.size / 150, tries++) {
        bytes.data[i] ^= (char)0xff;
        if (hdf5_read_bytes("x.h5", bytes.data, bytes.size, &file, &err)) {
            hdf5_release(&file);
        } else {
            CHECK(err.code == DATA_LOSS || err.code == EXHAUSTED);
            CHECK(strstr(err.text, "x.h5"));
            refused++;
        }
        bytes.data[i] ^= (char)0xff;
    }
    CHECK(refused > 10 && refused < tries);
    for (size_t size = 100; size < bytes.size; size += bytes.size / 20) {
        CHECK_FAILS(hdf5_read_bytes("x.h5", bytes.data, size, &file, &err), &err, DATA_LOSS);
    }
    str_release(&bytes);
}

/* What a child says, of three booleans. */
static bool take_flags(const uint8_t flags[3], struct hdf5 *out, struct error *err)
{
    int ends[2];
    const uint64_t dims[] = {3};
    const struct hdf5_head head = {
        .kind = HDF5_DATASET, .dtype = BOOL, .rank = 1, .path_size = 1, .data_size = 3};
    const struct hdf5_head end = {.kind = HDF5_END};
    struct str said = {0};
    str_add_bytes(&said, &head, sizeof(head));
    str_add(&said, "f");
    str_add_bytes(&said, dims, sizeof(dims));
    str_add_bytes(&said, flags, 3);
    str_add_bytes(&said, &end, sizeof(end));
    CHECK(!pipe(ends));
    CHECK(write(ends[1], said.data, said.size) == (ssize_t)said.size);
    close(ends[1]);
    bool ok = hdf5_take("x.h5", ends[0], 1000, out, err);
    close(ends[0]);
    str_release(&said);
    return ok;
}

TEST(a_boolean_is_0_or_1)
{
    struct error err;
    struct hdf5 file;
    CHECK_OK(take_flags((const uint8_t[]){1, 0, 1}, &file, &err), &err);
    CHECK_INT(hdf5_find(&file, "f")->value.dtype, BOOL);
    hdf5_release(&file);
    CHECK_FAILS(take_flags((const uint8_t[]){1, 7, 1}, &file, &err), &err, DATA_LOSS);
    CHECK(strstr(err.text, "x.h5") && strstr(err.text, "boolean"));
}
