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
