/*
 * tf_read.c - reads files that TensorFlow wrote and compares them with what their sidecars say.
 *
 *   tf-read FOLDER      with checkpoints/ events/ tfrecord/ in it; prints "ok NAME" or "FAIL
 * NAME: why"
 */

#include <dirent.h>
#include <jansson.h>
#include <math.h>
#include <sodium.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "proto/tfevent.h"
#include "runtime/io/bundle.h"
#include "runtime/io/file.h"
#include "runtime/io/record_file.h"

static int failed_count;
static int ok_count;

static void report(const char *folder, const char *name, bool ok, const struct error *err)
{
    if (ok)
        printf("ok %s/%s\n", folder, name);
    else
        printf("FAIL %s/%s: %s: %s\n", folder, name, error_code_name(err->code), err->text);
    ok_count += ok;
    failed_count += !ok;
}

static const char *text_of(json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* A number, or one of the words for those that JSON lacks. */
static double number_of(json_t *value)
{
    const char *word = json_string_value(value);
    return word ? strtod(word, NULL) : json_number_value(value);
}

static void sha256_hex(const void *bytes, size_t size, char hex[65])
{
    unsigned char digest[crypto_hash_sha256_BYTES];
    crypto_hash_sha256(digest, bytes ? bytes : "", size);
    sodium_bin2hex(hex, 65, digest, sizeof(digest));
}

static bool same_sha256(const void *bytes, size_t size, json_t *expected, struct error *err)
{
    char hex[65];
    sha256_hex(bytes, size, hex);
    return !strcmp(hex, text_of(expected, "sha256")) || fail(err, INVALID, "other bytes");
}

static bool same_hex(const void *bytes, size_t size, const char *expected)
{
    char *hex = alloc_bytes(2 * size + 1);
    sodium_bin2hex(hex, 2 * size + 1, bytes, size);
    bool same = !strcmp(hex, expected);
    free(hex);
    return same;
}

/* --- checkpoints --- */

/* The code that TensorFlow's message stands for. */
static enum error_code expected_code(json_t *error)
{
    const char *type = text_of(error, "type"), *text = text_of(error, "text");
    if (!strcmp(type, "NotFoundError") || strstr(text, "No such file"))
        return NOT_FOUND;
    return !strcmp(type, "IndexError") ? OUT_OF_RANGE : DATA_LOSS;
}

/* A sidecar may give numpy's name for the elements: int16 for qint16. */
static bool same_type(enum dtype dtype, const char *expected)
{
    const char *name = dtype_name(dtype);
    return dtype_find(expected) == dtype || (name[0] == 'q' && !strcmp(name + 1, expected));
}

static bool same_tensor(const struct tensor *tensor, json_t *expected, struct error *err)
{
    json_t *shape = json_object_get(expected, "shape");
    bool same = same_type(tensor->dtype, text_of(expected, "dtype")) &&
                (int)json_array_size(shape) == tensor->shape.rank;
    for (int d = 0; same && d < tensor->shape.rank; d++)
        same = json_integer_value(json_array_get(shape, (size_t)d)) == tensor->shape.dims[d];
    if (!same)
        return fail(err, INVALID, "another type or shape");
    if (tensor->dtype != STRING)
        return same_sha256(tensor->data, (size_t)tensor->count * dtype_size(tensor->dtype),
                           expected, err);
    json_t *hex = json_object_get(expected, "hex");
    for (int64_t i = 0; same && i < tensor->count; i++)
        same = same_hex(tensor_strings(tensor)[i].data, tensor_strings(tensor)[i].size,
                        json_string_value(json_array_get(hex, (size_t)i)));
    return same || fail(err, INVALID, "another string");
}

/* Each slice that is stored, read alone, must be that part of the whole. */
static bool slices_check(struct bundle_reader *reader, const char *name,
                         const struct tensor *whole, json_t *slices, struct error *err)
{
    size_t index, d;
    json_t *extents, *extent;
    json_array_foreach(slices, index, extents)
    {
        struct bundle_slice slice = {.rank = whole->shape.rank};
        json_array_foreach(extents, d, extent)
        {
            slice.start[d] = json_integer_value(json_array_get(extent, 0));
            slice.length[d] = json_integer_value(json_array_get(extent, 1));
        }
        struct tensor part;
        if (!bundle_reader_read_slice(reader, name, &slice, &part, err))
            return false;
        bool same = true;
        int64_t at[LIMIT_TENSOR_RANK] = {0};
        size_t size = dtype_size(part.dtype);
        for (int64_t i = 0; same && i < part.count; i++) {
            int64_t place = 0;
            for (int k = 0; k < slice.rank; k++)
                place = place * whole->shape.dims[k] + slice.start[k] + at[k];
            same = !memcmp((char *)part.data + (size_t)i * size,
                           (char *)whole->data + (size_t)place * size, size);
            for (int k = slice.rank - 1; k >= 0 && ++at[k] == part.shape.dims[k]; k--)
                at[k] = 0;
        }
        tensor_release(&part);
        if (!same)
            return fail(err, INVALID, "slice %zu has other elements than the whole", index);
    }
    return true;
}

static bool tensor_check(struct bundle_reader *reader, json_t *expected, struct error *err)
{
    struct tensor tensor;
    json_t *error = json_object_get(expected, "error");
    const char *name = text_of(expected, "name");
    bool ok = bundle_reader_read(reader, name, &tensor, err);
    if (json_is_object(error)) {
        if (!ok)
            return err->code == expected_code(error) || error_prefix(err, "another code: ");
        tensor_release(&tensor);
        return fail(err, INVALID, "tensor '%s' must not be readable", name);
    }
    if (!ok)
        return false;
    json_t *slices = json_object_get(expected, "slices");
    ok = same_tensor(&tensor, expected, err) &&
         (!slices || slices_check(reader, name, &tensor, slices, err));
    tensor_release(&tensor);
    return ok || error_prefix(err, "tensor '%s': ", name);
}

static int compare_places(const void *a, const void *b)
{
    const struct bundle_item *left = a, *right = b;
    if (left->offset != right->offset)
        return left->offset < right->offset ? -1 : 1;
    return strcmp(left->name, right->name);
}

static bool same_file(const char *prefix, const char *ours, const char *part, struct error *err)
{
    struct str theirs_bytes = {0}, ours_bytes = {0};
    char *theirs_path = alloc_printf("%s%s", prefix, part);
    char *ours_path = alloc_printf("%s%s", ours, part);
    bool ok = file_read(theirs_path, 1 << 30, &theirs_bytes, err) &&
              file_read(ours_path, 1 << 30, &ours_bytes, err);
    if (ok && (theirs_bytes.size != ours_bytes.size ||
               memcmp(theirs_bytes.data, ours_bytes.data, ours_bytes.size) != 0))
        ok = fail(err, INVALID, "written again, %s has other bytes", part);
    unlink(ours_path);
    free(theirs_path);
    free(ours_path);
    str_release(&theirs_bytes);
    str_release(&ours_bytes);
    return ok;
}

/* Writes the same tensors in the same order: the files must be equal byte for byte. */
static bool write_again(struct bundle_reader *reader, const char *prefix, struct error *err)
{
    const struct bundle_item *listed;
    int count;
    if (!bundle_reader_list(reader, &listed, &count, err))
        return false;
    struct bundle_item *items = alloc_array((size_t)count, sizeof(*items));
    bool ok = true, is_whole = true;
    for (int i = 0; i < count; i++) {
        items[i] = listed[i];
        is_whole = is_whole && !items[i].slices_count && !items[i].shard;
    }
    qsort(items, (size_t)count, sizeof(*items), compare_places);
    const char *root = getenv("TMPDIR");
    char *ours = alloc_printf("%s/tf-read-%ld", root ? root : "/tmp", (long)getpid());
    struct bundle_writer *writer = is_whole ? bundle_writer_open(ours, err) : NULL;
    for (int i = 0; ok && writer && i < count; i++) {
        struct tensor tensor;
        ok = bundle_reader_read(reader, items[i].name, &tensor, err);
        if (ok) {
            ok = bundle_writer_add(writer, items[i].name, &tensor, err);
            tensor_release(&tensor);
        }
    }
    if (writer) {
        ok = bundle_writer_finish(writer, err) && ok;
        ok = ok && same_file(prefix, ours, ".index", err) &&
             same_file(prefix, ours, ".data-00000-of-00001", err);
    }
    free(ours);
    free(items);
    return ok && (!is_whole || writer);
}

static bool checkpoint_check(const char *prefix, json_t *sidecar, struct error *err)
{
    json_t *error = json_object_get(sidecar, "error");
    struct bundle_reader *reader = bundle_reader_open(prefix, err);
    if (json_is_object(error)) {
        bool refused = !reader && err->code == expected_code(error);
        if (reader)
            fail(err, INVALID, "must not open");
        bundle_reader_close(reader);
        return refused;
    }
    if (!reader)
        return false;
    json_t *tensors = json_object_get(sidecar, "tensors"), *expected;
    const struct bundle_item *items;
    int count;
    bool ok = bundle_reader_list(reader, &items, &count, err);
    if (ok && count != (int)json_array_size(tensors))
        ok = fail(err, INVALID, "%d tensors in place of %zu", count, json_array_size(tensors));
    size_t index;
    json_array_foreach(tensors, index, expected)
    {
        ok = ok && tensor_check(reader, expected, err);
    }
    if (ok && !json_is_true(json_object_get(sidecar, "damaged")))
        ok = write_again(reader, prefix, err);
    bundle_reader_close(reader);
    return ok;
}

/* --- files of records --- */

static bool end_check(const struct error *end, json_t *expected, struct error *err)
{
    const char *text = text_of(expected, "text");
    int code = (int)json_integer_value(json_object_get(expected, "code"));
    if ((int)end->code != code)
        return fail(err, INVALID, "ends with %s (%.400s)", error_code_name(end->code),
                    end->text);
    char *wanted = alloc_text_n(text, strcspn(text, "'"));
    bool same = strstr(end->text, wanted) != NULL;
    if (!same)
        fail(err, INVALID, "ends with '%.300s' in place of '%s'", end->text, wanted);
    free(wanted);
    return same;
}

static bool records_check(const char *path, json_t *sidecar, struct error *err)
{
    const char *compression = text_of(sidecar, "compression");
    enum stream_format format = !strcmp(compression, "GZIP")   ? STREAM_GZIP
                                : !strcmp(compression, "ZLIB") ? STREAM_ZLIB
                                                               : STREAM_PLAIN;
    struct record_file *file = record_file_open(path, format, err);
    if (!file)
        return false;
    bool ok = true;
    size_t index, size;
    const void *data;
    json_t *expected;
    json_array_foreach(json_object_get(sidecar, "records"), index, expected)
    {
        ok = ok && record_file_next(file, &data, &size, err);
        if (ok && (json_int_t)size != json_integer_value(json_object_get(expected, "length")))
            ok = fail(err, INVALID, "record %zu has another length", index);
        ok = ok && same_sha256(data, size, expected, err);
    }
    struct error end;
    if (ok && record_file_next(file, &data, &size, &end))
        ok = fail(err, INVALID, "has more records");
    ok = ok && end_check(&end, json_object_get(sidecar, "end"), err);
    record_file_close(file);
    return ok;
}

/* --- events --- */

static bool value_check(const struct tfevent_value *value, json_t *expected, struct error *err)
{
    json_t *metadata = json_object_get(expected, "metadata");
    json_t *tensor = json_object_get(expected, "tensor");
    bool ok = !strcmp(value->tag, text_of(expected, "tag"));
    if (metadata)
        ok = ok && !strcmp(value->plugin, text_of(metadata, "plugin_name"));
    if (!strcmp(text_of(expected, "kind"), "simple_value")) {
        double wanted = number_of(json_object_get(expected, "value"));
        ok = ok && value->is_scalar &&
             (value->scalar == wanted || (isnan(wanted) && isnan(value->scalar)));
    } else if (tensor && !json_array_size(json_object_get(tensor, "shape"))) {
        if (!strcmp(text_of(tensor, "dtype"), "string"))
            ok = ok && value->bytes &&
                 same_hex(value->bytes, value->size,
                          json_string_value(json_array_get(json_object_get(tensor, "hex"), 0)));
        else if (!strcmp(text_of(tensor, "dtype"), "float32") &&
                 !strcmp(value->plugin, "scalars")) {
            float wanted = 0;
            size_t size;
            const char *base64 = text_of(tensor, "base64");
            sodium_base642bin((unsigned char *)&wanted, sizeof(wanted), base64, strlen(base64),
                              NULL, &size, NULL, sodium_base64_VARIANT_ORIGINAL);
            float got = (float)value->scalar;
            ok = ok && value->is_scalar && !memcmp(&got, &wanted, sizeof(got));
        }
    }
    return ok || fail(err, INVALID, "value '%s' differs", value->tag);
}

static bool event_check(const struct tfevent *event, json_t *expected, struct error *err)
{
    static const char *const kinds[] = {"",
                                        "file_version",
                                        "graph_def",
                                        "summary",
                                        "log_message",
                                        "session_log",
                                        "tagged_run_metadata",
                                        "meta_graph_def"};
    if (strcmp(kinds[event->kind], text_of(expected, "what")) != 0 ||
        event->step != json_integer_value(json_object_get(expected, "step")) ||
        event->wall_time != number_of(json_object_get(expected, "wall_time")))
        return fail(err, INVALID, "another kind (%s), step or time", kinds[event->kind]);
    json_t *log = json_object_get(expected, "session_log");
    json_t *graph = json_object_get(expected, "graph");
    json_t *metadata = json_object_get(expected, "tagged_run_metadata");
    json_t *message = json_object_get(expected, "log_message");
    if (log && ((int)event->status != json_integer_value(json_object_get(log, "status")) ||
                strcmp(event->text, text_of(log, "checkpoint_path")) != 0))
        return fail(err, INVALID, "another session log");
    if (graph && !same_sha256(event->bytes, event->size, graph, err))
        return error_prefix(err, "graph: ");
    if (metadata &&
        (strcmp(event->text, text_of(metadata, "tag")) != 0 ||
         (json_int_t)event->size != json_integer_value(json_object_get(metadata, "bytes"))))
        return fail(err, INVALID, "another run metadata");
    if (message && strcmp(event->text, text_of(message, "message")) != 0)
        return fail(err, INVALID, "another message");

    json_t *values = json_object_get(expected, "values"), *value;
    size_t index;
    if (values && (int)json_array_size(values) != event->values_count)
        return fail(err, INVALID, "%d values", event->values_count);
    json_array_foreach(values, index, value)
    {
        if (!value_check(&event->values[index], value, err))
            return false;
    }
    return true;
}

static bool events_check(const char *path, json_t *sidecar, struct error *err)
{
    struct record_file *file = record_file_open(path, STREAM_PLAIN, err);
    if (!file)
        return false;
    bool ok = true;
    size_t index, size;
    const void *data;
    json_t *expected;
    json_array_foreach(json_object_get(sidecar, "records"), index, expected)
    {
        struct arena *arena = arena_new();
        struct tfevent event;
        ok = ok && record_file_next(file, &data, &size, err) &&
             tfevent_parse(data, size, arena, &event, err) &&
             event_check(&event, expected, err);
        arena_free(arena);
        if (!ok) {
            error_prefix(err, "record %zu: ", index);
            break;
        }
    }
    struct error end;
    json_t *error = json_object_get(sidecar, "error");
    if (ok && record_file_next(file, &data, &size, &end))
        ok = fail(err, INVALID, "has more records");
    if (ok && json_is_object(error))
        ok = end_check(&end, error, err);
    else if (ok && end.code != OUT_OF_RANGE)
        ok = fail(err, INVALID, "ends with %.600s", end.text);
    record_file_close(file);
    return ok;
}

/* --- walking --- */

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), end_size = strlen(end);
    return size >= end_size && !strcmp(text + size - end_size, end);
}

