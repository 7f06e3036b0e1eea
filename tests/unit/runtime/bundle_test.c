/* bundle_test.c - checkpoints: TensorFlow's bytes, every type, slices, damage, merging. */

#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"
#include "runtime/io/bundle.h"
#include "runtime/io/file.h"
#include "runtime/io/table.h"
#include "tests/unit/folder.h"
#include "tests/unit/test.h"

static struct tensor floats(const struct shape *shape, float first)
{
    struct error err;
    struct tensor tensor;
    CHECK_OK(tensor_init(&tensor, F32, shape, &err), &err);
    for (int64_t i = 0; i < tensor.count; i++)
        tensor_f32_mut(&tensor)[i] = first + (float)i;
    return tensor;
}

static void write_two(const char *prefix)
{
    struct error err;
    struct bundle_writer *writer = bundle_writer_open(prefix, &err);
    CHECK_OK(writer, &err);
    struct tensor a = floats(&SHAPE(3, 4), 0), b;
    CHECK_OK(tensor_init_string(&b, "hello", 5, &err), &err);
    CHECK_OK(bundle_writer_add(writer, "b/text", &b, &err), &err);
    CHECK_OK(bundle_writer_add(writer, "a/floats", &a, &err), &err);
    CHECK_OK(bundle_writer_finish(writer, &err), &err);
    tensor_release(&a);
    tensor_release(&b);
}

/* Reads PATH, flips a bit (or cuts, with bit < 0), writes it back. */
static void damage(const char *path, size_t place, int bit)
{
    struct error err;
    struct str bytes = {0};
    CHECK_OK(file_read(path, 1 << 20, &bytes, &err), &err);
    if (bit < 0)
        bytes.size = place;
    else
        bytes.data[place] = (char)(bytes.data[place] ^ (1 << bit));
    CHECK_OK(file_write(path, bytes.data, bytes.size, &err), &err);
    str_release(&bytes);
}

/* The whole index of one float tensor "w" = [1, 2], as TensorFlow 2.21 writes it. */
TEST(bundle_writes_tensorflows_bytes)
{
    static const char index[] =
        "\x00\x00\x06\x08\x01\x1a\x02\x08\x01\x00\x01\x0f\x77\x08\x01\x12\x04\x12\x02\x08\x02"
        "\x28\x08\x35\x59\x3c\xe5\x35\x00\x00\x00\x00"
        "\x01\x00\x00\x00\x00\x09\x21\xad\xc3\x00\x00\x00\x00\x01\x00\x00\x00\x00\xc0\xf2\xa1"
        "\xb0\x00\x01\x02\x78\x00\x24\x00\x00\x00\x00"
        "\x01\x00\x00\x00\x00\xab\x30\x70\x7f\x29\x08\x36\x0e\x00\x00\x00\x00\x00\x00\x00\x00"
        "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
        "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x57\xfb\x80\x8b"
        "\x24\x75\x47\xdb";
    struct error err;
    struct bundle_writer *writer = bundle_writer_open(folder_path("w"), &err);
    CHECK_OK(writer, &err);
    struct tensor tensor = floats(&SHAPE(2), 1);
    CHECK_OK(bundle_writer_add(writer, "w", &tensor, &err), &err);
    CHECK_OK(bundle_writer_finish(writer, &err), &err);
    tensor_release(&tensor);

    struct str bytes = {0};
    CHECK_OK(file_read(folder_path("w.index"), 1000, &bytes, &err), &err);
    CHECK_INT(bytes.size, 121);
    CHECK(!memcmp(bytes.data, index, 121));
    CHECK_OK(file_read(folder_path("w.data-00000-of-00001"), 1000, &bytes, &err), &err);
    CHECK_INT(bytes.size, 8);
    CHECK(!memcmp(bytes.data, "\x00\x00\x80\x3f\x00\x00\x00\x40", 8));
    str_release(&bytes);
}

