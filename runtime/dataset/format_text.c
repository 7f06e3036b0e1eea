/*
 * format_text.c - texts: *.txt files, joined in the order of their names, or train.txt with
 * validation.txt and test.txt beside it.
 *
 * The vocabulary is learned from the part to train on; it goes with the model.  What is held
 * out is the end of the text: windows that overlap those to train on would tell nothing.
 */

#include "runtime/dataset/format_text.h"

#include <dirent.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/io/file.h"
#include "runtime/spec/spec.h"

#define TEXT_BYTES_MAX (INT64_C(1) << 30)
#define TEXT_VOCABULARY_BYTES (4 << 20) /* as JSON, in every checkpoint's manifest */

/* --- files --- */

static int is_text(const struct dirent *entry)
{
    size_t size = strlen(entry->d_name);
    return size > 4 && entry->d_name[0] != '.' && !strcmp(entry->d_name + size - 4, ".txt");
}

static bool text_is(const char *folder)
{
    DIR *open = opendir(folder);
    struct dirent *entry = NULL;
    while (open && (entry = readdir(open)) && !is_text(entry))
        continue;
    if (open)
        closedir(open);
    return entry;
}

/* Appends a file, which a tokenizer of that kind must be able to read. */
static bool add_file(const char *path, enum tokenizer_kind kind, struct str *out,
                     struct error *err)
{
    struct str bytes = {0};
    bool ok = file_read(path, TEXT_BYTES_MAX - (int64_t)out->size, &bytes, err);
    if (ok && !tokenizer_check(kind, str_text(&bytes), bytes.size, err))
        ok = error_prefix(err, "%s: ", path);
    if (ok)
        str_add_bytes(out, str_text(&bytes), bytes.size);
    str_release(&bytes);
    return ok;
}

static bool add_all(const char *folder, enum tokenizer_kind kind, struct str *out,
                    struct error *err)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, is_text, alphasort);
    if (count < 0)
        return file_error(err, "read", folder);
    bool ok = true;
    for (int i = 0; i < count; i++) {
        char *path = alloc_printf("%s/%s", folder, entries[i]->d_name);
        ok = ok && add_file(path, kind, out, err);
        free(path);
        free(entries[i]);
    }
    free(entries);
    if (!ok && err->code == EXHAUSTED)
        return error_prefix(err, "texts of more than %lld bytes: ", (long long)TEXT_BYTES_MAX);
    return ok;
}

/* The texts to train on, to validate with, to test on; empty where there is none. */
static bool read_files(const struct dataset_opening *opening, struct str parts[3],
                       struct error *err)
{
    static const char *const names[] = {"train.txt", "validation.txt", "test.txt"};
    enum tokenizer_kind kind = (enum tokenizer_kind)opening->data->text.tokenizer;
    for (int p = 0; p < 3; p++) {
        struct stat info;
        char *path = alloc_printf("%s/%s", opening->folder, names[p]);
        bool there = stat(path, &info) == 0;
        bool ok = !there || add_file(path, kind, &parts[p], err);
        free(path);
        if (!ok)
            return false;
        if (!p && !there)
            return add_all(opening->folder, kind, &parts[0], err);
    }
    return true;
}

/* Where the part begins that is held out; within a character's bytes it would be none. */
static bool split(const struct dataset_opening *opening, const struct str parts[3],
                  size_t *train_size, struct error *err)
{
    const struct spec_data *data = opening->data;
    *train_size = parts[0].size;
    if (data->validation)
        return error_at(err, "/data/validation", INVALID,
                        "validation is %lld, allowed for a text: a part of it, as 0.1, which "
                        "is its end",
                        (long long)data->validation);
    if (!data->validation_fraction)
        return true;
    if (parts[1].size)
        return error_at(err, "/data/validation", INVALID,
                        "there is a validation.txt, so nothing is held out");
    *train_size = (size_t)((double)parts[0].size * (1 - data->validation_fraction));
    while (*train_size < parts[0].size &&
           ((unsigned char)parts[0].data[*train_size] & 0xc0) == 0x80)
        ++*train_size;
    return true;
}

/* --- windows --- */

struct windows {
    struct dataset_examples examples; /* first */
    struct tokenizer_ids ids;
    int64_t stride;
};

static const void *windows_at(const struct dataset_examples *examples, int column, int64_t row,
                              void *scratch, struct error *err)
{
    (void)scratch;
    (void)err;
    const struct windows *windows = (const struct windows *)examples;
    return windows->ids.ids + row * windows->stride + column;
}

static void windows_free(struct dataset_examples *examples)
{
    tokenizer_ids_release(&((struct windows *)examples)->ids);
    free(examples);
}

struct dataset_examples *format_text_windows(struct tokenizer_ids *ids, int64_t length,
                                             int64_t stride)
{
    assert(ids->count > length);
    struct windows *windows = alloc_bytes(sizeof(*windows));
    windows->examples =
        (struct dataset_examples){.count = (ids->count - length - 1) / stride + 1,
                                  .at = windows_at,
                                  .free = windows_free};
    windows->ids = *ids;
    windows->stride = stride;
    *ids = (struct tokenizer_ids){0};
    return &windows->examples;
}

