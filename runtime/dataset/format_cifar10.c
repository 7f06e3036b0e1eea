/* format_cifar10.c - CIFAR-10's binary batches: a label and 32x32 pixels in three planes a
 * record. */

#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/dataset/format.h"
#include "runtime/io/stream.h"

enum { SIDE = 32, PLANE = SIDE * SIDE, PIXELS = 3 * PLANE, RECORD = PIXELS + 1, CLASSES = 10 };
#define CIFAR_BYTES_MAX (INT64_C(4) << 30)

/* The path of FOLDER/NAME.bin or .bin.gz; NULL if neither is there.  Owned by the caller. */
static char *find_batch(const char *folder, const char *name)
{
    static const char *const endings[] = {"bin", "bin.gz"};
    for (int i = 0; i < ARRAY_LEN(endings); i++) {
        char *path = alloc_printf("%s/%s.%s", folder, name, endings[i]);
        if (access(path, F_OK) == 0)
            return path;
        free(path);
    }
    return NULL;
}

static bool read_stream(struct stream *stream, struct str *out, struct error *err)
{
    enum { CHUNK = 64 * RECORD };
    size_t count = CHUNK;
    while (count == CHUNK) {
        char *room = str_extend(out, CHUNK);
        if (!stream_read(stream, room, CHUNK, &count, err))
            return false;
        out->size -= CHUNK - count;
        if ((int64_t)out->size > CIFAR_BYTES_MAX)
            return fail(err, EXHAUSTED, "more than %lld bytes", (long long)CIFAR_BYTES_MAX);
    }
    if (!stream_is_whole(stream))
        return fail(err, DATA_LOSS, "the compressed file ends before its checksum");
    return true;
}

/* Appends the records of one file to `out`. */
static bool read_batch(const char *path, struct str *out, struct error *err)
{
    size_t before = out->size;
    struct stream *stream = stream_open(path, STREAM_AUTO, err);
    bool ok = stream && read_stream(stream, out, err);
    stream_close(stream);
    size_t size = out->size - before;
    if (ok && (!size || size % RECORD))
        ok =
            fail(err, DATA_LOSS, "ends at byte %zu, within a record of %d bytes", size, RECORD);
    for (size_t at = 0; ok && at < size; at += RECORD) {
        int label = (unsigned char)out->data[before + at];
        if (label >= CLASSES)
            ok = fail(err, DATA_LOSS, "at byte %zu: label %d, allowed: 0 to %d", at, label,
                      CLASSES - 1);
    }
    return ok || error_prefix(err, "%s: ", path);
}

/* Records become images (N,32,32,3), channels last, and labels (N). */
static bool convert(const struct str *records, struct tensor *images, struct tensor *labels,
                    struct error *err)
{
    int64_t count = (int64_t)(records->size / RECORD);
    if (!tensor_init(images, U8, &SHAPE(count, SIDE, SIDE, 3), err) ||
        !tensor_init(labels, U8, &SHAPE(count), err))
        return false;
    for (int64_t i = 0; i < count; i++) {
        const uint8_t *record = (const uint8_t *)records->data + i * RECORD;
        uint8_t *image = (uint8_t *)images->data + i * PIXELS;
        ((uint8_t *)labels->data)[i] = record[0];
        for (int p = 0; p < PLANE; p++) {
            for (int c = 0; c < 3; c++)
                image[3 * p + c] = record[1 + c * PLANE + p];
        }
    }
    return true;
}

static bool read_part(const char *folder, const char *const *names, struct tensor *images,
                      struct tensor *labels, struct error *err)
{
    struct str records = {0};
    bool ok = true;
    for (int i = 0; names[i] && ok; i++) {
        char *path = find_batch(folder, names[i]);
        if (path)
            ok = read_batch(path, &records, err);
        else if (!i)
            ok = fail(err, NOT_FOUND, "there is no %s/%s.bin", folder, names[i]);
        free(path);
    }
    ok = ok && convert(&records, images, labels, err);
    str_release(&records);
    return ok;
}

static bool cifar10_is(const char *folder)
{
    char *path = find_batch(folder, "data_batch_1");
    if (!path)
        path = find_batch(folder, "test_batch");
    free(path);
    return path;
}

static bool cifar10_open(struct dataset_opening *opening, struct error *err)
{
    static const char *const train[] = {"data_batch_1", "data_batch_2", "data_batch_3",
                                        "data_batch_4", "data_batch_5", NULL};
    static const char *const test[] = {"test_batch", NULL};
    const char *const *const names[] = {train, test};
    struct dataset *dataset = opening->dataset;
    struct dataset_part *parts[] = {&dataset->train, &dataset->test};
    format_add_pictures(dataset, &SHAPE(SIDE, SIDE, 3));
    for (int p = 0; p < 2; p++) {
        struct tensor tensors[2] = {{0}};
        bool ok =
            read_part(opening->folder, names[p], &tensors[0], &tensors[1], err) &&
            format_count_classes(&dataset->columns[1], &tensors[1], opening->folder, err) &&
            format_memory(dataset, parts[p], tensors, opening->folder, err);
        tensor_release(&tensors[0]);
        tensor_release(&tensors[1]);
        if (!ok)
            return false;
    }
    return true;
}

const struct dataset_format format_cifar10 = {
    .name = "cifar10",
    .wanted = "data_batch_1.bin and its like (CIFAR-10's binary batches; also .gz)",
    .is = cifar10_is,
    .open = cifar10_open,
};
