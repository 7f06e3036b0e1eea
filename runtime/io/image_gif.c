/*
 * image_gif.c - GIF files: frames of palette colours, compressed by LZW.
 *
 * Each frame is painted over what the frames before left; all come out with the size of the
 * picture.
 */

#include "runtime/io/image.h"

#include "base/alloc.h"
#include "base/error.h"

struct reader {
    const unsigned char *at, *end;
    struct error *err;
};

struct palette {
    const unsigned char *colors; /* (count, 3) */
    int count;
};

/* What the extension before a frame says of it. */
struct control {
    int transparent; /* colour that shows what is below; -1: none */
    int disposal;    /* 2: the frame's place is cleared afterwards, 3: put back */
};

struct frame {
    int64_t left, top, width, height;
    bool interlaced;
    struct palette palette;
    struct control control;
};

/* The next bytes; NULL (INVALID) when the file ends before. */
static const unsigned char *take(struct reader *r, size_t size)
{
    const unsigned char *bytes = r->at;
    if ((size_t)(r->end - r->at) < size)
        return fail_null(r->err, INVALID, "Invalid GIF data: the file ends too soon");
    r->at += size;
    return bytes;
}

static int64_t short_at(const unsigned char *bytes)
{
    return bytes[0] | bytes[1] << 8;
}

static bool take_palette(struct reader *r, unsigned char flags, struct palette *palette)
{
    if (!(flags & 0x80))
        return true;
    palette->count = 2 << (flags & 7);
    palette->colors = take(r, (size_t)palette->count * 3);
    return palette->colors != NULL;
}

/* Blocks of at most 255 bytes, each with its size in front, until an empty one. */
static bool skip_blocks(struct reader *r)
{
    const unsigned char *size;
    do {
        size = take(r, 1);
        if (!size || !take(r, *size))
            return false;
    } while (*size);
    return true;
}

static bool read_extension(struct reader *r, struct control *control)
{
    const unsigned char *label = take(r, 1);
    if (!label)
        return false;
    if (*label != 0xf9)
        return skip_blocks(r);
    const unsigned char *bytes = take(r, 6);
    if (!bytes)
        return false;
    control->disposal = bytes[1] >> 2 & 7;
    control->transparent = bytes[1] & 1 ? bytes[4] : -1;
    return bytes[5] == 0 || skip_blocks(r);
}

/* --- LZW: codes of growing width name strings of colours --- */

#define CODES 4096

struct decoder {
    struct reader *r;
    int64_t block_left; /* bytes left in the block */
    uint32_t bits;
    int bits_count;
    bool ended;
    uint16_t prefix[CODES]; /* the string without its last colour */
    uint8_t last[CODES], first[CODES];
    uint8_t stack[CODES + 1];
};

/* The next code, or -1 at the end of the data. */
static int next_code(struct decoder *d, int width)
{
    const unsigned char *byte;
    while (d->bits_count < width) {
        if (d->block_left == 0) {
            byte = d->ended ? NULL : take(d->r, 1);
            if (!byte)
                return -1;
            d->block_left = *byte;
            d->ended = *byte == 0;
            if (d->ended)
                return -1;
        }
        byte = take(d->r, 1);
        if (!byte)
            return -1;
        d->block_left--;
        d->bits |= (uint32_t)*byte << d->bits_count;
        d->bits_count += 8;
    }
    int code = (int)(d->bits & ((1U << width) - 1));
    d->bits >>= width;
    d->bits_count -= width;
    return code;
}

/* Fills `out` with at most `count` colours; fewer when the data ends. */
static bool unpack(struct decoder *d, int least, uint8_t *out, int64_t count)
{
    int clear = 1 << least, width = least + 1, next = clear + 2, before = -1, code;
    int64_t done = 0;
    for (int i = 0; i < clear; i++)
        d->first[i] = d->last[i] = (uint8_t)i;
    while (done < count && (code = next_code(d, width)) >= 0 && code != clear + 1) {
        if (code == clear) {
            width = least + 1;
            next = clear + 2;
            before = -1;
            continue;
        }
        if (code > next || (before < 0 && code >= clear))
            return fail(d->r->err, INVALID, "Invalid GIF data: a code out of order");
        /* The code about to be made: the string before with its own first colour. */
        int depth = 0, walk = code;
        if (code == next) {
            d->stack[depth++] = d->first[before];
            walk = before;
        }
        for (; walk >= clear; walk = d->prefix[walk])
            d->stack[depth++] = d->last[walk];
        d->stack[depth++] = (uint8_t)walk;
        if (before >= 0 && next < CODES) {
            d->prefix[next] = (uint16_t)before;
            d->first[next] = d->first[before];
            d->last[next] = (uint8_t)walk;
            next++;
            if (next == 1 << width && width < 12)
                width++;
        }
        before = code;
        while (depth > 0 && done < count)
            out[done++] = d->stack[--depth];
    }
    return true;
}

/* --- frames --- */

static bool read_frame(struct reader *r, const struct palette *shared, struct frame *frame)
{
    const unsigned char *bytes = take(r, 9);
    if (!bytes)
        return false;
    frame->left = short_at(bytes);
    frame->top = short_at(bytes + 2);
    frame->width = short_at(bytes + 4);
    frame->height = short_at(bytes + 6);
    frame->interlaced = bytes[8] & 0x40;
    frame->palette = *shared;
    return take_palette(r, bytes[8], &frame->palette) &&
           (frame->palette.count > 0 ||
            fail(r->err, INVALID, "Invalid GIF data: a frame without colours"));
}

