/* images.c - see images.h. */

#include "runtime/dataset/images.h"

#include <pthread.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/io/file.h"
#include "runtime/io/image.h"
#include "runtime/machine.h"

#define IMAGES_FILE_BYTES (INT64_C(256) << 20)
#define IMAGES_THREADS_MAX 64

struct images_file {
    char *path;
    int32_t class;
    bool damaged;
};

struct images {
    struct dataset_examples examples; /* first */
    struct images_file *files;
    int count, capacity;
    struct images_options options;
    uint8_t *pixels; /* NULL: they are decoded when they are asked for */
    size_t bytes;    /* of one image */
    bool same_size;  /* images of another size are wrong */

    pthread_mutex_t lock; /* guards, while threads decode, those below */
    int next;
    int64_t damaged;
    bool fatal;         /* something is wrong that cannot be passed over */
    int first;          /* the first file that is damaged, */
    struct error error; /* and what is wrong with it */
};

struct images *images_new(void)
{
    struct images *images = alloc_bytes(sizeof(*images));
    pthread_mutex_init(&images->lock, NULL);
    return images;
}

void images_free(struct images *images)
{
    for (int i = 0; i < images->count; i++)
        free(images->files[i].path);
    pthread_mutex_destroy(&images->lock);
    free(images->files);
    free(images->pixels);
    free(images);
}

void images_add(struct images *images, char *path, int class)
{
    images->files =
        alloc_grow(images->files, images->count, &images->capacity, sizeof(*images->files));
    images->files[images->count++] = (struct images_file){.path = path, .class = class};
}

/* --- one file --- */

static bool decode(const char *path, const struct images_options *options, struct image *out,
                   struct error *err)
{
    struct str bytes = {0};
    bool ok = file_read(path, IMAGES_FILE_BYTES, &bytes, err);
    if (ok && !image_read(str_text(&bytes), bytes.size, (int)options->channels, out, err)) {
        err->code = err->code == EXHAUSTED ? EXHAUSTED : DATA_LOSS;
        ok = error_prefix(err, "%s: ", path);
    } else if (ok && (out->height < 1 || out->width < 1)) {
        image_release(out);
        ok = fail(err, DATA_LOSS, "%s: the image has no pixels", path);
    }
    str_release(&bytes);
    return ok;
}

/* Puts the pixels in the size that is wanted to `to`. */
static bool read_file(const struct images *images, int index, uint8_t *to, struct error *err)
{
    const struct images_options *options = &images->options;
    const char *path = images->files[index].path;
    struct image image, sized;
    if (!decode(path, options, &image, err))
        return false;
    if (image.height == options->height && image.width == options->width) {
        memcpy(to, image.pixels, images->bytes);
        image_release(&image);
        return true;
    }
    int64_t height = image.height, width = image.width;
    bool ok = !images->same_size &&
              image_resize(&image, options->height, options->width, &sized, err);
    image_release(&image);
    if (images->same_size)
        return error_at(err, "/data/image_size", INVALID,
                        "%s is %lld x %lld, others are %lld x %lld; image_size brings them to "
                        "one size",
                        path, (long long)height, (long long)width, (long long)options->height,
                        (long long)options->width);
    if (!ok)
        return error_prefix(err, "%s: ", path);
    memcpy(to, sized.pixels, images->bytes);
    image_release(&sized);
    return true;
}

/* --- all files --- */

static void note(struct images *images, int index, const struct error *error)
{
    pthread_mutex_lock(&images->lock);
    images->files[index].damaged = true;
    images->damaged++;
    images->fatal |= error->code != DATA_LOSS;
    /* Of several the first is told, but what cannot be passed over before the rest. */
    bool worse = error->code != DATA_LOSS && images->error.code == DATA_LOSS;
    bool milder = error->code == DATA_LOSS && images->fatal;
    if (images->first < 0 || worse || (!milder && index < images->first)) {
        images->first = index;
        images->error = *error;
    }
    pthread_mutex_unlock(&images->lock);
}

