/* files.c - checkpoints saved (V2), restored (V1, too) and merged; files read, written, found.
 */

#include <errno.h>
#include <glob.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/str.h"
#include "kernels/ref/files_v1.h"
#include "kernels/ref/numbers.h"
#include "runtime/io/bundle.h"
#include "runtime/io/file.h"

/* A string element as text, NUL-terminated; the caller frees. */
static char *text_of(const struct tensor *tensor, int64_t index)
{
    const struct tensor_string *text = tensor_strings(tensor) + index;
    return alloc_text_n(text->data ? text->data : "", text->size);
}

/* Prefix, names and slices: inputs 0, 1, 2; as many names as slices as tensors. */
static bool check_names(const struct kernel_call *call, int tensors, struct error *err)
{
    const struct tensor *names = kernel_in(call, 1), *slices = kernel_in(call, 2);
    if (kernel_in(call, 0)->count != 1)
        return fail(err, INVALID,
                    "Input prefix should have a single element, got %lld instead.",
                    (long long)kernel_in(call, 0)->count);
    if (names->shape.rank != 1 || slices->shape.rank != 1)
        return fail(err, INVALID,
                    "Input tensor_names and shape_and_slices should be 1-D tensors");
    if (names->count != tensors || slices->count != tensors)
        return fail(err, INVALID, "%lld names and %lld slices for %d tensors",
                    (long long)names->count, (long long)slices->count, tensors);
    return true;
}

/* --- saving --- */

static bool save_one(struct bundle_writer *writer, const char *name, const char *slice_text,
                     const struct tensor *tensor, struct error *err)
{
    struct shape full;
    struct bundle_slice slice;
    if (!slice_text[0])
        return bundle_writer_add(writer, name, tensor, err);
    return bundle_slice_parse(slice_text, &full, &slice, err) &&
           bundle_writer_add_slice(writer, name, &full, &slice, tensor, err);
}

/* As TensorFlow: makes the prefix's own folder, but no more than that. */
static bool make_folder(const char *prefix, struct error *err)
{
    const char *slash = strrchr(prefix, '/');
    if (!slash || slash == prefix)
        return true;
    char *folder = alloc_text_n(prefix, (size_t)(slash - prefix));
    bool made = mkdir(folder, 0777) == 0 || errno == EEXIST || file_error_stock(err, folder);
    free(folder);
    return made;
}

static bool save_run(struct kernel_call *call, struct error *err)
{
    int count = call->in_count - 3;
    if (!check_names(call, count, err))
        return false;
    char *prefix = text_of(kernel_in(call, 0), 0);
    struct bundle_writer *writer =
        make_folder(prefix, err) ? bundle_writer_open(prefix, err) : NULL;
    bool ok = writer != NULL;
    for (int i = 0; ok && i < count; i++) {
        char *name = text_of(kernel_in(call, 1), i), *slice = text_of(kernel_in(call, 2), i);
        ok = save_one(writer, name, slice, kernel_in(call, 3 + i), err);
        free(name);
        free(slice);
    }
    if (ok)
        ok = bundle_writer_finish(writer, err);
    else
        bundle_writer_discard(writer);
    free(prefix);
    return ok;
}

/* --- restoring --- */

static bool inside(const struct bundle_slice *slice, const struct shape *full)
{
    for (int d = 0; d < slice->rank; d++)
        if (slice->length[d] >= 0 && slice->start[d] + slice->length[d] > full->dims[d])
            return false;
    return true;
}

static bool read_slice(struct bundle_reader *reader, const struct bundle_item *item,
                       const char *name, const char *slice_text, struct tensor *value,
                       struct error *err)
{
    struct shape full;
    struct bundle_slice slice;
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    struct error parse = {0};
    if (!bundle_slice_parse(slice_text, &full, &slice, &parse)) {
        /* A slice that is well formed but reaches beyond its shape has a code of its own. */
        bool outside = strstr(parse.text, "not inside") != NULL;
        return fail(err, outside ? INTERNAL : parse.code, "%s", parse.text);
    }
    if (!shape_equal(&full, &item->shape))
        return fail(
            err, INVALID,
            "tensor_name = %s; shape in shape_and_slice spec %s does not match the shape "
            "stored in checkpoint: %s",
            name, shape_text(&full, a, sizeof(a)), shape_text(&item->shape, b, sizeof(b)));
    if (!inside(&slice, &full))
        return fail(err, INTERNAL, "'%s' is not inside the shape of '%s'", slice_text, name);
    return bundle_reader_read_slice(reader, name, &slice, value, err);
}

