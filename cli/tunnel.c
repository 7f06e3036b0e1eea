/* tunnel.c - trainyard tunnel. */

#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/options.h"
#include "cli/tunnel.h"
#include "server/url.h"

#define ASK_FIRST_MS 100 /* whether the job runs; then less and less often ... */
#define ASK_MS 2000      /* ... and whether it still does */
#define END_MS 3000      /* in which connections must have ended */

struct door { /* to one task */
    char role[32];
    int index;
    int fd;
    int port;
};

struct tunnel {
    const struct tunnel_options *options;
    struct client *client;
    sigset_t signals; /* blocked: they end it */
    struct door doors[LIMIT_JOB_TASKS];
    int doors_count;
    int first; /* the door of the task that clients drive */
    struct tunnel_relays shared;
};

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

/* Sleeps; false when a signal has come. */
static bool rest(const struct tunnel *tunnel, int ms)
{
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    return sigtimedwait(&tunnel->signals, NULL, &time) < 0;
}

/* --- until it runs --- */

static json_t *load_job(const struct tunnel *tunnel, struct error *err)
{
    struct str path = {0};
    str_add(&path, "/api/v1/jobs/");
    url_encode(&path, tunnel->options->job);
    json_t *job = client_json(tunnel->client, "GET", str_text(&path), NULL, NULL, err);
    str_release(&path);
    return job;
}

static bool is_final(const char *state)
{
    return !strcmp(state, "succeeded") || !strcmp(state, "failed") ||
           !strcmp(state, "cancelled");
}

static void tell_state(const json_t *job, char *last, size_t last_size)
{
    char text[500];
    snprintf(text, sizeof(text), "%s%s%s", text_of(job, "state"),
             *text_of(job, "reason") ? ": " : "", text_of(job, "reason"));
    if (strcmp(text, last) != 0 && strcmp(text_of(job, "state"), "running") != 0 &&
        !is_final(text_of(job, "state")))
        fprintf(stderr, "job %lld is %s\n",
                (long long)json_integer_value(json_object_get(job, "number")), text);
    snprintf(last, last_size, "%s", text);
}

/* The server's answer once the tasks run; NULL with CANCELLED when a signal came before. */
static json_t *wait_until_it_runs(const struct tunnel *tunnel, struct error *err)
{
    char last[500] = "";
    char *path = tunnel_relay_path(tunnel->options);
    json_t *pass = NULL;
    for (int ms = ASK_FIRST_MS; !pass; ms = ms * 2 < ASK_MS ? ms * 2 : ASK_MS) {
        json_t *job = load_job(tunnel, err);
        if (!job)
            break;
        const char *state = text_of(job, "state");
        bool ask = !json_is_true(json_object_get(job, "cluster")) || is_final(state) ||
                   !strcmp(state, "running");
        tell_state(job, last, sizeof(last));
        json_decref(job);
        pass = ask ? client_json(tunnel->client, "POST", path, NULL, NULL, err) : NULL;
        if (pass || (ask && err->code != UNAVAILABLE))
            break;
        if (!rest(tunnel, ms)) {
            (void)fail(err, CANCELLED, "it was not waited for; the job stays");
            break;
        }
    }
    free(path);
    return pass;
}

/* --- doors --- */

static bool open_door(struct door *door, int64_t port, struct error *err)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int on = 1;
    door->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (door->fd < 0 || setsockopt(door->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
        bind(door->fd, (struct sockaddr *)&address, size) || listen(door->fd, 64) ||
        getsockname(door->fd, (struct sockaddr *)&address, &size))
        return error_errno(err, UNAVAILABLE, "cannot listen on 127.0.0.1:%lld",
                           (long long)port);
    door->port = ntohs(address.sin_port);
    return true;
}

/* A chief, or else the first worker, is the task that programs turn to. */
static bool is_first(const struct door *door, const struct door *so_far)
{
    return door->index == 0 &&
           (!strcmp(door->role, "chief") ||
            (!strcmp(door->role, "worker") && strcmp(so_far->role, "chief")));
}

