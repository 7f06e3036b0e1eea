/* npy_test.c - NPY files: numpy's bytes, orders of bytes and dimensions, damage with its place.
 */

#include "base/str.h"
#include "runtime/io/file.h"
#include "runtime/io/npy.h"
#include "tests/unit/folder.h"
#include "tests/unit/test.h"

/* A file of version 1.0 with this header and these elements. */
static void make(struct str *out, const char *header, const void *data, size_t size)
{
    size_t length = strlen(header);
    str_clear(out);
    str_add_bytes(out, "\x93NUMPY\x01\x00", 8);
    str_add_bytes(out, (const char[]){(char)length, (char)(length >> 8)}, 2);
    str_add(out, header);
    str_add_bytes(out, data, size);
}

TEST(npy_writes_what_numpy_writes)
{
    static const struct {
        enum dtype dtype;
        struct shape shape;
        const char *dictionary;
    } rows[] = {
        {F32, {2, {2, 3}}, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"},
        {F64, {0, {0}}, "{'descr': '<f8', 'fortran_order': False, 'shape': (), }"},
        {BOOL, {1, {3}}, "{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }"},
        {C128,
         {3, {12345, 1, 2}},
         "{'descr': '<c16', 'fortran_order': False, 'shape': (12345, 1, 2), }"},
    };
    for (int i = 0; i < ARRAY_LEN(rows); i++) {
        struct error err;
        struct str bytes = {0}, wanted = {0};
        CHECK_OK(npy_header_add(&bytes, rows[i].dtype, &rows[i].shape, &err), &err);
        str_add_bytes(&wanted, "\x93NUMPY\x01\x00v\x00", 10);
        str_printf(&wanted, "%-117s\n", rows[i].dictionary);
        CHECK_INT(bytes.size, 128);
        CHECK(!memcmp(bytes.data, wanted.data, 128));
        str_release(&bytes);
        str_release(&wanted);
    }
}

TEST(npy_reads_back_every_type_it_writes)
{
    const char *path = folder_path("a.npy");
    for (int d = 1; d < DTYPE_COUNT; d++) {
        struct error err;
        struct tensor tensor, again;
        if (!dtype_known(d) || !(BIT(d) & DTYPES_PLAIN))
            continue;
        CHECK_OK(tensor_init(&tensor, (enum dtype)d, &SHAPE(3, 2), &err), &err);
        for (size_t i = 0; i < 6 * dtype_size(d); i++)
            ((char *)tensor.data)[i] = (char)(d == BOOL ? i % 2 : i * 37);
        CHECK_OK(npy_write(path, &tensor, &err), &err);
        CHECK_OK(npy_read(path, &again, &err), &err);
        CHECK(shape_equal(&again.shape, &SHAPE(3, 2)));
        CHECK(!memcmp(again.data, tensor.data, 6 * dtype_size(d)));
        CHECK((again.dtype == tensor.dtype) == !npy_header_note((enum dtype)d));
        tensor_release(&tensor);
        tensor_release(&again);
    }
}

TEST(npy_refuses_to_write_what_numpy_cannot_hold)
{
    struct error err;
    struct tensor tensor;
    CHECK_OK(tensor_init_string(&tensor, "a", 1, &err), &err);
    CHECK_FAILS(npy_write(folder_path("s.npy"), &tensor, &err), &err, UNIMPLEMENTED);
    CHECK(strstr(err.text, "s.npy: an NPY file cannot hold elements of type string"));
    tensor_release(&tensor);
    CHECK_OK(tensor_init_scalar(&tensor, F32, 1, &err), &err);
    CHECK_FAILS(npy_write(folder_path("none/s.npy"), &tensor, &err), &err, NOT_FOUND);
    tensor_release(&tensor);
}

TEST(npy_turns_bytes_and_dimensions)
{
    struct error err;
    struct tensor tensor;
    struct str file = {0};
    make(&file, "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3, 2), }",
         (const char[]){0, 0, 0, 1, 0, 2, 0, 3, 0, 4,  0, 5,
                        0, 6, 0, 7, 0, 8, 0, 9, 0, 10, 0, 11},
         24);
    CHECK_OK(npy_parse(file.data, file.size, &tensor, &err), &err);
    static const int16_t wanted[] = {0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11};
    CHECK_INT(tensor.dtype, I16);
    CHECK(shape_equal(&tensor.shape, &SHAPE(2, 3, 2)));
    CHECK(!memcmp(tensor.data, wanted, sizeof(wanted)));
    tensor_release(&tensor);
    make(&file, "{'descr': '>c8', 'fortran_order': False, 'shape': (1L,)}",
         "\x3f\x80\0\0\x40\0\0\0", 8);
    CHECK_OK(npy_parse(file.data, file.size, &tensor, &err), &err);
    CHECK(((const float *)tensor.data)[0] == 1 && ((const float *)tensor.data)[1] == 2);
    tensor_release(&tensor);
    str_release(&file);
}

TEST(npy_reads_all_versions_and_spellings)
{
    static const char text[] = " { \"shape\" : ( ) ,'fortran_order':False,\"descr\":'=u1'}\n";
    for (int version = 1; version <= 3; version++) {
        struct error err;
        struct tensor tensor;
        struct str file = {0};
        str_add_bytes(&file, "\x93NUMPY", 6);
        str_add_bytes(&file, (const char[]){(char)version, 0, sizeof(text) - 1, 0, 0, 0},
                      version == 1 ? 4 : 6);
        str_add(&file, text);
        str_add_char(&file, 7);
        CHECK_OK(npy_parse(file.data, file.size, &tensor, &err), &err);
        CHECK_INT(tensor.shape.rank, 0);
        CHECK_INT(*(const uint8_t *)tensor.data, 7);
        tensor_release(&tensor);
        str_release(&file);
    }
}

/* A dimension of 0 hides no overflow of the others, as in NumPy. */
TEST(npy_refuses_empty_arrays_of_countless_sizes)
{
    struct error err;
    struct tensor tensor;
    struct str file = {0};
    make(&file,
         "{'descr': '<f4', 'fortran_order': True, 'shape': (0, 9000000000, 9000000000), }", "",
         0);
    CHECK_FAILS(npy_parse(file.data, file.size, &tensor, &err), &err, DATA_LOSS);
    str_clear(&file);
    make(&file, "{'descr': '<f4', 'fortran_order': True, 'shape': (0, 9000000000, 2), }", "",
         0);
    CHECK_OK(npy_parse(file.data, file.size, &tensor, &err), &err);
    CHECK_INT(tensor.count, 0);
    tensor_release(&tensor);
    str_release(&file);
}

TEST(npy_says_where_a_header_is_wrong)
{
    static const struct {
        const char *header;
        enum error_code code;
        const char *text;
    } bad[] = {
        {"", DATA_LOSS, "at byte 10: the header ends where '{' should be"},
        {"{}", DATA_LOSS, "has no field \"descr\""},
        {"{'descr': '<f4', 'shape': (1,)}", DATA_LOSS, "no field \"fortran_order\""},
        {"{'descr': '<f4', 'descr': '<f4'}", DATA_LOSS, "\"descr\" is there twice"},
        {"{'other': 1}", DATA_LOSS, "\"other\" is not known"},
        {"{'descr': '<f3'", UNIMPLEMENTED, "wide floats (numpy's type \"<f3\")"},
        {"{'descr': '<x4'", DATA_LOSS, "numpy has no type \"<x4\""},
        {"{'descr': '<U3'", UNIMPLEMENTED, "at byte 20: its elements are strings"},
        {"{'descr': '|O'", UNIMPLEMENTED, "Python objects"},
        {"{'descr': '<M8[ns]'", UNIMPLEMENTED, "dates"},
        {"{'descr': [('a', '<i4')]", UNIMPLEMENTED, "records of several fields"},
        {"{'descr': 4", DATA_LOSS, "'4' where numpy's name of a type"},
        {"{'descr': '<f", DATA_LOSS, "the header ends where the end of a string"},
        {"{'descr': '<f4', 'fortran_order': 0", DATA_LOSS, "'0' where True or False"},
        {"{'shape': 3", DATA_LOSS, "'3' where '(', the shape,"},
        {"{'shape': (3)", DATA_LOSS, "')' where ','"},
        {"{'shape': (-1,)", DATA_LOSS, "'-' where a dimension"},
        {"{'shape': (1, 2", DATA_LOSS, "the header ends where ',' or ')'"},
        {"{'shape': (99999999999999999999,)", DATA_LOSS,
         "at byte 21: the dimension is too large"},
        {"{'shape': (1,)} x", DATA_LOSS, "no field"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", DATA_LOSS,
         "'x' where the end of the header"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4000000000, 4000000000)}",
         DATA_LOSS, "its dimensions [4000000000,4000000000] are too large"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", DATA_LOSS, "need 4"},
        {"{'descr': '|b1', 'fortran_order': False, 'shape': (2,)}", DATA_LOSS,
         "at byte 66: 0x07 is no boolean"},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (1,)}", DATA_LOSS,
         "at byte 66: there is more"},
    };
    for (int i = 0; i < ARRAY_LEN(bad); i++) {
        struct error err;
        struct tensor tensor;
        struct str file = {0};
        make(&file, bad[i].header, "\x01\x07", 2);
        CHECK_FAILS(npy_parse(file.data, file.size, &tensor, &err), &err, bad[i].code);
        if (!strstr(err.text, bad[i].text))
            CHECK_STOP("%s: %s", bad[i].header, err.text);
        str_release(&file);
    }
}