static bool restore_one(struct bundle_reader *reader, const char *name, const char *slice,
                        enum dtype wanted, struct tensor *value, struct error *err)
{
    struct bundle_item item;
    if (!bundle_reader_find(reader, name, &item, err))
        return false;
    if (item.dtype != (int)wanted)
        return fail(err, INVALID,
                    "tensor_name = %s; expected dtype %s does not equal original dtype %s",
                    name, dtype_name(wanted), dtype_name(item.dtype));
    return slice[0] ? read_slice(reader, &item, name, slice, value, err)
                    : bundle_reader_read(reader, name, value, err);
}

/* Nothing is read while a name is missing. */
static bool check_keys(struct bundle_reader *reader, const struct tensor *names,
                       struct error *err)
{
    bool ok = true;
    for (int64_t i = 0; ok && i < names->count; i++) {
        struct bundle_item item;
        char *name = text_of(names, i);
        ok = bundle_reader_find(reader, name, &item, err) ||
             (err->code == NOT_FOUND
                  ? fail(err, NOT_FOUND, "Key %s not found in checkpoint", name)
                  : false);
        free(name);
    }
    return ok;
}

/* The checkpoint that is restored: of one of the two formats. */
struct source {
    struct bundle_reader *bundle;
    struct slice_file_reader *slices; /* V1 */
};

/* What has no index is no V2 checkpoint; it may be of the older format. */
static bool open_source(struct source *source, const char *prefix, const struct tensor *names,
                        struct error *err)
{
    *source = (struct source){.bundle = bundle_reader_open(prefix, err)};
    if (source->bundle)
        return check_keys(source->bundle, names, err);
    if (err->code == NOT_FOUND)
        source->slices = slice_file_reader_open(prefix, err);
    return source->slices;
}

static void close_source(struct source *source)
{
    bundle_reader_close(source->bundle);
    slice_file_reader_close(source->slices);
}

static bool restore_run(struct kernel_call *call, struct error *err)
{
    int count = call->node->outputs_count;
    struct source source;
    if (!check_names(call, count, err))
        return false;
    char *prefix = text_of(kernel_in(call, 0), 0);
    bool ok = open_source(&source, prefix, kernel_in(call, 1), err);
    for (int i = 0; ok && i < count; i++) {
        struct tensor value = {0};
        char *name = text_of(kernel_in(call, 1), i), *slice = text_of(kernel_in(call, 2), i);
        enum dtype wanted = dtype_base(call->node->output_types[i]);
        ok = source.bundle ? restore_one(source.bundle, name, slice, wanted, &value, err)
                           : files_v1_read(source.slices, name, slice, wanted, &value, err);
        if (ok)
            kernel_output_take(call, i, &value);
        free(name);
        free(slice);
    }
    close_source(&source);
    free(prefix);
    return ok;
}

static bool check_parts(const char *const *prefixes, int count, struct error *err)
{
    bool ok = true;
    for (int i = 0; ok && i < count; i++) {
        char *index = alloc_printf("%s.index", prefixes[i]);
        struct stat status;
        ok = !stat(index, &status) || errno != ENOENT ||
             fail(err, INVALID,
                  "allow_missing_files was set to false and %s did not exist.NOT_FOUND: %s not "
                  "found",
                  prefixes[i], prefixes[i]);
        free(index);
    }
    return ok;
}

static bool merge_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *prefixes = kernel_in(call, 0);
    if (prefixes->shape.rank != 1 || kernel_in(call, 1)->count != 1)
        return fail(err, INVALID,
                    "checkpoint_prefixes must be a vector, the destination a scalar");
    char **parts = alloc_array((size_t)prefixes->count + 1, sizeof(*parts));
    for (int64_t i = 0; i < prefixes->count; i++)
        parts[i] = text_of(prefixes, i);
    char *destination = text_of(kernel_in(call, 1), 0);
    bool ok = check_parts((const char *const *)parts, (int)prefixes->count, err) &&
              make_folder(destination, err) &&
              bundle_merge((const char *const *)parts, (int)prefixes->count, destination,
                           node_attr_bool(call->node, "delete_old_dirs", true), err);
    for (int64_t i = 0; i < prefixes->count; i++)
        free(parts[i]);
    free(parts);
    free(destination);
    return ok;
}

