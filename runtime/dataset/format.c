/* format.c - the table of formats, and what they have in common: columns, examples in memory.
 */

#include "runtime/dataset/format.h"

#include <dirent.h>
#include <strings.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "runtime/machine.h"
#include "runtime/spec/spec.h"

#define FORMAT_ROW(name) &format_##name,
static const struct dataset_format *const formats[] = {DATASET_FORMATS(FORMAT_ROW)};

const struct dataset_format *format_at(int index)
{
    return index >= 0 && index < ARRAY_LEN(formats) ? formats[index] : NULL;
}

int format_add_column(struct dataset *dataset, const struct dataset_column *column)
{
    dataset->columns = alloc_grow(dataset->columns, dataset->columns_count,
                                  &dataset->columns_capacity, sizeof(*dataset->columns));
    struct dataset_column *added = &dataset->columns[dataset->columns_count];
    *added = *column;
    added->name = arena_text(dataset->arena, column->name);
    if (column->vocabulary)
        format_set_vocabulary(dataset, added, column->vocabulary);
    return dataset->columns_count++;
}

void format_set_vocabulary(struct dataset *dataset, struct dataset_column *column,
                           const char *const *words)
{
    const char **copies = arena_array(dataset->arena, (size_t)column->classes, sizeof(*copies));
    for (int64_t i = 0; i < column->classes; i++)
        copies[i] = arena_text(dataset->arena, words[i]);
    column->vocabulary = copies;
}

void format_add_pictures(struct dataset *dataset, const struct shape *shape)
{
    const struct dataset_column images = {
        .name = "images", .stored = U8, .dtype = F32, .shape = *shape, .scale = 1.0 / 255};
    const struct dataset_column labels = {
        .name = "labels", .role = DATASET_TARGET, .stored = U8, .dtype = I32};
    format_add_column(dataset, &images);
    format_add_column(dataset, &labels);
}

/* --- examples in memory --- */

struct memory {
    struct dataset_examples examples; /* first */
    int columns_count;
    struct memory_column {
        struct tensor tensor;
        size_t bytes; /* of one example */
    } columns[];
};

static const void *memory_at(const struct dataset_examples *examples, int column, int64_t row,
                             void *scratch, struct error *err)
{
    (void)scratch;
    (void)err;
    const struct memory *memory = (const struct memory *)examples;
    const struct memory_column *of = &memory->columns[column];
    return (const char *)of->tensor.data + (size_t)row * of->bytes;
}

static void memory_free(struct dataset_examples *examples)
{
    struct memory *memory = (struct memory *)examples;
    for (int i = 0; i < memory->columns_count; i++)
        tensor_release(&memory->columns[i].tensor);
    free(memory);
}

bool format_check_column(const struct dataset_column *column, enum dtype dtype,
                         const struct shape *shape, int64_t count, const char *where,
                         struct error *err)
{
    struct shape wanted = {.rank = column->shape.rank + 1, .dims = {count}};
    memcpy(wanted.dims + 1, column->shape.dims,
           (size_t)column->shape.rank * sizeof(*wanted.dims));
    char is[SHAPE_TEXT_BYTES], should[SHAPE_TEXT_BYTES];
    if (dtype != column->stored)
        return fail(err, INVALID, "%s: column \"%s\" is of %s, elsewhere of %s", where,
                    column->name, dtype_name(dtype), dtype_name(column->stored));
    if (!shape_equal(shape, &wanted))
        return fail(err, INVALID, "%s: column \"%s\" has shape %s, wanted: %s", where,
                    column->name, shape_text(shape, is, sizeof(is)),
                    shape_text(&wanted, should, sizeof(should)));
    /* As many as one likes of them would fit in a file of a few bytes. */
    return !count || shape_count(shape) > 0 ||
           fail(err, INVALID, "%s: column \"%s\" has shape %s: its examples have no values",
                where, column->name, shape_text(shape, is, sizeof(is)));
}

bool format_memory(struct dataset *dataset, struct dataset_part *part, struct tensor *columns,
                   const char *where, struct error *err)
{
    int count = dataset->columns_count;
    struct memory *memory =
        alloc_bytes(sizeof(*memory) + (size_t)count * sizeof(memory->columns[0]));
    assert(count > 0 && !part->examples);
    memory->columns_count = count;
    memory->examples = (struct dataset_examples){
        .count = columns[0].shape.rank > 0 ? columns[0].shape.dims[0] : 0,
        .at = memory_at,
        .free = memory_free};
    for (int i = 0; i < count; i++) {
        memory->columns[i].tensor = columns[i];
        memory->columns[i].bytes = dtype_size(dataset->columns[i].stored) *
                                   (size_t)shape_count(&dataset->columns[i].shape);
        columns[i] = (struct tensor){0};
    }
    part->examples = &memory->examples; /* the dataset's, whatever is found now */
    part->count = memory->examples.count;
    for (int i = 0; i < count; i++) {
        const struct tensor *tensor = &memory->columns[i].tensor;
        if (!format_check_column(&dataset->columns[i], tensor->dtype, &tensor->shape,
                                 part->count, where, err))
            return false;
    }
    return true;
}