static bool open_doors(struct tunnel *tunnel, const json_t *pass, struct error *err)
{
    size_t i;
    json_t *task;
    json_array_foreach(json_object_get(pass, "tasks"), i, task)
    {
        struct door *door = &tunnel->doors[tunnel->doors_count];
        if (tunnel->doors_count == LIMIT_JOB_TASKS)
            return fail(err, EXHAUSTED, "the job has more than %d tasks", LIMIT_JOB_TASKS);
        snprintf(door->role, sizeof(door->role), "%s", text_of(task, "role"));
        door->index = (int)json_integer_value(json_object_get(task, "index"));
        if (is_first(door, &tunnel->doors[tunnel->first]))
            tunnel->first = tunnel->doors_count;
        tunnel->doors_count++;
    }
    bool ok = true;
    for (int d = 0; ok && d < tunnel->doors_count; d++)
        ok = open_door(&tunnel->doors[d], d == tunnel->first ? tunnel->options->port : 0, err);
    return ok;
}

/* As TensorFlow's programs read it, with the ports of this machine. */
static json_t *tf_config(const struct tunnel *tunnel)
{
    json_t *cluster = json_object();
    for (int d = 0; d < tunnel->doors_count; d++) {
        const struct door *door = &tunnel->doors[d];
        json_t *list = json_object_get(cluster, door->role);
        if (!list)
            json_object_set_new(cluster, door->role, list = json_array());
        json_array_append_new(list, json_sprintf("127.0.0.1:%d", door->port));
    }
    const struct door *first = &tunnel->doors[tunnel->first];
    return json_pack("{s:o, s:{s:s, s:i}}", "cluster", cluster, "task", "type", first->role,
                     "index", first->index);
}

static void say_where(const struct tunnel *tunnel, const json_t *pass)
{
    json_t *config = tf_config(tunnel);
    long long number = json_integer_value(json_object_get(pass, "number"));
    char *target = alloc_printf("grpc://127.0.0.1:%d", tunnel->doors[tunnel->first].port);
    if (tunnel->options->json) {
        json_t *all = json_pack("{s:I, s:s, s:O}", "number", (json_int_t)number, "target",
                                target, "tf_config", config);
        char *text = json_dumps(all, JSON_COMPACT);
        puts(text);
        free(text);
        json_decref(all);
    } else {
        char *text = json_dumps(config, 0);
        printf("job %lld runs. TensorFlow programs on this machine%s reach it at\n\n  %s\n  "
               "TF_CONFIG='%s'\n\nIt ends when none has used it for %lld s. Ctrl-C closes this "
               "tunnel; the job stays: trainyard tunnel %lld, trainyard cancel %lld\n",
               number, tunnel->options->any_user ? "" : ", of this user,", target, text,
               (long long)json_integer_value(json_object_get(pass, "idle_seconds")), number,
               number);
        free(text);
    }
    fflush(stdout);
    free(target);
    json_decref(config);
}

/* --- while it runs --- */

static void accept_all(struct tunnel *tunnel, const struct pollfd *waits)
{
    for (int d = 0; d < tunnel->doors_count; d++) {
        int fd = waits[d].revents ? accept4(tunnel->doors[d].fd, NULL, NULL, SOCK_CLOEXEC) : -1;
        if (fd >= 0)
            tunnel_relay_start(&tunnel->shared, fd, tunnel->doors[d].role,
                               tunnel->doors[d].index);
    }
}

/* Whether the job has ended, and what that comes to; a server that is away says nothing. */
static bool has_ended(const struct tunnel *tunnel, int *status)
{
    struct error away;
    json_t *job = load_job(tunnel, &away);
    const char *state = text_of(job, "state");
    bool ended = is_final(state);
    if (ended) {
        fprintf(stderr, "job %lld has ended: %s%s%s\n",
                (long long)json_integer_value(json_object_get(job, "number")), state,
                *text_of(job, "reason") ? ": " : "", text_of(job, "reason"));
        *status = !strcmp(state, "succeeded")   ? CLI_OK
                  : !strcmp(state, "cancelled") ? CLI_CANCELLED
                                                : CLI_FAILED;
    }
    json_decref(job);
    return ended;
}

