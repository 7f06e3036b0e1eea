/* save.c - the state of a training run to and from checkpoints. */

#include <inttypes.h>
#include <math.h>

#include "base/alloc.h"
#include "runtime/checkpoint.h"
#include "runtime/train/internal.h"
#include "runtime/train/trained.h"

/*
 * Beside the variables: how many examples have been taken.  All random numbers follow from seed
 * and step, and the order of the examples from seed and position, so this is the whole state.
 */
#define SAVE_POSITION "trainyard/position"
#define SAVE_SEED "trainyard/seed"

/* With early stopping {best, its step, evaluations since}; with best checkpoints their scores.
 */
#define SAVE_EARLY "trainyard/early_stopping"
#define SAVE_BEST "trainyard/best_scores"
#define SAVE_EXTRA 4 /* of these items */

static struct checkpoint_settings settings_of(const struct train *train)
{
    return (struct checkpoint_settings){.folder = train->options.checkpoints,
                                        .epoch = train->options.epoch,
                                        .keep_latest = (int)train->spec->checkpoint.keep_latest,
                                        .keep_best = (int)train->spec->checkpoint.keep_best};
}

bool save_claim(struct train *train, struct error *err)
{
    const struct checkpoint_settings settings = settings_of(train);
    return checkpoint_claim(&settings, err);
}

static bool set_number(struct checkpoint_item *item, const char *name, int64_t value,
                       struct error *err)
{
    item->name = name;
    return tensor_init_copy(&item->tensor, I64, &SHAPE_SCALAR, &value, err);
}

static bool set_numbers(struct checkpoint_item *item, const char *name, const double *values,
                        int count, struct error *err)
{
    item->name = name;
    return tensor_init_copy(&item->tensor, F64, &SHAPE(count), values, err);
}

/* How stopping stands after this very checkpoint. */
static bool collect_stopping(struct train *train, struct checkpoint_item *items, int *count,
                             struct error *err)
{
    const struct stopping *s = &train->stopping;
    if (train->spec->stop.early.metric) {
        const double early[3] = {s->best, (double)s->best_step, (double)s->waited};
        if (!set_numbers(&items[*count], SAVE_EARLY, early, 3, err))
            return false;
        (*count)++;
    }
    if (s->scores_count) {
        double *before = alloc_array((size_t)s->scores_count, sizeof(*before));
        memcpy(before, s->scores, (size_t)s->scores_count * sizeof(*before));
        stop_saved(train);
        bool ok = set_numbers(&items[*count], SAVE_BEST, s->scores, s->scores_count, err);
        memcpy(s->scores, before, (size_t)s->scores_count * sizeof(*before));
        free(before);
        if (!ok)
            return false;
        (*count)++;
    }
    return true;
}

static bool collect_variables(struct train *train, struct checkpoint_item *items, int *count,
                              struct error *err)
{
    int variables = train->model.variables_count;
    struct tensor *values = alloc_array((size_t)variables, sizeof(*values));
    bool ok = runner_get(train->runner, values, err);
    for (int i = 0; ok && i < variables; i++) {
        struct checkpoint_item *item = &items[(*count)++];
        const struct model_variable *face = &train->model.variables[i];
        item->name = face->whole ? face->whole : face->name;
        item->whole = face->whole ? &face->whole_shape : NULL;
        item->first = face->first;
        item->tensor = values[i];
    }
    free(values);
    return ok;
}

/* References to all of the state that others do not write; `count` are filled, even after a
 * failure. */
static bool collect(struct train *train, struct checkpoint_item *items, int *count,
                    struct error *err)
{
    if (!train->sharded && !collect_variables(train, items, count, err))
        return false;
    if (!set_number(&items[*count], SAVE_POSITION, train->position, err))
        return false;
    (*count)++;
    if (!set_number(&items[*count], SAVE_SEED, train->spec->seed, err))
        return false;
    (*count)++;
    return collect_stopping(train, items, count, err);
}

static bool write_shards(void *arg, const char *const *prefixes, struct error *err)
{
    struct train *train = arg;
    return runner_save(train->runner, prefixes, err);
}

bool save_write(struct train *train, struct str *path, struct error *err)
{
    const struct checkpoint_settings settings = settings_of(train);
    struct checkpoint_item *items =
        alloc_array((size_t)train->model.variables_count + SAVE_EXTRA, sizeof(*items));
    int count = 0;
    char hash[24];
    snprintf(hash, sizeof(hash), "%016" PRIx64, train->graph_hash);
    struct str model = {0};
    trained_describe(train->spec, &train->dataset, &model);
    const struct checkpoint_point point = {.step = train->step,
                                           .score = stop_score(train),
                                           .graph = hash,
                                           .model = str_text(&model)};
    const struct checkpoint_shards shards = {
        .count = runner_shards(train->runner), .write = write_shards, .arg = train};
    bool ok =
        collect(train, items, &count, err) &&
        checkpoint_save(&settings, &point, items, count, train->sharded ? &shards : NULL, err);
    for (int i = 0; i < count; i++)
        tensor_release(&items[i].tensor);
    free(items);
    str_release(&model);
    if (ok) {
        char *prefix = checkpoint_prefix(settings.folder, train->step);
        str_add(path, prefix);
        free(prefix);
    }
    return ok;
}

/* --- reading --- */

