/* engine.c - the thread that brings nodes from an engine, and lets them go. */

#include <fcntl.h>
#include <pthread.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/str.h"
#include "db/tokens.h"
#include "scheduler/engines/engine.h"
#include "scheduler/engines/kubernetes.h"
#include "scheduler/engines/slurm.h"
#include "scheduler/loop.h"

#define TAG_BYTES 9
#define PIN_BYTES 64 /* with the dot before it */
#define RETRY_US 10000000
#define RETRY_MAX_US 600000000
#define TOKEN_DAYS                                                                             \
    366 /* a pilot's token is revoked when it is gone; this is for a lost one                  \
         */

static const struct engine_kind *const kinds[] = {&slurm_engine, &kubernetes_engine};

struct engine {
    struct arena *arena; /* of the configuration */
    struct settings settings;
    const struct engine_kind *kind;
    void *self; /* of the kind */
    struct db *db;
    struct loop *loop;
    char *server;
    char *pin; /* NULL: none */
    pthread_t thread;
    bool started;
    bool listed; /* the engine has been asked once what it runs for us */
    atomic_bool stop;
    pthread_mutex_t lock; /* guards: pilots; and `stop` with `stopped` */
    pthread_cond_t stopped;
    struct pilots *pilots;
    char silence[300]; /* why nothing could be seen, "" when it could; under the lock */
};

static void complain(const char *doing, const struct error *err)
{
    char text[1200];
    log_line(LOG_WARN, "engine", "doing=%s code=%s msg=%s", doing, error_code_name(err->code),
             log_quote(err->text, text, sizeof(text)));
}

/* What programs and machines say goes into JSON: bytes that are no UTF-8, or were cut, do not.
 */
static const char *readable(char *text)
{
    bool fine = str_is_utf8(text, strlen(text));
    for (char *c = text; *c && !fine; c++)
        if ((unsigned char)*c >= 0x80)
            *c = '?';
    return text;
}

/* --- the script --- */

/* A word for the shell, whatever is in it. */
static void add_word(struct str *script, const char *word)
{
    str_add(script, " '");
    for (const char *c = word; *c; c++) {
        if (*c == '\'')
            str_add(script, "'\\''");
        else
            str_add_char(script, *c);
    }
    str_add_char(script, '\'');
}

/*
 * The agent leaves its tasks when it ends: here they end with it.  Each shim is told once,
 * while the agent still tells the server what becomes of its task; what does not end in time is
 * killed. A shim is known by the folder in which it works, whatever its number has become.
 */
static const char script_tasks[] =
    "told=' '\n"
    "tasks() { # SIGNAL: true while there are any\n"
    "    left=1\n"
    "    for file in \"$folder\"/attempts/*/shim.json; do\n"
    "        pid=$(sed -n 's/.*\"pid\": *\\([0-9]*\\).*/\\1/p' \"$file\" 2>/dev/null)\n"
    "        [ -n \"$pid\" ] && [ \"/proc/$pid/cwd\" -ef \"${file%/*}\" ] || continue\n"
    "        left=0\n"
    "        case $1$told in TERM*\" $pid \"*) continue ;; esac\n"
    "        kill \"-$1\" \"$pid\" && told=\"$told$pid \"\n"
    "    done\n"
    "    return $left\n"
    "}\n"
    "end() { # SECONDS: what runs may take so long\n"
    "    trap '' TERM INT\n"
    "    second=0\n"
    "    while tasks TERM && [ $second -lt \"$1\" ]; do sleep 1; second=$((second + 1)); done\n"
    "    [ $second = 0 ] || sleep 1 # the agent tells the last of it\n"
    "    while tasks KILL && [ $second -lt $(($1 + 5)) ]; do sleep 1; second=$((second + 1)); "
    "done\n"
    "    [ -z \"$agent\" ] || kill \"$agent\" 2>/dev/null\n"
    "}\n"
    "agent=\n";