TEST(bundle_writes_strings_as_tensorflow)
{
    struct error err;
    struct bundle_writer *writer = bundle_writer_open(folder_path("s"), &err);
    CHECK_OK(writer, &err);
    struct tensor tensor;
    CHECK_OK(tensor_init_string(&tensor, "hello", 5, &err), &err);
    CHECK_OK(bundle_writer_add(writer, "s", &tensor, &err), &err);
    CHECK_OK(bundle_writer_finish(writer, &err), &err);
    tensor_release(&tensor);
    struct str bytes = {0};
    CHECK_OK(file_read(folder_path("s.data-00000-of-00001"), 1000, &bytes, &err), &err);
    CHECK_INT(bytes.size, 10);
    CHECK(!memcmp(bytes.data, "\x05\xd9\xc6\x9c\x43hello", 10));
    CHECK_OK(file_read(folder_path("s.index"), 1000, &bytes, &err), &err);
    CHECK(memmem(bytes.data, bytes.size, "\x35\xec\xe0\xc0\x29", 5));
    str_release(&bytes);
}

TEST(bundle_keeps_every_type)
{
    struct error err;
    struct bundle_writer *writer = bundle_writer_open(folder_path("types"), &err);
    CHECK_OK(writer, &err);
    struct tensor tensors[DTYPE_COUNT] = {0};
    for (int dtype = 1; dtype < DTYPE_COUNT; dtype++) {
        if (!(BIT(dtype) & (DTYPES_PLAIN | BIT(STRING))))
            continue;
        CHECK_OK(tensor_init(&tensors[dtype], (enum dtype)dtype, &SHAPE(2, 3), &err), &err);
        if (dtype == STRING)
            tensor_set_string(&tensors[dtype], 4, "x\0y", 3);
        else
            memset(tensors[dtype].data, dtype == BOOL ? 1 : 0x31 + dtype,
                   6 * dtype_size(dtype));
        CHECK_OK(bundle_writer_add(writer, dtype_name(dtype), &tensors[dtype], &err), &err);
    }
    CHECK_OK(bundle_writer_finish(writer, &err), &err);

    struct bundle_reader *reader = bundle_reader_open(folder_path("types"), &err);
    CHECK_OK(reader, &err);
    const struct bundle_item *items;
    int count;
    CHECK_OK(bundle_reader_list(reader, &items, &count, &err), &err);
    CHECK_INT(count, DTYPE_COUNT - 1 - 2);
    for (int i = 0; i < count; i++) {
        struct tensor back;
        CHECK_OK(bundle_reader_read(reader, items[i].name, &back, &err), &err);
        CHECK_TEXT(items[i].name, dtype_name(items[i].dtype));
        CHECK(tensor_equal(&back, &tensors[items[i].dtype]));
        tensor_release(&back);
    }
    bundle_reader_close(reader);
    for (int dtype = 1; dtype < DTYPE_COUNT; dtype++)
        tensor_release(&tensors[dtype]);
}

/* An index of many blocks; names that share long prefixes; lookups of what is there and is not.
 */
/* Other tools may have written any byte. */
TEST(bundle_reads_bools_as_0_and_1)
{
    struct error err;
    struct tensor flags, back;
    const uint8_t bytes[] = {0, 1, 7};
    CHECK_OK(tensor_init_copy(&flags, BOOL, &SHAPE(3), bytes, &err), &err);
    struct bundle_writer *writer = bundle_writer_open(folder_path("flags"), &err);
    CHECK_OK(writer, &err);
    CHECK_OK(bundle_writer_add(writer, "flags", &flags, &err), &err);
    CHECK_OK(bundle_writer_finish(writer, &err), &err);
    struct bundle_reader *reader = bundle_reader_open(folder_path("flags"), &err);
    CHECK_OK(reader, &err);
    CHECK_OK(bundle_reader_read(reader, "flags", &back, &err), &err);
    CHECK(!memcmp(back.data, "\0\1\1", 3));
    bundle_reader_close(reader);
    tensor_release(&flags);
    tensor_release(&back);
}

