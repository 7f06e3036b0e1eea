/*
 * tf_write.c - writes checkpoints, event files and files of records for TensorFlow to read.
 *
 *   tf-write FOLDER     makes FOLDER/{types,big,slices,published,scalars,restart,NAME.tfrecord}
 * and, beside each, a JSON that says what the checkers must find
 */

#include <jansson.h>
#include <math.h>
#include <sodium.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "proto/tfevent.h"
#include "runtime/checkpoint.h"
#include "runtime/io/bundle.h"
#include "runtime/io/file.h"
#include "runtime/io/record_file.h"

static struct error err;

/* Ends the program when a step of writing fails. */
static void must(bool ok)
{
    if (ok)
        return;
    printf("FAIL tf-write: %s: %s\n", error_code_name(err.code), err.text);
    exit(1);
}

static void hex_add(json_t *object, const char *key, const void *bytes, size_t size, bool hash)
{
    unsigned char digest[crypto_hash_sha256_BYTES];
    if (hash)
        crypto_hash_sha256(digest, bytes ? bytes : "", size);
    size_t count = hash ? sizeof(digest) : size;
    char *hex = alloc_bytes(2 * count + 1);
    sodium_bin2hex(hex, 2 * count + 1, hash ? digest : bytes, count);
    if (json_is_array(object))
        json_array_append_new(object, json_string(hex));
    else
        json_object_set_new(object, key, json_string(hex));
    free(hex);
}

static void json_save(const char *folder, const char *name, json_t *root)
{
    char *path = alloc_printf("%s/%s", folder, name);
    if (json_dump_file(root, path, JSON_INDENT(1)) < 0)
        must(fail(&err, UNKNOWN, "cannot write %s", path));
    json_decref(root);
    free(path);
}

/* --- checkpoints --- */

/* TensorFlow's name of a type in as_dtype().name. */
static const char *type_name(enum dtype dtype)
{
    switch (dtype) {
    case F32:
        return "float32";
    case F64:
        return "float64";
    case F16:
        return "float16";
    default:
        return dtype_name(dtype);
    }
}

static json_t *tensor_json(const char *name, const struct tensor *tensor)
{
    json_t *shape = json_array(), *hex = json_array();
    for (int d = 0; d < tensor->shape.rank; d++)
        json_array_append_new(shape, json_integer(tensor->shape.dims[d]));
    json_t *object = json_pack("{s:s, s:s, s:o}", "name", name, "dtype",
                               type_name(tensor->dtype), "shape", shape);
    if (tensor->dtype == STRING) {
        for (int64_t i = 0; i < tensor->count; i++)
            hex_add(hex, NULL, tensor_strings(tensor)[i].data, tensor_strings(tensor)[i].size,
                    false);
        json_object_set(object, "hex", hex);
    } else {
        hex_add(object, "sha256", tensor->data,
                (size_t)tensor->count * dtype_size(tensor->dtype), true);
    }
    json_decref(hex);
    return object;
}

static struct tensor tensor_make(enum dtype dtype, const struct shape *shape)
{
    struct tensor tensor;
    must(tensor_init(&tensor, dtype, shape, &err));
    if (dtype == STRING) {
        for (int64_t i = 0; i < tensor.count; i++) {
            char text[40];
            int size = snprintf(text, sizeof(text), "element %lld", (long long)i);
            tensor_set_string(&tensor, i, i == 1 ? "" : text, i == 1 ? 0 : (size_t)size);
        }
    } else {
        unsigned char *bytes = tensor.data;
        size_t size = (size_t)tensor.count * dtype_size(dtype);
        for (size_t i = 0; i < size; i++)
            bytes[i] = dtype == BOOL ? i % 2 : (unsigned char)(i * 37 + (size_t)dtype);
    }
    return tensor;
}

static void write_types(const char *folder)
{
    const struct shape shapes[] = {SHAPE_SCALAR, SHAPE(0), SHAPE(3, 4), SHAPE(2, 0, 5)};
    char *prefix = alloc_printf("%s/types", folder);
    struct bundle_writer *writer = bundle_writer_open(prefix, &err);
    must(writer);
    json_t *list = json_array();
    for (int dtype = 1; dtype < DTYPE_COUNT; dtype++) {
        if (!(BIT(dtype) & (DTYPES_PLAIN | BIT(STRING))))
            continue;
        for (int i = 0; i < ARRAY_LEN(shapes); i++) {
            struct tensor tensor = tensor_make((enum dtype)dtype, &shapes[i]);
            char *name = alloc_printf("t/%s_%d", dtype_name(dtype), i);
            must(bundle_writer_add(writer, name, &tensor, &err));
            json_array_append_new(list, tensor_json(name, &tensor));
            tensor_release(&tensor);
            free(name);
        }
    }
    must(bundle_writer_finish(writer, &err));
    json_save(folder, "types.json", json_pack("{s:o}", "tensors", list));
    free(prefix);
}

