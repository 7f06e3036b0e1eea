/*
 * run.c - trainyard run: a program as a job, in one line.
 *
 * What it writes comes out here as it comes, byte for byte; its exit code is ours.  The
 * server's events only say that there is more: what is printed is read by offset, so nothing is
 * printed twice or left out, whoever is restarted meanwhile.
 */

#include <signal.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"
#include "cli/change.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/options.h"
#include "cli/upload.h"
#include "server/url.h"

#define STREAMS_MAX 512 /* tasks, each with two */

struct run {
    const char *folder;
    const char *name;
    const char *project;
    const char *queue;
    const char *workdir;
    const char *after;
    struct options_words env;
    struct options_words secrets;
    struct options_words files;
    int64_t priority;
    int64_t workers;
    int64_t ps;
    int64_t cpus;
    int64_t gpus;
    int64_t memory;
    int64_t seconds;
    bool detach;
};

/* --- the spec --- */

static bool add_env(json_t *spec, const struct options_words *env, struct error *err)
{
    json_t *object = json_object();
    json_object_set_new(spec, "env", object);
    for (int i = 0; i < env->count; i++) {
        const char *equals = strchr(env->word[i], '=');
        const char *value = equals ? equals + 1 : getenv(env->word[i]);
        if (!value)
            return fail(err, INVALID,
                        "--env is '%.60s', which is not set here; give it as NAME=VALUE",
                        env->word[i]);
        char *name = equals ? alloc_text_n(env->word[i], (size_t)(equals - env->word[i]))
                            : alloc_text(env->word[i]);
        json_object_set_new(object, name, json_string(value));
        free(name);
    }
    return true;
}

static json_t *task_json(const struct run *run, int64_t replicas, bool gpus)
{
    json_t *task = json_pack("{s:I}", "replicas", (json_int_t)replicas);
    if (run->cpus > 0)
        json_object_set_new(task, "cpus", json_integer(run->cpus));
    if (run->memory > 0)
        json_object_set_new(task, "memory_bytes", json_integer(run->memory));
    if (gpus && run->gpus > 0)
        json_object_set_new(task, "gpus", json_integer(run->gpus));
    return task;
}

static void add_text(json_t *spec, const char *field, const char *text)
{
    if (text)
        json_object_set_new(spec, field, json_string(text));
}

/* Where it runs when nobody says: here, if the server is of this machine and no files go along.
 */
static void add_folder(json_t *spec, const struct run *run, const struct client *client)
{
    char *here = getcwd(NULL, 0);
    if (run->workdir && run->workdir[0] != '/' && here) {
        char *whole = alloc_printf("%s/%s", here, run->workdir);
        add_text(spec, "workdir", whole);
        free(whole);
    } else if (run->workdir) {
        add_text(spec, "workdir", run->workdir);
    } else if (!run->files.count && client_is_local(client)) {
        add_text(spec, "workdir", here);
    }
    free(here);
}

/* NAME, to be told in a file, or NAME=env. */
static void add_secrets(json_t *spec, const struct options_words *secrets)
{
    json_t *object = json_object();
    for (int i = 0; i < secrets->count; i++) {
        const char *word = secrets->word[i], *equals = strchr(word, '=');
        char *name = equals ? alloc_text_n(word, (size_t)(equals - word)) : alloc_text(word);
        json_object_set_new(object, name, json_string(equals ? equals + 1 : "file"));
        free(name);
    }
    if (secrets->count)
        json_object_set(spec, "secrets", object);
    json_decref(object);
}

static json_t *make_spec(const struct run *run, const struct client *client, char **words,
                         struct error *err)
{
    json_t *command = json_array(), *tasks = json_object();
    for (; *words; words++)
        json_array_append_new(command, json_string(*words));
    json_object_set_new(tasks, "worker", task_json(run, run->workers, true));
    if (run->ps > 0)
        json_object_set_new(tasks, "ps", task_json(run, run->ps, false));
    json_t *spec = json_pack("{s:o, s:o}", "command", command, "tasks", tasks);
    add_text(spec, "name", run->name);
    add_text(spec, "project", run->project);
    add_text(spec, "queue", run->queue);
    if (run->after)
        json_object_set_new(spec, "after", change_list(run->after));
    if (run->priority >= 0)
        json_object_set_new(spec, "priority", json_integer(run->priority));
    if (run->seconds > 0)
        json_object_set_new(spec, "stop",
                            json_pack("{s:I}", "max_seconds", (json_int_t)run->seconds));
    if (run->files.count) {
        json_t *files = json_array();
        for (int i = 0; i < run->files.count; i++)
            json_array_append_new(files, json_string(run->files.word[i]));
        json_object_set_new(spec, "files", files);
    }
    add_secrets(spec, &run->secrets);
    add_folder(spec, run, client);
    if (add_env(spec, &run->env, err))
        return spec;
    json_decref(spec);
    return NULL;
}