void engine_script(const struct settings *settings, const struct settings_queue *queue,
                   const char *name, const char *server, struct str *script)
{
    long long grace_s = (long long)settings->grace_s;
    str_add(script, "#!/bin/sh\n"
                    "# A node of a Trainyard server, for as long as this job may run.\n"
                    "umask 077\n"
                    "folder=$(mktemp -d");
    char *pattern = alloc_printf("%s/%s.XXXXXX", settings->folder, name);
    add_word(script, pattern);
    free(pattern);
    str_add(script, ") || exit 1\n");
    str_add(script, script_tasks);
    str_printf(script, "trap 'end %lld' TERM INT\n", grace_s);
    add_word(script, settings->agent);
    str_add(script, " agent --dir \"$folder\" --name");
    add_word(script, name);
    str_add(script, " --server");
    add_word(script, *settings->server ? settings->server : server);
    str_printf(script, " --cpus '%lld' --memory '%lld'",
               (long long)queue->like.capacity.cpu_millis / 1000,
               (long long)queue->like.capacity.memory_bytes);
    if (*queue->labels) {
        str_add(script, " --labels");
        add_word(script, queue->labels);
    }
    for (const char *const *word = settings->agent_options; *word; word++)
        add_word(script, *word);
    str_printf(script,
               " &\n"
               "agent=$!\n"
               "wait \"$agent\"; status=$?\n"
               "while kill -0 \"$agent\" 2>/dev/null; do wait \"$agent\"; status=$?; done\n"
               "agent=\n"
               "end %lld # of an agent that died\n"
               "rm -rf \"$folder\"\n"
               "exit $status\n",
               grace_s);
}

/* --- tokens --- */

static const char *token_name(const char *pilot, char out[PILOTS_NAME_BYTES + 16])
{
    snprintf(out, PILOTS_NAME_BYTES + 16, "pilot %s", pilot);
    return out;
}

/* No agent of this name may join any more with a token of before. */
static bool token_revoke(struct engine *engine, const char *pilot, struct error *err)
{
    char name[PILOTS_NAME_BYTES + 16];
    struct arena *arena = arena_new();
    struct db_token *tokens = NULL;
    int count = 0;
    token_name(pilot, name);
    struct db_conn *conn = db_read(engine->db, DB_CONTROL, err);
    bool ok = conn && db_tokens_list(conn, DB_USER_ADMIN, arena, &tokens, &count, err);
    db_read_done(engine->db, conn);
    for (int i = 0; ok && i < count; i++) {
        if (tokens[i].kind == TOKEN_JOIN && strcmp(tokens[i].name, name) == 0)
            ok = db_tokens_revoke(engine->db, tokens[i].id, 0, err) || err->code == NOT_FOUND;
    }
    arena_free(arena);
    return ok;
}

static bool token_make(struct engine *engine, const char *pilot, char token[DB_TOKEN_BYTES],
                       struct error *err)
{
    char name[PILOTS_NAME_BYTES + 16];
    int64_t expires_us = (int64_t)clock_wall_us() + (int64_t)TOKEN_DAYS * 24 * 3600 * 1000000;
    struct db_token_new made = {.user_id = DB_USER_ADMIN,
                                .kind = TOKEN_JOIN,
                                .role = ROLE_VIEWER,
                                .name = token_name(pilot, name),
                                .expires_us = expires_us};
    return token_revoke(engine, pilot, err) && db_tokens_add(engine->db, &made, token, err);
}

/* --- carrying out --- */

static void submitted(struct engine *engine, const struct pilots_order *order, const char *id,
                      const char *why)
{
    pthread_mutex_lock(&engine->lock);
    pilots_submitted(engine->pilots, order->place, id, why, clock_monotonic_us());
    pthread_mutex_unlock(&engine->lock);
}

static void submit(struct engine *engine, const struct pilots_order *order)
{
    char token[DB_TOKEN_BYTES];
    char given[DB_TOKEN_BYTES + PIN_BYTES];
    char id[PILOTS_ID_BYTES];
    struct error err;
    struct str script = {0};
    struct engine_pilot pilot = {
        .name = order->name, .token = given, .queue = &engine->settings.queues[order->queue]};
    engine_script(&engine->settings, pilot.queue, order->name, engine->server, &script);
    pilot.script = str_text(&script);
    bool made = token_make(engine, order->name, token, &err);
    if (made)
        snprintf(given, sizeof(given), "%s%s%s", token, engine->pin ? "." : "",
                 engine->pin ? engine->pin : "");
    if (made && engine->kind->submit(engine->self, &pilot, id, &err)) {
        log_line(LOG_INFO, "engine", "pilot=%s job=%s msg=submitted", order->name, id);
        submitted(engine, order, id, NULL);
    } else {
        complain("submit", &err);
        submitted(engine, order, NULL, err.text);
    }
    str_release(&script);
}