TEST(bundle_finds_names_in_a_big_index)
{
    struct error err;
    struct bundle_writer *writer = bundle_writer_open(folder_path("big"), &err);
    CHECK_OK(writer, &err);
    char name[400];
    memset(name, 'n', sizeof(name));
    for (int i = 0; i < 20000; i++) {
        snprintf(name + 40, sizeof(name) - 40, "/%d/x", (i * 7919) % 20000);
        struct tensor tensor;
        CHECK_OK(tensor_init_scalar(&tensor, I32, (i * 7919) % 20000, &err), &err);
        CHECK_OK(bundle_writer_add(writer, name, &tensor, &err), &err);
        tensor_release(&tensor);
    }
    CHECK_OK(bundle_writer_finish(writer, &err), &err);
    struct bundle_reader *reader = bundle_reader_open(folder_path("big"), &err);
    CHECK_OK(reader, &err);
    for (int i = 0; i < 20000; i += 37) {
        snprintf(name + 40, sizeof(name) - 40, "/%d/x", i);
        struct tensor tensor;
        CHECK_OK(bundle_reader_read(reader, name, &tensor, &err), &err);
        CHECK_INT(tensor_i32(&tensor)[0], i);
        tensor_release(&tensor);
    }
    struct bundle_item item;
    CHECK_FAILS(bundle_reader_find(reader, "a", &item, &err), &err, NOT_FOUND);
    CHECK_FAILS(bundle_reader_find(reader, "z", &item, &err), &err, NOT_FOUND);
    CHECK_FAILS(bundle_reader_find(reader, "", &item, &err), &err, NOT_FOUND);
    bundle_reader_close(reader);
}

TEST(bundle_slice_text)
{
    struct error err;
    struct shape full;
    struct bundle_slice slice;
    CHECK_OK(bundle_slice_parse("10 20 0,5:-", &full, &slice, &err), &err);
    CHECK(shape_equal(&full, &SHAPE(10, 20)));
    CHECK_INT(slice.length[0], 5);
    CHECK_INT(slice.length[1], -1);
    const char *bad[] = {"10 20 0,5", "10 0,5:-", "10 5,6", "x -", "10 -1,2", "-5 -", "10  -"};
    for (int i = 0; i < ARRAY_LEN(bad); i++)
        CHECK_FAILS(bundle_slice_parse(bad[i], &full, &slice, &err), &err, INVALID);
}

/* A [4,6] tensor stored in three parts; read whole, and across the parts. */
TEST(bundle_joins_slices)
{
    static const char *const texts[] = {"4 6 0,1:-", "4 6 1,3:0,4", "4 6 1,3:4,2"};
    struct error err;
    struct tensor whole = floats(&SHAPE(4, 6), 0), part, back;
    struct bundle_writer *writer = bundle_writer_open(folder_path("slices"), &err);
    CHECK_OK(writer, &err);
    for (int i = 0; i < 3; i++) {
        struct shape full, shape = {.rank = 2};
        struct bundle_slice slice;
        CHECK_OK(bundle_slice_parse(texts[i], &full, &slice, &err), &err);
        for (int d = 0; d < 2; d++)
            shape.dims[d] = slice.length[d] < 0 ? full.dims[d] : slice.length[d];
        part = floats(&shape, 0);
        for (int64_t y = 0; y < shape.dims[0]; y++) {
            for (int64_t x = 0; x < shape.dims[1]; x++)
                tensor_f32_mut(&part)[y * shape.dims[1] + x] =
                    tensor_f32(&whole)[(y + slice.start[0]) * 6 + x + slice.start[1]];
        }
        CHECK_OK(bundle_writer_add_slice(writer, "v", &full, &slice, &part, &err), &err);
        tensor_release(&part);
    }
    CHECK_OK(bundle_writer_finish(writer, &err), &err);

    struct bundle_reader *reader = bundle_reader_open(folder_path("slices"), &err);
    CHECK_OK(reader, &err);
    struct bundle_item item;
    CHECK_OK(bundle_reader_find(reader, "v", &item, &err), &err);
    CHECK_INT(item.slices_count, 3);
    CHECK_OK(bundle_reader_read(reader, "v", &back, &err), &err);
    CHECK(tensor_equal(&back, &whole));
    tensor_release(&back);

    struct shape full;
    struct bundle_slice slice;
    CHECK_OK(bundle_slice_parse("4 6 0,3:3,2", &full, &slice, &err), &err);
    CHECK_OK(bundle_reader_read_slice(reader, "v", &slice, &back, &err), &err);
    CHECK(shape_equal(&back.shape, &SHAPE(3, 2)));
    const float expected[] = {3, 4, 9, 10, 15, 16};
    CHECK(!memcmp(back.data, expected, sizeof(expected)));
    tensor_release(&back);
    bundle_reader_close(reader);
    tensor_release(&whole);
}

