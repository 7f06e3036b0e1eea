/* image_test.c - files of images, whatever their format, and their sizes. */

#include "base/str.h"
#include "runtime/io/image.h"
#include "tests/unit/test.h"

static struct image image_of(int64_t height, int64_t width, int channels)
{
    struct error err;
    struct image image = {
        .frames = 1, .height = height, .width = width, .channels = channels, .bits = 8};
    CHECK_OK(image_alloc(&image, &err), &err);
    return image;
}

TEST(images_are_read_whatever_their_format)
{
    struct error err;
    struct image image = image_of(3, 5, 3), back;
    uint8_t *pixels = image.pixels;
    for (int i = 0; i < 45; i++)
        pixels[i] = 100;
    struct str file = {0};
    CHECK_OK(image_write_png(&image, -1, &file, &err), &err);
    CHECK_INT(image_format(file.data, file.size), IMAGE_PNG);
    CHECK_OK(image_read(file.data, file.size, 3, &back, &err), &err);
    CHECK(back.height == 3 && back.width == 5 && back.channels == 3);
    CHECK(!memcmp(back.pixels, pixels, 45));
    image_release(&back);
    CHECK_OK(image_read(file.data, file.size, 1, &back, &err), &err);
    CHECK_INT(back.channels, 1);
    CHECK_INT(((uint8_t *)back.pixels)[7], 100);
    image_release(&back);
    str_clear(&file);
    const struct jpeg_quality quality = {.quality = 95, .x_density = 1, .y_density = 1};
    CHECK_OK(image_write_jpeg(&image, &quality, &file, &err), &err);
    CHECK_INT(image_format(file.data, file.size), IMAGE_JPEG);
    CHECK_OK(image_read(file.data, file.size, 3, &back, &err), &err);
    for (int i = 0; i < 45; i++)
        CHECK(((uint8_t *)back.pixels)[i] >= 98 && ((uint8_t *)back.pixels)[i] <= 102);
    image_release(&back);
    CHECK_FAILS(image_read(file.data, file.size / 2, 3, &back, &err), &err, INVALID);
    CHECK_FAILS(image_read("text", 4, 3, &back, &err), &err, INVALID);
    CHECK(strstr(err.text, "PNG, JPEG, GIF or BMP"));
    image_release(&image);
    str_release(&file);
}

/* One colour becomes three, three become one, opacity goes. */
TEST(images_have_the_channels_that_are_wanted)
{
    unsigned char bmp[54 + 8] = "BM";
    bmp[10] = 54;
    bmp[18] = 1; /* width */
    bmp[22] = 2; /* height: the lower row first */
    bmp[28] = 32;
    const unsigned char rows[] = {0, 0, 255, 9, 255, 0, 0, 9}; /* blue, green, red, opacity */
    memcpy(bmp + 54, rows, sizeof(rows));
    struct image image;
    struct error err;
    CHECK_OK(image_read(bmp, sizeof(bmp), 3, &image, &err), &err);
    CHECK(image.height == 2 && image.width == 1 && image.channels == 3);
    CHECK(!memcmp(image.pixels, "\0\0\xff\xff\0\0", 6));
    image_release(&image);
    CHECK_OK(image_read(bmp, sizeof(bmp), 1, &image, &err), &err);
    CHECK_INT(((uint8_t *)image.pixels)[0], 29); /* 0.114 of 255 */
    CHECK_INT(((uint8_t *)image.pixels)[1], 76); /* 0.299 */
    image_release(&image);
}

TEST(resizing_to_the_same_size_changes_nothing)
{
    struct error err;
    struct image image = image_of(7, 9, 2), out;
    for (int i = 0; i < 126; i++)
        ((uint8_t *)image.pixels)[i] = (uint8_t)(i * 37);
    CHECK_OK(image_resize(&image, 7, 9, &out, &err), &err);
    CHECK(!memcmp(out.pixels, image.pixels, 126));
    image_release(&out);
    image_release(&image);
}

/* Fine stripes become grey when they are made smaller: nothing aliases. */
TEST(resizing_to_less_takes_all_pixels_in)
{
    struct error err;
    struct image image = image_of(64, 64, 1), out;
    for (int i = 0; i < 64 * 64; i++)
        ((uint8_t *)image.pixels)[i] = i % 2 ? 255 : 0;
    CHECK_OK(image_resize(&image, 8, 8, &out, &err), &err);
    for (int i = 0; i < 64; i++)
        CHECK(((uint8_t *)out.pixels)[i] >= 120 && ((uint8_t *)out.pixels)[i] <= 135);
    image_release(&out);
    CHECK_OK(image_resize(&image, 1, 1, &out, &err), &err);
    CHECK(((uint8_t *)out.pixels)[0] >= 127 && ((uint8_t *)out.pixels)[0] <= 128);
    image_release(&out);
    image_release(&image);
}