static void cancel(struct engine *engine, const struct pilots_order *orders, int count)
{
    struct error err;
    const char **ids = alloc_array((size_t)count, sizeof(*ids));
    int ids_count = 0;
    for (int i = 0; i < count; i++) {
        if (orders[i].kind != PILOTS_CANCEL)
            continue;
        log_line(LOG_INFO, "engine", "pilot=%s job=%s msg=cancelled", orders[i].name,
                 orders[i].id);
        ids[ids_count++] = orders[i].id;
    }
    if (ids_count && !engine->kind->cancel(engine->self, ids, ids_count, &err))
        complain("cancel", &err);
    free(ids);
}

static void carry_out(struct engine *engine, struct pilots_orders *orders)
{
    for (int i = 0; i < orders->count; i++) {
        struct pilots_order *order = &orders->list[i];
        struct error err;
        bool ok = true;
        if (order->kind == PILOTS_SUBMIT)
            submit(engine, order);
        else if (order->kind == PILOTS_DRAIN)
            ok = loop_drain(engine->loop, order->node, order->drain, &err);
        else if (order->kind == PILOTS_GONE)
            ok = loop_gone(engine->loop, order->node, readable(order->text), &err);
        else if (order->kind == PILOTS_FORGET)
            ok = token_revoke(engine, order->name, &err);
        if (!ok)
            complain("node", &err);
    }
    cancel(engine, orders->list, orders->count);
}

/* --- looking --- */

static struct pilots_node *read_nodes(const struct scheduler *copy, struct arena *arena,
                                      int *count)
{
    *count = scheduler_nodes_count(copy);
    struct pilots_node *nodes = arena_array(arena, (size_t)*count, sizeof(*nodes));
    for (int i = 0; i < *count; i++) {
        struct scheduler_node_view view;
        scheduler_node_view(copy, i, &view);
        nodes[i] = (struct pilots_node){
            .name = arena_text(arena, view.name),
            .id = view.id,
            .here = view.session && view.state != NODE_LOST,
            .lost = view.state == NODE_LOST,
            .draining = view.draining,
            .tasks_count = view.tasks_count,
        };
    }
    return nodes;
}

static void pool_of(struct engine *engine, int queue, struct demand_pool *pool)
{
    const struct settings_queue *row = &engine->settings.queues[queue];
    *pool = (struct demand_pool){.queue = row->bounds.queue,
                                 .like = row->like,
                                 .coming = pilots_coming(engine->pilots, queue),
                                 .room = pilots_room(engine->pilots, queue)};
}

/* This thread alone changes the pilots: they stay as they are while the demand is reckoned,
 * which takes long when many jobs wait, and others may ask after them meanwhile. */
static void decide(struct engine *engine, const struct scheduler *copy,
                   const struct pilots_view *view, struct arena *arena, uint64_t now_us,
                   struct pilots_orders *orders)
{
    int count = engine->settings.queues_count;
    struct demand_pool *pools = arena_array(arena, (size_t)count, sizeof(*pools));
    struct pilots_demand *demand = arena_array(arena, (size_t)count, sizeof(*demand));
    pthread_mutex_lock(&engine->lock);
    pilots_look(engine->pilots, view, now_us, orders);
    pthread_mutex_unlock(&engine->lock);
    for (int q = 0; q < count; q++)
        pool_of(engine, q, &pools[q]);
    demand_read(copy, pools, count, now_us);
    for (int q = 0; q < count; q++)
        demand[q] = (struct pilots_demand){pools[q].used, pools[q].wanted};
    pthread_mutex_lock(&engine->lock);
    pilots_decide(engine->pilots, view, demand, now_us, orders);
    pthread_mutex_unlock(&engine->lock);
}

static bool look_and_decide(struct engine *engine, struct arena *arena,
                            struct pilots_orders *orders, struct error *err)
{
    struct pilots_view view = {0};
    struct pilots_seen *seen = NULL;
    struct scheduler *copy;
    uint64_t now_us;
    /* The engine is left in peace while it has nothing of ours. */
    if ((!engine->listed || !pilots_none(engine->pilots)) &&
        !engine->kind->list(engine->self, arena, &seen, &view.seen_count, err))
        return false;
    engine->listed = true;
    view.seen = seen;
    if (!loop_copy(engine->loop, &copy, &now_us, err))
        return false;
    view.nodes = read_nodes(copy, arena, &view.nodes_count);
    decide(engine, copy, &view, arena, now_us, orders);
    scheduler_free(copy);
    return true;
}