/* --- following --- */

struct stream { /* one log of one task */
    char *task;
    char *name;
    int64_t offset;
    bool in_line; /* the last byte printed was not the end of a line */
};

struct follow {
    struct client *client;
    char *job;
    bool many; /* tasks: lines say whose they are */
    int64_t attempt;
    struct stream streams[STREAMS_MAX];
    int count;
    const char *state; /* the final one, borrowed from names */
    int interrupts;    /* that were dealt with */
};

static volatile sig_atomic_t interrupts;

static void on_interrupt(int number)
{
    (void)number;
    interrupts++;
}

static char *job_path(const struct follow *follow, const char *rest)
{
    return alloc_printf("/api/v1/jobs/%s%s", follow->job, rest);
}

static struct stream *stream_of(struct follow *follow, const char *task, const char *name)
{
    for (int i = 0; i < follow->count; i++) {
        if (!strcmp(follow->streams[i].task, task) && !strcmp(follow->streams[i].name, name))
            return &follow->streams[i];
    }
    if (follow->count == STREAMS_MAX)
        return NULL;
    struct stream *stream = &follow->streams[follow->count++];
    *stream = (struct stream){.task = alloc_text(task), .name = alloc_text(name)};
    return stream;
}

static void print_bytes(const struct follow *follow, struct stream *stream,
                        const struct str *text)
{
    FILE *out = strcmp(stream->name, "stderr") == 0 ? stderr : stdout;
    if (!follow->many) {
        fwrite(str_text(text), 1, text->size, out);
        fflush(out);
        return;
    }
    for (const char *at = str_text(text), *end = at + text->size; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t size = newline ? (size_t)(newline + 1 - at) : (size_t)(end - at);
        if (!stream->in_line)
            fprintf(out, "%s | ", stream->task);
        fwrite(at, 1, size, out);
        stream->in_line = !newline;
        at += size;
    }
    fflush(out);
}

/* Prints what there is of a log beyond what was printed. */
static bool catch_up(struct follow *follow, struct stream *stream, struct error *err)
{
    for (;;) {
        struct str path = {0}, text = {0};
        int64_t next = -1;
        str_printf(&path,
                   "/api/v1/jobs/%s/logs?attempt=%lld&offset=%lld&stream=%s&task=", follow->job,
                   (long long)follow->attempt, (long long)stream->offset, stream->name);
        url_encode(&path, stream->task);
        bool ok = client_text(follow->client, str_text(&path), &text, &next, err);
        if (ok && text.size)
            print_bytes(follow, stream, &text);
        bool more = ok && text.size && next > stream->offset;
        if (more)
            stream->offset = next;
        str_release(&path);
        str_release(&text);
        if (!more)
            return ok;
    }
}

/* All logs of the attempt, to their ends. */
static bool catch_up_all(struct follow *follow, struct error *err)
{
    char *path = job_path(follow, "/logs?tail=1");
    json_t *answer = client_json(follow->client, "GET", path, NULL, NULL, err);
    size_t i;
    json_t *log;
    bool ok = answer != NULL;
    free(path);
    json_array_foreach(json_object_get(answer, "logs"), i, log)
    {
        struct stream *stream =
            stream_of(follow, json_string_value(json_object_get(log, "task")),
                      json_string_value(json_object_get(log, "stream")));
        if (ok && stream && json_integer_value(json_object_get(log, "size")) > stream->offset)
            ok = catch_up(follow, stream, err);
    }
    json_decref(answer);
    return ok;
}