TEST(bundle_wants_all_slices)
{
    struct error err;
    struct shape full;
    struct bundle_slice slice;
    struct tensor part = floats(&SHAPE(2, 6), 0), back;
    struct bundle_writer *writer = bundle_writer_open(folder_path("gap"), &err);
    CHECK_OK(bundle_slice_parse("4 6 0,2:-", &full, &slice, &err), &err);
    CHECK_OK(bundle_writer_add_slice(writer, "v", &full, &slice, &part, &err), &err);
    CHECK_OK(bundle_writer_finish(writer, &err), &err);
    struct bundle_reader *reader = bundle_reader_open(folder_path("gap"), &err);
    CHECK_FAILS(bundle_reader_read(reader, "v", &back, &err), &err, INVALID);
    CHECK_OK(bundle_reader_read_slice(reader, "v", &slice, &back, &err), &err);
    CHECK(tensor_equal(&back, &part));
    tensor_release(&back);
    tensor_release(&part);
    bundle_reader_close(reader);
}

TEST(bundle_refuses_a_name_twice)
{
    struct error err;
    struct tensor tensor = floats(&SHAPE(2), 1);
    struct bundle_writer *writer = bundle_writer_open(folder_path("twice"), &err);
    CHECK_OK(bundle_writer_add(writer, "w", &tensor, &err), &err);
    CHECK_FAILS(bundle_writer_add(writer, "w", &tensor, &err), &err, INVALID);
    CHECK_FAILS(bundle_writer_finish(writer, &err), &err, INVALID);
    CHECK(access(folder_path("twice.index"), F_OK) < 0);
    CHECK(access(folder_path("twice.data-00000-of-00001"), F_OK) < 0);
    tensor_release(&tensor);
    CHECK_FAILS(bundle_writer_open("/nonexistent/x", &err), &err, NOT_FOUND);
}

/* A slice that is all of the tensor is stored as TensorFlow does it: whole. */
TEST(bundle_stores_a_whole_slice_as_the_tensor)
{
    static const char *const texts[] = {"", "2 3 -:-", "2 3 0,2:-"};
    struct str indexes[ARRAY_LEN(texts)] = {{0}};
    struct error err;
    struct tensor tensor = floats(&SHAPE(2, 3), 1);
    for (int i = 0; i < ARRAY_LEN(texts); i++) {
        struct shape full;
        struct bundle_slice slice;
        struct bundle_writer *writer = bundle_writer_open(folder_path("whole"), &err);
        CHECK_OK(writer, &err);
        if (i)
            CHECK_OK(bundle_slice_parse(texts[i], &full, &slice, &err), &err);
        CHECK_OK(i ? bundle_writer_add_slice(writer, "w", &full, &slice, &tensor, &err)
                   : bundle_writer_add(writer, "w", &tensor, &err),
                 &err);
        CHECK_OK(bundle_writer_finish(writer, &err), &err);
        CHECK_OK(file_read(folder_path("whole.index"), 1 << 20, &indexes[i], &err), &err);
        CHECK(indexes[i].size == indexes[0].size);
        CHECK(!memcmp(indexes[i].data, indexes[0].data, indexes[0].size));
    }
    for (int i = 0; i < ARRAY_LEN(texts); i++)
        str_release(&indexes[i]);
    tensor_release(&tensor);
}