TEST(npy_names_the_file)
{
    static const struct {
        const char *bytes;
        size_t size;
        const char *text;
    } bad[] = {
        {"", 0, "at byte 0"},
        {"\x93NUMPX\x01\x00\x02\x00{}", 12, "at byte 0: this does not begin an NPY file"},
        {"\x93NUMPY\x04\x00\x02\x00{}", 12, "at byte 6: version 4.0"},
        {"\x93NUMPY\x01\x00\x03\x00{}", 12, "ends at byte 12, its header at 13"},
        {"\x93NUMPY\x02\x00\x03\x00", 10, "ends at byte 10, within its header"},
        {"\x93NUMPY\x02\x00\xff\xff\xff\xff", 12, "a header of 4294967295 bytes, at most"},
    };
    struct error err;
    struct tensor tensor;
    const char *path = folder_path("bad.npy");
    for (int i = 0; i < ARRAY_LEN(bad); i++) {
        CHECK_OK(file_write(path, bad[i].bytes, bad[i].size, &err), &err);
        CHECK_FAILS(npy_read(path, &tensor, &err), &err, DATA_LOSS);
        CHECK(strstr(err.text, path) && strstr(err.text, bad[i].text));
    }
    CHECK_FAILS(npy_read(folder_path("missing.npy"), &tensor, &err), &err, NOT_FOUND);
    CHECK_FAILS(npy_read("/", &tensor, &err), &err, INVALID);
}
