/* dataset.c - opens a folder in its format, chooses the feeds, holds examples out. */

#include "runtime/dataset/dataset.h"

#include <math.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/dataset/format_records.h"
#include "runtime/dataset/shuffle.h"
#include "runtime/dataset/transform.h"
#include "runtime/machine.h"
#include "runtime/spec/spec.h"

#define DATASET_MEMORY (INT64_C(1) << 30) /* of examples that are held */
#define DATASET_HOLD_OUT_EPOCH (-1)       /* of the shuffle: an epoch that no training has */

/* --- formats --- */

static bool refuse_folder(const char *folder, struct error *err)
{
    struct str wanted = {0};
    for (int i = 0; format_at(i); i++)
        str_printf(&wanted, "%s%s", i ? "; " : "", format_at(i)->wanted);
    fail(err, NOT_FOUND, "%s holds no dataset of a known format; there could be: %s", folder,
         str_text(&wanted));
    str_release(&wanted);
    return false;
}

static bool refuse_format(const char *name, struct error *err)
{
    struct str names = {0};
    for (int i = 0; format_at(i); i++)
        str_printf(&names, "%s\"%s\"", i ? ", " : "", format_at(i)->name);
    error_at(err, "/data/format", INVALID, "there is no format \"%.60s\", allowed: %s", name,
             str_text(&names));
    str_release(&names);
    return false;
}

static const struct dataset_format *find_format(const char *folder, const char *name,
                                                struct error *err)
{
    for (int i = 0; format_at(i); i++) {
        const struct dataset_format *format = format_at(i);
        if (name ? !strcmp(name, format->name) : format->is(folder))
            return format;
    }
    (void)(name ? refuse_format(name, err) : refuse_folder(folder, err));
    return NULL;
}

static bool check_part(const struct dataset_part *part, const char *folder, struct error *err)
{
    if (part->examples && !part->count)
        return fail(err, INVALID, "%s holds no examples", folder);
    return part->count <= INT32_MAX ||
           fail(err, INVALID, "%s holds %lld examples, allowed: at most %d", folder,
                (long long)part->count, INT32_MAX);
}

/* --- holding out --- */

/* How many the spec wants. */
static int64_t wanted_out(const struct dataset *dataset, const struct spec_data *data)
{
    if (!data->validation_fraction)
        return data->validation;
    double count = round(data->validation_fraction * (double)dataset->train.count);
    return count < 1 ? 1 : (int64_t)count;
}

static bool hold_out(struct dataset *dataset, int64_t count, int64_t seed, struct error *err)
{
    int64_t examples = dataset->train.count;
    if (!count)
        return true;
    if (dataset->validation.count)
        return error_at(err, "/data/validation", INVALID,
                        "the data has a part of %lld examples for validation, so none is held "
                        "out",
                        (long long)dataset->validation.count);
    if (count >= examples)
        return error_at(err, "/data/validation", INVALID,
                        "%lld examples held out of %lld leave none to train on",
                        (long long)count, (long long)examples);
    int32_t *order = alloc_array((size_t)examples, sizeof(*order));
    bool *drawn = alloc_array((size_t)examples, sizeof(*drawn));
    struct dataset_part *parts[2] = {&dataset->train, &dataset->validation};
    shuffle_order(seed, DATASET_HOLD_OUT_EPOCH, -1, order, examples);
    for (int64_t i = 0; i < count; i++)
        drawn[order[i]] = true;
    free(order);
    dataset->validation.examples = dataset->train.examples;
    dataset->train.count = 0;
    for (int p = 0; p < 2; p++)
        parts[p]->rows = alloc_array((size_t)examples, sizeof(*parts[p]->rows));
    for (int64_t i = 0; i < examples; i++) {
        struct dataset_part *part = parts[drawn[i]];
        part->rows[part->count++] = (int32_t)i;
    }
    free(drawn);
    return true;
}

/* --- the whole --- */

/* A transform may change what the model gets. */
static void set_shapes(struct dataset *dataset)
{
    for (int i = 0; i < dataset->feeds.count; i++) {
        const struct dataset_transform *transform =
            dataset->transforms[dataset->feeds.columns[i]];
        struct model_feature *face = (struct model_feature *)feeds_face(&dataset->feeds, i);
        if (transform)
            face->shape = transform->shape;
    }
}

