/* dataset_files.c - what the files of a dataset are. */

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "scheduler/agent/files.h"
#include "server/dataset.h"
#include "server/disk.h"

#define READ_BYTES (256 << 10)
#define CIFAR_RECORD_BYTES 3073
#define CIFAR_BATCHES 5

bool dataset_files_sha256(const char *path, char hex[DATASET_SHA256_TEXT], int64_t *bytes,
                          struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, NOT_FOUND, "cannot read %s", path);
    unsigned char digest[crypto_hash_sha256_BYTES];
    crypto_hash_sha256_state state;
    crypto_hash_sha256_init(&state);
    unsigned char *buffer = alloc_bytes(READ_BYTES);
    ssize_t count = 0;
    bool ok;
    *bytes = 0;
    while ((ok = dataset_describe_goes_on(err)) &&
           ((count = read(fd, buffer, READ_BYTES)) > 0 || (count < 0 && errno == EINTR))) {
        if (count < 0)
            continue;
        crypto_hash_sha256_update(&state, buffer, (unsigned long long)count);
        *bytes += count;
    }
    if (ok && count != 0)
        ok = error_errno(err, UNKNOWN, "cannot read %s", path);
    crypto_hash_sha256_final(&state, digest);
    sodium_bin2hex(hex, DATASET_SHA256_TEXT, digest, sizeof(digest));
    close(fd);
    free(buffer);
    return ok;
}

/* Reads a file, inflated if it is gzip: its first bytes and its whole length. */
static bool content_scan(const char *path, unsigned char *head, size_t head_size,
                         int64_t *length, struct error *err)
{
    gzFile file = gzopen(path, "rbe");
    if (!file)
        return error_errno(err, NOT_FOUND, "cannot read %s", path);
    unsigned char *buffer = alloc_bytes(READ_BYTES);
    int count, code = Z_OK;
    *length = 0;
    while ((count = gzread(file, buffer, READ_BYTES)) > 0) {
        for (int64_t i = *length; i < (int64_t)head_size && i - *length < count; i++)
            head[i] = buffer[i - *length];
        *length += count;
    }
    bool ok = true;
    if (count < 0)
        ok = fail(err, DATA_LOSS, "%s is damaged at byte %lld: %s", path,
                  (long long)gzoffset(file), gzerror(file, &code));
    if (gzclose_r(file) != Z_OK && ok)
        ok = fail(err, DATA_LOSS, "%s is cut short", path);
    free(buffer);
    return ok;
}

static int64_t big_endian(const unsigned char *bytes)
{
    return (int64_t)bytes[0] << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3];
}

/* Adds FOLDER/NAME or FOLDER/NAME.gz; false without an error when neither is there. */
static bool file_add(const char *folder, const char *name, struct dataset_files *files,
                     char **path, bool *found, struct error *err)
{
    *path = alloc_printf("%s/%s", folder, name);
    const char *suffix = "";
    *found = access(*path, F_OK) == 0;
    if (!*found) {
        free(*path);
        *path = alloc_printf("%s/%s.gz", folder, name);
        *found = access(*path, F_OK) == 0;
        suffix = ".gz";
    }
    if (!*found)
        return true;
    struct dataset_file *file = dataset_files_more(files);
    snprintf(file->name, sizeof(file->name), "%s%s", name, suffix);
    return dataset_files_sha256(*path, file->sha256, &file->bytes, err);
}

/* One IDX file of bytes with `rank` dimensions, which go to `dims`. */
static bool idx_add(const char *folder, const char *name, int rank, struct dataset_files *files,
                    int64_t *dims, struct error *err)
{
    char *path;
    bool found;
    unsigned char head[16] = {0};
    int64_t length, expected = 4 + 4 * rank;
    bool ok = file_add(folder, name, files, &path, &found, err);
    if (ok && !found)
        ok = fail(err, NOT_FOUND, "%s/%s is missing", folder, name);
    ok = ok && content_scan(path, head, 4 + 4 * (size_t)rank, &length, err);
    if (ok && (big_endian(head) != 0x800 + rank || length < expected))
        ok = fail(err, DATA_LOSS, "%s: at byte 0: no IDX file of bytes with %d dimensions",
                  path, rank);
    if (ok) {
        int64_t elements = 1;
        for (int d = 0; d < rank; d++) {
            dims[d] = big_endian(head + 4 + 4 * d);
            if (__builtin_mul_overflow(elements, dims[d], &elements))
                elements = INT64_MAX / 2;
        }
        expected += elements;
        if (length != expected)
            ok = fail(err, DATA_LOSS, "%s ends at byte %lld, its dimensions need %lld", path,
                      (long long)length, (long long)expected);
    }
    free(path);
    return ok;
}

