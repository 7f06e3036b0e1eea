/*
 * nodes_session.c - what each agent is to be told.
 *
 * Commands stay until the agent says that it has carried them out: an answer that is lost is
 * given again at the end of the next long poll.  Agents skip what they have done already, by
 * sequence.
 */

#include <pthread.h>
#include <sodium.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/failpoint.h"
#include "base/limits.h"
#include "base/str.h"
#include "server/nodes_session.h"

#define KEY_BYTES 48
#define ANSWER_COMMANDS 64 /* in one answer: specs may be large */

struct pending { /* a command, and the memory of its texts */
    struct agent_command command;
    struct arena *arena;
};

struct session {
    int64_t node;
    int64_t epoch;
    char key[KEY_BYTES];
    char *name;
    struct pending *commands;
    int commands_count;
    int commands_capacity;
    int64_t last_sequence;
    int64_t told_sequence; /* up to here the agent was told at least once */
    struct agent_task_ref *acknowledged;
    int acknowledged_count;
    int acknowledged_capacity;
    struct arena *roles; /* texts of `acknowledged` */
    struct rpc_call *held;
    uint64_t held_until_us;
};

struct nodes_sessions {
    pthread_mutex_t lock; /* guards: all below */
    struct session **list;
    int count;
    int capacity;
    uint64_t hold_us; /* of a poll */
};

/* A call with its answer, to be given when the lock is not held. */
struct answer {
    struct rpc_call *call;
    struct str bytes; /* empty and `failed`: fenced */
    bool failed;
};

static bool fail_fenced(struct error *err)
{
    return fail(err, PRECONDITION, "fenced: this session is over, join again");
}

static void answer_give(struct answer *answer)
{
    if (answer->call && answer->failed) {
        struct error err;
        fail_fenced(&err);
        rpc_call_fail(answer->call, &err);
    } else if (answer->call) {
        bool says_something = answer->bytes.size > 0;
        if (says_something)
            failpoint("server.command_before_send");
        rpc_call_reply(answer->call, answer->bytes.data, answer->bytes.size);
        if (says_something)
            failpoint("server.command_after_send");
    }
    str_release(&answer->bytes);
}

/* --- sessions --- */

static struct session *session_find_locked(struct nodes_sessions *sessions, int64_t node)
{
    for (int i = 0; i < sessions->count; i++) {
        if (sessions->list[i]->node == node)
            return sessions->list[i];
    }
    return NULL;
}

static struct answer session_end(struct session *session)
{
    struct answer answer = {.call = session->held, .failed = true};
    for (int i = 0; i < session->commands_count; i++)
        arena_free(session->commands[i].arena);
    free(session->commands);
    free(session->acknowledged);
    free(session->name);
    arena_free(session->roles);
    free(session);
    return answer;
}

struct nodes_sessions *nodes_session_new(uint64_t hold_us)
{
    struct nodes_sessions *sessions = alloc_bytes(sizeof(*sessions));
    pthread_mutex_init(&sessions->lock, NULL);
    sessions->hold_us = hold_us;
    return sessions;
}

void nodes_session_free(struct nodes_sessions *sessions)
{
    if (!sessions)
        return;
    nodes_session_close(sessions, 0);
    free(sessions->list);
    pthread_mutex_destroy(&sessions->lock);
    free(sessions);
}

void nodes_session_close(struct nodes_sessions *sessions, int64_t node)
{
    for (;;) {
        struct session *session = NULL;
        pthread_mutex_lock(&sessions->lock);
        for (int i = 0; i < sessions->count && !session; i++) {
            if (node && sessions->list[i]->node != node)
                continue;
            session = sessions->list[i];
            sessions->list[i] = sessions->list[--sessions->count];
        }
        pthread_mutex_unlock(&sessions->lock);
        if (!session)
            return;
        struct answer answer = session_end(session);
        answer_give(&answer);
    }
}

