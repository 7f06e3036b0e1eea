/* safetensors_test.c - safetensors files: the layout, every type, headers that lie. */

#include "base/str.h"
#include "runtime/io/file.h"
#include "runtime/io/safetensors.h"
#include "tests/unit/folder.h"
#include "tests/unit/test.h"

static const char *write_file(const char *header, const void *data, size_t size)
{
    struct error err;
    struct str bytes = {0};
    const char *path = folder_path("x.safetensors");
    for (int i = 0; i < 8; i++)
        str_add_char(&bytes, (char)(strlen(header) >> 8 * i));
    str_add(&bytes, header);
    str_add_bytes(&bytes, data, size);
    CHECK_OK(file_write(path, bytes.data, bytes.size, &err), &err);
    str_release(&bytes);
    return path;
}

TEST(safetensors_reads_what_the_format_says)
{
    struct error err;
    const char *path = write_file(
        "{\"b\\u00e9\\ud83d\\ude00\" : {\"shape\": [2, 2], \"data_offsets\": [4, 8], "
        "\"dtype\": \"U8\"}, \"__metadata__\": {\"format\": \"pt\"}, \"a\": {\"dtype\":"
        "\"F32\", \"shape\":[], \"data_offsets\":[0,4]}}   ",
        "\0\0\x80\x3f\1\2\3\4", 8);
    struct safetensors *file = safetensors_open(path, &err);
    CHECK_OK(file, &err);
    int count, notes_count;
    const struct safetensors_item *items = safetensors_items(file, &count);
    const struct safetensors_note *notes = safetensors_notes(file, &notes_count);
    CHECK_INT(count, 2);
    CHECK_TEXT(items[0].name, "a");
    CHECK_INT(items[0].dtype, F32);
    CHECK_INT(items[0].shape.rank, 0);
    CHECK_TEXT(items[1].name, "b\xc3\xa9\xf0\x9f\x98\x80");
    CHECK(shape_equal(&items[1].shape, &SHAPE(2, 2)));
    CHECK_INT(notes_count, 1);
    CHECK_TEXT(notes[0].key, "format");
    CHECK_TEXT(notes[0].value, "pt");
    float one;
    char bytes[2];
    CHECK_OK(safetensors_read(file, &items[0], 0, &one, 4, &err), &err);
    CHECK(one == 1);
    CHECK_OK(safetensors_read(file, &items[1], 1, bytes, 2, &err), &err);
    CHECK(!memcmp(bytes, "\2\3", 2));
    safetensors_close(file);
}

TEST(safetensors_lays_out_wide_types_first)
{
    struct error err;
    struct safetensors_item items[] = {{.name = "z", .dtype = BOOL, .shape = SHAPE(3)},
                                       {.name = "b", .dtype = F64, .shape = SHAPE(0, 2)},
                                       {.name = "a\"", .dtype = F64, .shape = SHAPE_SCALAR},
                                       {.name = "m", .dtype = BF16, .shape = SHAPE(1, 1)}};
    struct safetensors_note note = {"made by", "a test"};
    CHECK_OK(safetensors_layout(items, ARRAY_LEN(items), &err), &err);
    struct str bytes = {0};
    safetensors_add_header(&bytes, items, ARRAY_LEN(items), &note, 1);
    static const char wanted[] =
        "{\"__metadata__\":{\"made by\":\"a test\"},"
        "\"a\\\"\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[0,8]},"
        "\"b\":{\"dtype\":\"F64\",\"shape\":[0,2],\"data_offsets\":[8,8]},"
        "\"m\":{\"dtype\":\"BF16\",\"shape\":[1,1],\"data_offsets\":[8,10]},"
        "\"z\":{\"dtype\":\"BOOL\",\"shape\":[3],\"data_offsets\":[10,13]}}";
    CHECK_INT(bytes.size % 8, 0);
    CHECK(!strncmp(bytes.data + 8, wanted, sizeof(wanted) - 1));
    CHECK_INT((unsigned char)bytes.data[0] + 256 * (unsigned char)bytes.data[1],
              (int)bytes.size - 8);
    str_add_bytes(&bytes, "\0\0\0\0\0\0\xf0\x3f\x80\x3f\1\0\1", 13);
    const char *path = folder_path("y.safetensors");
    CHECK_OK(file_write(path, bytes.data, bytes.size, &err), &err);
    struct safetensors *file = safetensors_open(path, &err);
    CHECK_OK(file, &err);
    int count;
    const struct safetensors_item *read = safetensors_items(file, &count);
    CHECK_INT(count, ARRAY_LEN(items));
    for (int i = 0; i < count; i++) {
        CHECK_TEXT(read[i].name, items[i].name);
        CHECK_INT(read[i].dtype, items[i].dtype);
        CHECK(shape_equal(&read[i].shape, &items[i].shape));
        CHECK_INT(read[i].offset, items[i].offset);
    }
    safetensors_close(file);
    str_release(&bytes);
}

