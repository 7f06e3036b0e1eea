/* slurm.c - Slurm as an engine. */

#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "scheduler/engines/command.h"
#include "scheduler/engines/slurm.h"

#define COMMAND_MS 20000
#define CANCEL_MS 5000      /* also at the end of the server */
#define SIGNAL_EARLIER_S 10 /* than the grace: Slurm looks every now and then */
#define WORDS_MAX (SETTINGS_WORDS_MAX + 24)

struct slurm {
    const struct settings *settings;
    const atomic_bool *stop;
    char prefix[40];
};

static void *slurm_open(const struct settings *settings, const char *tag,
                        const atomic_bool *stop, struct error *err)
{
    (void)err;
    struct slurm *slurm = alloc_bytes(sizeof(*slurm));
    slurm->settings = settings;
    slurm->stop = stop;
    snprintf(slurm->prefix, sizeof(slurm->prefix), "trainyard-%.20s-", tag);
    return slurm;
}

static void slurm_close(void *self)
{
    free(self);
}

static char *program(const struct slurm *slurm, const char *name, struct arena *arena)
{
    const char *bin = slurm->settings->bin;
    return *bin ? arena_printf(arena, "%s/%s", bin, name) : arena_text(arena, name);
}

/* --- squeue --- */

static enum pilots_phase phase_of(const char *state)
{
    static const char *const waits[] = {"PENDING",      "CONFIGURING", "REQUEUED",
                                        "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"};
    static const char *const runs[] = {"RUNNING", "SUSPENDED", "RESIZING", "SIGNALING",
                                       "STOPPED"};
    for (int i = 0; i < ARRAY_LEN(waits); i++)
        if (strcmp(state, waits[i]) == 0)
            return PILOTS_WAITS;
    for (int i = 0; i < ARRAY_LEN(runs); i++)
        if (strcmp(state, runs[i]) == 0)
            return PILOTS_RUNS;
    return PILOTS_ENDED;
}

/* One line, cut up in place. */
static bool read_line(char *line, const char *prefix, struct pilots_seen *seen)
{
    char *fields[4] = {line};
    for (int i = 1; i < 4; i++) {
        fields[i] = fields[i - 1] + strcspn(fields[i - 1], "|");
        if (!*fields[i])
            return false;
        *fields[i]++ = 0;
    }
    size_t id_size = strlen(fields[0]);
    if (strncmp(fields[1], prefix, strlen(prefix)) != 0 || !id_size ||
        id_size >= PILOTS_ID_BYTES || strspn(fields[0], "0123456789") != id_size)
        return false;
    *seen = (struct pilots_seen){.phase = phase_of(fields[2])};
    snprintf(seen->id, sizeof(seen->id), "%s", fields[0]);
    snprintf(seen->name, sizeof(seen->name), "%s", fields[1] + strlen(prefix));
    if (!*fields[3] || strcmp(fields[3], "None") == 0)
        snprintf(seen->says, sizeof(seen->says), "%.40s", fields[2]);
    else
        snprintf(seen->says, sizeof(seen->says), "%.40s (%.100s)", fields[2], fields[3]);
    return true;
}

void slurm_read(const char *text, const char *prefix, struct arena *arena,
                struct pilots_seen **seen, int *seen_count)
{
    size_t lines = 1;
    for (const char *c = text; *c; c++)
        lines += *c == '\n';
    *seen = arena_array(arena, lines, sizeof(**seen));
    *seen_count = 0;
    for (const char *at = text; *at;) {
        size_t size = strcspn(at, "\n");
        char line[1024];
        if (size < sizeof(line)) {
            memcpy(line, at, size);
            line[size] = 0;
            *seen_count += read_line(line, prefix, &(*seen)[*seen_count]);
        }
        at += size + (at[size] == '\n');
    }
}

static bool slurm_list(void *self, struct arena *arena, struct pilots_seen **seen,
                       int *seen_count, struct error *err)
{
    struct slurm *slurm = self;
    char *words[] = {
        program(slurm, "squeue", arena),           arena_text(arena, "--me"),
        arena_text(arena, "--noheader"),           arena_text(arena, "--states=all"),
        arena_text(arena, "--format=%i|%j|%T|%r"), NULL};
    struct command command = {.words = words, .timeout_ms = COMMAND_MS, .stop = slurm->stop};
    struct str out = {0};
    bool ok = command_run(&command, &out, err);
    if (ok)
        slurm_read(str_text(&out), slurm->prefix, arena, seen, seen_count);
    str_release(&out);
    return ok;
}

/* --- sbatch --- */

struct words {
    char *list[WORDS_MAX + 1];
    int count;
};

static void add(struct words *words, char *word)
{
    assert(words->count < WORDS_MAX);
    words->list[words->count++] = word;
}

