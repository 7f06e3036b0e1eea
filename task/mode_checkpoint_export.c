/* mode_checkpoint_export.c - tensors of a checkpoint as NPY, NPZ or safetensors. */

#include <sys/stat.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/io/npy.h"
#include "runtime/io/npz.h"
#include "runtime/io/output.h"
#include "runtime/io/safetensors.h"
#include "task/arguments.h"
#include "task/mode_checkpoint.h"

/* What is written, and where to. */
struct export
{
    struct tensors *tensors;
    const struct tensors_item **items;
    int items_count;
    const char *out;
};

/* Gives the elements of a tensor, piece by piece, to `put`. */
static bool copy(struct export *e, const struct tensors_item *item,
                 bool (*put)(void *to, const void *bytes, size_t size, struct error *err),
                 void *to, struct error *err)
{
    struct tensors_cursor cursor;
    if (!tensors_begin(&cursor, e->tensors, item, err))
        return false;
    char *piece = alloc_bytes(TENSORS_PIECE_BYTES);
    size_t size = dtype_size(item->dtype);
    int64_t count;
    bool ok;
    do {
        ok = tensors_next(&cursor, piece, TENSORS_PIECE_BYTES / (int64_t)size, &count, err) &&
             put(to, piece, (size_t)count * size, err);
    } while (ok && count);
    free(piece);
    return ok;
}

static bool put_output(void *to, const void *bytes, size_t size, struct error *err)
{
    return output_write(to, bytes, size, err);
}

static bool put_npz(void *to, const void *bytes, size_t size, struct error *err)
{
    return npz_writer_add(to, bytes, size, err);
}

/* Strings and types of the future: nothing that is written here can hold them. */
static bool check_types(const struct export *e, struct error *err)
{
    for (int i = 0; i < e->items_count; i++) {
        int dtype = e->items[i]->dtype;
        if (!dtype_known(dtype) || dtype_is_ref(dtype) || !(BIT(dtype) & DTYPES_PLAIN))
            return fail(
                err, UNIMPLEMENTED,
                "tensor '%s': %s cannot hold elements of type %s (name the tensors to be "
                "written)",
                e->items[i]->name, e->out, dtype_name(dtype));
    }
    return true;
}

/* --- formats --- */

static bool write_npy(struct export *e, struct error *err)
{
    struct str header = {0};
    if (e->items_count != 1)
        return fail(err, INVALID,
                    "an .npy file holds one tensor, these are %d: name one, or write .npz or "
                    ".safetensors",
                    e->items_count);
    const struct tensors_item *item = e->items[0];
    if (!npy_header_add(&header, (enum dtype)item->dtype, &item->shape, err))
        return false;
    struct output *output = output_open(e->out, err);
    bool ok = output && output_write(output, header.data, header.size, err) &&
              copy(e, item, put_output, output, err);
    str_release(&header);
    if (ok)
        return output_finish(output, err);
    output_discard(output);
    return false;
}

static bool write_npz(struct export *e, struct error *err)
{
    struct npz_writer *writer = npz_writer_open(e->out, err);
    bool ok = writer != NULL;
    for (int i = 0; ok && i < e->items_count; i++)
        ok = npz_writer_begin(writer, e->items[i]->name, (enum dtype)e->items[i]->dtype,
                              &e->items[i]->shape, err) &&
             copy(e, e->items[i], put_npz, writer, err);
    if (ok)
        return npz_writer_finish(writer, err);
    npz_writer_discard(writer);
    return false;
}

static bool write_safetensors(struct export *e, struct error *err)
{
    static const struct safetensors_note note = {"made_by", "trainyard"};
    struct safetensors_item *items = alloc_array((size_t)e->items_count + 1, sizeof(*items));
    struct str header = {0};
    for (int i = 0; i < e->items_count; i++)
        items[i] = (struct safetensors_item){.name = e->items[i]->name,
                                             .dtype = (enum dtype)e->items[i]->dtype,
                                             .shape = e->items[i]->shape};
    bool ok = safetensors_layout(items, e->items_count, err);
    struct output *output = NULL;
    if (ok) {
        safetensors_add_header(&header, items, e->items_count, &note, 1);
        output = output_open(e->out, err);
        ok = output && output_write(output, header.data, header.size, err);
    }
    for (int i = 0; ok && i < e->items_count; i++)
        ok = copy(e, tensors_find(e->tensors, items[i].name), put_output, output, err);
    free(items);
    str_release(&header);
    if (ok)
        return output_finish(output, err);
    output_discard(output);
    return false;
}