/* Every flipped bit of the index is found, at opening or when it matters. */
TEST(bundle_finds_damage_of_the_index)
{
    write_two(folder_path("d"));
    struct stat status;
    char *index = alloc_text(folder_path("d.index"));
    CHECK(!stat(index, &status));
    for (size_t place = 0; place < (size_t)status.st_size; place++) {
        struct error err;
        struct tensor a;
        damage(index, place, (int)(place % 8));
        struct bundle_reader *reader = bundle_reader_open(folder_path("d"), &err);
        if (reader && bundle_reader_read(reader, "a/floats", &a, &err)) {
            /* Only what nothing depends on may be flipped unseen: the empty block, padding. */
            CHECK(shape_equal(&a.shape, &SHAPE(3, 4)));
            for (int i = 0; i < 12; i++)
                CHECK(tensor_f32(&a)[i] == (float)i);
            tensor_release(&a);
        } else {
            CHECK_INT(err.code, DATA_LOSS);
        }
        bundle_reader_close(reader);
        damage(index, place, (int)(place % 8));
    }
    for (size_t size = 0; size < (size_t)status.st_size; size += 7) {
        struct error err;
        write_two(folder_path("d"));
        damage(index, size, -1);
        CHECK_FAILS(bundle_reader_open(folder_path("d"), &err), &err, DATA_LOSS);
    }
    free(index);
}

TEST(bundle_finds_damage_of_the_data)
{
    struct error err;
    struct tensor tensor;
    const char *data = "d2.data-00000-of-00001";
    write_two(folder_path("d2"));
    damage(folder_path(data), 12, 3); /* in "a/floats", which comes second */
    struct bundle_reader *reader = bundle_reader_open(folder_path("d2"), &err);
    CHECK_FAILS(bundle_reader_read(reader, "a/floats", &tensor, &err), &err, DATA_LOSS);
    CHECK_OK(bundle_reader_read(reader, "b/text", &tensor, &err), &err);
    tensor_release(&tensor);
    bundle_reader_close(reader);

    damage(folder_path(data), 40, -1);
    reader = bundle_reader_open(folder_path("d2"), &err);
    CHECK_FAILS(bundle_reader_read(reader, "a/floats", &tensor, &err), &err, OUT_OF_RANGE);
    bundle_reader_close(reader);

    CHECK(!unlink(folder_path(data)));
    reader = bundle_reader_open(folder_path("d2"), &err);
    CHECK_FAILS(bundle_reader_read(reader, "b/text", &tensor, &err), &err, NOT_FOUND);
    bundle_reader_close(reader);
    CHECK_FAILS(bundle_reader_open(folder_path("none"), &err), &err, NOT_FOUND);
}

TEST(bundle_merges_parts)
{
    struct error err;
    struct tensor top = floats(&SHAPE(2, 3), 0), low = floats(&SHAPE(2, 3), 6), back;
    const char *prefixes[2];
    for (int i = 0; i < 2; i++) {
        char name[40];
        snprintf(name, sizeof(name), "part-%d_temp", i);
        CHECK(!mkdir(folder_path(name), 0700));
        snprintf(name, sizeof(name), "part-%d_temp/p", i);
        prefixes[i] = alloc_text(folder_path(name));
        struct bundle_writer *writer = bundle_writer_open(prefixes[i], &err);
        CHECK_OK(writer, &err);
        struct shape full;
        struct bundle_slice slice;
        const char *text = i ? "4 3 2,2:-" : "4 3 0,2:-";
        CHECK_OK(bundle_slice_parse(text, &full, &slice, &err), &err);
        CHECK_OK(bundle_writer_add_slice(writer, "v", &full, &slice, i ? &low : &top, &err),
                 &err);
        CHECK_OK(bundle_writer_add(writer, i ? "low" : "top", i ? &low : &top, &err), &err);
        CHECK_OK(bundle_writer_finish(writer, &err), &err);
    }
    CHECK_OK(bundle_merge(prefixes, 2, folder_path("merged"), true, &err), &err);
    CHECK(access(folder_path("part-0_temp"), F_OK) < 0);
    CHECK(!access(folder_path("merged.data-00001-of-00002"), F_OK));
    struct bundle_reader *reader = bundle_reader_open(folder_path("merged"), &err);
    CHECK_OK(reader, &err);
    CHECK_OK(bundle_reader_read(reader, "v", &back, &err), &err);
    CHECK(tensor_f32(&back)[11] == 11);
    tensor_release(&back);
    CHECK_OK(bundle_reader_read(reader, "low", &back, &err), &err);
    CHECK(tensor_equal(&back, &low));
    tensor_release(&back);
    bundle_reader_close(reader);
    CHECK_FAILS(bundle_merge((const char *[]){folder_path("merged"), folder_path("merged")}, 2,
                             folder_path("again"), false, &err),
                &err, INVALID);
    tensor_release(&top);
    tensor_release(&low);
    for (int i = 0; i < 2; i++)
        free((char *)prefixes[i]);
}