static void *images_main(void *arg)
{
    struct images *images = arg;
    uint8_t *other = images->pixels ? NULL : alloc_bytes(images->bytes);
    for (;;) {
        pthread_mutex_lock(&images->lock);
        int index = images->next < images->count ? images->next++ : -1;
        pthread_mutex_unlock(&images->lock);
        if (index < 0)
            break;
        struct error error;
        uint8_t *to = other ? other : images->pixels + (size_t)index * images->bytes;
        if (!read_file(images, index, to, &error))
            note(images, index, &error);
    }
    free(other);
    return NULL;
}

static void decode_all(struct images *images)
{
    pthread_t threads[IMAGES_THREADS_MAX];
    int wanted = machine_processors(), started = 0;
    if (wanted > IMAGES_THREADS_MAX)
        wanted = IMAGES_THREADS_MAX;
    /* This thread is one of them, so it goes on when no other can be started. */
    while (started + 1 < wanted &&
           pthread_create(&threads[started], NULL, images_main, images) == 0)
        started++;
    images_main(images);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}

/* The first whole image says how large all are. */
static bool find_size(struct images *images, struct error *err)
{
    struct image image;
    struct error later;
    for (int i = 0; i < images->count; i++) {
        if (!decode(images->files[i].path, &images->options, &image, i ? &later : err))
            continue;
        images->options.height = image.height;
        images->options.width = image.width;
        image_release(&image);
        return true;
    }
    return false;
}

/* Leaves out what is damaged. */
static void compact(struct images *images)
{
    int kept = 0;
    for (int i = 0; i < images->count; i++) {
        struct images_file file = images->files[i];
        if (file.damaged) {
            free(file.path);
            continue;
        }
        if (images->pixels && kept < i)
            memcpy(images->pixels + (size_t)kept * images->bytes,
                   images->pixels + (size_t)i * images->bytes, images->bytes);
        images->files[kept++] = file;
    }
    images->count = kept;
}

bool images_check(struct images *images, const char *folder, struct images_options *options,
                  int64_t *skipped, struct error *err)
{
    if (!images->count)
        return fail(err, INVALID, "%s has no images", folder);
    images->options = *options;
    images->same_size = options->same_size;
    images->first = -1;
    if (!options->height && !find_size(images, err))
        return false;
    *options = images->options;
    images->bytes = (size_t)(options->height * options->width * options->channels);
    if ((int64_t)images->bytes <= options->memory / images->count) {
        images->pixels = malloc((size_t)images->count * images->bytes);
        if (!images->pixels)
            return fail(err, EXHAUSTED, "no memory for the %d images of %s", images->count,
                        folder);
        options->memory -= (int64_t)images->bytes * images->count;
    }
    decode_all(images);
    if (images->fatal || images->damaged > options->skip_max) {
        *err = images->error;
        return options->skip_max > 0 && !images->fatal
                   ? error_prefix(err, "more than %lld damaged images; the first: ",
                                  (long long)options->skip_max)
                   : false;
    }
    *skipped += images->damaged;
    compact(images);
    return images->count || fail(err, DATA_LOSS, "every image of %s is damaged", folder);
}

/* --- examples --- */

static const void *images_at(const struct dataset_examples *examples, int column, int64_t row,
                             void *scratch, struct error *err)
{
    const struct images *images = (const struct images *)examples;
    if (column == 1)
        return &images->files[row].class;
    if (images->pixels)
        return images->pixels + (size_t)row * images->bytes;
    return read_file(images, (int)row, scratch, err) ? scratch : NULL;
}

static void images_examples_free(struct dataset_examples *examples)
{
    images_free((struct images *)examples);
}

struct dataset_examples *images_examples(struct images *images)
{
    images->examples = (struct dataset_examples){.count = images->count,
                                                 .at = images_at,
                                                 .free = images_examples_free,
                                                 .is_made = !images->pixels};
    return &images->examples;
}
