/* hdf5.c - the parent's side of reading an HDF5 file. */

#include "runtime/io/hdf5.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "runtime/io/file.h"
#include "runtime/io/hdf5_internal.h"

#define HDF5_SILENCE_MS                                                                        \
    120000 /* the child is given up when it has nothing to say for so long */

struct reading {
    struct hdf5 *file;
    int capacity;
    int fd;
    uint64_t left; /* bytes of data that may still come */
    struct error *err;
};

static bool damaged(const struct reading *r, const char *why)
{
    return fail(r->err, DATA_LOSS, "%s: %s", r->file->name, why);
}

/* --- the pipe --- */

/* The next bytes of the child's; false when it has ended or is silent. */
static bool take(struct reading *r, void *bytes, size_t size)
{
    while (size) {
        struct pollfd one = {.fd = r->fd, .events = POLLIN};
        int ready = poll(&one, 1, HDF5_SILENCE_MS);
        if (ready < 0 && errno == EINTR)
            continue;
        ssize_t count = ready > 0 ? read(r->fd, bytes, size) : 0;
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return damaged(r, "it is damaged: the HDF5 library did not come to an end with it");
        bytes = (char *)bytes + count;
        size -= (size_t)count;
    }
    return true;
}

static bool take_text(struct reading *r, uint32_t size, char **out)
{
    char *text = alloc_bytes((size_t)size + 1);
    if (!take(r, text, size)) {
        free(text);
        return false;
    }
    *out = text;
    return true;
}

/* --- records --- */

static bool take_strings(struct reading *r, uint64_t data_size, struct tensor *value)
{
    struct str text = {0};
    bool ok = true;
    for (int64_t i = 0; ok && i < value->count; i++) {
        uint32_t size;
        ok = data_size >= sizeof(size) ? take(r, &size, sizeof(size))
                                       : damaged(r, "it is damaged: text ends early");
        if (!ok)
            break;
        data_size -= sizeof(size);
        str_clear(&text);
        ok = size <= data_size ? take(r, str_extend(&text, size), size)
                               : damaged(r, "it is damaged: text ends early");
        data_size -= size;
        if (ok)
            tensor_set_string(value, i, str_text(&text), size);
    }
    str_release(&text);
    return ok && (!data_size || damaged(r, "it is damaged: text goes on"));
}

static bool take_value(struct reading *r, const struct hdf5_head *head, struct tensor *value)
{
    uint64_t dims[LIMIT_TENSOR_RANK];
    struct shape shape = {.rank = (int)head->rank};
    if (!take(r, dims, head->rank * sizeof(*dims)))
        return false;
    uint64_t count = 1,
             each = head->dtype == STRING ? sizeof(uint32_t) : dtype_size((int)head->dtype);
    for (uint32_t i = 0; i < head->rank; i++) {
        if (dims[i] > INT64_MAX || (dims[i] && count > r->left / dims[i]))
            return damaged(r, "it is damaged: more data than the file could hold");
        shape.dims[i] = (int64_t)dims[i];
        count *= dims[i];
    }
    if (shape_count(&shape) < 0 || count > r->left / each || head->data_size > r->left ||
        (head->dtype != STRING && head->data_size != count * each) ||
        (head->dtype == STRING && head->data_size < count * each))
        return damaged(r, "it is damaged: more data than the file could hold");
    r->left -= head->data_size;
    if (!tensor_init(value, (enum dtype)head->dtype, &shape, r->err))
        return error_prefix(r->err, "%s: ", r->file->name);
    bool ok = head->dtype == STRING ? take_strings(r, head->data_size, value)
                                    : take(r, value->data, head->data_size);
    const unsigned char *bytes = value->data;
    for (int64_t i = 0; ok && head->dtype == BOOL && i < value->count; i++)
        ok = bytes[i] <= 1 || damaged(r, "it is damaged: a boolean that is none");
    if (!ok)
        tensor_release(value);
    return ok;
}

static bool is_sane(const struct hdf5_head *head)
{
    uint32_t types = BIT(STRING) | BIT(BOOL) | DTYPES_REAL;
    return head->kind >= HDF5_GROUP && head->kind <= HDF5_END &&
           head->path_size <= HDF5_NAME_BYTES && head->attribute_size <= HDF5_NAME_BYTES &&
           head->rank <= LIMIT_TENSOR_RANK && head->dtype < DTYPE_COUNT &&
           (!head->dtype || types >> head->dtype & 1);
}

