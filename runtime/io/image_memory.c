/* image_memory.c - the pixels of an image in memory. */

#include "runtime/io/image.h"

#include "base/error.h"
#include "base/limits.h"

bool image_alloc(struct image *image, struct error *err)
{
    const int64_t factors[] = {image->frames, image->height, image->width, image->channels,
                               image->bits / 8};
    int64_t size = 1;
    for (int i = 0; i < ARRAY_LEN(factors); i++) {
        if (factors[i] < 0 || (factors[i] > 0 && size > LIMIT_IMAGE_BYTES / factors[i]))
            return fail(err, INVALID, "an image of %lld x %lld x %d is too large",
                        (long long)image->height, (long long)image->width, image->channels);
        size *= factors[i];
    }
    image->pixels = calloc(size ? (size_t)size : 1, 1);
    return image->pixels ||
           fail(err, EXHAUSTED, "no memory for an image of %lld bytes", (long long)size);
}

void image_release(struct image *image)
{
    free(image->pixels);
    image->pixels = NULL;
}
