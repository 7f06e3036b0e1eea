/* predict_source.c - tells what a file is, and cuts what it holds into batches. */

#include "task/predict_source.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/io/archive.h"
#include "runtime/io/file.h"
#include "runtime/io/image.h"
#include "runtime/io/npy.h"
#include "runtime/tensor.h"

#define WHOLE_BYTES_MAX (INT64_C(1) << 32) /* of a file that is read as one */
#define JSON_BYTES_MAX (INT64_C(1) << 28)  /* of a document; a line of many */
#define READ_BYTES (1 << 16)

enum kind { WHOLE, NPY, LINES, IMAGES };

struct predict_source {
    const struct predict_model *model;
    struct predict_source_options options;
    enum kind kind;
    bool is_document;
    enum predict_form form;
    struct tensor *whole; /* WHOLE: of all inputs */
    FILE *file;           /* NPY, LINES */
    const char *name;     /* of that */
    struct npy_header header;
    struct str ahead; /* of text: read already, up to `ahead_at` taken */
    size_t ahead_at;
    int64_t line_number;
    int64_t done; /* examples given */
};

static const struct signature *signature_of(const struct predict_source *source)
{
    return source->model->signature;
}

/* --- reading files --- */

/* Fills `out` up to `size` bytes, or to the end of the file. */
static bool fill(struct predict_source *s, struct str *out, int64_t size, struct error *err)
{
    while ((int64_t)out->size < size) {
        int64_t left = size - (int64_t)out->size;
        size_t want = left < READ_BYTES ? (size_t)left : READ_BYTES;
        size_t got = fread(str_extend(out, want), 1, want, s->file);
        out->size -= want - got;
        if (got < want)
            break;
    }
    return !ferror(s->file) || file_error(err, "read", s->name);
}

/* Of text: what was read ahead comes first. */
static int next_char(struct predict_source *s)
{
    if (s->ahead_at < s->ahead.size)
        return (unsigned char)s->ahead.data[s->ahead_at++];
    return getc_unlocked(s->file);
}

/* All that is left, after what `out` has. */
static bool fill_whole(struct predict_source *s, struct str *out, int64_t most,
                       struct error *err)
{
    if (!fill(s, out, most + 1, err))
        return false;
    return (int64_t)out->size <= most ||
           fail(err, EXHAUSTED, "%s is larger than %lld bytes", s->name, (long long)most);
}

/* Appends up to the end of the line, which is taken but not kept. */
static bool fill_line(struct predict_source *s, struct str *out, bool *ended, struct error *err)
{
    int c = EOF;
    while ((int64_t)out->size <= JSON_BYTES_MAX && (c = next_char(s)) != EOF && c != '\n')
        str_add_char(out, (char)c);
    *ended = c == EOF;
    if (ferror(s->file))
        return file_error(err, "read", s->name);
    return (int64_t)out->size <= JSON_BYTES_MAX ||
           fail(err, EXHAUSTED, "%s: a line is longer than %lld bytes", s->name,
                (long long)JSON_BYTES_MAX);
}

/* --- JSON --- */

static bool is_blank(const struct str *text)
{
    return strspn(str_text(text), " \t\r\n") == text->size;
}

/* Replaces `out` by the next line that is not blank; empty at the end. */
static bool next_line(struct predict_source *s, struct str *out, struct error *err)
{
    bool ended = false;
    do {
        str_clear(out);
        s->line_number++;
        if (!fill_line(s, out, &ended, err))
            return false;
    } while (!ended && is_blank(out));
    if (is_blank(out))
        str_clear(out);
    return true;
}

static json_t *parse(const struct predict_source *s, const struct str *text, int64_t first_line,
                     struct error *err)
{
    json_error_t why;
    json_t *json = json_loadb(str_text(text), text->size, JSON_DECODE_ANY, &why);
    if (!json)
        fail(err, INVALID, "%s: line %lld, column %d: %s", s->name,
             (long long)(first_line + why.line - 1), why.column, why.text);
    return json;
}