static void streams_forget(struct follow *follow)
{
    for (int i = 0; i < follow->count; i++) {
        free(follow->streams[i].task);
        free(follow->streams[i].name);
    }
    follow->count = 0;
}

/* The first Ctrl-C asks the job to end, another one ends it. */
static void pass_interrupts(void *self)
{
    struct follow *follow = self;
    struct error err;
    if (interrupts == follow->interrupts)
        return;
    bool kill = follow->interrupts > 0;
    follow->interrupts = interrupts;
    char *path = job_path(follow, kill ? ":kill" : ":cancel");
    fprintf(stderr, "trainyard: %s the job%s\n", kill ? "killing" : "cancelling",
            kill ? "" : "; once more kills it");
    json_t *answer = client_json(follow->client, "POST", path, "{}", NULL, &err);
    if (!answer)
        (void)cli_fail(&err);
    json_decref(answer);
    free(path);
}

static void take_logs(struct follow *follow, json_t *event)
{
    struct error err;
    size_t i;
    json_t *line;
    json_array_foreach(json_object_get(json_object_get(event, "data"), "lines"), i, line)
    {
        const char *task = json_string_value(json_object_get(line, "task"));
        const char *name = json_string_value(json_object_get(line, "stream"));
        if (task && name)
            (void)stream_of(follow, task, name);
    }
    for (int n = 0; n < follow->count; n++) {
        if (!catch_up(follow, &follow->streams[n], &err))
            return; /* it is read again with the next event, or at the end */
    }
}

static bool on_event(void *self, const char *topic, json_t *event)
{
    static const char *const ends[] = {"succeeded", "failed", "cancelled"};
    struct follow *follow = self;
    json_t *data = json_object_get(event, "data");
    const char *state = json_string_value(json_object_get(data, "state"));
    int64_t attempt = json_integer_value(json_object_get(event, "attempt"));
    struct error err;
    if (strcmp(topic, "job.logs") == 0) {
        take_logs(follow, event);
        return true;
    }
    if (strcmp(topic, "job.state") != 0 || !state)
        return true;
    if (attempt > follow->attempt) {
        if (follow->attempt) {
            (void)catch_up_all(follow, &err);
            fprintf(stderr, "trainyard: attempt %lld\n", (long long)attempt);
        }
        streams_forget(follow);
        follow->attempt = attempt;
    }
    for (int i = 0; i < ARRAY_LEN(ends); i++) {
        if (strcmp(state, ends[i]) == 0)
            follow->state = ends[i];
    }
    return !follow->state;
}

/* --- the end --- */

/* How much the end of a task says of why the job failed: its own error most. */
static int weight_of(const json_t *task)
{
    const char *reason = json_string_value(json_object_get(task, "reason"));
    if (!reason || !strcmp(reason, "ok"))
        return 0;
    return !strcmp(reason, "user") ? 3 : !strcmp(reason, "stopped") ? 1 : 2;
}

/* Says how it ended, unless it went well, and gives the program's exit code. */
static int exit_code(const struct follow *follow)
{
    struct error err;
    char *path = job_path(follow, "/attempts");
    json_t *answer = client_json(follow->client, "GET", path, NULL, NULL, &err);
    json_t *items = json_object_get(answer, "items");
    json_t *tasks = json_object_get(json_array_get(items, json_array_size(items) - 1), "tasks");
    int status = CLI_OK, heaviest = 0;
    size_t i;
    json_t *task;
    free(path);
    json_array_foreach(tasks, i, task)
    {
        int weight = weight_of(task);
        int64_t code = json_integer_value(json_object_get(task, "exit_code"));
        int64_t number = json_integer_value(json_object_get(task, "signal"));
        const char *error = json_string_value(json_object_get(task, "error"));
        if (weight > heaviest) {
            heaviest = weight;
            status = number ? 128 + (int)number : (int)code;
        }
        if (error && follow->state[0] == 'f')
            fprintf(stderr, "trainyard: %s: %s\n",
                    json_string_value(json_object_get(task, "task")), error);
    }
    json_decref(answer);
    if (strcmp(follow->state, "succeeded") == 0)
        return CLI_OK;
    if (strcmp(follow->state, "cancelled") == 0) {
        fprintf(stderr, "trainyard: the job was cancelled\n");
        return CLI_CANCELLED;
    }
    return status > 0 && status < 256 ? status : CLI_FAILED;
}