/* --- plain files --- */

static bool matching_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *patterns = kernel_in(call, 0);
    glob_t found = {0};
    bool ok = true;
    if (patterns->shape.rank > 1)
        return fail(err, INVALID, "Input patterns tensor must be scalar or vector");
    for (int64_t i = 0; ok && i < patterns->count; i++) {
        char *pattern = text_of(patterns, i);
        int result =
            glob(pattern, GLOB_NOSORT | (found.gl_pathc ? GLOB_APPEND : 0), NULL, &found);
        ok = result == 0 || result == GLOB_NOMATCH || fail(err, INTERNAL, "glob '%s'", pattern);
        free(pattern);
    }
    struct tensor *out =
        ok ? kernel_output(call, 0, &SHAPE((int64_t)found.gl_pathc), err) : NULL;
    /* In order of their names, by selection: there are few. */
    for (size_t i = 0; out && i < found.gl_pathc; i++) {
        size_t first = i;
        for (size_t j = i + 1; j < found.gl_pathc; j++)
            if (strcmp(found.gl_pathv[j], found.gl_pathv[first]) < 0)
                first = j;
        char *name = found.gl_pathv[first];
        found.gl_pathv[first] = found.gl_pathv[i];
        found.gl_pathv[i] = name;
        tensor_set_string(out, (int64_t)i, name, strlen(name));
    }
    globfree(&found);
    return out != NULL;
}

static bool read_file_run(struct kernel_call *call, struct error *err)
{
    if (kernel_in(call, 0)->shape.rank != 0)
        return fail(err, INVALID, "filename must be a scalar");
    char *name = text_of(kernel_in(call, 0), 0);
    FILE *file = fopen(name, "rb");
    bool ok = file != NULL || file_error_stock(err, name);
    struct str contents = {0};
    char block[65536];
    for (size_t n; ok && (n = fread(block, 1, sizeof(block), file)) > 0;) {
        str_add_bytes(&contents, block, n);
        ok = (int64_t)contents.size <= LIMIT_TENSOR_BYTES || fail(err, EXHAUSTED, "%s", name);
    }
    if (file && ferror(file))
        ok = file_error_stock(err, name);
    if (file)
        fclose(file);
    free(name);
    struct tensor *out = ok ? kernel_output(call, 0, &SHAPE_SCALAR, err) : NULL;
    if (out)
        tensor_set_string(out, 0, str_text(&contents), contents.size);
    str_release(&contents);
    return out != NULL;
}

/* Makes all folders on the way. */
static bool write_file_run(struct kernel_call *call, struct error *err)
{
    if (kernel_in(call, 0)->shape.rank != 0 || kernel_in(call, 1)->shape.rank != 0)
        return fail(err, INVALID, "filename and contents must be scalars");
    char *name = text_of(kernel_in(call, 0), 0);
    for (char *slash = strchr(name + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        (void)mkdir(name, 0777); /* opening the file tells what is wrong */
        *slash = '/';
    }
    const struct tensor_string *contents = tensor_strings(kernel_in(call, 1));
    FILE *file = fopen(name, "wb");
    bool ok = file && (!contents->size ||
                       fwrite(contents->data, 1, contents->size, file) == contents->size);
    if (file)
        ok = (fclose(file) == 0) && ok;
    if (!ok)
        (void)file_error_stock(err, name);
    free(name);
    return ok;
}

#define FILES(name_, run_)                                                                     \
    {                                                                                          \
        .op = name_, .device = CPU, .run = run_                                                \
    }

const struct kernel kernel_save_v2_ref = FILES("SaveV2", save_run);
const struct kernel kernel_restore_v2_ref = FILES("RestoreV2", restore_run);
const struct kernel kernel_merge_v2_checkpoints_ref = FILES("MergeV2Checkpoints", merge_run);
const struct kernel kernel_matching_files_ref = FILES("MatchingFiles", matching_run);
const struct kernel kernel_read_file_ref = FILES("ReadFile", read_file_run);
const struct kernel kernel_write_file_ref = FILES("WriteFile", write_file_run);