/* The column that the spec calls the weight is numbers, and neither feature nor target. */
static void set_weight(struct dataset *dataset, const struct spec_data *data)
{
    for (int i = 0; i < dataset->columns_count && data->weight; i++) {
        struct dataset_column *column = &dataset->columns[i];
        if (strcmp(column->name, data->weight) != 0)
            continue;
        column->role = DATASET_WEIGHT;
        if (!column->vocabulary)
            column->dtype = F32;
    }
}

static bool open_all(struct dataset_opening *opening, struct error *err)
{
    struct dataset *dataset = opening->dataset;
    if (!dataset->format->open(opening, err) ||
        !check_part(&dataset->train, opening->folder, err) ||
        !check_part(&dataset->validation, opening->folder, err) ||
        !check_part(&dataset->test, opening->folder, err))
        return false;
    assert(dataset->train.count > 0);
    for (int i = 0; i < opening->data->columns_count; i++) {
        if (!opening->found[i])
            return error_at(err, opening->data->columns[i].pointer, INVALID,
                            "the %s data has no column \"%.60s\" of which something could be "
                            "said here",
                            dataset->format->name, opening->data->columns[i].name);
    }
    set_weight(dataset, opening->data);
    dataset->transforms =
        arena_array(dataset->arena, (size_t)dataset->columns_count, sizeof(void *));
    if (!feeds_choose(dataset->columns, dataset->columns_count, opening->data, dataset->arena,
                      &dataset->feeds, err))
        return false;
    if (!transform_augment(opening, err))
        return false;
    set_shapes(dataset);
    return dataset->format->holds_out ||
           hold_out(dataset, wanted_out(dataset, opening->data), opening->seed, err);
}

static int64_t memory_of(const struct dataset_source *source)
{
    int64_t memory = (source->memory ? source->memory : machine_memory()) / 4;
    return memory < DATASET_MEMORY ? memory : DATASET_MEMORY;
}

bool dataset_open_from(const struct dataset_source *source, struct dataset *dataset,
                       struct error *err)
{
    static const struct spec_data nothing;
    struct stat info;
    const char *folder = source->folder;
    const struct spec_data *data = source->data ? source->data : &nothing;
    *dataset = (struct dataset){0};
    if (stat(folder, &info))
        return error_errno(err, NOT_FOUND, "there is no folder %s", folder);
    if (!S_ISDIR(info.st_mode))
        return fail(err, INVALID, "%s is no folder", folder);
    dataset->format = find_format(folder, data->format, err);
    if (!dataset->format)
        return false;
    dataset->arena = arena_new();
    struct dataset_opening opening = {
        .folder = folder,
        .data = data,
        .seed = source->seed,
        .dataset = dataset,
        .vocabulary = source->vocabulary,
        .memory = memory_of(source),
        .spool = source->spool,
        .found = arena_array(dataset->arena, (size_t)data->columns_count + 1, sizeof(bool))};
    if (open_all(&opening, err))
        return true;
    dataset_close(dataset);
    return false;
}

bool dataset_open(const char *folder, const struct spec_data *data, int64_t seed,
                  struct dataset *dataset, struct error *err)
{
    const struct dataset_source source = {.folder = folder, .data = data, .seed = seed};
    return dataset_open_from(&source, dataset, err);
}

void dataset_close(struct dataset *dataset)
{
    struct dataset_part *parts[] = {&dataset->train, &dataset->validation, &dataset->test};
    for (int p = 0; p < ARRAY_LEN(parts); p++) {
        struct dataset_examples *examples = parts[p]->examples;
        bool shared = p && examples == dataset->train.examples;
        if (examples && !shared)
            examples->free(examples);
        free(parts[p]->rows);
    }
    if (dataset->records)
        dataset->records->format->table_free(dataset->records);
    for (int i = 0; dataset->transforms && i < dataset->columns_count; i++) {
        if (dataset->transforms[i])
            dataset->transforms[i]->free(dataset->transforms[i]);
    }
    free(dataset->columns);
    arena_free(dataset->arena);
    *dataset = (struct dataset){0};
}

const struct dataset_part *dataset_eval(const struct dataset *dataset)
{
    if (dataset->validation.count)
        return &dataset->validation;
    return dataset->test.count ? &dataset->test : NULL;
}