/* Whether the engine could be looked at; said once, not with every look. */
static void hear(struct engine *engine, const struct error *err)
{
    char before[sizeof(engine->silence)];
    pthread_mutex_lock(&engine->lock);
    snprintf(before, sizeof(before), "%s", engine->silence);
    snprintf(engine->silence, sizeof(engine->silence), "%.299s", err ? err->text : "");
    bool news = strcmp(before, engine->silence) != 0;
    pthread_mutex_unlock(&engine->lock);
    if (news && err)
        complain("look", err);
    else if (news)
        log_line(LOG_INFO, "engine", "doing=look msg=\"answers again\"");
}

static void turn(struct engine *engine)
{
    struct arena *arena = arena_new();
    struct pilots_orders orders = {0};
    struct error err;
    bool ok = look_and_decide(engine, arena, &orders, &err);
    if (ok)
        carry_out(engine, &orders);
    if (!atomic_load(&engine->stop))
        hear(engine, ok ? NULL : &err);
    pilots_orders_release(&orders);
    arena_free(arena);
}

/* What has tasks stays: the next server finds it again.  When nobody can say, all stay. */
static void end(struct engine *engine)
{
    struct arena *arena = arena_new();
    struct pilots_orders orders = {0};
    struct pilots_view view = {0};
    struct scheduler *copy;
    uint64_t now_us;
    struct error err;
    if (loop_copy(engine->loop, &copy, &now_us, &err)) {
        view.nodes = read_nodes(copy, arena, &view.nodes_count);
        scheduler_free(copy);
        pilots_end(engine->pilots, &view, &orders);
        cancel(engine, orders.list, orders.count);
    } else {
        complain("end", &err);
    }
    pilots_orders_release(&orders);
    arena_free(arena);
}

static bool rest(struct engine *engine)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += engine->settings.poll_ms / 1000;
    pthread_mutex_lock(&engine->lock);
    while (!atomic_load(&engine->stop) &&
           pthread_cond_timedwait(&engine->stopped, &engine->lock, &until) == 0)
        continue;
    pthread_mutex_unlock(&engine->lock);
    return !atomic_load(&engine->stop);
}

static void *engine_main(void *arg)
{
    struct engine *engine = arg;
    do
        turn(engine);
    while (rest(engine));
    end(engine);
    return NULL;
}

/* --- for the loop, from any thread --- */

static int queue_named(const struct engine *engine, const char *name)
{
    for (int q = 0; q < engine->settings.queues_count; q++)
        if (strcmp(engine->settings.queues[q].bounds.queue, name) == 0)
            return q;
    return -1;
}

static bool on_possible(void *self, struct scheduler *copy, const char *queue,
                        const struct scheduler_need *needs, int needs_count)
{
    struct engine *engine = self;
    int q = queue_named(engine, queue);
    if (q < 0)
        return false;
    const struct settings_queue *row = &engine->settings.queues[q];
    struct demand_pool pool = {
        .queue = row->bounds.queue, .like = row->like, .room = row->bounds.max};
    return demand_possible(copy, &pool, needs, needs_count, clock_monotonic_us());
}

static void on_explain(void *self, const char *queue, struct explain *out)
{
    struct engine *engine = self;
    int q = queue_named(engine, queue);
    bool waits = out->code == EXPLAIN_NO_NODES || out->code == EXPLAIN_TOO_LARGE ||
                 out->code == EXPLAIN_NODES_AWAY || out->code == EXPLAIN_DRAINING ||
                 out->code == EXPLAIN_EXCLUDED || out->code == EXPLAIN_PRIORITY ||
                 out->code == EXPLAIN_RESOURCES;
    if (q < 0 || !waits)
        return;
    char text[sizeof(out->text)];
    pthread_mutex_lock(&engine->lock);
    bool said = engine->silence[0] != 0;
    if (said)
        snprintf(text, sizeof(text), "Waiting for a node, and %s cannot be asked: %s",
                 engine->kind->title, engine->silence);
    else
        said = pilots_explain(engine->pilots, q, clock_monotonic_us(), text, sizeof(text));
    pthread_mutex_unlock(&engine->lock);
    if (!said)
        return;
    out->code = EXPLAIN_ENGINE;
    snprintf(out->text, sizeof(out->text), "%s", readable(text));
    snprintf(out->next, sizeof(out->next), "It starts when the node has joined.");
}

