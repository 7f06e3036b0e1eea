/*
 * image_png.c - PNG files by libpng.
 *
 * libpng leaves a failed call by longjmp.  The functions that may be left so keep nothing of
 * their own that would be lost: what must be freed lives in the struct of their caller.
 */

#include "runtime/io/image.h"

#include <png.h>
#include <setjmp.h>
#include <zlib.h>

#include "base/error.h"
#include "base/str.h"

struct reader {
    png_structp png;
    png_infop info;
    const unsigned char *at, *end;
    struct image *image;
    png_bytep *rows;
    int file_bits;
    struct error *err;
};

static void on_error(png_structp png, png_const_charp text)
{
    struct error *err = png_get_error_ptr(png);
    (void)fail(err, INVALID, "Invalid PNG data: %s", text);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

static void read_bytes(png_structp png, png_bytep out, size_t size)
{
    struct reader *r = png_get_io_ptr(png);
    if ((size_t)(r->end - r->at) < size)
        png_error(png, "the file ends too soon");
    memcpy(out, r->at, size);
    r->at += size;
}

/* As many channels as the file has, where none are wished for. */
static int own_channels(const struct reader *r, int color)
{
    if (color != PNG_COLOR_TYPE_PALETTE)
        return png_get_channels(r->png, r->info);
    return png_get_valid(r->png, r->info, PNG_INFO_tRNS) ? 4 : 3;
}

/* Asks libpng to turn what the file has into what is wanted. */
static void set_transforms(struct reader *r, int color)
{
    bool trans = png_get_valid(r->png, r->info, PNG_INFO_tRNS) != 0;
    bool alpha = (color & PNG_COLOR_MASK_ALPHA) != 0;
    bool grey = !(color & PNG_COLOR_MASK_COLOR);
    if (r->image->channels % 2 == 0) {
        if (!alpha && trans)
            png_set_tRNS_to_alpha(r->png);
        else if (!alpha)
            png_set_add_alpha(r->png, (1U << r->file_bits) - 1, PNG_FILLER_AFTER);
    } else if (alpha || trans) {
        png_set_strip_alpha(r->png);
    }
    if (r->file_bits > 8 && r->image->bits == 8)
        png_set_strip_16(r->png);
    png_set_packing(r->png);
    (void)png_set_interlace_handling(r->png);
    if (r->image->bits == 16)
        png_set_swap(r->png);
    if (color == PNG_COLOR_TYPE_PALETTE)
        png_set_palette_to_rgb(r->png);
    if (grey && r->file_bits < 8)
        png_set_expand_gray_1_2_4_to_8(r->png);
    if (r->image->channels < 3 && !grey)
        png_set_rgb_to_gray(r->png, 1, 0.299, 0.587);
    else if (r->image->channels >= 3 && grey)
        png_set_gray_to_rgb(r->png);
    png_read_update_info(r->png, r->info);
}

/* Left by longjmp when the file is bad. */
static bool read_header(struct reader *r)
{
    png_uint_32 width, height;
    int color;
    png_set_read_fn(r->png, r, read_bytes);
    png_read_info(r->png, r->info);
    png_get_IHDR(r->png, r->info, &width, &height, &r->file_bits, &color, NULL, NULL, NULL);
    r->image->frames = 1;
    r->image->width = width;
    r->image->height = height;
    if (r->image->channels == 0)
        r->image->channels = own_channels(r, color);
    set_transforms(r, color);
    size_t row = (size_t)width * (size_t)r->image->channels;
    size_t file_row = png_get_rowbytes(r->png, r->info);
    if (file_row != row && file_row != 2 * row)
        png_error(r->png, "rows of an unexpected size");
    return image_alloc(r->image, r->err);
}

/* Left by longjmp when the file is bad. */
static bool read_rows(struct reader *r)
{
    size_t height = (size_t)r->image->height;
    size_t row =
        (size_t)r->image->width * (size_t)r->image->channels * (size_t)(r->image->bits / 8);
    r->rows = calloc(height ? height : 1, sizeof(*r->rows));
    if (!r->rows)
        return fail(r->err, EXHAUSTED, "no memory for %zu rows of an image", height);
    for (size_t y = 0; y < height; y++)
        r->rows[y] = (png_bytep)r->image->pixels + y * row;
    png_read_image(r->png, r->rows);
    png_read_end(r->png, r->info);
    return true;
}

/* Rows of 8 bits become 16 in place: each value stands in both bytes. */
static void widen(struct image *image)
{
    size_t row = (size_t)image->width * (size_t)image->channels;
    for (int64_t y = 0; y < image->height; y++) {
        unsigned char *bytes = (unsigned char *)image->pixels + (size_t)y * 2 * row;
        for (size_t i = row; i-- > 0;)
            bytes[2 * i] = bytes[2 * i + 1] = bytes[i];
    }
}

bool image_read_png(const void *bytes, size_t size, int channels, int bits, struct image *out,
                    struct error *err)
{
    struct reader r = {
        .at = bytes, .end = (const unsigned char *)bytes + size, .image = out, .err = err};
    *out = (struct image){.channels = channels, .bits = bits};
    r.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, err, on_error, on_warning);
    r.info = r.png ? png_create_info_struct(r.png) : NULL;
    volatile bool ok = false;
    if (!r.info)
        (void)fail(err, EXHAUSTED, "no memory to read a PNG file");
    else if (setjmp(png_jmpbuf(r.png)) == 0)
        ok = read_header(&r) && read_rows(&r);
    if (ok && bits == 16 && r.file_bits <= 8)
        widen(out);
    png_destroy_read_struct(&r.png, r.info ? &r.info : NULL, NULL);
    free(r.rows);
    if (!ok)
        image_release(out);
    return ok;
}

/* --- writing --- */

static void write_bytes(png_structp png, png_bytep bytes, size_t size)
{
    str_add_bytes(png_get_io_ptr(png), bytes, size);
}

static void flush_bytes(png_structp png)
{
    (void)png;
}

/* Left by longjmp when libpng does not like the image. */
static void write_image(png_structp png, png_infop info, const struct image *image,
                        int compression, struct str *out)
{
    static const int colors[] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA,
                                 PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
    size_t row = (size_t)image->width * (size_t)image->channels * (size_t)(image->bits / 8);
    png_set_write_fn(png, out, write_bytes, flush_bytes);
    png_set_compression_level(png, compression < 0 ? Z_DEFAULT_COMPRESSION : compression);
    png_set_compression_mem_level(png, MAX_MEM_LEVEL);
    png_set_IHDR(png, info, (png_uint_32)image->width, (png_uint_32)image->height, image->bits,
                 colors[image->channels], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    if (image->bits == 16)
        png_set_swap(png);
    for (int64_t y = 0; y < image->height; y++)
        png_write_row(png, (png_const_bytep)image->pixels + (size_t)y * row);
    png_write_end(png, NULL);
}

bool image_write_png(const struct image *image, int compression, struct str *out,
                     struct error *err)
{
    assert(image->channels >= 1);
    assert(image->channels <= 4);
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, err, on_error, on_warning);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    volatile bool ok = false;
    if (!info) {
        (void)fail(err, EXHAUSTED, "no memory to write a PNG file");
    } else if (setjmp(png_jmpbuf(png)) == 0) {
        write_image(png, info, image, compression, out);
        ok = true;
    }
    png_destroy_write_struct(&png, info ? &info : NULL);
    return ok;
}
