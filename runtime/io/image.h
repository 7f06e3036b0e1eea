/*
 * image.h - files of images: PNG, JPEG, BMP and GIF in memory, read and written.
 *
 * Sizes are checked against LIMIT_IMAGE_BYTES before anything is allocated for them.
 */
#pragma once

#include "base/base.h"

struct error;
struct str;

/* Rows top down, pixels left to right, channels innermost: grey, grey + alpha, RGB, RGB +
 * alpha. */
struct image {
    int64_t frames; /* 1 but for animations */
    int64_t height, width;
    int channels;
    int bits;     /* 8, or 16 in the machine's byte order */
    void *pixels; /* owned */
};

/* Memory for the pixels of an image whose other fields are set; fails with INVALID, EXHAUSTED.
 */
bool image_alloc(struct image *image, struct error *err) CHECKED;
void image_release(struct image *image);

/* --- whatever the format --- */

enum image_format { IMAGE_NONE, IMAGE_PNG, IMAGE_JPEG, IMAGE_GIF, IMAGE_BMP };

/* By how the file begins. */
enum image_format image_format(const void *bytes, size_t size);
const char *image_format_name(enum image_format format); /* "PNG" */

/*
 * Makes `*out` the image in a file of any of them, with 8 bits and `channels` (1, 3) channels;
 * of an animation the first frame.  Fails with INVALID when the bytes are none, EXHAUSTED.
 */
bool image_read(const void *bytes, size_t size, int channels, struct image *out,
                struct error *err) CHECKED;

#define IMAGE_SIDE_MAX 65536 /* pixels, of what is resized */

/* --- sizes (image_resize.c); 8 bits, one frame --- */

/*
 * Makes `*out` the image in another size: each pixel from those around it, nearer ones counting
 * more (a triangle as wide as the pixel, at least as two pixels of the source).  What is made
 * smaller does not alias.
 */
bool image_resize(const struct image *image, int64_t height, int64_t width, struct image *out,
                  struct error *err) CHECKED;

/* --- one format --- */

/*
 * Each makes `*out` the image in the file at `bytes`.  `channels` 0: as many as the file has.
 * Fail with INVALID when the bytes are no such file, or the channels cannot be had.
 */
bool image_read_png(const void *bytes, size_t size, int channels, int bits, struct image *out,
                    struct error *err) CHECKED;
bool image_read_bmp(const void *bytes, size_t size, int channels, struct image *out,
                    struct error *err) CHECKED;

struct jpeg_options {
    int channels; /* 0, 1, 3 */
    int ratio;    /* 1, 2, 4, 8: how much smaller */
    bool fancy_upscaling;
    bool recover_truncated; /* what is missing becomes grey */
    double acceptable_fraction;
    bool accurate_dct; /* slower */
};
bool image_read_jpeg(const void *bytes, size_t size, const struct jpeg_options *options,
                     struct image *out, struct error *err) CHECKED;

/* What the header says of the picture, as `*out` without pixels; the rest may be missing. */
bool image_jpeg_size(const void *bytes, size_t size, struct image *out,
                     struct error *err) CHECKED;

/* All frames, RGB.  (Parts outside the picture are cut.) */
bool image_read_gif(const void *bytes, size_t size, struct image *out,
                    struct error *err) CHECKED;

/* Appends a PNG file; `compression` 0 to 9, or -1 for zlib's default. */
bool image_write_png(const struct image *image, int compression, struct str *out,
                     struct error *err) CHECKED;

struct jpeg_quality {
    int quality; /* 0 to 100 */
    bool progressive, optimize_size, chroma_downsampling;
    bool per_centimetre; /* densities: else per inch */
    int x_density, y_density;
    const char *xmp; /* metadata, may be NULL */
    size_t xmp_size;
};
bool image_write_jpeg(const struct image *image, const struct jpeg_quality *quality,
                      struct str *out, struct error *err) CHECKED;