static int compare_names(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void checkpoints_read(const char *folder, const char *name)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, NULL, compare_names);
    for (int i = 0; i < count; i++) {
        const char *file = entries[i]->d_name;
        char *path = alloc_printf("%s/%s", folder, file);
        json_t *sidecar = ends_with(file, ".json") ? json_load_file(path, 0, NULL) : NULL;
        struct error err = {0};
        path[strlen(path) - (sidecar ? strlen(".json") : 0)] = 0;
        if (sidecar && !strcmp(name, "v1-table"))
            printf("skip checkpoints/%s: the format before V2\n", name);
        else if (sidecar)
            report("checkpoints", name, checkpoint_check(path, sidecar, &err), &err);
        json_decref(sidecar);
        free(path);
        free(entries[i]);
    }
    free(entries);
}

static void events_read(const char *folder, const char *name)
{
    char *path = alloc_printf("%s/expected.json", folder);
    json_t *sidecar = json_load_file(path, 0, NULL), *expected;
    const char *file;
    free(path);
    json_object_foreach(json_object_get(sidecar, "files"), file, expected)
    {
        struct error err = {0};
        path = alloc_printf("%s/%s", folder, file);
        char *shown = alloc_printf("%s/%s", name, file);
        report("events", shown, events_check(path, expected, &err), &err);
        free(shown);
        free(path);
    }
    json_decref(sidecar);
}