static bool take_document(struct predict_source *s, const json_t *json, struct error *err)
{
    s->is_document = json_is_object(json) &&
                     (json_object_get(json, "instances") || json_object_get(json, "inputs"));
    return predict_json_read(json, signature_of(s), s->whole, &s->form, err) ||
           error_prefix(err, "%s: ", s->name);
}

/* What was read is to be read again, before the rest. */
static void push_back(struct predict_source *s, const struct str *first, const struct str *next)
{
    struct str all = {0};
    str_add_bytes(&all, str_text(first), first->size);
    str_add_char(&all, '\n');
    str_add_bytes(&all, str_text(next), next->size);
    str_add_char(&all, '\n');
    str_add_bytes(&all, s->ahead.data + s->ahead_at, s->ahead.size - s->ahead_at);
    str_release(&s->ahead);
    s->ahead = all;
    s->ahead_at = 0;
    s->line_number = 0;
}

/* A document that begins with the line `first`. */
static bool read_document(struct predict_source *s, struct str *first, struct error *err)
{
    int64_t line = s->line_number;
    str_add_char(first, '\n');
    str_add_bytes(first, s->ahead.data + s->ahead_at, s->ahead.size - s->ahead_at);
    s->ahead_at = s->ahead.size;
    if (!fill_whole(s, first, JSON_BYTES_MAX, err))
        return false;
    json_t *json = parse(s, first, line, err);
    bool ok = json && take_document(s, json, err);
    json_decref(json);
    return ok;
}

/* A first line that is JSON by itself, and more behind it, is an example a line. */
static bool open_json(struct predict_source *s, struct error *err)
{
    struct str first = {0}, next = {0};
    struct error ignored;
    if (!next_line(s, &first, err)) {
        str_release(&first);
        return false;
    }
    bool ok = true;
    json_t *json = parse(s, &first, 1, &ignored);
    if (!json) {
        ok = read_document(s, &first, err);
    } else {
        ok = next_line(s, &next, err);
        if (ok && next.size && s->model->batches) {
            s->kind = LINES;
            push_back(s, &first, &next);
        } else if (ok && next.size) {
            ok = fail(err, INVALID,
                      "%s has more than one document; this model takes no batches", s->name);
        } else if (ok) {
            ok = take_document(s, json, err);
        }
    }
    json_decref(json);
    str_release(&first);
    str_release(&next);
    return ok;
}

static bool next_lines(struct predict_source *s, int64_t most, struct tensor *inputs,
                       int64_t *count, struct error *err)
{
    struct str line = {0};
    json_t *rows = json_array();
    int64_t first = s->line_number + 1;
    bool ok = true;
    while (ok && (int64_t)json_array_size(rows) < most) {
        ok = next_line(s, &line, err);
        if (!ok || !line.size)
            break;
        json_t *row = parse(s, &line, s->line_number, err);
        ok = row && !json_array_append_new(rows, row);
    }
    *count = (int64_t)json_array_size(rows);
    if (ok && *count && !predict_json_read_rows(rows, signature_of(s), inputs, err))
        ok = error_prefix(err, "%s, examples from line %lld on: ", s->name, (long long)first);
    json_decref(rows);
    str_release(&line);
    return ok;
}

/* --- NumPy --- */

/* The only input, for files that do not name theirs. */
static const struct signature_tensor *only_input(const struct predict_source *s,
                                                 struct error *err)
{
    const struct signature *signature = signature_of(s);
    struct str all = {0};
    if (signature->inputs_count == 1)
        return &signature->inputs[0];
    signature_print(signature->inputs, signature->inputs_count, &all);
    fail(err, INVALID,
         "%s has one array, the model takes %d inputs: %s (NPZ and JSON name them)", s->name,
         signature->inputs_count, str_text(&all));
    str_release(&all);
    return NULL;
}

/* One example alone becomes a batch of one. */
static void add_dimension(const struct signature_tensor *input, struct shape *shape)
{
    if (input->shape.rank != shape->rank + 1 || input->shape.dims[0] != -1)
        return;
    memmove(shape->dims + 1, shape->dims, (size_t)shape->rank * sizeof(*shape->dims));
    shape->dims[0] = 1;
    shape->rank++;
}