/* What is saved of the variable; NULL after setting `err` if that is none of it. */
static const struct tensor *find_saved(const struct checkpoint *checkpoint,
                                       const struct model_variable *face, struct error *err)
{
    const char *name = face->whole ? face->whole : face->name;
    const struct shape *shape = face->whole ? &face->whole_shape : &face->shape;
    const struct tensor *saved = checkpoint_find(checkpoint, name);
    char wanted[SHAPE_TEXT_BYTES], found[SHAPE_TEXT_BYTES];
    if (!saved)
        return fail_null(
            err, INVALID,
            "%s is of another model: it has no \"%s\" (start anew, or use another folder)",
            checkpoint->prefix, name);
    if ((int)saved->dtype != face->dtype || !shape_equal(&saved->shape, shape))
        return fail_null(err, INVALID,
                         "%s is of another model: its \"%s\" is %s %s, the spec's is %s %s",
                         checkpoint->prefix, name, dtype_name(saved->dtype),
                         shape_text(&saved->shape, found, sizeof(found)),
                         dtype_name(face->dtype), shape_text(shape, wanted, sizeof(wanted)));
    return saved;
}

static bool restore_variable(struct train *train, const struct checkpoint *checkpoint,
                             int index, struct error *err)
{
    const struct model_variable *face = &train->model.variables[index];
    const struct tensor *saved = find_saved(checkpoint, face, err);
    if (!saved || train->sharded)
        return saved;
    /* A part has so many rows of it. */
    int64_t rows = face->whole ? face->whole_shape.dims[0] : 0;
    size_t row = rows ? tensor_bytes(saved) / (size_t)rows : 0;
    /* A copy, so that the variable is the only owner and can be updated in place. */
    struct tensor value;
    return tensor_init_copy(&value, saved->dtype, &face->shape,
                            (const char *)saved->data + (size_t)face->first * row, err) &&
           runner_set(train->runner, index, &value, err);
}

static bool saved_number(const struct checkpoint *checkpoint, const char *name, int64_t *value,
                         struct error *err)
{
    const struct tensor *tensor = checkpoint_find(checkpoint, name);
    if (!tensor || tensor->dtype != I64 || tensor->count != 1)
        return fail(err, INVALID, "%s was not written by a training run: it has no \"%s\"",
                    checkpoint->prefix, name);
    *value = tensor_i64(tensor)[0];
    return true;
}

/* As it stood, where the checkpoint tells; a spec that has changed begins anew. */
static void restore_stopping(struct train *train, const struct checkpoint *checkpoint)
{
    const struct tensor *early = checkpoint_find(checkpoint, SAVE_EARLY);
    const struct tensor *scores = checkpoint_find(checkpoint, SAVE_BEST);
    struct stopping *s = &train->stopping;
    if (early && early->dtype == F64 && early->count == 3) {
        s->best = tensor_f64(early)[0];
        s->best_step = tensor_integer(early, 1);
        s->waited = tensor_integer(early, 2);
    }
    for (int i = 0; scores && scores->dtype == F64 && i < s->scores_count; i++)
        s->scores[i] = i < scores->count ? tensor_f64(scores)[i] : (double)NAN;
}

static bool restore(struct train *train, const struct checkpoint *checkpoint, struct error *err)
{
    int64_t step = checkpoint->step, position, seed;
    const char *counter = train->model.step;
    if ((counter && !saved_number(checkpoint, counter, &step, err)) ||
        !saved_number(checkpoint, SAVE_POSITION, &position, err) ||
        !saved_number(checkpoint, SAVE_SEED, &seed, err))
        return false;
    if (step < 0 || position < 0)
        return fail(err, DATA_LOSS, "%s: step %lld and position %lld make no sense",
                    checkpoint->prefix, (long long)step, (long long)position);
    for (int i = 0; i < train->model.variables_count; i++) {
        if (!restore_variable(train, checkpoint, i, err))
            return false;
    }
    if (train->sharded && !runner_restore(train->runner, checkpoint->prefix, err))
        return false;
    char hash[24];
    snprintf(hash, sizeof(hash), "%016" PRIx64, train->graph_hash);
    train->step = train->saved_step = step;
    train->position = position;
    restore_stopping(train, checkpoint);
    train->facts.changed = strcmp(checkpoint->graph, hash) || seed != train->spec->seed;
    return true;
}

/* What a person should know about the checkpoint that was taken. */
static void take_notice(struct train *train, const struct checkpoint *checkpoint)
{
    for (int i = 0; i < checkpoint->skipped_count; i++)
        str_printf(&train->notice, "%spassed over %s: %s", train->notice.size ? "; " : "",
                   checkpoint->skipped[i].prefix, checkpoint->skipped[i].why);
    if (train->facts.changed)
        str_printf(
            &train->notice,
            "%sthe spec has changed since %s was written: training goes on from there, but "
            "not as if it had never stopped",
            train->notice.size ? "; " : "", checkpoint->prefix);
}

bool save_restore(struct train *train, bool *found, struct error *err)
{
    struct checkpoint checkpoint;
    bool ok = train->sharded ? checkpoint_look(train->options.checkpoints, &checkpoint, err)
                             : checkpoint_load(train->options.checkpoints, &checkpoint, err);
    if (!ok) {
        *found = false;
        return err->code == NOT_FOUND;
    }
    ok = restore(train, &checkpoint, err);
    if (ok)
        take_notice(train, &checkpoint);
    checkpoint_release(&checkpoint);
    *found = true;
    return ok;
}
