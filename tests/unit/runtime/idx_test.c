/* idx_test.c - IDX files: types, gzip, damage that names file and place. */

#include <sys/stat.h>

#include "base/str.h"
#include "runtime/io/idx.h"
#include "runtime/io/stream.h"
#include "tests/unit/folder.h"
#include "tests/unit/test.h"

static const char *write_file(const char *name, enum stream_format format, const void *bytes,
                              size_t size)
{
    struct error err;
    const char *path = folder_path(name);
    struct stream_writer *writer = stream_create(path, format, &err);
    CHECK_OK(writer, &err);
    CHECK_OK(stream_write(writer, bytes, size, &err), &err);
    CHECK_OK(stream_finish(writer, &err), &err);
    return path;
}

TEST(idx_reads_plain_and_gzip)
{
    static const char bytes[] = "\0\0\x08\x02\0\0\0\x02\0\0\0\x03"
                                "abcdef";
    struct error err;
    const enum stream_format formats[] = {STREAM_PLAIN, STREAM_GZIP};
    for (int i = 0; i < 2; i++) {
        struct tensor tensor;
        const char *path = write_file("x", formats[i], bytes, sizeof(bytes) - 1);
        CHECK_OK(idx_read(path, &tensor, &err), &err);
        CHECK_INT(tensor.dtype, U8);
        CHECK(shape_equal(&tensor.shape, &SHAPE(2, 3)));
        CHECK(!memcmp(tensor.data, "abcdef", 6));
        tensor_release(&tensor);
    }
}

TEST(idx_turns_big_endian_numbers)
{
    struct error err;
    struct tensor tensor;
    CHECK_OK(idx_read(write_file("i", STREAM_PLAIN, "\0\0\x0c\x01\0\0\0\x01\0\0\x01\x02", 12),
                      &tensor, &err),
             &err);
    CHECK_INT(tensor_i32(&tensor)[0], 0x102);
    tensor_release(&tensor);
    CHECK_OK(idx_read(write_file("d", STREAM_PLAIN,
                                 "\0\0\x0e\x01\0\0\0\x01\x3f\xf8\0\0\0\0\0\0", 16),
                      &tensor, &err),
             &err);
    CHECK(tensor_f64(&tensor)[0] == 1.5);
    tensor_release(&tensor);
}

TEST(idx_names_the_place_of_damage)
{
    static const struct {
        const char *bytes;
        size_t size;
        const char *text;
    } bad[] = {
        {"", 0, "ends at byte 0"},
        {"\0\0\x08", 3, "ends at byte 3, expected are at least 4"},
        {"\0\1\x08\1\0\0\0\1a", 9, "at byte 0: 00010801"},
        {"\0\0\x07\1\0\0\0\1a", 9, "at byte 0: 00000701"},
        {"\0\0\x08\xff\0\0\0\1a", 9, "at byte 3: 255 dimensions"},
        {"\0\0\x08\2\0\0\0\1", 8, "ends at byte 8, expected are at least 12"},
        {"\0\0\x08\1\0\0\0\3ab", 10, "ends at byte 10, its dimensions [3] need 11"},
        {"\0\0\x08\1\0\0\0\1ab", 10, "at byte 9: there is more"},
        {"\0\0\x08\1\xff\xff\xff\xff"
         "a",
         9, "ends at byte 9"},
        {"\0\0\x08\3\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 16,
         "at byte 4: the dimensions"},
    };
    for (int i = 0; i < ARRAY_LEN(bad); i++) {
        struct error err;
        struct tensor tensor;
        const char *path = write_file("bad.idx", STREAM_PLAIN, bad[i].bytes, bad[i].size);
        CHECK_FAILS(idx_read(path, &tensor, &err), &err, DATA_LOSS);
        if (!strstr(err.text, bad[i].text) || !strstr(err.text, "bad.idx"))
            CHECK_STOP("'%s' in place of '%s'", err.text, bad[i].text);
    }
    struct error err;
    struct tensor tensor;
    CHECK_FAILS(idx_read(folder_path("none"), &tensor, &err), &err, NOT_FOUND);
}

/* Every cut and every flipped bit of a gzip file is found. */
TEST(idx_finds_damaged_gzip)
{
    struct str bytes = {0}, file = {0};
    struct error err;
    struct tensor tensor;
    str_add_bytes(&bytes, "\0\0\x08\1\0\0\x03\xe8", 8);
    for (int i = 0; i < 1000; i++)
        str_add_char(&bytes, (char)(i * i >> 3));
    const char *path = write_file("g", STREAM_GZIP, bytes.data, bytes.size);
    size_t count;
    struct stream *stream = stream_open(path, STREAM_PLAIN, &err);
    str_extend(&file, (size_t)stream_bytes(stream));
    CHECK_OK(stream_read(stream, file.data, file.size, &count, &err), &err);
    stream_close(stream);
    for (size_t size = 2; size < file.size; size += 5) {
        write_file("g", STREAM_PLAIN, file.data, size);
        CHECK_FAILS(idx_read(path, &tensor, &err), &err, DATA_LOSS);
    }
    for (size_t place = 10; place < file.size; place++) {
        file.data[place] = (char)(file.data[place] ^ 4);
        write_file("g", STREAM_PLAIN, file.data, file.size);
        CHECK_FAILS(idx_read(path, &tensor, &err), &err, DATA_LOSS);
        file.data[place] = (char)(file.data[place] ^ 4);
    }
    str_release(&bytes);
    str_release(&file);

    /* Few bytes that claim much. */
    CHECK_FAILS(
        idx_read(write_file("h", STREAM_GZIP, "\0\0\x08\1\x7f\xff\xff\xff", 8), &tensor, &err),
        &err, DATA_LOSS);
    CHECK(strstr(err.text, "at byte 4"));
}

TEST(idx_reads_a_set)
{
    struct error err;
    struct tensor images, labels;
    CHECK(!mkdir(folder_path("set"), 0700));
    write_file("set/train-images-idx3-ubyte.gz", STREAM_GZIP,
               "\0\0\x08\3\0\0\0\2\0\0\0\1\0\0\0\2abcd", 20);
    CHECK_FAILS(idx_read_set(folder_path("set"), "train", &images, &labels, &err), &err,
                NOT_FOUND);
    CHECK(strstr(err.text, "train-labels-idx1-ubyte"));
    write_file("set/train-labels-idx1-ubyte", STREAM_PLAIN, "\0\0\x08\1\0\0\0\2xy", 10);
    CHECK_OK(idx_read_set(folder_path("set"), "train", &images, &labels, &err), &err);
    CHECK(shape_equal(&images.shape, &SHAPE(2, 1, 2)));
    CHECK_INT(labels.count, 2);
    tensor_release(&images);
    tensor_release(&labels);
    write_file("set/train-labels-idx1-ubyte", STREAM_PLAIN, "\0\0\x08\1\0\0\0\1x", 9);
    CHECK_FAILS(idx_read_set(folder_path("set"), "train", &images, &labels, &err), &err,
                DATA_LOSS);
    CHECK(strstr(err.text, "1 labels for 2 images"));
}