/* The columns of pictures with ten classes. */
static json_t *pictures_json(int64_t height, int64_t width, int64_t channels)
{
    return json_pack("[{s:s, s:s, s:s, s:[I, I, I], s:i}, {s:s, s:s, s:s, s:[], s:i}]", "name",
                     "images", "role", "feature", "dtype", "float", "shape", (json_int_t)height,
                     (json_int_t)width, (json_int_t)channels, "classes", 0, "name", "labels",
                     "role", "target", "dtype", "int32", "shape", "classes", 0);
}

static bool idx_set_add(const char *folder, const char *set, struct dataset_files *files,
                        int64_t *count, struct error *err)
{
    char images[64], labels[64];
    int64_t images_dims[3], labels_dims[1];
    snprintf(images, sizeof(images), "%s-images-idx3-ubyte", set);
    snprintf(labels, sizeof(labels), "%s-labels-idx1-ubyte", set);
    if (!idx_add(folder, images, 3, files, images_dims, err) ||
        !idx_add(folder, labels, 1, files, labels_dims, err))
        return false;
    *count = images_dims[0];
    json_decref(files->columns);
    files->columns = pictures_json(images_dims[1], images_dims[2], 1);
    return *count == labels_dims[0] ||
           fail(err, DATA_LOSS, "%s/%s has %lld labels for %lld images", folder, labels,
                (long long)labels_dims[0], (long long)*count);
}

/* One file of CIFAR-10's; `*found` says whether it was there. */
static bool cifar_add(const char *folder, const char *name, struct dataset_files *files,
                      int64_t *count, bool *found, struct error *err)
{
    char *path;
    int64_t length = 0;
    bool ok = file_add(folder, name, files, &path, found, err);
    if (ok && *found)
        ok = content_scan(path, NULL, 0, &length, err);
    if (ok && length % CIFAR_RECORD_BYTES)
        ok = fail(err, DATA_LOSS, "%s has %lld bytes, which is not a multiple of %d", path,
                  (long long)length, CIFAR_RECORD_BYTES);
    *count += length / CIFAR_RECORD_BYTES;
    free(path);
    return ok;
}

static bool is_there(const char *folder, const char *name)
{
    char *plain = alloc_printf("%s/%s", folder, name);
    char *compressed = alloc_printf("%s.gz", plain);
    bool found = access(plain, F_OK) == 0 || access(compressed, F_OK) == 0;
    free(plain);
    free(compressed);
    return found;
}

bool dataset_files_describe(const char *folder, struct dataset_files *files, struct error *err)
{
    *files = (struct dataset_files){0};
    if (is_there(folder, "train-images-idx3-ubyte")) {
        snprintf(files->format, sizeof(files->format), "idx");
        return idx_set_add(folder, "train", files, &files->train_count, err) &&
               idx_set_add(folder, "t10k", files, &files->test_count, err);
    }
    if (is_there(folder, "data_batch_1.bin")) {
        snprintf(files->format, sizeof(files->format), "cifar10");
        files->columns = pictures_json(32, 32, 3);
        bool found;
        for (int i = 1; i <= CIFAR_BATCHES; i++) {
            char name[32];
            snprintf(name, sizeof(name), "data_batch_%d.bin", i);
            if (!cifar_add(folder, name, files, &files->train_count, &found, err))
                return false;
        }
        if (!cifar_add(folder, "test_batch.bin", files, &files->test_count, &found, err))
            return false;
        return found || fail(err, NOT_FOUND, "%s/test_batch.bin is missing", folder);
    }
    return dataset_describe(folder, files, err);
}

/* --- dataset.json --- */

