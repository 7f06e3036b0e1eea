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

static bool set_variable(struct train *train, const struct weights_match *match,
                         struct error *err)
{
    const struct model_variable *face = match->place->variable;
    struct tensor value;
    if (!weights_value(match, &value, err))
        return false;
    return runner_set(train->runner, (int)(face - train->model.variables), &value, err);
}

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
    int count;
    const struct weights_place *places = weights_places(
        train->spec, train->model.variables, train->model.variables_count, arena, &count);
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
    for (int i = 0; i < train->model.variables_count; i++) {
        if (train->model.variables[i].whole)
            return error_at(
                err, INIT_POINTER, UNIMPLEMENTED,
                "variables in parts (/strategy/partitioner) cannot start from other "
                "weights yet");
    }
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
