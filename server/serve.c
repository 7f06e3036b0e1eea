/* serve.c - start order, stop order, nothing else. */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sodium.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/str.h"
#include "db/db.h"
#include "db/users.h"
#include "proto/rpc.h"
#include "scheduler/agent/agent.h"
#include "scheduler/engines/engine.h"
#include "scheduler/loop.h"
#include "server/audit.h"
#include "server/auth.h"
#include "server/authority.h"
#include "server/clean.h"
#include "server/dataset.h"
#include "server/door.h"
#include "server/farewell.h"
#include "server/feed.h"
#include "server/http.h"
#include "server/ingest.h"
#include "server/job_replies.h"
#include "server/json_room.h"
#include "server/live.h"
#include "server/nodes.h"
#include "server/oidc.h"
#include "server/request.h"
#include "server/serve.h"
#include "server/summaries.h"
#include "server/tickets.h"
#include "server/tls.h"
#include "server/webhooks.h"

#define SERVE_FILES_MAX 65536 /* file descriptors; tables of libraries grow with the limit */
#define SERVE_LOCAL "local:server"

/* All that runs, in the order in which it is started. */
struct serve {
    char *folder; /* absolute */
    struct db *db;
    struct loop *loop;
    struct feed *feed;
    struct ingest *ingest;
    struct authority *authority; /* NULL: agents show certificates of another one */
    struct nodes *nodes;
    struct engine *engine; /* NULL: none */
    struct rpc_server *local_rpc;
    struct rpc_server *remote_rpc;
    bool loop_started;
    char origin[80];
    struct webhooks *webhooks;
    struct auth *auth;
    struct job_replies *job_replies;
    struct tickets *tickets;
    struct oidc *oidc; /* NULL: none */
    struct summaries *summaries;
    struct services services;
    struct live *live;
    struct farewell *farewell;
    struct http *http;
    struct tls *tls; /* NULL: the page is plain HTTP */
    struct agent *agent;
    struct clean *clean;
};

static void prepare_process(void)
{
    umask(077);
    signal(SIGPIPE, SIG_IGN);
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        rlim_t wanted = files.rlim_max < SERVE_FILES_MAX ? files.rlim_max : SERVE_FILES_MAX;
        files.rlim_cur = wanted;
        setrlimit(RLIMIT_NOFILE, &files);
    }
#ifndef __SANITIZE_ADDRESS__ /* whose leak check needs to look into the process */
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none); /* a core would hold tokens */
    prctl(PR_SET_DUMPABLE, 0);
#endif
}

static bool check_host(const struct serve_options *options, struct error *err)
{
    struct in_addr address;
    if (inet_pton(AF_INET, options->host, &address) != 1)
        return fail(
            err, INVALID,
            "--host is '%.60s'; it must be an IPv4 address of this machine, as 127.0.0.1",
            options->host);
    if (!options->tls_certificate != !options->tls_key)
        return fail(err, INVALID, "--tls-cert and --tls-key go together");
    if (options->tls_certificate)
        return tls_check(options->tls_certificate, options->tls_key, err);
    if (strncmp(options->host, "127.", 4) == 0 || options->insecure)
        return true;
    return fail(err, INVALID,
                "--host %s would let other machines in without encryption: add --tls-cert and "
                "--tls-key, or use 127.0.0.1 behind a proxy with TLS, or add --insecure-i-know",
                options->host);
}

static bool check_agents(const struct serve_options *options, struct error *err)
{
    struct in_addr address;
    const char *host = options->agents_host;
    const struct rpc_tls *tls = options->agents_tls;
    if (tls && !tls->certificate)
        return fail(err, INVALID, "--agents-ca needs --agents-cert and --agents-key");
    if (host && inet_pton(AF_INET, host, &address) != 1)
        return fail(err, INVALID,
                    "--agents-host is '%.60s'; it must be an IPv4 address of "
                    "this machine",
                    host);
    return true;
}