static void set_whole(struct predict_source *s, int index, const struct tensor *value)
{
    struct shape shape = value->shape;
    add_dimension(&signature_of(s)->inputs[index], &shape);
    tensor_share_as(&s->whole[index], value, &shape);
}

static bool open_npy(struct predict_source *s, struct str *bytes, struct error *err)
{
    const struct signature_tensor *input = only_input(s, err);
    struct error ignored;
    struct tensor value;
    if (!input)
        return false;
    if (!fill(s, bytes, NPY_HEADER_BYTES_MAX, err))
        return false;
    bool streams = s->model->batches && s->file != stdin &&
                   npy_header_parse(bytes->data, bytes->size, &s->header, &ignored) &&
                   !s->header.is_fortran && !s->header.is_swapped &&
                   s->header.shape.rank == input->shape.rank;
    if (streams) {
        s->kind = NPY;
        return fseek(s->file, (long)s->header.bytes, SEEK_SET) == 0 ||
               file_error(err, "read", s->name);
    }
    if (!fill_whole(s, bytes, WHOLE_BYTES_MAX, err) ||
        !npy_parse(bytes->data, bytes->size, &value, err))
        return error_prefix(err, "%s: ", s->name);
    set_whole(s, 0, &value);
    tensor_release(&value);
    return true;
}

static bool next_npy(struct predict_source *s, int64_t most, struct tensor *inputs,
                     int64_t *count, struct error *err)
{
    struct shape shape = s->header.shape;
    int64_t left = shape.dims[0] - s->done;
    *count = shape.dims[0] = left < most ? left : most;
    if (!*count)
        return true;
    if (!tensor_init(&inputs[0], s->header.dtype, &shape, err))
        return false;
    size_t size = tensor_bytes(&inputs[0]);
    if (fread(inputs[0].data, 1, size, s->file) == size)
        return true;
    return ferror(s->file) ? file_error(err, "read", s->name)
                           : fail(err, DATA_LOSS, "%s ends in example %lld of %lld", s->name,
                                  (long long)s->done, (long long)s->header.shape.dims[0]);
}

/* NAME.npy for each input. */
static bool open_npz(struct predict_source *s, struct str *bytes, struct error *err)
{
    if (!fill_whole(s, bytes, WHOLE_BYTES_MAX, err))
        return false;
    struct archive *archive = archive_open_bytes(s->name, bytes->data, bytes->size, err);
    if (!archive)
        return false;
    struct str member = {0};
    bool ok = true;
    for (int i = 0; ok && i < archive_count(archive); i++) {
        const char *entry = archive_name(archive, i);
        size_t size = strlen(entry);
        char *name = alloc_text_n(
            entry, size > 4 && !strcmp(entry + size - 4, ".npy") ? size - 4 : size);
        int input = signature_find_input(signature_of(s), name);
        struct tensor value;
        if (input >= 0) {
            ok = archive_read(archive, i, WHOLE_BYTES_MAX, &member, err) &&
                 (npy_parse(member.data, member.size, &value, err) ||
                  error_prefix(err, "%s: %s: ", s->name, name));
            if (ok) {
                tensor_release(&s->whole[input]);
                set_whole(s, input, &value);
                tensor_release(&value);
            }
        }
        free(name);
    }
    str_release(&member);
    archive_close(archive);
    return ok;
}

/* --- images --- */

/* Height, width and channels that the model takes. */
static bool picture_shape(const struct predict_source *s, struct shape *shape,
                          struct error *err)
{
    const struct signature_tensor *input = only_input(s, err);
    if (!input)
        return false;
    const struct predict_model *model = s->model;
    *shape = model->is_trained ? model->trained.dataset.columns[0].shape : input->shape;
    if (!model->is_trained && shape->rank == 4) {
        memmove(shape->dims, shape->dims + 1, 3 * sizeof(*shape->dims));
        shape->rank = 3;
    }
    char text[SHAPE_TEXT_BYTES];
    bool fits = shape->rank == 3 && shape->dims[0] > 0 && shape->dims[1] > 0 &&
                shape->dims[0] <= IMAGE_SIDE_MAX && shape->dims[1] <= IMAGE_SIDE_MAX &&
                (shape->dims[2] == 1 || shape->dims[2] == 3) && input->dtype != STRING;
    return fits || fail(err, INVALID,
                        "%s is an image, input \"%s\" takes %s %s: wanted (height, width, "
                        "channels), 1 or 3 of these",
                        s->name, input->name, dtype_name(input->dtype),
                        shape_text(&input->shape, text, sizeof(text)));
}

