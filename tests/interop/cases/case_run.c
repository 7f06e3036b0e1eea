/* case_run.c - one case: its graph, its runs in order, what they must give. */

#include "tests/interop/cases/cases.h"

#include <ftw.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"
#include "runtime/tensor_pb.h"

/* Every `from` in the elements becomes `to`. */
static void replace_in_strings(struct tensor *tensor, const char *from, const char *to)
{
    size_t from_size = strlen(from);
    for (int64_t i = 0; tensor->dtype == STRING && i < tensor->count; i++) {
        const struct tensor_string *text = tensor_strings(tensor) + i;
        struct str out = {0};
        bool found = false;
        for (size_t at = 0; at < text->size;) {
            if (text->size - at >= from_size && memcmp(text->data + at, from, from_size) == 0) {
                str_add(&out, to);
                at += from_size;
                found = true;
            } else {
                str_add_char(&out, text->data[at++]);
            }
        }
        if (found)
            tensor_set_string(tensor, i, str_text(&out), out.size);
        str_release(&out);
    }
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info;
    (void)type;
    (void)walk;
    return remove(path);
}

bool case_read_tensors(Expected *const *from, size_t count, const struct case_world *world,
                       struct tensor *out, struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (!tensor_parse(&out[i], from[i]->tensor.data, from[i]->tensor.len, err))
            return error_prefix(err, "tensor '%s'", from[i]->name);
        replace_in_strings(&out[i], "$TMP", world->folder);
    }
    return true;
}

void case_release_tensors(struct tensor *tensors, size_t count)
{
    for (size_t i = 0; tensors && i < count; i++)
        tensor_release(&tensors[i]);
    free(tensors);
}

/*
 * What is both fed and fetched, the Python client answers itself, without asking the session; a
 * recorded answer without error was made so.  Returns the names that are left.
 */
static int take_fed(const Run *run, const struct tensor *feeds, struct tensor *fetched,
                    const char **names, size_t *places)
{
    int count = 0;
    for (size_t i = 0; i < run->n_fetch; i++) {
        size_t f = 0;
        while (f < run->n_feed && strcmp(run->feed[f]->name, run->fetch[i]) != 0)
            f++;
        if (f < run->n_feed && run->error_code == 0) {
            tensor_share(&fetched[i], &feeds[f]);
            continue;
        }
        names[count] = run->fetch[i];
        places[count++] = i;
    }
    return count;
}

static bool extend(struct case_world *world, const ProtobufCBinaryData *graph,
                   struct error *err)
{
    return world->session ? session_extend(world->session, graph->data, graph->len, err)
                          : case_master_extend(world->how->master, &world->remote, graph->data,
                                               graph->len, err);
}

static bool run_what(struct case_world *world, const struct session_run *what,
                     struct tensor *answers, struct error *err)
{
    return world->session
               ? session_run(world->session, what, answers, err)
               : case_master_run(world->how->master, &world->remote, what, answers, err);
}

static bool extend_and_run(struct case_world *world, const Run *run, const struct tensor *feeds,
                           struct tensor *fetched, struct error *err)
{
    if (run->extend.len) {
        if (!extend(world, &run->extend, err))
            return false;
        if (run->n_fetch == 0 && run->n_target == 0)
            return true;
    }
    const char **names = alloc_array(run->n_feed + 1, sizeof(*names));
    const char **fetches = alloc_array(run->n_fetch + 1, sizeof(*fetches));
    size_t *places = alloc_array(run->n_fetch + 1, sizeof(*places));
    struct tensor *answers = alloc_array(run->n_fetch + 1, sizeof(*answers));
    for (size_t i = 0; i < run->n_feed; i++)
        names[i] = run->feed[i]->name;
    const struct session_run what = {
        .feeds = names,
        .feed_values = feeds,
        .feeds_count = (int)run->n_feed,
        .fetches = fetches,
        .fetches_count = take_fed(run, feeds, fetched, fetches, places),
        .targets = (const char *const *)run->target,
        .targets_count = (int)run->n_target,
    };
    bool all_fed = run->n_fetch > 0 && what.fetches_count == 0 && run->n_target == 0;
    bool ok = all_fed || run_what(world, &what, answers, err);
    for (int i = 0; ok && i < what.fetches_count; i++)
        fetched[places[i]] = answers[i];
    free(answers);
    free(places);
    free(fetches);
    free(names);
    return ok;
}

/* FNV-1a over the bytes of what has any. */
static void hash_numbers(struct case_world *world, const struct tensor *tensor)
{
    size_t size = BIT(tensor->dtype) & DTYPES_PLAIN ? tensor_bytes(tensor) : 0;
    for (size_t i = 0; i < size; i++)
        world->bits = (world->bits ^ ((const uint8_t *)tensor->data)[i]) * 0x100000001b3u;
}