static int serve(struct tunnel *tunnel)
{
    struct pollfd waits[LIMIT_JOB_TASKS];
    uint64_t asked_us = clock_monotonic_us();
    int status = CLI_OK;
    for (int d = 0; d < tunnel->doors_count; d++)
        waits[d] = (struct pollfd){.fd = tunnel->doors[d].fd, .events = POLLIN};
    while (rest(tunnel, 0)) {
        if (poll(waits, (nfds_t)tunnel->doors_count, ASK_FIRST_MS) > 0)
            accept_all(tunnel, waits);
        if (clock_monotonic_us() - asked_us < ASK_MS * UINT64_C(1000))
            continue;
        if (has_ended(tunnel, &status))
            break;
        asked_us = clock_monotonic_us();
    }
    return status;
}

static void end_relays(struct tunnel *tunnel)
{
    uint64_t until_us = clock_monotonic_us() + END_MS * UINT64_C(1000);
    atomic_store(&tunnel->shared.stopping, true);
    while (atomic_load(&tunnel->shared.count) && clock_monotonic_us() < until_us)
        poll(NULL, 0, 10);
    if (atomic_load(&tunnel->shared.count))
        _exit(CLI_OK); /* one waits for its server: nothing is left to lose */
}

int tunnel_open(struct client *client, const struct tunnel_options *options)
{
    struct tunnel *tunnel = alloc_bytes(sizeof(*tunnel));
    struct error err;
    *tunnel = (struct tunnel){.options = options, .client = client};
    tunnel->shared.options = options;
    sigemptyset(&tunnel->signals);
    sigaddset(&tunnel->signals, SIGINT);
    sigaddset(&tunnel->signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &tunnel->signals, NULL);
    json_t *pass = wait_until_it_runs(tunnel, &err);
    int status;
    if (pass && open_doors(tunnel, pass, &err)) {
        say_where(tunnel, pass);
        status = serve(tunnel);
        end_relays(tunnel);
    } else {
        status = cli_fail(&err);
    }
    for (int d = 0; d < tunnel->doors_count; d++)
        if (tunnel->doors[d].fd > 0)
            close(tunnel->doors[d].fd);
    json_decref(pass);
    free(tunnel);
    return status;
}

int tunnel_main(int argc, char **argv)
{
    static const char usage[] = "tunnel JOB [options]\n\n"
                                "Opens loopback ports by which TensorFlow programs on this "
                                "machine drive the tasks of a "
                                "cluster (trainyard submit --cluster).";
    struct tunnel_options options = {0};
    const struct option_row rows[] = {
        {"port", OPTION_NUMBER, &options.port, "of the first worker, or chief (any)"},
        {"any-user", OPTION_FLAG, &options.any_user,
         "serve other users of this machine as well: they act as you"},
        {"json", OPTION_FLAG, &options.json, "print where it is as JSON"},
        {"dir", OPTION_TEXT, &options.folder, "folder of a server on this machine"},
        {0},
    };
    struct options_words words;
    struct error err;
    if (cli_wants_help(argc, argv))
        return cli_usage(usage, rows, NULL);
    if (!options_parse(argc, argv, rows, 1, 1, &words, &err))
        return cli_usage(usage, rows, &err);
    if (options.port < 0 || options.port > 65535) {
        (void)fail(&err, INVALID, "--port is %lld, allowed: 0 to 65535",
                   (long long)options.port);
        return cli_usage(usage, rows, &err);
    }
    options.job = words.word[0];
    struct client *client = client_open(options.folder, &err);
    if (!client)
        return cli_fail(&err);
    int status = tunnel_open(client, &options);
    client_close(client);
    return status;
}