/* Where agents of other machines come in. */
static const char *agents_host(const struct serve_options *options)
{
    if (options->agents_host)
        return options->agents_host;
    return options->agents_tls ? options->host : "127.0.0.1";
}

static bool make_engine(struct serve *s, const struct serve_options *options, struct error *err)
{
    if (!options->engine_config)
        return true;
    if (options->agents_port <= 0)
        return fail(
            err, INVALID,
            "--engine-config needs --agents-port with a number from 1 to 65535: nodes "
            "that the engine brought look for the server there, also after its restart");
    s->engine = engine_new(
        &(struct engine_options){options->engine_config, s->folder, s->db, s->loop}, err);
    return s->engine || error_prefix(err, "--engine-config: ");
}

/* The scheduler, and the doors for agents. */
static bool start_scheduler(struct serve *s, const struct serve_options *options,
                            struct error *err)
{
    s->feed = feed_new(s->db, err);
    if (!s->feed)
        return false;
    struct loop_options loop = {
        .db = s->db,
        .suspect_ms = options->suspect_ms,
        .lost_ms = options->lost_ms,
        .grace_ms = options->grace_ms,
        .unkillable_ms = options->unkillable_ms,
        .backoff_ms = options->backoff_ms,
    };
    s->loop = loop_new(&loop, err);
    if (!s->loop)
        return false;
    s->ingest = ingest_new(s->db, s->feed, s->folder);
    const struct rpc_tls *tls = options->agents_tls;
    if (!tls || !tls->ca) {
        s->authority = authority_new(s->db, s->folder, err);
        if (!s->authority)
            return false;
    }
    struct nodes_options nodes = {s->db,       s->loop,   s->authority,       s->folder,
                                  ingest_ship, s->ingest, options->suspect_ms};
    s->nodes = nodes_new(&nodes, err);
    if (!s->nodes || !make_engine(s, options, err) || !loop_start(s->loop, err))
        return false;
    s->loop_started = true;

    struct rpc_server_options rpc = {.address = SERVE_LOCAL,
                                     .message_bytes_max = LIMIT_CONTROL_MESSAGE_BYTES};
    s->local_rpc = rpc_server_start(&rpc, nodes_methods_local, s->nodes, err);
    if (!s->local_rpc)
        return false;
    if (options->agents_port < 0)
        return true;
    char address[64];
    snprintf(address, sizeof(address), "%s:%d", agents_host(options), options->agents_port);
    rpc.address = address;
    struct rpc_tls shown = tls ? *tls : *authority_tls(s->authority);
    shown.asks = s->authority != NULL;
    rpc.tls = &shown;
    s->remote_rpc = rpc_server_start(&rpc, nodes_methods_remote, s->nodes, err);
    return s->remote_rpc || error_prefix(err, "the port for agents (--agents-port): ");
}

/* The first line of a file; owned. */
static char *first_line(const char *path, struct error *err)
{
    char text[1000];
    FILE *file = fopen(path, "re");
    bool ok = file && fgets(text, sizeof(text), file);
    if (file)
        fclose(file);
    text[ok ? strcspn(text, "\r\n") : 0] = 0;
    if (ok && *text)
        return alloc_text(text);
    fail(err, INVALID, "--oidc-secret: %s cannot be read, or is empty", path);
    return NULL;
}

static bool make_oidc(struct serve *s, const struct serve_options *options, struct error *err)
{
    enum user_role role = ROLE_NONE;
    s->services.oidc_role = ROLE_NONE - 1;
    if (!options->oidc_issuer)
        return true;
    if (options->oidc_role && !db_role_find(options->oidc_role, &role))
        return fail(err, INVALID,
                    "--oidc-role is '%.40s'; it can be none, viewer, member, admin",
                    options->oidc_role);
    if (options->oidc_role)
        s->services.oidc_role = role;
    char *secret = options->oidc_secret ? first_line(options->oidc_secret, err) : NULL;
    if (options->oidc_secret && !secret)
        return false;
    char *redirect = options->oidc_redirect ? alloc_text(options->oidc_redirect)
                                            : alloc_printf("%s/oidc/callback", s->origin);
    s->oidc = oidc_new(
        &(struct oidc_options){options->oidc_issuer, options->oidc_client, secret,
                               options->oidc_claim ? options->oidc_claim : "preferred_username",
                               redirect},
        err);
    free(redirect);
    if (secret)
        sodium_memzero(secret, strlen(secret));
    free(secret);
    s->services.oidc = s->oidc;
    return s->oidc != NULL;
}