int engine_counts(struct engine *engine, struct pilots_count counts[SETTINGS_QUEUES_MAX])
{
    if (!engine)
        return 0;
    pthread_mutex_lock(&engine->lock);
    for (int q = 0; q < engine->settings.queues_count; q++)
        counts[q] = pilots_count(engine->pilots, q);
    pthread_mutex_unlock(&engine->lock);
    return engine->settings.queues_count;
}

/* --- the whole --- */

/* What this server's jobs are known by at the engine; kept for ever in DIR/engine.tag. */
static bool read_tag(const char *folder, char tag[TAG_BYTES], struct error *err)
{
    char *path = alloc_printf("%s/engine.tag", folder);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    memset(tag, 0, TAG_BYTES);
    bool ok = fd >= 0 || error_errno(err, UNAVAILABLE, "%s", path);
    ssize_t got = ok ? pread(fd, tag, TAG_BYTES - 1, 0) : 0;
    if (ok && (got != TAG_BYTES - 1 || strspn(tag, "0123456789abcdef") != TAG_BYTES - 1)) {
        uint32_t number = 0;
        ok = getrandom(&number, sizeof(number), 0) == sizeof(number);
        snprintf(tag, TAG_BYTES, "%08x", (unsigned)number);
        ok = ok && pwrite(fd, tag, TAG_BYTES - 1, 0) == TAG_BYTES - 1 && fsync(fd) == 0;
        if (!ok)
            error_errno(err, UNAVAILABLE, "cannot write %s", path);
    }
    if (fd >= 0)
        close(fd);
    free(path);
    return ok;
}

static struct pilots *make_pilots(const struct settings *settings,
                                  const struct engine_kind *kind)
{
    struct pilots_bounds bounds[SETTINGS_QUEUES_MAX];
    for (int q = 0; q < settings->queues_count; q++)
        bounds[q] = settings->queues[q].bounds;
    return pilots_new(&(struct pilots_options){.prefix = kind->name,
                                               .what = kind->what,
                                               .bounds = bounds,
                                               .bounds_count = settings->queues_count,
                                               .retry_us = RETRY_US,
                                               .retry_max_us = RETRY_MAX_US});
}

struct engine *engine_new(const struct engine_options *options, struct error *err)
{
    struct engine *engine = alloc_bytes(sizeof(*engine));
    char tag[TAG_BYTES];
    engine->arena = arena_new();
    engine->db = options->db;
    engine->loop = options->loop;
    pthread_mutex_init(&engine->lock, NULL);
    pthread_cond_init(&engine->stopped, NULL);
    bool ok = settings_read(options->config_path, engine->arena, &engine->settings, err) &&
              read_tag(options->folder, tag, err);
    for (int i = 0; ok && i < ARRAY_LEN(kinds); i++)
        if (strcmp(kinds[i]->name, engine->settings.engine) == 0)
            engine->kind = kinds[i];
    if (ok)
        engine->self = engine->kind->open(&engine->settings, tag, &engine->stop, err);
    if (!engine->self) {
        engine_free(engine);
        return NULL;
    }
    engine->pilots = make_pilots(&engine->settings, engine->kind);
    struct loop_engine hooks = {engine, on_possible, on_explain};
    loop_set_engine(options->loop, &hooks);
    return engine;
}

bool engine_start(struct engine *engine, const char *server, const char *pin, struct error *err)
{
    if (!*server && !*engine->settings.server)
        return fail(err, INVALID,
                    "/server is missing, and no port is open for agents (--agents-port)");
    engine->server = alloc_text(server);
    engine->pin = pin ? alloc_text(pin) : NULL;
    if (pthread_create(&engine->thread, NULL, engine_main, engine))
        return fail(err, EXHAUSTED, "cannot start the engine's thread");
    engine->started = true;
    return true;
}

void engine_stop(struct engine *engine)
{
    if (!engine || !engine->started)
        return;
    pthread_mutex_lock(&engine->lock);
    atomic_store(&engine->stop, true);
    pthread_cond_signal(&engine->stopped);
    pthread_mutex_unlock(&engine->lock);
    pthread_join(engine->thread, NULL);
    engine->started = false;
}

void engine_free(struct engine *engine)
{
    if (!engine)
        return;
    assert(!engine->started);
    if (engine->self)
        engine->kind->close(engine->self);
    pilots_free(engine->pilots);
    pthread_mutex_destroy(&engine->lock);
    pthread_cond_destroy(&engine->stopped);
    free(engine->server);
    free(engine->pin);
    arena_free(engine->arena);
    free(engine);
}