TEST(safetensors_says_what_cannot_be_written)
{
    static const struct {
        struct safetensors_item items[2];
        enum error_code code;
        const char *text;
    } bad[] = {
        {{{.name = "a", .dtype = F32}, {.name = "a", .dtype = I8}},
         INVALID,
         "'a' is there twice"},
        {{{.name = "__metadata__", .dtype = F32}, {.name = "a", .dtype = I8}},
         INVALID,
         "taken"},
        {{{.name = "a\xff", .dtype = F32}, {.name = "a", .dtype = I8}}, INVALID, "not UTF-8"},
        {{{.name = "a", .dtype = STRING}, {.name = "b", .dtype = I8}},
         UNIMPLEMENTED,
         "tensor 'a': a safetensors file cannot hold elements of type string"},
        {{{.name = "a", .dtype = C128}, {.name = "b", .dtype = I8}},
         UNIMPLEMENTED,
         "complex128"},
    };
    for (int i = 0; i < ARRAY_LEN(bad); i++) {
        struct error err;
        struct safetensors_item items[2] = {bad[i].items[0], bad[i].items[1]};
        CHECK_FAILS(safetensors_layout(items, 2, &err), &err, bad[i].code);
        CHECK(strstr(err.text, bad[i].text));
    }
}

#define ITEM(name, dtype, shape, offsets)                                                      \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