TEST(resizing_to_more_goes_in_a_line)
{
    struct error err;
    struct image image = image_of(1, 2, 1), out;
    ((uint8_t *)image.pixels)[1] = 200;
    CHECK_OK(image_resize(&image, 1, 4, &out, &err), &err);
    CHECK(!memcmp(out.pixels, "\0\x32\x96\xc8", 4)); /* 0, a quarter, three, all */
    image_release(&out);
    image_release(&image);
    image = image_of(1, 70000, 1);
    CHECK_FAILS(image_resize(&image, 1, 4, &out, &err), &err, INVALID);
    image_release(&image);
}

/* --- JPEG files that declare more than they hold --- */

static void write_jpeg(int64_t height, int64_t width, bool progressive, struct str *file)
{
    struct error err;
    struct image image = image_of(height, width, 1);
    const struct jpeg_quality quality = {
        .quality = 95, .progressive = progressive, .x_density = 1, .y_density = 1};
    CHECK_OK(image_write_jpeg(&image, &quality, file, &err), &err);
    image_release(&image);
}

/* Where the first segment begins, from `from` on, whose marker is one of two. */
static size_t find_marker(const struct str *file, size_t from, int either, int other)
{
    const unsigned char *bytes = (const unsigned char *)file->data;
    for (size_t i = from; i + 1 < file->size; i++)
        if (bytes[i] == 0xff && (bytes[i + 1] == either || bytes[i + 1] == other))
            return i;
    return file->size;
}

/* Overwrites the size that the header tells. */
static void declare(struct str *file, int height, int width)
{
    char *at = file->data + find_marker(file, 0, 0xc0, 0xc2) + 5;
    at[0] = (char)(height >> 8);
    at[1] = (char)height;
    at[2] = (char)(width >> 8);
    at[3] = (char)width;
}

TEST(a_jpeg_declares_no_more_than_its_bytes_can_hold)
{
    struct error err;
    struct image image;
    for (int progressive = 0; progressive < 2; progressive++) {
        struct str file = {0};
        write_jpeg(16, 16, progressive, &file);
        declare(&file, 1000, 2000); /* the rest becomes grey */
        CHECK_OK(image_read(file.data, file.size, 1, &image, &err), &err);
        CHECK(image.height == 1000 && image.width == 2000);
        image_release(&image);
        declare(&file, 20000, 30000);
        CHECK_FAILS(image_read(file.data, file.size, 1, &image, &err), &err, INVALID);
        CHECK(strstr(err.text, "20000 x 30000"));
        /* Its header is as good as any. */
        CHECK_OK(image_jpeg_size(file.data, file.size, &image, &err), &err);
        CHECK(image.height == 20000 && image.width == 30000 && image.channels == 1);
        CHECK(!image.pixels);
        str_release(&file);
    }
}

/* One colour takes the least bytes that there are for so many pixels. */
TEST(a_large_picture_of_one_colour_is_read)
{
    struct error err;
    struct image image;
    for (int progressive = 0; progressive < 2; progressive++) {
        struct str file = {0};
        write_jpeg(5000, 5000, progressive, &file);
        CHECK(file.size < 25000000 / 50);
        CHECK_OK(image_read(file.data, file.size, 1, &image, &err), &err);
        CHECK(image.height == 5000 && image.width == 5000);
        image_release(&image);
        str_release(&file);
    }
}

TEST(a_jpeg_of_very_many_scans_is_refused)
{
    struct error err;
    struct image image;
    struct str one = {0}, many = {0};
    write_jpeg(16, 16, true, &one);
    size_t scan = 0, end = find_marker(&one, 0, 0xd9, 0xd9);
    for (size_t at = 0; at < end; at = find_marker(&one, at + 2, 0xda, 0xda))
        scan = at;
    str_add_bytes(&many, one.data, scan);
    for (int i = 0; i < 150; i++) {
        if (i == 50) {
            struct str some = {0};
            str_add_bytes(&some, many.data, many.size);
            str_add_bytes(&some, one.data + end, one.size - end);
            CHECK_OK(image_read(some.data, some.size, 1, &image, &err), &err);
            image_release(&image);
            str_release(&some);
        }
        str_add_bytes(&many, one.data + scan, end - scan);
    }
    str_add_bytes(&many, one.data + end, one.size - end);
    CHECK_FAILS(image_read(many.data, many.size, 1, &image, &err), &err, INVALID);
    CHECK(strstr(err.text, "100 scans"));
    str_release(&one);
    str_release(&many);
}
