/* submit.c - trainyard submit. */

#include <jansson.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/str.h"
#include "cli/change.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/specfile.h"
#include "cli/tunnel.h"
#include "cli/upload.h"

struct submit {
    const char *folder;
    const char *name;
    const char *key;
    const char *after;
    const char *cluster;
    int64_t idle_seconds;
    int64_t port;
    int64_t steps;
    int64_t priority;
    bool watch;
    bool plan;
    bool json;
};

/* Puts what the options say over the spec. */
static void override(json_t *spec, const struct submit *submit)
{
    if (submit->name)
        json_object_set_new(spec, "name", json_string(submit->name));
    if (submit->after)
        json_object_set_new(spec, "after", change_list(submit->after));
    if (submit->priority >= 0)
        json_object_set_new(spec, "priority", json_integer(submit->priority));
    if (submit->steps > 0) {
        json_t *train = json_object_get(spec, "train");
        if (!train)
            json_object_set_new(spec, "train", train = json_object());
        json_object_set_new(train, "steps", json_integer(submit->steps));
        json_object_del(train, "epochs");
    }
}

/* "ps=1,worker=2" as the spec of such tasks for clients. */
static json_t *cluster_spec(const struct submit *submit, struct error *err)
{
    json_t *tasks = json_object(), *cluster = json_object();
    for (const char *at = submit->cluster; *at;) {
        size_t size = strcspn(at, ",");
        const char *equals = memchr(at, '=', size);
        char *end = NULL, *role = alloc_text_n(at, equals ? (size_t)(equals - at) : size);
        long long replicas = equals ? strtoll(equals + 1, &end, 10) : -1;
        bool ok = replicas >= 0 && end == at + size && end != equals + 1 &&
                  !json_object_get(tasks, role);
        json_object_set_new(tasks, role, json_integer(replicas));
        free(role);
        if (!ok) {
            json_decref(tasks);
            json_decref(cluster);
            return fail_null(err, INVALID,
                             "--cluster is '%.100s', allowed: roles with their numbers, each "
                             "once, as in ps=1,worker=2",
                             submit->cluster);
        }
        at += size + (at[size] == ',');
    }
    if (submit->idle_seconds)
        json_object_set_new(cluster, "idle_seconds", json_integer(submit->idle_seconds));
    return json_pack("{s:o, s:o}", "cluster", cluster, "tasks", tasks);
}

static int show_plan(json_t *plan, bool json)
{
    char *text = json ? json_dumps(plan, JSON_INDENT(2)) : NULL;
    puts(json ? text : json_string_value(json_object_get(plan, "text")));
    free(text);
    return CLI_OK;
}

static int show_job(struct client *client, json_t *job, const struct submit *submit)
{
    const char *id = json_string_value(json_object_get(job, "id"));
    long long number = json_integer_value(json_object_get(job, "number"));
    if (submit->json) {
        char *text = json_dumps(job, JSON_COMPACT);
        puts(text);
        free(text);
    } else {
        printf("job %lld submitted (%s)\n", number, id);
    }
    if (json_is_integer(json_object_get(job, "array")) && !submit->json)
        printf("The first of an array. All of it: trainyard jobs --array %lld\n", number);
    fflush(stdout);
    if (submit->cluster && !submit->watch && !submit->json) {
        const struct tunnel_options tunnel = {
            .folder = submit->folder, .job = id, .port = submit->port};
        return tunnel_open(client, &tunnel);
    }
    if (!submit->watch)
        return CLI_OK;
    char *after =
        alloc_printf("\nThe job runs on. Come back with: trainyard watch %lld\n", number);
    struct progress_options options = {id, submit->json, submit->json ? NULL : after};
    int status = progress_show(client, &options);
    free(after);
    return status;
}

static int send(const struct submit *submit, json_t *spec, const char *folder)
{
    struct error err;
    struct client *client = client_open(submit->folder, &err);
    if (!client)
        return cli_fail(&err);
    if (!upload_files(client, spec, folder, &err)) {
        client_close(client);
        return cli_fail(&err);
    }
    char *body = json_dumps(spec, JSON_COMPACT);
    const char *path = submit->plan ? "/api/v1/jobs?dry_run=plan" : "/api/v1/jobs";
    json_t *answer =
        client_json(client, "POST", path, body, submit->plan ? NULL : submit->key, &err);
    int status;
    if (!answer)
        status = cli_fail(&err);
    else
        status =
            submit->plan ? show_plan(answer, submit->json) : show_job(client, answer, submit);
    json_decref(answer);
    free(body);
    client_close(client);
    return status;
}

static bool check(const struct submit *submit, const struct options_words *words,
                  struct error *err)
{
    if (!submit->cluster && (submit->idle_seconds || submit->port))
        return fail(err, INVALID, "--%s goes with --cluster",
                    submit->port ? "port" : "idle-seconds");
    if (submit->port < 0 || submit->port > 65535)
        return fail(err, INVALID, "--port is %lld, allowed: 0 to 65535",
                    (long long)submit->port);
    return (submit->cluster ? 0 : 1) == words->count ||
           fail(err, INVALID, "allowed: one of a spec and --cluster");
}

int submit_main(int argc, char **argv)
{
    struct submit submit = {.priority = -1};
    const struct option_row rows[] = {
        {"dir", OPTION_TEXT, &submit.folder, "folder of a server on this machine"},
        {"watch", OPTION_FLAG, &submit.watch, "follow the job until it ends"},
        {"plan", OPTION_FLAG, &submit.plan, "only say what would happen"},
        {"dry-run", OPTION_FLAG, &submit.plan, "the same"},
        {"name", OPTION_TEXT, &submit.name, "in place of the spec's name"},
        {"steps", OPTION_NUMBER, &submit.steps, "in place of train.steps"},
        {"priority", OPTION_NUMBER, &submit.priority,
         "in place of the spec's priority, 0 to 100"},
        {"after", OPTION_TEXT, &submit.after, "jobs that must succeed first, by commas"},
        {"key", OPTION_TEXT, &submit.key,
         "Idempotency-Key: submitting twice with one key makes one job"},
        {"json", OPTION_FLAG, &submit.json, "print the job as JSON"},
        {"cluster", OPTION_TEXT, &submit.cluster,
         "in place of a spec, ps=1,worker=2: tasks for TensorFlow programs, and a tunnel to "
         "them"},
        {"idle-seconds", OPTION_NUMBER, &submit.idle_seconds,
         "when such a cluster ends because none uses it (3600)"},
        {"port", OPTION_NUMBER, &submit.port, "of the tunnel (any)"},
        {0},
    };
    static const char usage[] = "submit FILE|EXAMPLE [options]     (FILE may be -, for stdin)\n"
                                "       trainyard submit --cluster ps=1,worker=2 [options]";
    struct options_words words;
    struct error err;
    if (cli_wants_help(argc, argv))
        return cli_usage(usage, rows, NULL);
    if (!options_parse(argc, argv, rows, 0, 1, &words, &err) || !check(&submit, &words, &err))
        return cli_usage(usage, rows, &err);
    const char *file = words.count ? words.word[0] : "";
    json_t *spec = submit.cluster ? cluster_spec(&submit, &err) : specfile_read(file, &err);
    if (!spec) {
        (void)cli_fail(&err);
        return CLI_USAGE;
    }
    override(spec, &submit);
    /* Files are named as seen from the spec. */
    const char *slash = strrchr(file, '/');
    char *folder = slash ? alloc_text_n(file, (size_t)(slash - file) + 1) : alloc_text(".");
    int status = send(&submit, spec, folder);
    free(folder);
    json_decref(spec);
    return status;
}