const char *nodes_session_open(struct nodes_sessions *sessions, int64_t node, int64_t epoch,
                               const char *name)
{
    nodes_session_close(sessions, node);
    struct session *session = alloc_bytes(sizeof(*session));
    session->node = node;
    session->epoch = epoch;
    session->name = alloc_text(name);
    session->roles = arena_new();
    uint8_t secret[32];
    randombytes_buf(secret, sizeof(secret));
    sodium_bin2base64(session->key, sizeof(session->key), secret, sizeof(secret),
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);

    pthread_mutex_lock(&sessions->lock);
    sessions->list =
        alloc_grow(sessions->list, sessions->count, &sessions->capacity, sizeof(session));
    sessions->list[sessions->count++] = session;
    pthread_mutex_unlock(&sessions->lock);
    return session->key;
}

bool nodes_session_check(struct nodes_sessions *sessions, int64_t node, int64_t epoch,
                         const char *key, const char *name, struct error *err)
{
    pthread_mutex_lock(&sessions->lock);
    const struct session *session = session_find_locked(sessions, node);
    bool ok = session && session->epoch == epoch && strlen(key) == strlen(session->key) &&
              sodium_memcmp(key, session->key, strlen(key)) == 0;
    bool theirs = ok && strcmp(session->name, name) == 0;
    pthread_mutex_unlock(&sessions->lock);
    if (!ok)
        return fail_fenced(err);
    return theirs || fail(err, DENIED, "the session is another node's, by its certificate");
}

/* --- what is to be said --- */

/* A copy whose texts live in `arena`: it goes through the bytes that will be sent anyway. */
static void start_copy(struct agent_start_task *start, struct arena *arena)
{
    struct error err;
    struct str bytes = {0};
    agent_start_task_pack(start, &bytes);
    bool ok = agent_start_task_unpack(bytes.data, bytes.size, arena, start, &err);
    assert(ok);
    (void)ok;
    str_release(&bytes);
}

void nodes_session_command(struct nodes_sessions *sessions, int64_t node,
                           const struct agent_command *command)
{
    struct pending pending = {.command = *command, .arena = arena_new()};
    if (command->kind == AGENT_COMMAND_START)
        start_copy(&pending.command.start, pending.arena);
    else
        pending.command.stop.task.role = arena_text(pending.arena, command->stop.task.role);

    pthread_mutex_lock(&sessions->lock);
    struct session *session = session_find_locked(sessions, node);
    if (session) {
        pending.command.sequence = ++session->last_sequence;
        session->commands = alloc_grow(session->commands, session->commands_count,
                                       &session->commands_capacity, sizeof(pending));
        session->commands[session->commands_count++] = pending;
    }
    pthread_mutex_unlock(&sessions->lock);
    if (!session)
        arena_free(pending.arena); /* it will be said again when the node has joined */
}

void nodes_session_acknowledge(struct nodes_sessions *sessions, int64_t node,
                               const struct agent_task_ref *task)
{
    pthread_mutex_lock(&sessions->lock);
    struct session *session = session_find_locked(sessions, node);
    if (session) {
        session->acknowledged =
            alloc_grow(session->acknowledged, session->acknowledged_count,
                       &session->acknowledged_capacity, sizeof(*session->acknowledged));
        struct agent_task_ref *copy = &session->acknowledged[session->acknowledged_count++];
        *copy = *task;
        copy->role = arena_text(session->roles, task->role);
    }
    pthread_mutex_unlock(&sessions->lock);
}

/* --- calls --- */

/* How many commands the next answer has room for. */
static int session_told_count(const struct session *session)
{
    return session->commands_count < ANSWER_COMMANDS ? session->commands_count
                                                     : ANSWER_COMMANDS;
}

/* Commands behind those wait until some are done: the same ones again are no news. */
static bool session_has_news(const struct session *session)
{
    int count = session_told_count(session);
    return session->acknowledged_count ||
           (count && session->commands[count - 1].command.sequence > session->told_sequence);
}