/* One record; `*more` is false after the last. */
static bool take_item(struct reading *r, bool *more)
{
    struct hdf5_head head;
    struct hdf5 *file = r->file;
    if (!take(r, &head, sizeof(head)))
        return false;
    if (!is_sane(&head) || file->items_count == HDF5_ITEMS_MAX)
        return damaged(r, "it is damaged, or holds more than 1000000 objects");
    char *path = NULL, *attribute = NULL;
    if (!take_text(r, head.path_size, &path))
        return false;
    *more = head.kind != HDF5_END;
    if (head.kind == HDF5_END || head.kind == HDF5_FAILED) {
        bool ok = !*more || damaged(r, path);
        free(path);
        return ok;
    }
    if (head.kind == HDF5_ATTRIBUTE && !take_text(r, head.attribute_size, &attribute)) {
        free(path);
        return false;
    }
    file->items =
        alloc_grow(file->items, file->items_count, &r->capacity, sizeof(*file->items));
    struct hdf5_item *item = &file->items[file->items_count++];
    *item = (struct hdf5_item){path, attribute, head.kind == HDF5_GROUP, {0}};
    return !head.dtype || take_value(r, &head, &item->value);
}

bool hdf5_take(const char *name, int fd, size_t size, struct hdf5 *out, struct error *err)
{
    struct hdf5 file = {.name = alloc_text(name)};
    uint64_t most = (uint64_t)LIMIT_TENSOR_BYTES;
    struct reading r = {.file = &file,
                        .fd = fd,
                        .left = size > most / HDF5_EXPANSION ? most : size * HDF5_EXPANSION,
                        .err = err};
    bool ok = true, more = true;
    while (ok && more)
        ok = take_item(&r, &more);
    if (ok)
        *out = file;
    else
        hdf5_release(&file);
    return ok;
}

/* --- the child --- */

static bool read_source(const char *name, const struct hdf5_source *source, struct hdf5 *out,
                        struct error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_errno(err, EXHAUSTED, "cannot read %s", name);
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        close(ends[0]);
        hdf5_child_main(source, ends[1]);
    }
    close(ends[1]);
    bool ok = child > 0 || error_errno(err, EXHAUSTED, "cannot read %s", name);
    ok = ok && hdf5_take(name, ends[0], source->size, out, err);
    close(ends[0]);
    if (child > 0) {
        kill(child, SIGKILL); /* it has said all, or is given up */
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    return ok;
}

bool hdf5_read(const char *path, struct hdf5 *out, struct error *err)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool there = fd >= 0 && !fstat(fd, &status);
    if (!there)
        file_error(err, "read", path);
    if (fd >= 0)
        close(fd);
    if (!there)
        return false;
    if (!S_ISREG(status.st_mode))
        return fail(err, INVALID, "%s is not a file", path);
    return read_source(
        path, &(struct hdf5_source){.path = path, .size = (size_t)status.st_size}, out, err);
}

bool hdf5_read_bytes(const char *name, const void *bytes, size_t size, struct hdf5 *out,
                     struct error *err)
{
    if (!size)
        return fail(err, DATA_LOSS, "%s is empty", name);
    return read_source(name, &(struct hdf5_source){.path = name, .bytes = bytes, .size = size},
                       out, err);
}

/* --- what was read --- */

void hdf5_release(struct hdf5 *file)
{
    for (int i = 0; i < file->items_count; i++) {
        tensor_release(&file->items[i].value);
        free(file->items[i].path);
        free(file->items[i].attribute);
    }
    free(file->items);
    free(file->name);
    *file = (struct hdf5){0};
}

const struct hdf5_item *hdf5_find(const struct hdf5 *file, const char *path)
{
    for (int i = 0; i < file->items_count; i++) {
        if (!file->items[i].attribute && !strcmp(file->items[i].path, path))
            return &file->items[i];
    }
    return NULL;
}

const struct hdf5_item *hdf5_attribute(const struct hdf5 *file, const char *path,
                                       const char *attribute)
{
    for (int i = 0; i < file->items_count; i++) {
        const struct hdf5_item *item = &file->items[i];
        if (item->attribute && !strcmp(item->attribute, attribute) && !strcmp(item->path, path))
            return item;
    }
    return NULL;
}
