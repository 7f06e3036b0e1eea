/*
 * image_jpeg.c - JPEG files by libjpeg-turbo.
 *
 * libjpeg leaves a failed call by longjmp.  The functions that may be left so keep nothing of
 * their own that would be lost: what must be freed lives in the struct of their caller.
 */

/* These come first: their macros use what base.h bans. */
#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

#include <jerror.h>

#include "runtime/io/image.h"

#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"

#define JPEG_PIXELS_PER_BYTE 512   /* of a file, at most ... */
#define JPEG_PIXELS_BASE (1 << 24) /* ... beyond these, of which a part may be missing */
#define JPEG_SCANS_MAX 100         /* passes over the picture; honest files have some ten */
#define JPEG_MEMORY (4 * LIMIT_IMAGE_BYTES) /* for a picture that comes in several scans */

/* First member of what libjpeg calls the error manager. */
struct trap {
    struct jpeg_error_mgr manager;
    jmp_buf back;
    bool end_is_error;
    struct error *err;
};

static void on_error(j_common_ptr jpeg)
{
    struct trap *trap = (struct trap *)jpeg->err;
    char text[JMSG_LENGTH_MAX];
    jpeg->err->format_message(jpeg, text);
    (void)fail(trap->err, INVALID, "Invalid JPEG data or crop window: %s", text);
    longjmp(trap->back, 1);
}

/* Warnings are no errors, but for the end of the file in the middle of the picture. */
static void on_message(j_common_ptr jpeg, int level)
{
    const struct trap *trap = (const struct trap *)jpeg->err;
    if (level < 0 && trap->end_is_error && jpeg->err->msg_code == JWRN_JPEG_EOF)
        on_error(jpeg);
}

static struct jpeg_error_mgr *set_trap(struct trap *trap, bool end_is_error, struct error *err)
{
    jpeg_std_error(&trap->manager);
    trap->manager.error_exit = on_error;
    trap->manager.emit_message = on_message;
    trap->end_is_error = end_is_error;
    trap->err = err;
    return &trap->manager;
}

struct reader {
    struct jpeg_decompress_struct jpeg;
    struct trap trap;
    struct jpeg_progress_mgr progress;
    struct image *image;
    unsigned char *row; /* of four colours, when the file is for printing */
};

static void set_options(struct reader *r, const struct jpeg_options *options)
{
    struct jpeg_decompress_struct *jpeg = &r->jpeg;
    r->image->channels = options->channels;
    if (r->image->channels == 0)
        r->image->channels = jpeg->num_components < 3 ? jpeg->num_components : 3;
    bool four = jpeg->jpeg_color_space == JCS_CMYK || jpeg->jpeg_color_space == JCS_YCCK;
    jpeg->out_color_space = r->image->channels == 1 ? JCS_GRAYSCALE : four ? JCS_CMYK : JCS_RGB;
    jpeg->do_fancy_upsampling = options->fancy_upscaling;
    jpeg->scale_num = 1;
    jpeg->scale_denom = (unsigned)options->ratio;
    jpeg->dct_method = options->accurate_dct ? JDCT_ISLOW : JDCT_IFAST;
}

/*
 * A picture takes one bit at least for each block of 8 x 8, so a file cannot hold more than 512
 * pixels for each of its bytes.  libjpeg would make up what is missing, however much it is.
 */
static bool check_size(const struct jpeg_decompress_struct *jpeg, size_t size,
                       struct error *err)
{
    int64_t pixels = (int64_t)jpeg->image_width * jpeg->image_height;
    int64_t most = JPEG_PIXELS_BASE + (int64_t)size * JPEG_PIXELS_PER_BYTE;
    return pixels <= most ||
           fail(err, INVALID,
                "Invalid JPEG data: a picture of %u x %u, allowed for a file of %zu bytes: "
                "%lld pixels",
                jpeg->image_height, jpeg->image_width, size, (long long)most);
}

/* Called by libjpeg as it goes.  Each scan of a progressive file is one more pass over all of
 * the picture, which may take the file a few bytes. */
static void on_progress(j_common_ptr common)
{
    const struct jpeg_decompress_struct *jpeg = (struct jpeg_decompress_struct *)common;
    struct trap *trap = (struct trap *)jpeg->err;
    if (jpeg->input_scan_number <= JPEG_SCANS_MAX)
        return;
    (void)fail(trap->err, INVALID, "Invalid JPEG data: more than %d scans", JPEG_SCANS_MAX);
    longjmp(trap->back, 1);
}

/* Inks (inverted, as Adobe writes them) to light. */
static void to_rgb(const unsigned char *ink, unsigned char *rgb, int64_t width)
{
    for (int64_t x = 0; x < width; x++, ink += 4, rgb += 3)
        for (int c = 0; c < 3; c++)
            rgb[c] = (unsigned char)(ink[c] * ink[3] / 255);
}

/* Left by longjmp when the file is bad. */
static void read_header(struct reader *r, const void *bytes, size_t size)
{
    jpeg_create_decompress(&r->jpeg);
    jpeg_mem_src(&r->jpeg, bytes, (unsigned long)size);
    jpeg_read_header(&r->jpeg, TRUE);
}

static void set_size(struct reader *r)
{
    jpeg_calc_output_dimensions(&r->jpeg);
    r->image->frames = 1;
    r->image->bits = 8;
    r->image->height = r->jpeg.output_height;
    r->image->width = r->jpeg.output_width;
}