/* Names that share much, in an index of several blocks. */
static void write_big(const char *folder)
{
    char *prefix = alloc_printf("%s/big", folder);
    struct bundle_writer *writer = bundle_writer_open(prefix, &err);
    must(writer);
    json_t *list = json_array();
    for (int i = 0; i < 9000; i++) {
        struct tensor tensor;
        must(tensor_init_scalar(&tensor, I32, i, &err));
        char *name =
            alloc_printf("model/layer_with_a_long_name_%d/%d/kernel/Adam_%d", i % 7, i, i % 2);
        must(bundle_writer_add(writer, name, &tensor, &err));
        json_array_append_new(list, tensor_json(name, &tensor));
        tensor_release(&tensor);
        free(name);
    }
    must(bundle_writer_finish(writer, &err));
    json_save(folder, "big.json", json_pack("{s:o}", "tensors", list));
    free(prefix);
}

static void write_slices(const char *folder)
{
    static const char *const texts[] = {"100 70 0,3:-", "100 70 3,97:0,64", "100 70 3,97:64,6"};
    struct tensor whole = tensor_make(I32, &SHAPE(100, 70));
    char *prefix = alloc_printf("%s/slices", folder);
    struct bundle_writer *writer = bundle_writer_open(prefix, &err);
    must(writer);
    for (int i = 0; i < ARRAY_LEN(texts); i++) {
        struct shape full, shape = {.rank = 2};
        struct bundle_slice slice;
        must(bundle_slice_parse(texts[i], &full, &slice, &err));
        for (int d = 0; d < 2; d++)
            shape.dims[d] = slice.length[d] < 0 ? full.dims[d] : slice.length[d];
        struct tensor part;
        must(tensor_init(&part, I32, &shape, &err));
        for (int64_t y = 0; y < shape.dims[0]; y++)
            memcpy((int32_t *)part.data + y * shape.dims[1],
                   (int32_t *)whole.data + (y + slice.start[0]) * 70 + slice.start[1],
                   4 * (size_t)shape.dims[1]);
        must(bundle_writer_add_slice(writer, "part", &full, &slice, &part, &err));
        tensor_release(&part);
    }
    must(bundle_writer_finish(writer, &err));
    json_save(folder, "slices.json",
              json_pack("{s:[o]}", "tensors", tensor_json("part", &whole)));
    tensor_release(&whole);
    free(prefix);
}

static void write_published(const char *parent)
{
    char *folder = alloc_printf("%s/published", parent);
    struct checkpoint_settings settings = {.folder = folder, .epoch = 2, .keep_latest = 2};
    must(checkpoint_claim(&settings, &err));
    struct checkpoint_item item = {.name = "w", .tensor = tensor_make(F32, &SHAPE(5, 5))};
    for (int64_t step = 100; step <= 300; step += 100) {
        struct checkpoint_point point = {.step = step, .score = (double)NAN, .graph = ""};
        must(checkpoint_save(&settings, &point, &item, 1, NULL, &err));
    }
    json_save(parent, "published.json",
              json_pack("{s:[o]}", "tensors", tensor_json("w", &item.tensor)));
    tensor_release(&item.tensor);
    free(folder);
}

/* --- event files --- */

static void field_bytes(struct str *out, int number, const void *bytes, size_t size)
{
    str_add_char(out, (char)(number << 3 | 2));
    assert(size < 128);
    str_add_char(out, (char)size);
    str_add_bytes(out, bytes, size);
}

static void field_number(struct str *out, int number, int value)
{
    assert(value >= 0 && value < 128);
    str_add_char(out, (char)(number << 3));
    str_add_char(out, (char)value);
}

/* RunMetadata: node "a" took 5 us on a device. */
static void run_metadata(struct str *out)
{
    struct str node = {0}, device = {0}, stats = {0};
    field_bytes(&node, 1, "a", 1);
    field_number(&node, 2, 100); /* all_start_micros */
    field_number(&node, 5, 5);   /* all_end_rel_micros */
    field_bytes(&device, 1, "/job:worker/replica:0/task:0/device:CPU:0", 41);
    field_bytes(&device, 2, node.data, node.size);
    field_bytes(&stats, 1, device.data, device.size);
    field_bytes(out, 1, stats.data, stats.size);
    str_release(&node);
    str_release(&device);
    str_release(&stats);
}