/* All there is to say, as the answer to `call`. */
static struct answer session_answer_locked(struct session *session, struct rpc_call *call)
{
    struct answer answer = {.call = call};
    int count = session_told_count(session);
    struct agent_command commands[ANSWER_COMMANDS];
    for (int i = 0; i < count; i++)
        commands[i] = session->commands[i].command;
    struct agent_sync_response response = {
        .commands = commands,
        .commands_count = count,
        .acknowledged = session->acknowledged,
        .acknowledged_count = session->acknowledged_count,
    };
    agent_sync_response_pack(&response, &answer.bytes);
    if (count && commands[count - 1].sequence > session->told_sequence)
        session->told_sequence = commands[count - 1].sequence;
    /* An acknowledgement that is lost is asked for again: the agent reports until it has one.
     */
    session->acknowledged_count = 0;
    arena_clear(session->roles);
    return answer;
}

static void session_forget_done(struct session *session, int64_t done)
{
    int count = 0;
    while (count < session->commands_count && session->commands[count].command.sequence <= done)
        arena_free(session->commands[count++].arena);
    session->commands_count -= count;
    if (session->commands_count)
        memmove(session->commands, session->commands + count,
                (size_t)session->commands_count * sizeof(*session->commands));
}

static struct session *session_of_locked(struct nodes_sessions *sessions, int64_t node,
                                         int64_t epoch)
{
    struct session *session = session_find_locked(sessions, node);
    return session && session->epoch == epoch ? session : NULL;
}

void nodes_session_done(struct nodes_sessions *sessions, int64_t node, int64_t epoch,
                        int64_t done)
{
    pthread_mutex_lock(&sessions->lock);
    struct session *session = session_of_locked(sessions, node, epoch);
    if (session)
        session_forget_done(session, done);
    pthread_mutex_unlock(&sessions->lock);
}

/* Takes the held call out, with its answer. */
static struct answer session_release_locked(struct session *session)
{
    struct rpc_call *call = session->held;
    session->held = NULL;
    return session_answer_locked(session, call);
}

void nodes_session_hold(struct nodes_sessions *sessions, int64_t node, int64_t epoch,
                        struct rpc_call *call)
{
    struct answer answer = {.call = call, .failed = true};
    struct answer older = {0};
    pthread_mutex_lock(&sessions->lock);
    struct session *session = session_of_locked(sessions, node, epoch);
    if (session) {
        if (session->held) /* its caller has given up, or it would not call again */
            older = session_release_locked(session);
        session->held = call;
        session->held_until_us = clock_monotonic_us() + sessions->hold_us;
        answer = session_has_news(session) ? session_release_locked(session)
                                           : (struct answer){.call = NULL};
    }
    pthread_mutex_unlock(&sessions->lock);
    answer_give(&older);
    answer_give(&answer);
}

void nodes_session_answer(struct nodes_sessions *sessions, int64_t node, int64_t epoch,
                          struct rpc_call *call)
{
    struct answer answer = {.call = call, .failed = true};
    pthread_mutex_lock(&sessions->lock);
    struct session *session = session_of_locked(sessions, node, epoch);
    if (session)
        answer = session_answer_locked(session, call);
    pthread_mutex_unlock(&sessions->lock);
    answer_give(&answer);
}

/* The next call to answer now; `*next_us` is when the first of the others is due. */
static struct answer flush_one(struct nodes_sessions *sessions, uint64_t *next_us)
{
    struct answer answer = {0};
    uint64_t now_us = clock_monotonic_us();
    *next_us = UINT64_MAX;
    pthread_mutex_lock(&sessions->lock);
    for (int i = 0; i < sessions->count && !answer.call; i++) {
        struct session *session = sessions->list[i];
        if (!session->held)
            continue;
        if (session_has_news(session) || session->held_until_us <= now_us)
            answer = session_release_locked(session);
        else if (session->held_until_us < *next_us)
            *next_us = session->held_until_us;
    }
    pthread_mutex_unlock(&sessions->lock);
    return answer;
}

uint64_t nodes_session_flush(struct nodes_sessions *sessions)
{
    for (;;) {
        uint64_t next_us;
        struct answer answer = flush_one(sessions, &next_us);
        if (!answer.call)
            return next_us;
        answer_give(&answer);
    }
}