/* Left by longjmp when the file is bad. */
static bool read_picture(struct reader *r, const void *bytes, size_t size,
                         const struct jpeg_options *options, struct error *err)
{
    struct jpeg_decompress_struct *jpeg = &r->jpeg;
    struct image *image = r->image;
    read_header(r, bytes, size);
    set_options(r, options);
    set_size(r);
    if (!check_size(jpeg, size, err) || !image_alloc(image, err))
        return false;
    r->progress.progress_monitor = on_progress;
    jpeg->progress = &r->progress;
    jpeg->mem->max_memory_to_use = JPEG_MEMORY;
    jpeg_start_decompress(jpeg);
    bool four = jpeg->out_color_space == JCS_CMYK;
    if (four && !(r->row = malloc((size_t)image->width * 4)))
        return fail(err, EXHAUSTED, "no memory for a row of an image");
    while (jpeg->output_scanline < jpeg->output_height) {
        unsigned char *to = (unsigned char *)image->pixels + (size_t)jpeg->output_scanline *
                                                                 (size_t)image->width *
                                                                 (size_t)image->channels;
        JSAMPROW row = four ? r->row : to;
        jpeg_read_scanlines(jpeg, &row, 1);
        if (four)
            to_rgb(r->row, to, image->width);
    }
    jpeg_finish_decompress(jpeg);
    return true;
}

bool image_read_jpeg(const void *bytes, size_t size, const struct jpeg_options *options,
                     struct image *out, struct error *err)
{
    struct reader r = {.image = out};
    volatile bool ok = false;
    *out = (struct image){0};
    r.jpeg.err = set_trap(&r.trap, !options->recover_truncated, err);
    if (setjmp(r.trap.back) == 0)
        ok = read_picture(&r, bytes, size, options, err);
    jpeg_destroy_decompress(&r.jpeg);
    free(r.row);
    if (!ok)
        image_release(out);
    return ok;
}

bool image_jpeg_size(const void *bytes, size_t size, struct image *out, struct error *err)
{
    struct reader r = {.image = out};
    volatile bool ok = false;
    *out = (struct image){0};
    r.jpeg.err = set_trap(&r.trap, false, err);
    if (setjmp(r.trap.back) == 0) {
        read_header(&r, bytes, size);
        set_size(&r);
        out->channels = r.jpeg.output_components;
        ok = true;
    }
    jpeg_destroy_decompress(&r.jpeg);
    return ok;
}

/* --- writing --- */

struct writer {
    struct jpeg_compress_struct jpeg;
    struct trap trap;
    unsigned char *bytes; /* libjpeg allocates them, we free */
    unsigned long size;
};

static void set_quality(struct jpeg_compress_struct *jpeg, const struct jpeg_quality *quality)
{
    jpeg_set_quality(jpeg, quality->quality, TRUE);
    if (quality->progressive)
        jpeg_simple_progression(jpeg);
    if (!quality->chroma_downsampling)
        for (int c = 0; c < jpeg->num_components; c++) {
            jpeg->comp_info[c].h_samp_factor = 1;
            jpeg->comp_info[c].v_samp_factor = 1;
        }
    jpeg->optimize_coding = quality->optimize_size;
    jpeg->density_unit = quality->per_centimetre ? 2 : 1;
    jpeg->X_density = (UINT16)quality->x_density;
    jpeg->Y_density = (UINT16)quality->y_density;
}

/* Metadata in the segment that Adobe's XMP has: a name, NUL, the text. */
static void write_xmp(struct jpeg_compress_struct *jpeg, const struct jpeg_quality *quality)
{
    static const char name[] = "http://ns.adobe.com/xap/1.0/";
    struct str text = {0};
    if (quality->xmp_size == 0 || quality->xmp_size + sizeof(name) > 65533)
        return;
    str_add_bytes(&text, name, sizeof(name));
    str_add_bytes(&text, quality->xmp, quality->xmp_size);
    jpeg_write_marker(jpeg, JPEG_APP0 + 1, (const JOCTET *)text.data, (unsigned)text.size);
    str_release(&text);
}

/* Left by longjmp when libjpeg does not like the image. */
static void write_picture(struct writer *w, const struct image *image,
                          const struct jpeg_quality *quality)
{
    struct jpeg_compress_struct *jpeg = &w->jpeg;
    jpeg_create_compress(jpeg);
    jpeg_mem_dest(jpeg, &w->bytes, &w->size);
    jpeg->image_width = (JDIMENSION)image->width;
    jpeg->image_height = (JDIMENSION)image->height;
    jpeg->input_components = image->channels;
    jpeg->in_color_space = image->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(jpeg);
    set_quality(jpeg, quality);
    jpeg_start_compress(jpeg, TRUE);
    write_xmp(jpeg, quality);
    size_t row = (size_t)image->width * (size_t)image->channels;
    while (jpeg->next_scanline < jpeg->image_height) {
        JSAMPROW from = (JSAMPROW)image->pixels + (size_t)jpeg->next_scanline * row;
        jpeg_write_scanlines(jpeg, &from, 1);
    }
    jpeg_finish_compress(jpeg);
}

bool image_write_jpeg(const struct image *image, const struct jpeg_quality *quality,
                      struct str *out, struct error *err)
{
    struct writer w = {.bytes = NULL};
    volatile bool ok = false;
    w.jpeg.err = set_trap(&w.trap, false, err);
    if (setjmp(w.trap.back) == 0) {
        write_picture(&w, image, quality);
        str_add_bytes(out, w.bytes, w.size);
        ok = true;
    }
    jpeg_destroy_compress(&w.jpeg);
    free(w.bytes);
    return ok;
}