static int follow_job(struct client *client, json_t *job, const struct run *run)
{
    struct follow follow = {.client = client,
                            .many = run->workers + run->ps > 1,
                            .job = alloc_text(json_string_value(json_object_get(job, "id")))};
    struct sigaction action = {.sa_handler = on_interrupt};
    struct client_follower follower = {on_event, NULL, pass_interrupts, &follow};
    struct error err;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    char *path = job_path(&follow, "/events?topics=logs,state&after=0-0");
    bool ok = client_follow(client, path, &follower, &err) &&
              (!follow.attempt || catch_up_all(&follow, &err));
    int status = ok ? exit_code(&follow) : cli_fail(&err);
    streams_forget(&follow);
    free(follow.job);
    free(path);
    return status;
}

static int submit(const struct run *run, char **words)
{
    struct error err;
    struct client *client = client_open(run->folder, &err);
    json_t *spec = client ? make_spec(run, client, words, &err) : NULL;
    json_t *job = NULL;
    if (spec && upload_files(client, spec, ".", &err)) {
        char *body = json_dumps(spec, JSON_COMPACT);
        job = body ? client_json(client, "POST", "/api/v1/jobs", body, NULL, &err)
                   : fail_null(&err, INVALID, "the command is no UTF-8 text");
        free(body);
    }
    int status = CLI_OK;
    if (!job)
        status = cli_fail(&err);
    else if (run->detach)
        printf("job %lld submitted (%s)\n",
               (long long)json_integer_value(json_object_get(job, "number")),
               json_string_value(json_object_get(job, "id")));
    else
        status = follow_job(client, job, run);
    json_decref(job);
    json_decref(spec);
    client_close(client);
    return status;
}

int run_main(int argc, char **argv)
{
    struct run run = {.priority = -1, .workers = 1};
    const struct option_row rows[] = {
        {"dir", OPTION_TEXT, &run.folder, "folder of a server on this machine"},
        {"name", OPTION_TEXT, &run.name, "of the job (the program's)"},
        {"project", OPTION_TEXT, &run.project, "that the job belongs to"},
        {"queue", OPTION_TEXT, &run.queue, "that it waits in"},
        {"priority", OPTION_NUMBER, &run.priority, "0 to 100, higher first (50)"},
        {"after", OPTION_TEXT, &run.after, "jobs that must succeed first, by commas"},
        {"workers", OPTION_NUMBER, &run.workers, "tasks that run the program (1)"},
        {"ps", OPTION_NUMBER, &run.ps, "parameter servers beside them"},
        {"cpus", OPTION_NUMBER, &run.cpus, "for each task (1)"},
        {"gpus", OPTION_NUMBER, &run.gpus, "for each worker (0)"},
        {"memory", OPTION_NUMBER, &run.memory, "bytes for each task"},
        {"max-seconds", OPTION_NUMBER, &run.seconds, "the longest it may run"},
        {"env", OPTION_LIST, &run.env, "NAME=VALUE, or NAME as it is here; again for more"},
        {"secret", OPTION_LIST, &run.secrets,
         "NAME of a secret, told in the file $NAME_FILE, or NAME=env, told in $NAME, too"},
        {"file", OPTION_LIST, &run.files, "file or folder to take along; again for more"},
        {"workdir", OPTION_TEXT, &run.workdir, "folder of the node to run in"},
        {"detach", OPTION_FLAG, &run.detach, "only submit"},
        {0},
    };
    static const char usage[] = "run [options] -- PROGRAM [ARGUMENT...]";
    int own = 1;
    struct options_words words;
    struct error err;
    while (own < argc && strcmp(argv[own], "--") != 0)
        own++;
    if (cli_wants_help(own, argv))
        return cli_usage(usage, rows, NULL);
    if (!options_parse(own, argv, rows, 0, 0, &words, &err))
        return cli_usage(usage, rows, &err);
    if (own + 1 >= argc) {
        fail(&err, INVALID, "no program is named: it comes after --");
        return cli_usage(usage, rows, &err);
    }
    return submit(&run, argv + own + 1);
}