TEST(safetensors_believes_no_header)
{
    static const struct {
        const char *header;
        enum error_code code;
        const char *text;
    } bad[] = {
        {"", DATA_LOSS, "at byte 8: the header ends where '{'"},
        {"[]", DATA_LOSS, "at byte 8: '[' where '{'"},
        {" {}", DATA_LOSS, "at byte 8: 0x20 where '{'"},
        {"{}", DATA_LOSS, "its tensors have 0 bytes, after the header there are 8"},
        {"{} x", DATA_LOSS, "'x' where the end of the header"},
        {"{" ITEM("a", "F32", "[2]", "[0,8]") "", DATA_LOSS,
         "the header ends where ',' or '}'"},
        {"{" ITEM("a", "F32", "[2]", "[0,8]") "," ITEM("a", "F32", "[0]", "[8,8]") "}",
         DATA_LOSS, "tensor 'a' is there twice"},
        {"{" ITEM("a", "F32", "[2]", "[0,7]") "}", DATA_LOSS,
         "'a': 7 bytes for float of shape [2], which has 8"},
        {"{" ITEM("a", "F32", "[1]", "[0,4]") "," ITEM("b", "I32", "[1]", "[3,7]") "}",
         DATA_LOSS, "'b' begins at byte 3 of the data, the one before it ends at 4"},
        {"{" ITEM("a", "U8", "[1]", "[0,1]") "," ITEM("b", "I32", "[1]", "[4,8]") "}",
         DATA_LOSS, "'b' begins at byte 4"},
        {"{" ITEM("a", "F32", "[4]", "[0,16]") "}", DATA_LOSS,
         "'a' ends at byte 16 of the data, of which there are 8"},
        {"{" ITEM("a", "F32", "[2]", "[8,0]") "}", DATA_LOSS, "data_offsets are not"},
        {"{" ITEM("a", "F32", "[2]", "[0]") "}", DATA_LOSS, "data_offsets are not"},
        {"{" ITEM("a", "F32", "[2]", "[0,8,9]") "}", DATA_LOSS, "more than 2 numbers"},
        {"{" ITEM("a", "F32", "[-2]", "[0,8]") "}", DATA_LOSS, "its shape: at byte"},
        {"{" ITEM("a", "F32", "[2.0]", "[0,8]") "}", DATA_LOSS, "'.' where ',' or ']'"},
        {"{" ITEM("a", "F32", "[99999999999999999999]", "[0,8]") "}", DATA_LOSS, "too large"},
        {"{" ITEM("a", "F32", "[4000000000,4000000000]", "[0,8]") "}", DATA_LOSS, "too large"},
        {"{" ITEM("a", "F4", "[2]", "[0,8]") "}", UNIMPLEMENTED, "its type F4"},
        {"{" ITEM("a", "G32", "[2]", "[0,8]") "}", DATA_LOSS, "its type \"G32\" is not known"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", DATA_LOSS, "no field \"data_offsets\""},
        {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", DATA_LOSS,
         "\"dtype\" is there twice"},
        {"{\"a\":{\"other\":1}}", DATA_LOSS, "\"other\" is not known"},
        {"{\"a\":[]}", DATA_LOSS, "tensor 'a': at byte 13: '[' where '{'"},
        {"{\"__metadata__\":{\"a\":1}}", DATA_LOSS,
         "__metadata__: at byte 29: '1' where a string"},
        {"{\"__metadata__\":{},\"__metadata__\":{}}", DATA_LOSS, "__metadata__ is there twice"},
        {"{\"\\ud800\":{}}", DATA_LOSS, "at byte 10: a wrong escape"},
        {"{\"\\u0000\":{}}", DATA_LOSS, "a wrong escape"},
        {"{\"\\x\":{}}", DATA_LOSS, "a wrong escape"},
        {"{\"\xff\":{}}", DATA_LOSS, "at byte 10: a string that is not UTF-8"},
        {"{\"a\tb\":{}}", DATA_LOSS, "0x09 where a character"},
        {"{\"a", DATA_LOSS, "the header ends where the end of a string"},
    };
    for (int i = 0; i < ARRAY_LEN(bad); i++) {
        struct error err;
        const char *path = write_file(bad[i].header, "\0\0\0\0\0\0\0\0", 8);
        CHECK_FAILS(safetensors_open(path, &err), &err, bad[i].code);
        if (!strstr(err.text, bad[i].text) || !strstr(err.text, path))
            CHECK_STOP("%s: %s", bad[i].header, err.text);
    }
}

TEST(safetensors_bounds_the_header)
{
    static const struct {
        const char *bytes;
        size_t size;
        const char *text;
    } bad[] = {
        {"\2\0\0\0", 4, "ends at byte 4, a safetensors file has at least 8"},
        {"\3\0\0\0\0\0\0\0{}", 10, "at byte 0: a header of 3 bytes in a file of 10"},
        {"\xff\xff\xff\xff\xff\xff\xff\xff{}", 10,
         "a header of 18446744073709551615 bytes, at most"},
    };
    struct error err;
    const char *path = folder_path("z.safetensors");
    for (int i = 0; i < ARRAY_LEN(bad); i++) {
        CHECK_OK(file_write(path, bad[i].bytes, bad[i].size, &err), &err);
        CHECK_FAILS(safetensors_open(path, &err), &err, DATA_LOSS);
        CHECK(strstr(err.text, bad[i].text));
    }
    CHECK_FAILS(safetensors_open(folder_path("none"), &err), &err, NOT_FOUND);
    CHECK_FAILS(safetensors_open("/", &err), &err, INVALID);
    /* A boolean is 0 or 1. */
    path = write_file("{" ITEM("a", "BOOL", "[2]", "[0,2]") "}", "\1\2", 2);
    struct safetensors *file = safetensors_open(path, &err);
    CHECK_OK(file, &err);
    int count;
    char bytes[2];
    CHECK_FAILS(safetensors_read(file, safetensors_items(file, &count), 0, bytes, 2, &err),
                &err, DATA_LOSS);
    CHECK(strstr(err.text, "0x02 is no boolean"));
    safetensors_close(file);
}