/* The doors for people and scripts. */
static bool start_http(struct serve *s, const struct serve_options *options, struct error *err)
{
    int port = options->port;
    int listener = door_tcp(options->host, &port, err);
    if (listener < 0)
        return false;
    bool encrypted = options->tls_certificate != NULL;
    snprintf(s->origin, sizeof(s->origin), "http%s://%s:%d", encrypted ? "s" : "",
             options->host, port);
    s->clean = clean_start(s->db, s->folder, options->keep_days);
    s->job_replies = job_replies_new();
    s->tickets = tickets_new();
    s->webhooks = webhooks_start(s->db, s->feed, options->webhooks_anywhere);
    s->summaries = summaries_new();
    s->auth = auth_new(s->db, s->origin, options->token_rate);
    for (int i = 0; i < options->hosts_count; i++)
        auth_allow_host(s->auth, options->hosts[i]);
    s->services = (struct services){
        .auth = s->auth,
        .db = s->db,
        .feed = s->feed,
        .loop = s->loop,
        .engine = s->engine,
        .authority = s->authority,
        .webhooks = s->webhooks,
        .clean = s->clean,
        .job_replies = s->job_replies,
        .tickets = s->tickets,
        .summaries = s->summaries,
        .folder = s->folder,
        .origin = s->origin,
        .encrypted = encrypted,
        .started_us = clock_monotonic_us(),
        .dataset_bytes = options->dataset_bytes,
    };
    s->live = make_oidc(s, options, err) ? live_start(&s->services, err) : NULL;
    s->farewell = s->live ? farewell_new(err) : NULL;
    if (!s->farewell) {
        close(listener);
        return false;
    }
    char *socket_path = alloc_printf("%s/control.sock", s->folder);
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    struct http_options http = {encrypted ? -1 : listener, socket_path,
                                cpus < 2   ? 2
                                : cpus > 4 ? 4
                                           : (int)cpus,
                                s->farewell};
    s->http = http_start(&http, &s->services, s->live, err);
    free(socket_path);
    if (!s->http && encrypted)
        close(listener);
    if (!s->http || !encrypted)
        return s->http != NULL;
    struct tls_options tls = {
        listener, options->tls_certificate, options->tls_key, http_take, s->http, s->farewell};
    s->tls = tls_start(&tls, err);
    return s->tls != NULL;
}

/* Last: what it brings calls the server. */
static bool start_engine(struct serve *s, struct error *err)
{
    return !s->engine ||
           engine_start(s->engine, s->remote_rpc ? rpc_server_address(s->remote_rpc) : "",
                        s->authority ? authority_pin(s->authority) : NULL, err) ||
           error_prefix(err, "--engine-config: ");
}

static bool start_agent(struct serve *s, const struct serve_options *options, struct error *err)
{
    if (options->no_agent)
        return true;
    char *folder = alloc_printf("%s/agent", s->folder);
    struct agent_options agent = {
        .server = SERVE_LOCAL,
        .folder = folder,
        .cpu_millis = options->cpu_millis,
        .memory_bytes = options->memory_bytes,
        .fake_gpus = options->fake_gpus,
        .task_user = options->task_user,
    };
    s->agent = agent_start(&agent, err);
    free(folder);
    return s->agent || error_prefix(err, "the agent of this machine: ");
}