static void attempt_write(const char *folder, const char *suffix, int64_t first, int64_t last,
                          double wall_time, float add, bool is_first)
{
    static const char node[] =
        "\x0a\x2a\x0a\x01\x61\x12\x05\x43\x6f\x6e\x73\x74\x2a\x0b\x0a\x05\x64\x74"
        "\x79\x70\x65\x12\x02\x30\x01\x2a\x11\x0a\x05\x76\x61\x6c\x75\x65\x12\x08"
        "\x42\x06\x08\x01\x12\x00\x2a\x00";
    struct str out = {0}, metadata = {0};
    tfevent_add_version(&out, wall_time, "trainyard");
    tfevent_add_session(&out, wall_time, first, TFEVENT_START, "");
    if (is_first)
        tfevent_add_graph(&out, wall_time, node, sizeof(node) - 1);
    tfevent_add_text(&out, wall_time, first, "trainyard/run", "text", "{\"steps\": 10}", 13);
    for (int64_t step = first; step <= last; step++) {
        struct tfevent_scalar scalars[] = {{"loss", add + 1.0f / (float)(step + 1)},
                                           {"accuracy", add}};
        tfevent_add_scalars(&out, wall_time + (double)step, step, scalars, 2);
    }
    if (is_first) {
        run_metadata(&metadata);
        tfevent_add_run_metadata(&out, wall_time + 20, 3, "step3", metadata.data,
                                 metadata.size);
        tfevent_add_session(&out, wall_time + 20, last, TFEVENT_CHECKPOINT, "model.ckpt-9");
    }
    tfevent_add_session(&out, wall_time + 20, last, TFEVENT_STOP, "");
    char *path =
        alloc_printf("%s/events.out.tfevents.%010d.host.%s", folder, (int)wall_time, suffix);
    must(file_write(path, out.data, out.size, &err));
    free(path);
    str_release(&out);
    str_release(&metadata);
}

static void points_add(json_t *points, int64_t first, int64_t last, float add, bool is_loss)
{
    for (int64_t step = first; step <= last; step++)
        json_array_append_new(
            points, json_pack("[I, f]", (json_int_t)step,
                              (double)(is_loss ? add + 1.0f / (float)(step + 1) : add)));
}

/* An attempt that ends after step 9 and, with `restarts`, a second one that begins at 6. */
static void write_events(const char *parent, const char *name, bool restarts)
{
    char *folder = alloc_printf("%s/%s", parent, name);
    mkdir(folder, 0777);
    json_t *loss = json_array(), *accuracy = json_array(), *text = json_array();
    int64_t kept = restarts ? 5 : 9;
    attempt_write(folder, "1", 0, 9, 1700000000, 0, true);
    points_add(loss, 0, kept, 0, true);
    points_add(accuracy, 0, kept, 0, false);
    json_array_append_new(text, json_pack("[i, [s]]", 0, "{\"steps\": 10}"));
    if (restarts) {
        attempt_write(folder, "2", 6, 12, 1700000100, 0.5f, false);
        points_add(loss, 6, 12, 0.5f, true);
        points_add(accuracy, 6, 12, 0.5f, false);
        json_array_append_new(text, json_pack("[i, [s]]", 6, "{\"steps\": 10}"));
    }
    json_t *tags = json_pack(
        "{s:{s:s, s:o}, s:{s:s, s:o}, s:{s:s, s:o}, s:{s:s, s:[[i]]}, s:{s:s, s:[[i]]}}",
        "loss", "plugin", "scalars", "points", loss, "accuracy", "plugin", "scalars", "points",
        accuracy, "trainyard/run", "plugin", "text", "points", text, "__run_graph__", "plugin",
        "graphs", "points", 0, "step3", "plugin", "graph_tagged_run_metadata", "points", 3);
    json_t *run = json_pack("{s:b, s:[], s:o}", "graph", 1, "run_metadata", "tags", tags);
    char *file = alloc_printf("%s.json", name);
    json_save(parent, file, json_pack("{s:{s:o}}", "tensorboard", ".", run));
    free(file);
    free(folder);
}

/* --- files of records --- */

static void write_records(const char *folder, const char *name, enum stream_format format,
                          const char *compression)
{
    char *path = alloc_printf("%s/%s.tfrecord", folder, name);
    char *file = alloc_printf("%s.tfrecord.json", name);
    struct record_file_writer *writer = record_file_create(path, format, &err);
    must(writer);
    char *bytes = alloc_bytes(400000);
    for (int i = 0; i < 400000; i++)
        bytes[i] = (char)(i * 2654435761u >> 17);
    json_t *records = json_array();
    for (size_t size = 0; size < 400000; size = size * 3 + 1) {
        must(record_file_add(writer, bytes, size, &err));
        json_t *record = json_pack("{s:I}", "length", (json_int_t)size);
        hex_add(record, "sha256", bytes, size, true);
        json_array_append_new(records, record);
    }
    must(record_file_finish(writer, &err));
    json_save(folder, file,
              json_pack("{s:s, s:o, s:{s:i, s:s}}", "compression", compression, "records",
                        records, "end", "code", 11, "text", "end of file"));
    free(bytes);
    free(file);
    free(path);
}

int main(int argc, char **argv)
{
    if (argc != 2 || sodium_init() < 0) {
        fprintf(stderr, "usage: tf-write FOLDER\n");
        return 2;
    }
    mkdir(argv[1], 0777);
    write_types(argv[1]);
    write_big(argv[1]);
    write_slices(argv[1]);
    write_published(argv[1]);
    write_events(argv[1], "scalars", false);
    write_events(argv[1], "restart", true);
    write_records(argv[1], "plain", STREAM_PLAIN, "");
    write_records(argv[1], "gzip", STREAM_GZIP, "GZIP");
    write_records(argv[1], "zlib", STREAM_ZLIB, "ZLIB");
    return 0;
}