static bool read_picture(const char *path, const struct shape *shape, uint8_t *pixels,
                         struct error *err)
{
    struct str bytes = {0};
    struct image image, fitted;
    bool ok = file_read(path, LIMIT_IMAGE_BYTES, &bytes, err) &&
              (image_read(str_text(&bytes), bytes.size, (int)shape->dims[2], &image, err) ||
               error_prefix(err, "%s: ", path));
    str_release(&bytes);
    if (!ok)
        return false;
    bool same = image.height == shape->dims[0] && image.width == shape->dims[1];
    ok = same || image_resize(&image, shape->dims[0], shape->dims[1], &fitted, err);
    if (ok)
        memcpy(pixels, same ? image.pixels : fitted.pixels, (size_t)shape_count(shape));
    if (ok && !same)
        image_release(&fitted);
    image_release(&image);
    return ok;
}

static bool next_images(struct predict_source *s, int64_t most, struct tensor *inputs,
                        int64_t *count, struct error *err)
{
    struct shape picture, shape = {.rank = 4};
    int64_t left = s->options.paths_count - s->done;
    *count = shape.dims[0] = left < most ? left : most;
    s->name = s->options.paths[0];
    if (!*count)
        return true;
    if (!picture_shape(s, &picture, err))
        return false;
    memcpy(shape.dims + 1, picture.dims, 3 * sizeof(*shape.dims));
    if (!tensor_init(&inputs[0], U8, &shape, err))
        return false;
    for (int64_t i = 0; i < *count; i++) {
        if (!read_picture(s->options.paths[s->done + i], &picture,
                          (uint8_t *)inputs[0].data + i * shape_count(&picture), err))
            return false;
    }
    return true;
}

/* --- what is in memory --- */

static int64_t whole_rows(const struct predict_source *s)
{
    int64_t rows = -1;
    for (int i = 0; i < signature_of(s)->inputs_count; i++) {
        const struct tensor *value = &s->whole[i];
        if (value->dtype && value->shape.rank && (rows < 0 || value->shape.dims[0] < rows))
            rows = value->shape.dims[0];
    }
    return rows;
}

static bool slice(const struct tensor *value, int64_t first, int64_t count, struct tensor *out,
                  struct error *err)
{
    struct shape shape = value->shape;
    int64_t inner = value->shape.dims[0] ? value->count / value->shape.dims[0] : 0;
    shape.dims[0] = count;
    if (!tensor_init(out, value->dtype, &shape, err))
        return false;
    if (value->dtype == STRING) {
        const struct tensor_string *texts = tensor_strings(value) + first * inner;
        for (int64_t i = 0; i < out->count; i++)
            tensor_set_string(out, i, texts[i].data, texts[i].size);
    } else {
        size_t size = dtype_size(value->dtype) * (size_t)inner;
        memcpy(out->data, (const char *)value->data + (size_t)first * size,
               (size_t)count * size);
    }
    return true;
}

/* Inputs of different lengths are no batch. */
static bool check_rows(const struct predict_source *s, int64_t rows, struct error *err)
{
    for (int i = 0; i < signature_of(s)->inputs_count; i++) {
        const struct tensor *value = &s->whole[i];
        char text[SHAPE_TEXT_BYTES];
        if (value->dtype && (!value->shape.rank || value->shape.dims[0] != rows))
            return fail(err, INVALID, "input \"%s\" is %s, others have %lld examples",
                        signature_of(s)->inputs[i].name,
                        shape_text(&value->shape, text, sizeof(text)), (long long)rows);
    }
    return true;
}