/* The row that row `i` of the data is in an interlaced frame. */
static int64_t interlaced_row(int64_t i, int64_t height)
{
    static const int64_t starts[] = {0, 4, 2, 1}, steps[] = {8, 8, 4, 2};
    for (int pass = 0; pass < 4; pass++) {
        int64_t rows = (height - starts[pass] + steps[pass] - 1) / steps[pass];
        if (i < rows)
            return starts[pass] + i * steps[pass];
        i -= rows;
    }
    return height;
}

static void paint(const struct frame *frame, const uint8_t *colors, const struct image *image,
                  unsigned char *canvas)
{
    int64_t room = image->width - frame->left; /* what is to the right of that is not seen */
    for (int64_t i = 0; i < frame->height; i++) {
        int64_t y = frame->top + (frame->interlaced ? interlaced_row(i, frame->height) : i);
        for (int64_t x = 0; y < image->height && x < frame->width && x < room; x++) {
            int color = colors[i * frame->width + x];
            if (color == frame->control.transparent || color >= frame->palette.count)
                continue;
            memcpy(canvas + (y * image->width + frame->left + x) * 3,
                   frame->palette.colors + color * 3, 3);
        }
    }
}

static void clear_place(const struct frame *frame, const struct image *image,
                        unsigned char *canvas)
{
    for (int64_t y = frame->top; y < frame->top + frame->height && y < image->height; y++)
        for (int64_t x = frame->left; x < frame->left + frame->width && x < image->width; x++)
            memset(canvas + (y * image->width + x) * 3, 0, 3);
}

/* Adds the frame to the image, painted over `canvas`, which becomes what the next is over. */
static bool add_frame(struct reader *r, const struct frame *frame, struct image *image,
                      unsigned char *canvas)
{
    const unsigned char *least = take(r, 1);
    int64_t size = image->height * image->width * 3;
    if (!least)
        return false;
    if (*least < 1 || *least > 11)
        return fail(r->err, INVALID, "Invalid GIF data: codes of %d bits", *least);
    struct image colors = {
        .frames = 1, .height = frame->height, .width = frame->width, .channels = 1, .bits = 8};
    if (!image_alloc(&colors, r->err))
        return false;
    struct decoder *decoder = alloc_bytes(sizeof(*decoder));
    decoder->r = r;
    bool ok = unpack(decoder, *least, colors.pixels, frame->width * frame->height);
    /* What is left of the data. */
    if (ok && !decoder->ended)
        ok = take(r, (size_t)decoder->block_left) && skip_blocks(r);
    if (ok) {
        unsigned char *own = (unsigned char *)image->pixels + image->frames * size;
        memcpy(own, canvas, (size_t)size);
        paint(frame, colors.pixels, image, own);
        image->frames++;
        if (frame->control.disposal != 3)
            memcpy(canvas, own, (size_t)size);
        if (frame->control.disposal == 2)
            clear_place(frame, image, canvas);
    }
    image_release(&colors);
    free(decoder);
    return ok;
}

/* Walks the blocks of the file.  Without `canvas` frames are counted only. */
static bool walk(struct reader *r, const struct palette *shared, struct image *image,
                 unsigned char *canvas, int64_t *count)
{
    struct control control = {.transparent = -1};
    for (;;) {
        const unsigned char *kind = r->at == r->end ? NULL : take(r, 1);
        if (!kind || *kind == 0x3b)
            return true;
        if (*kind == 0x21) {
            if (!read_extension(r, &control))
                return false;
            continue;
        }
        if (*kind != 0x2c)
            return fail(r->err, INVALID, "Invalid GIF data: a block of unknown kind %d", *kind);
        struct frame frame;
        if (!read_frame(r, shared, &frame))
            return false;
        frame.control = control;
        control = (struct control){.transparent = -1};
        ++*count;
        if (canvas ? !add_frame(r, &frame, image, canvas) : !take(r, 1) || !skip_blocks(r))
            return false;
    }
}

bool image_read_gif(const void *bytes, size_t size, struct image *out, struct error *err)
{
    struct reader r = {bytes, (const unsigned char *)bytes + size, err};
    struct palette shared = {0};
    int64_t count = 0;
    *out = (struct image){.channels = 3, .bits = 8};
    const unsigned char *header = take(&r, 13);
    if (!header || !take_palette(&r, header[10], &shared))
        return false;
    out->width = short_at(header + 6);
    out->height = short_at(header + 8);
    struct reader ahead = r;
    if (!walk(&ahead, &shared, out, NULL, &count))
        return false;
    if (count == 0)
        return fail(err, INVALID, "Invalid GIF data: no frames");
    out->frames = count + 1; /* one more: the canvas */
    if (!image_alloc(out, err))
        return false;
    unsigned char *canvas = (unsigned char *)out->pixels + count * out->height * out->width * 3;
    out->frames = 0;
    count = 0;
    if (walk(&r, &shared, out, canvas, &count))
        return true;
    image_release(out);
    return false;
}