bool format_count_classes(struct dataset_column *column, const struct tensor *values,
                          const char *where, struct error *err)
{
    const uint8_t *bytes = values->data;
    for (int64_t i = 0; i < values->count; i++) {
        int64_t value = values->dtype == U8 ? bytes[i] : tensor_integer(values, i);
        if (value < 0)
            return fail(err, INVALID, "%s: \"%s\" holds %lld, allowed: classes from 0", where,
                        column->name, (long long)value);
        if (value >= column->classes)
            column->classes = value + 1;
    }
    return true;
}

/* --- what formats ask --- */

const struct spec_column *format_column_spec(struct dataset_opening *opening, const char *name)
{
    const struct spec_data *data = opening->data;
    for (int i = 0; i < data->columns_count; i++) {
        if (strcmp(data->columns[i].name, name) != 0)
            continue;
        opening->found[i] = true;
        return &data->columns[i];
    }
    return NULL;
}

static const struct {
    const char *word;
    enum format_part part;
} part_words[] = {{"train", FORMAT_TRAIN},      {"validation", FORMAT_VALIDATION},
                  {"test", FORMAT_TEST},        {"training", FORMAT_TRAIN},
                  {"valid", FORMAT_VALIDATION}, {"val", FORMAT_VALIDATION},
                  {"eval", FORMAT_TEST},        {"testing", FORMAT_TEST}};

enum format_part format_part_of(const char *word, size_t size)
{
    for (int i = 0; i < ARRAY_LEN(part_words); i++) {
        if (strlen(part_words[i].word) == size && !strncasecmp(part_words[i].word, word, size))
            return part_words[i].part;
    }
    return FORMAT_NONE;
}

enum format_part format_part_of_file(const char *name)
{
    while (*name) {
        size_t size = strcspn(name, "-_. ");
        enum format_part part = format_part_of(name, size);
        if (part != FORMAT_NONE)
            return part;
        name += size + strspn(name + size, "-_. ");
    }
    return FORMAT_TRAIN;
}

const char *format_part_name(enum format_part part)
{
    assert(part >= 0 && part < FORMAT_PARTS);
    return part_words[part].word; /* the first ones are in the order of the parts */
}

struct dataset_part *format_part(struct dataset *dataset, enum format_part part)
{
    struct dataset_part *const parts[FORMAT_PARTS] = {
        [FORMAT_TRAIN] = &dataset->train,
        [FORMAT_VALIDATION] = &dataset->validation,
        [FORMAT_TEST] = &dataset->test,
    };
    return parts[part];
}

bool format_is_target(const struct spec_data *data, const char *name)
{
    static const char *const names[] = {"y", "label", "labels", "target", "targets", "class"};
    if (data->target)
        return !strcmp(data->target, name);
    for (int i = 0; i < ARRAY_LEN(names); i++) {
        if (!strcasecmp(names[i], name))
            return true;
    }
    return false;
}

bool format_is_weight(const struct spec_data *data, const char *name)
{
    return data->weight && !strcmp(data->weight, name);
}

bool format_skip(struct dataset_opening *opening, struct error *err)
{
    int64_t most = opening->data->skip_damaged;
    if (err->code != DATA_LOSS && err->code != INVALID)
        return false;
    if (most < 0 || opening->dataset->skipped < most) {
        opening->dataset->skipped++;
        return true;
    }
    if (!most)
        return false;
    char why[sizeof(err->text)];
    snprintf(why, sizeof(why), "%s", err->text);
    return error_at(err, "/data/skip_damaged", err->code,
                    "more than the %lld damaged records that may be skipped, the last: %s",
                    (long long)most, why);
}

static bool ends_as(const char *name, const char *const *endings)
{
    size_t size = strlen(name);
    for (int i = 0; endings[i]; i++) {
        size_t ending = strlen(endings[i]);
        if (size > ending && !strcmp(name + size - ending, endings[i]))
            return true;
    }
    return false;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char **format_files(const char *folder, const char *const *endings)
{
    DIR *dir = opendir(folder);
    char **names = alloc_bytes(sizeof(*names));
    int count = 0, capacity = 1;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (entry->d_name[0] == '.' || !ends_as(entry->d_name, endings))
            continue;
        names[count++] = alloc_text(entry->d_name);
        names = alloc_grow(names, count, &capacity, sizeof(*names));
        names[count] = NULL;
    }
    if (dir)
        closedir(dir);
    qsort(names, (size_t)count, sizeof(*names), compare_names);
    return names;
}

void format_files_free(char **names)
{
    for (int i = 0; names && names[i]; i++)
        free(names[i]);
    free(names);
}

int64_t format_bytes_max(void)
{
    int64_t machine = machine_memory();
    return machine < LIMIT_TENSOR_BYTES ? machine : LIMIT_TENSOR_BYTES;
}

char *format_find_file(const char *folder, const char *name)
{
    static const char *const endings[] = {"", ".gz"};
    for (int i = 0; i < ARRAY_LEN(endings); i++) {
        char *path = alloc_printf("%s/%s%s", folder, name, endings[i]);
        if (access(path, F_OK) == 0)
            return path;
        free(path);
    }
    return NULL;
}