/* Copies the index of `from` to `to`, with one more key that a reader cannot ask for. */
static void copy_with_key(const char *from, const char *to, const char *key, size_t key_size)
{
    struct error err;
    struct str bytes = {0};
    CHECK_OK(file_read(from, 1 << 20, &bytes, &err), &err);
    struct table *table = table_open(bytes.data, bytes.size, &err);
    CHECK_OK(table, &err);
    const struct table_entry *entries;
    int count;
    CHECK_OK(table_block_entries(table, 0, &entries, &count, &err), &err);
    struct table_writer writer;
    table_writer_init(&writer);
    for (int i = 0; i < count; i++)
        table_writer_add(&writer, entries[i].key, entries[i].key_size, entries[i].value,
                         entries[i].value_size);
    table_writer_add(&writer, key, key_size, entries[count - 1].value,
                     entries[count - 1].value_size);
    table_writer_finish(&writer);
    CHECK_OK(file_write(to, writer.out.data, writer.out.size, &err), &err);
    table_writer_release(&writer);
    table_close(table);
    str_release(&bytes);
}

TEST(bundle_refuses_a_name_with_a_zero_byte)
{
    struct error err;
    const struct bundle_item *items;
    int count;
    write_two(folder_path("zero"));
    copy_with_key(folder_path("zero.index"), folder_path("zero.index"), "b/text\0x", 8);
    struct bundle_reader *reader = bundle_reader_open(folder_path("zero"), &err);
    CHECK_OK(reader, &err);
    CHECK_FAILS(bundle_reader_list(reader, &items, &count, &err), &err, DATA_LOSS);
    CHECK(strstr(err.text, "zero byte"));
    bundle_reader_close(reader);
}

/* An index that names one block for two ranges of keys: what is listed could not be found. */
TEST(table_refuses_a_block_out_of_order)
{
    struct error err;
    struct table_writer writer;
    static char value[300 << 10]; /* more than a block */
    table_writer_init(&writer);
    table_writer_add(&writer, "a", 1, value, sizeof(value));
    uint64_t offset = writer.pending_offset, size = writer.pending_size;
    table_writer_add(&writer, "b", 1, value, sizeof(value));
    writer.pending_offset = offset;
    writer.pending_size = size;
    table_writer_finish(&writer);

    struct table *table = table_open(writer.out.data, writer.out.size, &err);
    CHECK_OK(table, &err);
    const struct table_entry *entries, *found;
    int count;
    CHECK(table_blocks_count(table) == 2);
    CHECK_OK(table_block_entries(table, 0, &entries, &count, &err), &err);
    CHECK_FAILS(table_block_entries(table, 1, &entries, &count, &err), &err, DATA_LOSS);
    CHECK_FAILS(table_find(table, "b", 1, &found, &err), &err, DATA_LOSS);
    CHECK(strstr(err.text, "block 1"));
    table_close(table);
    table_writer_release(&writer);
}
