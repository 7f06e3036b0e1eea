/* predict_output.c - see predict_output.h. */

#include "task/predict_output.h"

#include <math.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "runtime/io/archive.h"
#include "runtime/io/file.h"
#include "runtime/io/npy.h"
#include "runtime/io/output.h"

enum kind { LINES, DOCUMENT, NPY, NPZ };

struct predict_output {
    struct predict_output_options options;
    enum kind kind;
    struct output *file; /* NULL: stdout */
    struct str text;     /* to be written */
    int64_t examples;
    /* Of columns and arrays: the elements of each output so far, and their shapes. */
    struct str *gathered;
    int *types;
    struct shape *shapes;
};

static int outputs_of(const struct predict_output *out)
{
    return out->options.signature->outputs_count;
}

static const char *name_of(const struct predict_output *out, int index)
{
    return out->options.signature->outputs[index].name;
}

/* --- opening --- */

static bool ends_with(const char *text, const char *ending)
{
    size_t size = strlen(text), end = strlen(ending);
    return size > end && !strcmp(text + size - end, ending);
}

static bool choose_kind(struct predict_output *out, struct error *err)
{
    static const struct {
        const char *ending;
        enum kind kind;
    } rows[] = {{".jsonl", LINES},
                {".ndjson", LINES},
                {".json", DOCUMENT},
                {".npy", NPY},
                {".npz", NPZ}};
    const char *path = out->options.path;
    out->kind = out->options.is_document ? DOCUMENT : LINES;
    for (int i = 0; path && i < ARRAY_LEN(rows); i++) {
        if (!ends_with(path, rows[i].ending))
            continue;
        out->kind = rows[i].kind;
        if (out->kind == NPY && outputs_of(out) > 1)
            return fail(err, INVALID, "%s holds one array, the model gives %d: write an .npz",
                        path, outputs_of(out));
        return true;
    }
    return !path || fail(err, INVALID,
                         "--output is \"%s\": its ending says no form; known: .json, .jsonl, "
                         ".npy, .npz",
                         path);
}

static bool check_top(struct predict_output *out, struct error *err)
{
    const struct signature_tensor *scores = &out->options.signature->outputs[0];
    char text[SHAPE_TEXT_BYTES];
    if (!out->options.top)
        return true;
    if (outputs_of(out) != 1 || scores->shape.rank != 2 || !out->options.batches ||
        !(BIT(scores->dtype) & DTYPES_FLOAT))
        return fail(err, INVALID,
                    "--top wants a model that gives a score for each class, \"%s\" "
                    "is %s %s",
                    scores->name, dtype_name(scores->dtype),
                    shape_text(&scores->shape, text, sizeof(text)));
    return (out->kind == LINES || out->kind == DOCUMENT) ||
           fail(err, INVALID, "--top names classes, which %s cannot hold", out->options.path);
}

struct predict_output *predict_output_open(const struct predict_output_options *options,
                                           struct error *err)
{
    struct predict_output *out = alloc_bytes(sizeof(*out));
    out->options = *options;
    size_t count = (size_t)outputs_of(out) + 1;
    out->gathered = alloc_array(count, sizeof(*out->gathered));
    out->types = alloc_array(count, sizeof(*out->types));
    out->shapes = alloc_array(count, sizeof(*out->shapes));
    bool ok = choose_kind(out, err) && check_top(out, err);
    if (ok && options->path && (out->kind == LINES || out->kind == DOCUMENT)) {
        out->file = output_open(options->path, err);
        ok = out->file != NULL;
    }
    if (ok)
        return out;
    predict_output_discard(out);
    return NULL;
}

/* --- text --- */

static bool flush(struct predict_output *out, struct error *err)
{
    bool ok = true;
    if (out->file && out->text.size)
        ok = output_write(out->file, out->text.data, out->text.size, err);
    else if (out->text.size &&
             (fwrite(out->text.data, 1, out->text.size, stdout) != out->text.size ||
              fflush(stdout)))
        ok = file_error(err, "write", "stdout");
    str_clear(&out->text);
    return ok;
}

/* [["cat", 0.9], ["dog", 0.1]]: the classes of one example, by their scores. */
static void add_top(struct predict_output *out, const struct tensor *scores, int64_t row)
{
    const struct signature_tensor *of = &out->options.signature->outputs[0];
    int64_t classes = scores->shape.dims[1];
    int64_t top = out->options.top < classes ? out->options.top : classes;
    bool *taken = alloc_array((size_t)classes + 1, sizeof(*taken));
    str_add_char(&out->text, '[');
    for (int64_t n = 0; n < top; n++) {
        int64_t best = -1;
        double score = 0;
        for (int64_t i = 0; i < classes; i++) {
            double value = tensor_number(scores, row * classes + i);
            if (!taken[i] && (best < 0 || value > score))
                best = i, score = value;
        }
        taken[best] = true;
        str_add(&out->text, n ? ", [" : "[");
        if (best < of->words_count)
            str_add_json(&out->text, of->words[best], strlen(of->words[best]));
        else
            str_printf(&out->text, "%lld", (long long)best);
        str_printf(&out->text, isfinite(score) ? ", %.6g]" : ", null]", score);
    }
    str_add_char(&out->text, ']');
    free(taken);
}

/* One example: the value of the only output, or an object of all. */
static void add_row(struct predict_output *out, const struct tensor *outputs, int64_t row)
{
    bool named = outputs_of(out) > 1;
    for (int i = 0; i < outputs_of(out); i++) {
        if (named) {
            str_add(&out->text, i ? ", " : "{");
            str_add_json(&out->text, name_of(out, i), strlen(name_of(out, i)));
            str_add(&out->text, ": ");
        }
        predict_json_add(&outputs[i], row, &out->text);
    }
    str_add(&out->text, named ? "}" : "");
}

