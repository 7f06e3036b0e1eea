/* init.c - starting from weights that something else has learned. */

#include "base/alloc.h"
#include "base/arena.h"
#include "runtime/checkpoint.h"
#include "runtime/dataset/tokenizer.h"
#include "runtime/io/file.h"
#include "runtime/train/internal.h"
#include "runtime/train/weights.h"

#define INIT_TOLD_MAX 8 /* variables that a text names */
#define INIT_POINTER "/train/init"

/*
 * The checkpoints of another job, which lie beside ours: JOBS/7/checkpoints.  The server has
 * put the job's number into the spec.
 */
static const char *job_path(struct train *train, struct arena *arena, struct error *err)
{
    const struct spec_init *init = &train->spec->train.init;
    if (!train->options.epoch || !train->options.checkpoints) {
        error_at(
            err, INIT_POINTER "/job", PRECONDITION,
            "the checkpoints of job %s are on its server: submit this there, or name a file",
            init->job);
        return NULL;
    }
    char *ours = file_folder(train->options.checkpoints), *jobs = file_folder(ours);
    const char *folder = arena_printf(arena, "%s/%s/checkpoints", jobs, init->job);
    free(ours);
    free(jobs);
    if (init->step < 0)
        return folder;
    char *prefix = checkpoint_prefix(folder, init->step);
    const char *path = arena_text(arena, prefix);
    free(prefix);
    return path;
}

/* What does not fit, as far as one wants to read it. */
static int tell(const struct weights_match *matches, int count, struct str *text)
{
    int bad = 0;
    for (int i = 0; i < count; i++) {
        if (matches[i].fits)
            continue;
        if (bad++ >= INIT_TOLD_MAX)
            continue;
        str_add(text, bad > 1 ? "; " : "");
        weights_tell(&matches[i], text);
    }
    if (bad > INIT_TOLD_MAX)
        str_printf(text, "; and %d more", bad - INIT_TOLD_MAX);
    return bad;
}

/* --- variables in parts --- */

/* The model's variables as files have them: those in parts as one. */
static const struct model_variable *whole_variables(const struct model *model,
                                                    struct arena *arena, int *count)
{
    struct model_variable *all =
        arena_array(arena, (size_t)model->variables_count + 1, sizeof(*all));
    *count = 0;
    for (int i = 0; i < model->variables_count; i++) {
        struct model_variable face = model->variables[i];
        if (face.whole && face.first > 0)
            continue;
        if (face.whole) {
            face.name = face.whole;
            face.shape = face.whole_shape;
        }
        all[(*count)++] = face;
    }
    return all;
}

/* Gives a part its rows of the value. */
static bool set_part(struct train *train, int index, const struct tensor *value,
                     struct error *err)
{
    const struct model_variable *face = &train->model.variables[index];
    int64_t rows = value->shape.dims[0];
    size_t row = rows ? tensor_bytes(value) / (size_t)rows : 0;
    struct tensor part;
    return tensor_init_copy(&part, value->dtype, &face->shape,
                            (const char *)value->data + (size_t)face->first * row, err) &&
           runner_set(train->runner, index, &part, err);
}

/* Whether the variable is what `whole` says, or a part of it. */
static bool is_of(const struct model_variable *face, const struct model_variable *whole)
{
    return !strcmp(face->whole ? face->whole : face->name, whole->name);
}

static bool set_variable(struct train *train, const struct weights_match *match,
                         struct error *err)
{
    const struct model *model = &train->model;
    struct tensor value;
    bool ok = weights_value(match, &value, err), parts = false;
    if (!ok)
        return false;
    for (int i = 0; ok && i < model->variables_count; i++) {
        const struct model_variable *face = &model->variables[i];
        if (!is_of(face, match->place->variable))
            continue;
        if (!face->whole)
            return runner_set(train->runner, i, &value, err);
        ok = set_part(train, i, &value, err);
        parts = true;
    }
    assert(parts);
    tensor_release(&value);
    return ok;
}

/* --- what is taken --- */

static int64_t tokens_of(const char *vocabulary)
{
    struct error ignored;
    struct tokenizer *tokenizer = tokenizer_read(vocabulary, strlen(vocabulary), &ignored);
    int64_t count = tokenizer ? tokenizer_size(tokenizer) : 0;
    tokenizer_free(tokenizer);
    return count;
}

/* What was learned of token 7 is worth nothing where another token has that number. */
static bool check_tokens(const struct train *train, const struct weights *weights,
                         const char *path, struct error *err)
{
    const char *theirs = weights_vocabulary(weights), *ours = train->dataset.vocabulary;
    if (!theirs || !ours || !strcmp(theirs, ours) || !train->spec->train.init.strict)
        return true;
    return error_at(err, INIT_POINTER, INVALID,
                    "%s was trained on a text with other tokens than dataset \"%s\" has (%lld "
                    "there, %lld here), so that what it learned of one would be taken for "
                    "another (\"strict\": false takes it all the same)",
                    path, train->spec->data.dataset, (long long)tokens_of(theirs),
                    (long long)tokens_of(ours));
}

static bool take(struct train *train, const struct weights *weights, const char *path,
                 struct arena *arena, struct error *err)
{
    int variables_count, count;
    const struct model_variable *variables =
        whole_variables(&train->model, arena, &variables_count);
    const struct weights_place *places =
        weights_places(train->spec, variables, variables_count, arena, &count);
    const struct weights_match *matches = weights_match(weights, places, count, arena);
    struct str bad = {0};
    int missing = tell(matches, count, &bad);
    bool ok = true;
    if (missing && train->spec->train.init.strict)
        ok =
            error_at(err, INIT_POINTER, INVALID,
                     "%s has not all that the model wants (\"strict\": false takes what fits): "
                     "%s",
                     path, str_text(&bad));
    else if (missing == count)
        ok = error_at(err, INIT_POINTER, INVALID, "%s has nothing that fits: %s", path,
                      str_text(&bad));
    for (int i = 0; ok && i < count; i++) {
        if (matches[i].fits)
            ok = set_variable(train, &matches[i], err);
    }
    if (ok)
        str_printf(&train->notice, "%sstarted from %s: %d of %d variables%s%s",
                   train->notice.size ? "; " : "", path, count - missing, count,
                   missing ? ", not taken: " : "", str_text(&bad));
    str_release(&bad);
    return ok;
}

bool init_apply(struct train *train, struct error *err)
{
    const struct spec_init *init = &train->spec->train.init;
    if (!train->options.init && !init->job && !init->file)
        return true;
    struct arena *arena = arena_new();
    const char *path = train->options.init ? train->options.init
                       : init->file        ? init->file
                                           : job_path(train, arena, err);
    struct weights *weights = path ? weights_open(path, err) : NULL;
    bool ok = weights && check_tokens(train, weights, path, err) &&
              take(train, weights, path, arena, err);
    if (path && !weights && !err->pointer[0])
        snprintf(err->pointer, sizeof(err->pointer), INIT_POINTER);
    weights_close(weights);
    arena_free(arena);
    return ok;
}