/* --- opening --- */

static void add_columns(struct dataset *dataset, const struct spec_text *text, int64_t size)
{
    const struct dataset_column of_windows[] = {
        {.name = "text", .stored = I32, .dtype = I32, .classes = size},
        {.name = "next", .role = DATASET_TARGET, .stored = I32, .dtype = I32, .classes = size}};
    const struct dataset_column of_pairs[] = {
        {.name = "word", .stored = I32, .dtype = I32, .classes = size},
        {.name = "context", .stored = I32, .dtype = I32, .classes = size},
        {.name = "which",
         .role = DATASET_TARGET,
         .stored = I32,
         .dtype = I32,
         .classes = text->negatives + 1}};
    if (text->skip_gram) {
        for (int i = 0; i < ARRAY_LEN(of_pairs); i++)
            format_add_column(dataset, &of_pairs[i]);
        dataset->columns[1].shape = SHAPE(text->negatives + 1);
        return;
    }
    for (int i = 0; i < ARRAY_LEN(of_windows); i++) {
        format_add_column(dataset, &of_windows[i]);
        dataset->columns[i].shape = SHAPE(text->sequence_length);
    }
}

/* `train`: windows to train on begin at every stride; others lie side by side. */
static bool open_part(const struct dataset_opening *opening, const struct tokenizer *tokenizer,
                      const char *text, size_t size, const char *what,
                      struct dataset_part *part, struct error *err)
{
    const struct spec_text *how = &opening->data->text;
    bool train = part == &opening->dataset->train;
    struct tokenizer_ids ids = {0};
    if (!size && !train)
        return true;
    bool ok = tokenizer_encode(tokenizer, text, size, &ids, err);
    if (ok && how->skip_gram) {
        part->examples =
            format_text_pairs(&ids, tokenizer_size(tokenizer), how, opening->seed, err);
        ok = part->examples;
    } else if (ok && ids.count <= how->sequence_length) {
        ok = error_at(err, "/data/sequence_length", INVALID,
                      "sequence_length is %lld, allowed: less than the %lld tokens of the "
                      "part %s",
                      (long long)how->sequence_length, (long long)ids.count, what);
    } else if (ok) {
        part->examples = format_text_windows(&ids, how->sequence_length,
                                             train ? how->stride : how->sequence_length);
    }
    tokenizer_ids_release(&ids);
    part->count = part->examples ? part->examples->count : 0;
    return ok;
}

static bool keep_vocabulary(struct dataset *dataset, const struct tokenizer *tokenizer,
                            struct error *err)
{
    struct str json = {0};
    tokenizer_write(tokenizer, &json);
    bool ok = json.size <= TEXT_VOCABULARY_BYTES ||
              error_at(err, "/data/tokenizer", INVALID,
                       "the vocabulary takes %zu bytes, allowed: at most %d; less tokens would "
                       "take less",
                       json.size, TEXT_VOCABULARY_BYTES);
    if (ok)
        dataset->vocabulary = arena_text_n(dataset->arena, str_text(&json), json.size);
    str_release(&json);
    return ok;
}

static bool open_parts(struct dataset_opening *opening, const struct str parts[3],
                       struct error *err)
{
    const struct spec_text *how = &opening->data->text;
    struct dataset *dataset = opening->dataset;
    size_t train_size;
    if (!split(opening, parts, &train_size, err))
        return false;
    const char *known = opening->vocabulary;
    struct tokenizer *tokenizer =
        known ? tokenizer_read(known, strlen(known), err)
              : tokenizer_learn((enum tokenizer_kind)how->tokenizer, how->vocabulary,
                                str_text(&parts[0]), train_size, err);
    if (!tokenizer)
        return error_prefix(err, "%s: ", opening->folder);
    add_columns(dataset, how, tokenizer_size(tokenizer));
    const struct str *held = train_size < parts[0].size ? &parts[0] : &parts[1];
    size_t from = train_size < parts[0].size ? train_size : 0;
    bool ok = keep_vocabulary(dataset, tokenizer, err) &&
              open_part(opening, tokenizer, str_text(&parts[0]), train_size, "to train on",
                        &dataset->train, err) &&
              open_part(opening, tokenizer, str_text(held) + from, held->size - from,
                        "to validate with", &dataset->validation, err) &&
              open_part(opening, tokenizer, str_text(&parts[2]), parts[2].size, "to test on",
                        &dataset->test, err);
    tokenizer_free(tokenizer);
    return ok;
}

static bool text_open(struct dataset_opening *opening, struct error *err)
{
    const struct spec_text *how = &opening->data->text;
    struct str parts[3] = {{0}};
    if (!how->sequence_length && !how->skip_gram)
        return error_at(err, "/data/sequence_length", INVALID,
                        "sequence_length is missing: how many tokens of the text are an "
                        "example");
    bool ok = read_files(opening, parts, err) && open_parts(opening, parts, err);
    for (int p = 0; p < 3; p++)
        str_release(&parts[p]);
    return ok;
}

const struct dataset_format format_text = {
    .name = "text",
    .wanted = "*.txt (texts; train.txt, validation.txt and test.txt are parts)",
    .is = text_is,
    .open = text_open,
    .holds_out = true,
};