static void records_read(const char *folder, const char *name)
{
    char *path = alloc_printf("%s/%s", folder, name);
    json_t *sidecar = json_load_file(path, 0, NULL);
    char *file = alloc_printf("%s/%s", folder, text_of(sidecar, "file"));
    struct error err = {0};
    report("tfrecord", text_of(sidecar, "file"), records_check(file, sidecar, &err), &err);
    free(file);
    free(path);
    json_decref(sidecar);
}

int main(int argc, char **argv)
{
    static const char *const kinds[] = {"checkpoints", "events", "tfrecord"};
    if (argc != 2 || sodium_init() < 0) {
        fprintf(stderr, "usage: tf-read FOLDER\n");
        return 2;
    }
    for (int kind = 0; kind < ARRAY_LEN(kinds); kind++) {
        char *folder = alloc_printf("%s/%s", argv[1], kinds[kind]);
        struct dirent **entries = NULL;
        int count = scandir(folder, &entries, NULL, compare_names);
        for (int i = 0; i < count; i++) {
            const char *name = entries[i]->d_name;
            char *path = alloc_printf("%s/%s", folder, name);
            if (name[0] != '.' && kind == 0)
                checkpoints_read(path, name);
            else if (name[0] != '.' && kind == 1)
                events_read(path, name);
            else if (ends_with(name, ".json"))
                records_read(folder, name);
            free(path);
            free(entries[i]);
        }
        free(entries);
        free(folder);
    }
    if (!ok_count)
        printf("FAIL tf-read: nothing to read in %s\n", argv[1]);
    return failed_count || !ok_count;
}