static const struct {
    const char *ending;
    bool (*write)(struct export *e, struct error *err);
    const char *(*note)(enum dtype dtype);
} formats[] = {{".npy", write_npy, npy_header_note},
               {".npz", write_npz, npy_header_note},
               {".safetensors", write_safetensors, safetensors_note_of}};

/* --- the whole --- */

static int find_format(const char *out)
{
    size_t size = strlen(out);
    for (int i = 0; i < ARRAY_LEN(formats); i++) {
        size_t end = strlen(formats[i].ending);
        if (size > end && !strcmp(out + size - end, formats[i].ending))
            return i;
    }
    return -1;
}

/* What was written, and what a reader has to know of it. */
static void tell(const struct export *e, int format)
{
    int64_t bytes = 0;
    for (int i = 0; i < e->items_count; i++)
        bytes += e->items[i]->bytes;
    printf("%s: %d tensor%s, %lld bytes\n", e->out, e->items_count,
           e->items_count == 1 ? "" : "s", (long long)bytes);
    for (int i = 0; i < e->items_count; i++) {
        const char *note = formats[format].note((enum dtype)e->items[i]->dtype);
        if (note)
            printf("  %s is written as %s\n", e->items[i]->name, note);
    }
}

static bool run(const char *path, const char *out, const char *const *names, int names_count,
                bool force, struct error *err)
{
    struct stat info;
    int format = find_format(out), count;
    if (format < 0)
        return fail(err, INVALID,
                    "the ending of \"%s\" does not tell the format: .npy, .npz or .safetensors",
                    out);
    if (!force && !stat(out, &info))
        return fail(err, EXISTS, "%s is there already (--force replaces it)", out);
    struct export e = {.tensors = tensors_open(path, err), .out = out};
    if (!e.tensors)
        return false;
    const struct tensors_item *items = tensors_items(e.tensors, &count);
    bool *chosen = alloc_array((size_t)count + 1, sizeof(*chosen));
    e.items = alloc_array((size_t)count + 1, sizeof(const struct tensors_item *));
    bool ok = mode_checkpoint_choose(e.tensors, names, names_count, chosen, err);
    for (int i = 0; ok && i < count; i++) {
        /* Of all, texts are left out: what Python keeps about objects is none of the weights.
         */
        if (chosen[i] && (names_count || items[i].dtype != STRING))
            e.items[e.items_count++] = &items[i];
        else if (chosen[i])
            fprintf(stderr, "trainyard: left out: tensor '%s' holds strings\n", items[i].name);
    }
    ok = ok && check_types(&e, err) && formats[format].write(&e, err);
    if (ok)
        tell(&e, format);
    free(e.items);
    free(chosen);
    tensors_close(e.tensors);
    return ok;
}

int mode_checkpoint_export(int argc, char **argv)
{
    bool force = false;
    const char *words[MODE_CHECKPOINT_NAMES + 3], *tensor = NULL;
    int count;
    const struct argument rows[] = {{.name = "--tensor", .text = &tensor},
                                    {.name = "--force", .flag = &force}};
    struct error err;
    bool ok = arguments_read(argc, argv, rows, ARRAY_LEN(rows), words,
                             MODE_CHECKPOINT_NAMES + 2, &count, &err);
    if (ok && count < 2)
        ok = fail(&err, INVALID, "%s (--help tells more)",
                  count ? "what is to be made?  A .npy, .npz or .safetensors file after PATH"
                        : "which checkpoint?  Its prefix, a folder or a file");
    if (ok && tensor)
        words[count++] = tensor;
    if (ok && run(words[0], words[1], words + 2, count - 2, force, &err))
        return 0;
    return mode_checkpoint_fail(&err);
}