/* DIR/server.json: where the server listens while it runs. */
static bool write_addresses(const struct serve *s, struct error *err)
{
    char *path = alloc_printf("%s/server.json", s->folder);
    char *next = alloc_printf("%s.next", path);
    FILE *file = fopen(next, "we");
    bool ok = file != NULL;
    if (ok) {
        fprintf(file, "{\"http\": \"%s\", \"agents\": \"%s\", \"pid\": %d}\n",
                strstr(s->origin, "://") + 3,
                s->remote_rpc ? rpc_server_address(s->remote_rpc) : "", (int)getpid());
        ok = fclose(file) == 0 && rename(next, path) == 0;
    }
    if (!ok)
        error_errno(err, UNAVAILABLE, "cannot write %s", path);
    free(next);
    free(path);
    return ok;
}

static bool start(struct serve *s, const struct serve_options *options, struct error *err)
{
    s->db = db_open(options->folder, err);
    if (!s->db)
        return false;
    s->folder = realpath(options->folder, NULL);
    if (!s->folder)
        return error_errno(err, UNAVAILABLE, "%s", options->folder);
    audit_log_newest(s->db);
    return start_scheduler(s, options, err) && start_http(s, options, err) &&
           start_agent(s, options, err) && start_engine(s, err) && write_addresses(s, err);
}

/* What was started last goes first; each is NULL when it was not reached. */
static void stop(struct serve *s)
{
    dataset_describe_end();
    engine_stop(s->engine);
    agent_stop(s->agent);
    if (s->feed)
        feed_close(s->feed);
    live_stop(s->live);
    tls_stop(s->tls);
    http_stop(s->http);
    farewell_free(s->farewell);
    clean_stop(s->clean);
    webhooks_stop(s->webhooks);
    if (s->remote_rpc)
        rpc_server_stop(s->remote_rpc);
    if (s->local_rpc)
        rpc_server_stop(s->local_rpc);
    if (s->loop_started)
        loop_stop(s->loop);
    nodes_free(s->nodes);
    authority_free(s->authority);
    loop_free(s->loop);
    engine_free(s->engine);
    ingest_free(s->ingest);
    job_replies_free(s->job_replies);
    tickets_free(s->tickets);
    auth_free(s->auth);
    oidc_free(s->oidc);
    summaries_free(s->summaries);
    db_close(s->db); /* which still tells the feed of its last commits */
    feed_free(s->feed);
    if (s->http && s->folder) {
        char *path = alloc_printf("%s/server.json", s->folder);
        unlink(path);
        free(path);
    }
    free(s->folder);
}

/* Waits for SIGTERM or SIGINT, which are blocked in all threads; says once when the agent gives
 * up. */
static void wait_for_end(struct serve *s, const sigset_t *signals)
{
    bool told = false;
    struct timespec second = {1, 0};
    for (;;) {
        int got = sigtimedwait(signals, NULL, &second);
        if (got == SIGTERM || got == SIGINT) {
            log_line(LOG_INFO, "serve", "msg=stopping signal=%d", got);
            return;
        }
        struct error why;
        if (s->agent && !told && agent_failed(s->agent, &why)) {
            char text[600];
            log_line(LOG_ERROR, "serve", "msg=%s", log_quote(why.text, text, sizeof(text)));
            told = true;
        }
    }
}

bool serve_run(const struct serve_options *options, serve_ready_fn *ready, void *self,
               struct error *err)
{
    if (sodium_init() < 0)
        return fail(err, INTERNAL, "libsodium did not start");
    if (!check_host(options, err) || !check_agents(options, err))
        return false;
    prepare_process();
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL); /* before any thread is made */
    json_room_begin();

    struct serve serve = {0};
    struct str link = {0};
    bool ok = start(&serve, options, err) && auth_link(serve.auth, DB_USER_ADMIN, &link, err);
    if (ok) {
        printf("ready: %s   sign in once with %s\n", serve.origin, str_text(&link));
        fflush(stdout);
        if (ready)
            ready(self, serve.origin, str_text(&link));
        wait_for_end(&serve, &signals);
    }
    stop(&serve);
    str_release(&link);
    return ok;
}
