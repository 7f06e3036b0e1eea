/* fuzz_image.c - files of images, and other sizes of what they hold; the first two bytes say
 * which. */

#include "runtime/io/image.h"
#include "tests/fuzz/fuzz.h"

#define PIXELS_MAX (1 << 22) /* more takes long, and shows nothing else */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error err;
    struct image image, other;
    if (size < 2)
        return 0;
    if (image_read(data + 2, size - 2, data[0] & 1 ? 1 : 3, &image, &err)) {
        FUZZ_CHECK(image.channels == (data[0] & 1 ? 1 : 3) && image.bits == 8);
        if (image.height > 0 && image.width > 0 && image.height * image.width < PIXELS_MAX) {
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