static bool add_rows(struct predict_output *out, const struct tensor *outputs, int64_t count,
                     struct error *err)
{
    for (int64_t row = 0; row < count; row++, out->examples++) {
        if (out->kind == DOCUMENT)
            str_add(&out->text, out->examples ? ",\n  " : "{\"predictions\": [\n  ");
        if (out->options.top)
            add_top(out, &outputs[0], row);
        else
            add_row(out, outputs, out->options.batches ? row : -1);
        if (out->kind == LINES)
            str_add_char(&out->text, '\n');
    }
    return flush(out, err);
}

/* --- what is gathered first --- */

static bool gather(struct predict_output *out, int index, const struct tensor *value,
                   struct error *err)
{
    struct shape *shape = &out->shapes[index];
    if (!(BIT(value->dtype) & DTYPES_PLAIN))
        return fail(err, UNIMPLEMENTED, "output \"%s\" is %s, which this form cannot hold",
                    name_of(out, index), dtype_name(value->dtype));
    if (!out->types[index]) {
        out->types[index] = (int)value->dtype;
        *shape = value->shape;
    } else {
        struct shape same = value->shape;
        if (same.rank)
            same.dims[0] = shape->dims[0];
        if (!shape_equal(&same, shape))
            return fail(err, INVALID, "output \"%s\" has another shape for other examples",
                        name_of(out, index));
        shape->dims[0] += value->shape.dims[0];
    }
    str_add_bytes(&out->gathered[index], value->data, tensor_bytes(value));
    return true;
}

static bool gathered_tensor(struct predict_output *out, int index, struct tensor *value,
                            struct error *err)
{
    const struct str *bytes = &out->gathered[index];
    if (!out->types[index])
        return fail(err, INVALID, "there were no examples");
    return tensor_init_copy(value, (enum dtype)out->types[index], &out->shapes[index],
                            bytes->data, err);
}

static bool write_npy(struct predict_output *out, struct error *err)
{
    struct tensor value;
    if (!gathered_tensor(out, 0, &value, err))
        return false;
    bool ok = npy_write(out->options.path, &value, err);
    tensor_release(&value);
    return ok;
}

static bool write_npz(struct predict_output *out, struct error *err)
{
    size_t count = (size_t)outputs_of(out);
    struct archive_entry *entries = alloc_array(count + 1, sizeof(*entries));
    struct str *members = alloc_array(count + 1, sizeof(*members));
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++) {
        ok = out->types[i]
                 ? npy_header_add(&members[i], (enum dtype)out->types[i], &out->shapes[i], err)
                 : fail(err, INVALID, "there were no examples");
        str_add_bytes(&members[i], str_text(&out->gathered[i]), out->gathered[i].size);
        entries[i] = (struct archive_entry){alloc_printf("%s.npy", name_of(out, (int)i)),
                                            members[i].data, members[i].size, false};
    }
    ok = ok && archive_write(out->options.path, entries, (int)count, err);
    for (size_t i = 0; i < count; i++) {
        free((char *)entries[i].name);
        str_release(&members[i]);
    }
    free(entries);
    free(members);
    return ok;
}

/* {"outputs": the value of the only one, or an object of all}. */
static bool add_columns(struct predict_output *out, const struct tensor *outputs,
                        struct error *err)
{
    bool named = outputs_of(out) > 1;
    str_add(&out->text, named ? "{\"outputs\": {" : "{\"outputs\": ");
    for (int i = 0; i < outputs_of(out); i++) {
        if (named) {
            str_add(&out->text, i ? ",\n  " : "\n  ");
            str_add_json(&out->text, name_of(out, i), strlen(name_of(out, i)));
            str_add(&out->text, ": ");
        }
        predict_json_add(&outputs[i], -1, &out->text);
    }
    str_add(&out->text, named ? "}}\n" : "}\n");
    out->examples++;
    return flush(out, err);
}

/* --- the whole --- */

bool predict_output_add(struct predict_output *out, const struct tensor *outputs, int64_t count,
                        struct error *err)
{
    if (out->kind == DOCUMENT && out->options.form == PREDICT_COLUMNS)
        return add_columns(out, outputs, err);
    if (out->kind == LINES || out->kind == DOCUMENT)
        return add_rows(out, outputs, count, err);
    for (int i = 0; i < outputs_of(out); i++) {
        if (!gather(out, i, &outputs[i], err))
            return false;
    }
    return true;
}

bool predict_output_finish(struct predict_output *out, struct error *err)
{
    bool ok = true;
    if (out->kind == DOCUMENT && out->options.form == PREDICT_ROWS) {
        str_add(&out->text, out->examples ? "\n]}\n" : "{\"predictions\": []}\n");
        ok = flush(out, err);
    } else if (out->kind == NPY) {
        ok = write_npy(out, err);
    } else if (out->kind == NPZ) {
        ok = write_npz(out, err);
    }
    if (ok && out->file) {
        ok = output_finish(out->file, err);
        out->file = NULL;
    }
    predict_output_discard(out);
    return ok;
}

void predict_output_discard(struct predict_output *out)
{
    if (!out)
        return;
    output_discard(out->file);
    for (int i = 0; i < outputs_of(out); i++)
        str_release(&out->gathered[i]);
    str_release(&out->text);
    free(out->gathered);
    free(out->types);
    free(out->shapes);
    free(out);
}