static bool compare_all(struct case_world *world, Expected *const *expect, size_t count,
                        struct tensor *got, struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        struct tensor want = {0};
        if (!tensor_parse(&want, expect[i]->tensor.data, expect[i]->tensor.len, err))
            return false;
        replace_in_strings(&got[i], world->folder, "$TMP");
        bool same = case_compare(&got[i], &want, expect[i], err);
        if (!expect[i]->shape_only)
            hash_numbers(world, &got[i]);
        tensor_release(&want);
        if (!same)
            return error_prefix(err, "%s ", expect[i]->name);
    }
    return true;
}

bool case_run_once(struct case_world *world, const Run *run, struct error *err)
{
    struct tensor *feeds = alloc_array(run->n_feed + 1, sizeof(*feeds));
    struct tensor *fetched = alloc_array(run->n_fetch + 1, sizeof(*fetched));
    bool ok = case_read_tensors(run->feed, run->n_feed, world, feeds, err);
    if (ok) {
        struct error failure = {0};
        bool ran = extend_and_run(world, run, feeds, fetched, &failure);
        int code = ran ? 0 : (int)failure.code;
        if (world->how->master && strstr(failure.text, "was not valid") &&
            strstr(run->error_text, "does not have value"))
            code =
                run->error_code; /* a dead tensor, which sessions and servers tell otherwise */
        if (code != run->error_code && ran)
            ok = fail(err, DATA_LOSS, "succeeded, not %s (%.200s)",
                      error_code_name((enum error_code)run->error_code), run->error_text);
        else if (code != run->error_code)
            ok = fail(err, DATA_LOSS, "%s: %.300s; not %s (%.200s)",
                      error_code_name(failure.code), failure.text,
                      error_code_name((enum error_code)run->error_code), run->error_text);
        else if (!ran && world->how->texts && !case_same_text(failure.text, run->error_text))
            ok = fail(err, DATA_LOSS, "words: %.400s; not (%.400s)", failure.text,
                      run->error_text);
        else if (ran)
            ok = compare_all(world, run->expect, run->n_expect, fetched, err);
    }
    case_release_tensors(feeds, run->n_feed);
    case_release_tensors(fetched, run->n_fetch);
    return ok;
}

/* A session with the case's graph. */
static bool make_session(struct case_world *world, struct error *err)
{
    const ProtobufCBinaryData *graph = &world->c->graph;
    if (world->how->master)
        return case_master_create(world->how->master, graph->data, graph->len, &world->remote,
                                  err);
    world->session = session_new(&world->how->options, err);
    return world->session && session_extend(world->session, graph->data, graph->len, err);
}

static bool run_parts(struct case_world *world, struct error *err)
{
    const Case *c = world->c;
    struct error failure = {0};
    bool made = make_session(world, &failure);
    int code = made ? 0 : (int)failure.code;
    if (code != c->graph_error_code)
        return fail(err, DATA_LOSS, "graph: %s %.300s; not %s (%.200s)",
                    error_code_name((enum error_code)code), failure.text,
                    error_code_name((enum error_code)c->graph_error_code), c->graph_error_text);
    if (!made && world->how->texts && !case_same_text(failure.text, c->graph_error_text))
        return fail(err, DATA_LOSS, "words: %.400s; not (%.400s)", failure.text,
                    c->graph_error_text);
    if (!made)
        return true;
    for (size_t i = 0; i < c->n_run; i++)
        if (!case_run_once(world, c->run[i], err))
            return error_prefix(err, "run %zu: ", i);
    for (size_t i = 0; world->session && i < c->n_gradient; i++)
        if (!case_gradient(world, c->gradient[i], err))
            return error_prefix(err, "gradient %zu: ", i);
    return true;
}

static bool run_in_folder(const Case *c, const struct case_how *how, uint64_t *bits,
                          struct error *err)
{
    struct case_world world = {.c = c,
                               .how = how,
                               .folder = "/tmp/tf-cases-XXXXXX",
                               .bits = UINT64_C(0xcbf29ce484222325)};
    if (!mkdtemp(world.folder))
        return error_errno(err, INTERNAL, "cannot make the folder %s", world.folder);
    bool ok = run_parts(&world, err);
    if (how->master && world.remote.handle[0])
        case_master_close(how->master, &world.remote);
    session_free(world.session);
    nftw(world.folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    *bits = world.bits;
    return ok;
}

bool case_run(const Case *c, const struct case_how *how, int times, struct error *err)
{
    uint64_t first = 0, bits = 0;
    for (int i = 0; i < times; i++) {
        if (!run_in_folder(c, how, &bits, err))
            return false;
        if (i == 0)
            first = bits;
        else if (bits != first)
            return fail(err, DATA_LOSS, "other bits in run %d than in the first", i);
    }
    return true;
}
