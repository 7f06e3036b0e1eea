/*
 * fuzz_image.c - files of images, and other sizes of what they hold; the first two bytes say
 * which.
 *
 * Pictures that need more memory than the target gives are refused before they are decoded:
 * they take long, and show nothing that small ones do not.
 */

#include "runtime/io/image.h"
#include "tests/fuzz/fuzz.h"

#define PICTURE_BYTES_MAX 16384

/* Instead of those of the library, which have the product's limit. */
bool image_alloc(struct image *image, struct error *err)
{
    const int64_t factors[] = {image->frames, image->height, image->width, image->channels,
                               image->bits / 8};
    int64_t size = 1;
    for (int i = 0; i < ARRAY_LEN(factors); i++) {
        FUZZ_CHECK(factors[i] >= 0);
        if (factors[i] > 0 && size > PICTURE_BYTES_MAX / factors[i])
            return fail(err, INVALID, "more than %d bytes", PICTURE_BYTES_MAX);
        size *= factors[i];
    }
    image->pixels = calloc(size ? (size_t)size : 1, 1);
    FUZZ_CHECK(image->pixels);
    return true;
}

void image_release(struct image *image)
{
    free(image->pixels);
    image->pixels = NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error err;
    struct image image, other;
    if (size < 2)
        return 0;
    if (image_read(data + 2, size - 2, data[0] & 1 ? 1 : 3, &image, &err)) {
        FUZZ_CHECK(image.channels == (data[0] & 1 ? 1 : 3) && image.bits == 8);
        if (image.height > 0 && image.width > 0) {
            if (image_resize(&image, 1 + data[0] / 8, 1 + data[1] / 8, &other, &err))
                image_release(&other);
            else
                FUZZ_CHECK(err.code == INVALID || err.code == EXHAUSTED);
        }
        image_release(&image);
    } else {
        FUZZ_CHECK(err.code == INVALID || err.code == EXHAUSTED || err.code == DATA_LOSS);
        FUZZ_CHECK(err.text[0]);
    }
    return 0;
}