static bool text_write(const char *path, const char *text, struct error *err)
{
    char *temporary = alloc_printf("%s.tmp", path);
    FILE *file = fopen(temporary, "wbe");
    bool ok = file && fputs(text, file) >= 0 && fflush(file) == 0 && fsync(fileno(file)) == 0;
    if (file && fclose(file) != 0)
        ok = false;
    ok = ok && rename(temporary, path) == 0;
    if (!ok) {
        error_errno(err, EXHAUSTED, "cannot write %s", path);
        unlink(temporary);
    }
    free(temporary);
    return ok;
}

bool dataset_files_write(const char *folder, const char *name,
                         const struct dataset_files *files, struct error *err)
{
    json_t *list = json_array();
    for (int i = 0; i < files->files_count; i++) {
        const struct dataset_file *file = &files->files[i];
        json_array_append_new(list, json_pack("{s:s, s:I, s:s}", "name", file->name, "bytes",
                                              (json_int_t)file->bytes, "sha256", file->sha256));
    }
    json_t *root =
        json_pack("{s:s, s:s, s:I, s:I, s:I, s:O*, s:o, s:s, s:I}", "name", name, "format",
                  files->format, "train", (json_int_t)files->train_count, "validation",
                  (json_int_t)files->validation_count, "test", (json_int_t)files->test_count,
                  "columns", files->columns, "files", list, "added_by", files->added_by,
                  "added_us", (json_int_t)files->added_us);
    char *text = json_dumps(root, JSON_INDENT(2));
    char *path = alloc_printf("%s/dataset.json", folder);
    bool ok = text_write(path, text, err);
    free(path);
    free(text);
    json_decref(root);
    return ok;
}

bool dataset_files_publish(const char *from, const char *place, struct error *err)
{
    if (!files_sync_folders(from, err))
        return false;
    if (rename(from, place) != 0)
        return errno == ENOTEMPTY || errno == EEXIST
                   ? fail(err, EXISTS, "there is something else already: %s", place)
                   : disk_error(err, "give the files of the dataset the name", place);
    return disk_sync_above(place, err);
}

static bool json_take(json_t *root, struct dataset_files *files)
{
    const char *format;
    const char *added_by = "";
    json_int_t train, validation = 0, test, added_us = 0;
    json_t *list, *columns = NULL;
    if (json_unpack(root, "{s:s, s:I, s?I, s:I, s?o, s:o, s?s, s?I}", "format", &format,
                    "train", &train, "validation", &validation, "test", &test, "columns",
                    &columns, "files", &list, "added_by", &added_by, "added_us",
                    &added_us) < 0 ||
        json_array_size(list) > DATASET_FILES_MAX)
        return false;
    snprintf(files->format, sizeof(files->format), "%s", format);
    files->columns = json_incref(columns);
    files->train_count = train;
    files->validation_count = validation;
    files->test_count = test;
    files->added_us = added_us;
    snprintf(files->added_by, sizeof(files->added_by), "%s", added_by);
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct dataset_file *file = dataset_files_more(files);
        const char *name, *sha256;
        json_int_t bytes;
        if (json_unpack(json_array_get(list, i), "{s:s, s:I, s:s}", "name", &name, "bytes",
                        &bytes, "sha256", &sha256) < 0)
            return false;
        snprintf(file->name, sizeof(file->name), "%s", name);
        snprintf(file->sha256, sizeof(file->sha256), "%s", sha256);
        file->bytes = bytes;
    }
    return true;
}

void dataset_files_release(struct dataset_files *files)
{
    json_decref(files->columns);
    free(files->files);
    *files = (struct dataset_files){0};
}

bool dataset_files_same(const struct dataset_files *a, const struct dataset_files *b)
{
    bool same = a->files_count == b->files_count;
    for (int i = 0; same && i < a->files_count; i++)
        same = !strcmp(a->files[i].name, b->files[i].name) &&
               !strcmp(a->files[i].sha256, b->files[i].sha256);
    return same;
}

bool dataset_files_read(const char *folder, struct dataset_files *files, struct error *err)
{
    *files = (struct dataset_files){0};
    char *path = alloc_printf("%s/dataset.json", folder);
    bool ok = access(path, F_OK) == 0 || error_errno(err, NOT_FOUND, "cannot read %s", path);
    if (ok) {
        json_t *root = json_load_file(path, 0, NULL);
        ok = (root && json_take(root, files)) || fail(err, DATA_LOSS, "%s is damaged", path);
        json_decref(root);
        if (!ok)
            dataset_files_release(files);
    }
    free(path);
    return ok;
}