static bool next_whole(struct predict_source *s, int64_t most, struct tensor *inputs,
                       int64_t *count, struct error *err)
{
    int inputs_count = signature_of(s)->inputs_count;
    int64_t rows = whole_rows(s);
    if (!s->model->batches || rows < 0) {
        *count = s->done == 0;
        for (int i = 0; *count && i < inputs_count; i++) {
            if (s->whole[i].dtype)
                tensor_share(&inputs[i], &s->whole[i]);
        }
        return true;
    }
    int64_t left = rows - s->done;
    *count = left < most ? left : most;
    if (!check_rows(s, rows, err))
        return false;
    for (int i = 0; *count && i < inputs_count; i++) {
        if (s->whole[i].dtype && !slice(&s->whole[i], s->done, *count, &inputs[i], err))
            return false;
    }
    return true;
}

/* --- the whole --- */

static bool open_file(struct predict_source *s, struct error *err)
{
    const char *path = s->options.paths[0];
    bool is_stdin = !strcmp(path, "-");
    struct str bytes = {0};
    s->name = is_stdin ? "stdin" : path;
    s->file = is_stdin ? stdin : fopen(path, "rbe");
    if (!s->file)
        return file_error(err, "read", path);
    bool ok = fill(s, &bytes, 8, err);
    if (ok && bytes.size >= 6 && !memcmp(bytes.data, "\x93NUMPY", 6))
        ok = open_npy(s, &bytes, err);
    else if (ok && bytes.size >= 4 && !memcmp(bytes.data, "PK\3\4", 4))
        ok = open_npz(s, &bytes, err);
    else if (ok && image_format(str_text(&bytes), bytes.size) != IMAGE_NONE && !is_stdin)
        s->kind = IMAGES;
    else if (ok && !bytes.size)
        ok = fail(err, INVALID, "%s is empty", s->name);
    else if (ok && strchr(" \t\r\n[{\"-0123456789tfn", bytes.data[0])) {
        s->ahead = bytes;
        bytes = (struct str){0};
        ok = open_json(s, err);
    } else if (ok)
        ok = fail(err, INVALID, "%s is neither JSON nor NPY, NPZ or an image", s->name);
    str_release(&bytes);
    return ok;
}

struct predict_source *predict_source_open(const struct predict_model *model,
                                           const struct predict_source_options *options,
                                           struct error *err)
{
    struct predict_source *s = alloc_bytes(sizeof(*s));
    s->model = model;
    s->options = *options;
    s->whole = alloc_array((size_t)model->signature->inputs_count + 1, sizeof(struct tensor));
    if (options->paths_count > 1)
        s->kind = IMAGES;
    else if (!open_file(s, err)) {
        predict_source_close(s);
        return NULL;
    }
    return s;
}

void predict_source_close(struct predict_source *source)
{
    if (!source)
        return;
    for (int i = 0; i < signature_of(source)->inputs_count; i++)
        tensor_release(&source->whole[i]);
    if (source->file && source->file != stdin)
        fclose(source->file);
    str_release(&source->ahead);
    free(source->whole);
    free(source);
}

bool predict_source_is_document(const struct predict_source *source, enum predict_form *form)
{
    *form = source->form;
    return source->is_document;
}

bool predict_source_next(struct predict_source *source, int64_t most, struct tensor *inputs,
                         int64_t *count, struct error *err)
{
    static bool (*const next[])(struct predict_source *, int64_t, struct tensor *, int64_t *,
                                struct error *) = {
        [WHOLE] = next_whole, [NPY] = next_npy, [LINES] = next_lines, [IMAGES] = next_images};
    int inputs_count = signature_of(source)->inputs_count;
    for (int i = 0; i < inputs_count; i++)
        inputs[i] = (struct tensor){0};
    bool ok = next[source->kind](source, most, inputs, count, err);
    for (int i = 0; ok && *count && i < inputs_count; i++)
        ok = !inputs[i].dtype ||
             predict_model_convert(source->model, i, source->options.scale, &inputs[i], err);
    for (int i = 0; !ok && i < inputs_count; i++)
        tensor_release(&inputs[i]);
    if (ok)
        source->done += *count;
    return ok;
}