static void add_option(struct words *words, struct arena *arena, const char *name,
                       const char *value)
{
    if (*value)
        add(words, arena_printf(arena, "--%s=%s", name, value));
}

static void submit_words(const struct slurm *slurm, const struct engine_pilot *pilot,
                         struct arena *arena, struct words *words)
{
    const struct settings_queue *queue = pilot->queue;
    const struct scheduler_resources *each = &queue->like.capacity;
    add(words, program(slurm, "sbatch", arena));
    add(words, arena_text(arena, "--parsable"));
    add(words, arena_text(arena, "--no-requeue"));
    add(words, arena_text(arena, "--nodes=1"));
    add(words, arena_text(arena, "--ntasks=1"));
    add(words, arena_text(arena, "--export=TRAINYARD_TOKEN"));
    add(words, arena_printf(arena, "--job-name=%s%s", slurm->prefix, pilot->name));
    add(words, arena_printf(arena, "--cpus-per-task=%lld", (long long)each->cpu_millis / 1000));
    add(words,
        arena_printf(arena, "--mem=%lldM", (long long)((each->memory_bytes - 1) >> 20) + 1));
    if (each->gpus)
        add(words, arena_printf(arena, "--gres=gpu:%lld", (long long)each->gpus));
    if (queue->time_minutes)
        add(words, arena_printf(arena, "--time=%lld", (long long)queue->time_minutes));
    /* The script hears of the end of its time while its tasks can still write a checkpoint. */
    add(words, arena_printf(arena, "--signal=B:TERM@%lld",
                            (long long)slurm->settings->grace_s + SIGNAL_EARLIER_S));
    add_option(words, arena, "chdir", slurm->settings->folder);
    add_option(words, arena, "output",
               arena_printf(arena, "%s/%%x-%%j.log", slurm->settings->logs));
    add_option(words, arena, "partition", queue->partition);
    add_option(words, arena, "account", queue->account);
    add_option(words, arena, "qos", queue->qos);
    for (const char *const *option = queue->options; *option; option++)
        add(words, arena_text(arena, *option));
}

/* Ours, with the token. */
static char **with_token(const char *token, struct arena *arena)
{
    size_t count = 0;
    while (environ[count])
        count++;
    char **list = arena_array(arena, count + 2, sizeof(*list));
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (strncmp(environ[i], "TRAINYARD_TOKEN=", 16) != 0)
            list[kept++] = environ[i];
    list[kept] = arena_printf(arena, "TRAINYARD_TOKEN=%s", token);
    return list;
}

static bool slurm_submit(void *self, const struct engine_pilot *pilot, char id[PILOTS_ID_BYTES],
                         struct error *err)
{
    struct slurm *slurm = self;
    struct arena *arena = arena_new();
    struct words words = {0};
    struct str out = {0};
    submit_words(slurm, pilot, arena, &words);
    struct command command = {.words = words.list,
                              .environment = with_token(pilot->token, arena),
                              .input = pilot->script,
                              .timeout_ms = COMMAND_MS,
                              .stop = slurm->stop};
    bool ok = command_run(&command, &out, err);
    /* "ID" or "ID;CLUSTER" */
    size_t size = ok ? strspn(str_text(&out), "0123456789") : 0;
    if (ok && (!size || size >= PILOTS_ID_BYTES))
        ok =
            fail(err, UNAVAILABLE, "sbatch answers no number of a job: %.100s", str_text(&out));
    if (ok)
        snprintf(id, PILOTS_ID_BYTES, "%.*s", (int)size, str_text(&out));
    str_release(&out);
    arena_free(arena);
    return ok;
}

/* --- scancel --- */

static bool slurm_cancel(void *self, const char *const *ids, int ids_count, struct error *err)
{
    struct slurm *slurm = self;
    struct arena *arena = arena_new();
    struct str out = {0};
    char **words = arena_array(arena, (size_t)ids_count + 4, sizeof(*words));
    words[0] = program(slurm, "scancel", arena);
    words[1] = arena_text(arena, "--quiet");
    words[2] = arena_text(arena, "--full"); /* the script too is told */
    for (int i = 0; i < ids_count; i++)
        words[3 + i] = arena_text(arena, ids[i]);
    struct command command = {.words = words, .timeout_ms = CANCEL_MS};
    bool ok = command_run(&command, &out, err);
    str_release(&out);
    arena_free(arena);
    return ok;
}

const struct engine_kind slurm_engine = {
    .name = "slurm",
    .title = "Slurm",
    .what = "Slurm job",
    .open = slurm_open,
    .close = slurm_close,
    .list = slurm_list,
    .submit = slurm_submit,
    .cancel = slurm_cancel,
};
