/* live.c - libwebsockets' side: adopting sockets, moving messages. */

#include <libwebsockets.h>

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mailbox.h"
#include "base/str.h"
#include "server/feed.h"
#include "server/http.h"
#include "server/live.h"
#include "server/recent.h"
#include "server/request.h"
#include "server/stream.h"

#define LIVE_ADOPTIONS_MAX 256 /* waiting to be taken by the thread */
#define LIVE_CLIENTS_MAX 2000
#define LIVE_PING_S 15
#define LIVE_HANGUP_S 45
#define LIVE_SIGN_IN_S 10             /* for the first message of one without a cookie */
#define LIVE_SLOW_S 10                /* for one that reads too slowly to go on */
#define LIVE_CLOSE_S 5                /* for the last words to one that is shown out */
#define LIVE_UNSENT_BYTES (64 << 10)  /* on their way to one client: no more for now */
#define LIVE_PIECE_BYTES (16 << 10)   /* written at once */
#define LIVE_BUFFER_BYTES (200 << 10) /* the kernel's for one client; it doubles that */
#define LIVE_LOOK_US 20000            /* when one is slow: look again after this, or longer */

/* A socket on its way in. */
struct adoption {
    int fd;
    struct str request;
    struct arena *arena;
    struct auth_identity user; /* in the arena */
    struct http_waker *waker;
};

/* An open websocket. */
struct client {
    struct client *next, **link;
    struct lws *wsi;
    struct stream *stream;
    struct http_waker *waker;
    struct str received; /* of a message that comes in fragments */
    struct str sending;  /* a long message ... */
    size_t sent;         /* ... of which this much is written */
    int close_code;
    uint64_t opened_us;
    uint64_t slow_us; /* since when it takes nothing; 0: it does */
};

struct live {
    const struct services *services;
    struct lws_context *context;
    struct lws_vhost *vhost;
    struct mailbox *adoptions;
    struct feed_watcher watcher;
    atomic_bool noted; /* the feed has called since the thread looked */
    atomic_bool stopping;
    atomic_int clients_count; /* with those on their way in */
    pthread_t thread;
    /* of the thread alone */
    struct client *clients;
    struct adoption *adopting; /* whose handshake libwebsockets is in */
    struct recent *recent;
    struct str out; /* LWS_PRE bytes, then the message being written */
    lws_sorted_usec_list_t ping_timer;
};

static struct live *live_of(struct lws *wsi)
{
    return lws_context_user(lws_get_context(wsi));
}

/* --- clients --- */

static void adoption_free(struct adoption *adoption)
{
    str_release(&adoption->request);
    arena_free(adoption->arena);
    free(adoption);
}

static int client_open(struct live *live, struct client *client, struct lws *wsi)
{
    struct adoption *adoption = live->adopting;
    if (!adoption)
        return -1; /* not in the course of adopt(): its connection was given back already */
    live->adopting = NULL;
    client->wsi = wsi;
    client->waker = adoption->waker;
    client->stream = stream_new(live->services, live->recent, &adoption->user);
    client->opened_us = clock_monotonic_us();
    client->next = live->clients;
    client->link = &live->clients;
    if (client->next)
        client->next->link = &client->next;
    live->clients = client;
    lws_callback_on_writable(wsi);
    return 0;
}

static void client_close(struct live *live, struct client *client)
{
    if (!client->link)
        return; /* the handshake had failed */
    *client->link = client->next;
    if (client->next)
        client->next->link = client->link;
    client->link = NULL;
    stream_free(client->stream);
    str_release(&client->received);
    str_release(&client->sending);
    atomic_fetch_sub(&live->clients_count, 1);
    http_wake(client->waker);
}

/* Ends the connection after what is being sent: the code goes out with the next writable call.
 */
static void client_refuse(struct client *client, int code)
{
    if (!client->close_code) {
        client->close_code = code;
        lws_set_timeout(client->wsi, PENDING_TIMEOUT_USER_REASON_BASE, LIVE_CLOSE_S);
    }
    lws_callback_on_writable(client->wsi);
}

static int client_read(struct client *client, const char *bytes, size_t size)
{
    if (client->close_code)
        return 0;
    if (client->received.size + size > STREAM_MESSAGE_BYTES) {
        client_refuse(client, STREAM_CLOSE_TOO_LARGE);
        return 0;
    }
    str_add_bytes(&client->received, bytes, size);
    if (!lws_is_final_fragment(client->wsi) || lws_remaining_packet_payload(client->wsi))
        return 0;
    int code =
        stream_receive(client->stream, str_text(&client->received), client->received.size);
    str_clear(&client->received);
    if (code)
        client_refuse(client, code);
    lws_callback_on_writable(client->wsi);
    return 0;
}

/* Whether more may be written; if not, it is looked at again in a moment, and not for ever. */
static bool client_takes(struct client *client)
{
    int unsent = 0;
    uint64_t now_us = clock_monotonic_us();
    if (ioctl(lws_get_socket_fd(client->wsi), SIOCOUTQ, &unsent) != 0 ||
        unsent < LIVE_UNSENT_BYTES) {
        client->slow_us = 0;
        return true;
    }
    if (!client->slow_us)
        client->slow_us = now_us;
    if (now_us - client->slow_us > LIVE_SLOW_S * UINT64_C(1000000))
        client_refuse(client, STREAM_CLOSE_BUSY);
    else /* again when it has been slow twice as long: many who read nothing cost little */
        lws_set_timer_usecs(client->wsi, LIVE_LOOK_US + (lws_usec_t)(now_us - client->slow_us));
    return false;
}

/* Writes the next piece of the message in `sending`, where LWS_PRE bytes stand before it. */
static int client_write_piece(struct client *client)
{
    size_t size = client->sending.size - LWS_PRE;
    size_t left = size - client->sent;
    size_t piece = left < LIVE_PIECE_BYTES ? left : LIVE_PIECE_BYTES;
    /* libwebsockets writes its header over what stands before the piece: that was sent. */
    unsigned char *at = (unsigned char *)client->sending.data + LWS_PRE + client->sent;
    int flags = lws_write_ws_flags(LWS_WRITE_TEXT, client->sent == 0, piece == left);
    if (lws_write(client->wsi, at, piece, (enum lws_write_protocol)flags) < 0)
        return -1;
    client->sent += piece;
    if (piece == left) {
        str_release(&client->sending);
        client->sent = 0;
    }
    return 0;
}

static int client_write(struct live *live, struct client *client)
{
    if (client->close_code) {
        lws_close_reason(client->wsi, (enum lws_close_status)client->close_code, NULL, 0);
        return -1;
    }
    if (!client_takes(client))
        return 0;
    if (!client->sending.size) {
        uint64_t wait_us;
        live->out.size = 0;
        memset(str_extend(&live->out, LWS_PRE), 0, LWS_PRE);
        if (!stream_next(client->stream, clock_monotonic_us(), &live->out, &wait_us)) {
            if (wait_us)
                lws_set_timer_usecs(client->wsi, (lws_usec_t)wait_us);
            return 0;
        }
        /* A short one goes out from the common buffer, and costs the client none. */
        size_t size = live->out.size - LWS_PRE;
        if (size <= LIVE_PIECE_BYTES) {
            unsigned char *message = (unsigned char *)live->out.data + LWS_PRE;
            if (lws_write(client->wsi, message, size, LWS_WRITE_TEXT) < 0)
                return -1;
        } else {
            client->sending = live->out;
            live->out = (struct str){0};
        }
    }
    if (client->sending.size && client_write_piece(client) < 0)
        return -1;
    if (client->sending.size || stream_pending(client->stream))
        lws_callback_on_writable(client->wsi);
    return 0;
}

/* --- the thread --- */

static void on_ping_timer(lws_sorted_usec_list_t *timer)
{
    struct live *live = lws_container_of(timer, struct live, ping_timer);
    uint64_t now = clock_monotonic_us();
    for (struct client *c = live->clients; c; c = c->next) {
        bool late =
            !stream_signed_in(c->stream) && now - c->opened_us > LIVE_SIGN_IN_S * 1000000ull;
        if (late || !stream_still(c->stream)) /* which may be too old by now */
            client_refuse(c, STREAM_CLOSE_SIGNED_OUT);
        stream_ping(c->stream);
        lws_callback_on_writable(c->wsi);
    }
    feed_tick(live->services->feed);
    lws_sul_schedule(live->context, 0, &live->ping_timer, on_ping_timer,
                     LIVE_PING_S * LWS_USEC_PER_SEC);
}

static void adopt(struct live *live, struct adoption *adoption)
{
    int bytes = LIVE_BUFFER_BYTES; /* fixed, so that it does not grow with what is not read */
    setsockopt(adoption->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    live->adopting = adoption;
    struct lws *wsi = lws_adopt_socket_vhost_readbuf(
        live->vhost, adoption->fd, adoption->request.data, adoption->request.size);
    if (live->adopting) {
        /* No websocket came of it; libwebsockets has closed the socket, or will. */
        live->adopting = NULL;
        atomic_fetch_sub(&live->clients_count, 1);
        http_wake(adoption->waker);
        if (wsi)
            lws_set_timeout(wsi, PENDING_TIMEOUT_AWAITING_PROXY_RESPONSE, 1);
    }
    adoption_free(adoption);
}

/* Somebody called lws_cancel_service(). */
static void on_cancelled(struct live *live)
{
    struct adoption *adoption;
    while ((adoption = mailbox_take(live->adoptions, 0)))
        adopt(live, adoption);
    if (!atomic_exchange(&live->noted, false))
        return;
    for (struct client *c = live->clients; c; c = c->next) {
        if (!stream_still(c->stream))
            client_refuse(c, STREAM_CLOSE_SIGNED_OUT);
        else if (stream_pending(c->stream))
            lws_callback_on_writable(c->wsi);
    }
}

static int on_callback(struct lws *wsi, enum lws_callback_reasons reason, void *user,
                       void *bytes, size_t size)
{
    struct client *client = user;
    switch (reason) {
    case LWS_CALLBACK_EVENT_WAIT_CANCELLED:
        on_cancelled(live_of(wsi));
        return 0;
    case LWS_CALLBACK_ESTABLISHED:
        return client_open(live_of(wsi), client, wsi);
    case LWS_CALLBACK_CLOSED:
        client_close(live_of(wsi), client);
        return 0;
    case LWS_CALLBACK_RECEIVE:
        return client_read(client, bytes, size);
    case LWS_CALLBACK_SERVER_WRITEABLE:
        return client_write(live_of(wsi), client);
    case LWS_CALLBACK_TIMER:
        lws_callback_on_writable(wsi);
        return 0;
    case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE:
        return strcmp(bytes, "websocket") == 0 ? 0 : -1;
    case LWS_CALLBACK_RAW_ADOPT:
    case LWS_CALLBACK_HTTP: /* http.c sends websockets only */
        return -1;
    default:
        return 0;
    }
}

static void on_log(int level, const char *line)
{
    (void)level;
    char text[300];
    char quoted[400];
    snprintf(text, sizeof(text), "%s", line);
    text[strcspn(text, "\n")] = 0;
    log_line(LOG_DEBUG, "live", "msg=%s", log_quote(text, quoted, sizeof(quoted)));
}

static void *live_main(void *argument)
{
    struct live *live = argument;
    lws_sul_schedule(live->context, 0, &live->ping_timer, on_ping_timer,
                     LIVE_PING_S * LWS_USEC_PER_SEC);
    while (!atomic_load(&live->stopping))
        if (lws_service(live->context, 0) < 0)
            break;
    struct adoption *adoption;
    while ((adoption = mailbox_take(live->adoptions, 0))) {
        close(adoption->fd);
        http_wake(adoption->waker);
        adoption_free(adoption);
    }
    lws_sul_schedule(live->context, 0, &live->ping_timer, on_ping_timer,
                     LWS_SET_TIMER_USEC_CANCEL);
    lws_context_destroy(live->context); /* closes every client */
    return NULL;
}

/* --- for other threads --- */

static void on_note(void *self)
{
    struct live *live = self;
    if (!atomic_exchange(&live->noted, true))
        lws_cancel_service(live->context);
}

bool live_adopt(struct live *live, int fd, const struct str *request,
                const struct auth_identity *user, struct http_waker *waker)
{
    if (atomic_fetch_add(&live->clients_count, 1) >= LIVE_CLIENTS_MAX) {
        atomic_fetch_sub(&live->clients_count, 1);
        return false;
    }
    struct adoption *adoption = alloc_bytes(sizeof(*adoption));
    adoption->fd = fd;
    adoption->arena = arena_new();
    adoption->user = *user;
    adoption->user.user = arena_text(adoption->arena, user->user ? user->user : "");
    adoption->waker = waker;
    str_add_bytes(&adoption->request, request->data, request->size);
    if (mailbox_post(live->adoptions, adoption)) {
        lws_cancel_service(live->context);
        return true;
    }
    atomic_fetch_sub(&live->clients_count, 1);
    adoption_free(adoption);
    return false;
}

static const struct lws_protocols live_protocols[] = {
    {.name = "trainyard",
     .callback = on_callback,
     .per_session_data_size = sizeof(struct client)},
    {.name = NULL},
};

/* A dead peer is noticed by what it does not answer. */
static const lws_retry_bo_t live_idle = {
    .secs_since_valid_ping = LIVE_PING_S,
    .secs_since_valid_hangup = LIVE_HANGUP_S,
};

struct live *live_start(const struct services *services, struct error *err)
{
    struct live *live = alloc_bytes(sizeof(*live));
    live->services = services;
    live->adoptions = mailbox_new(LIVE_ADOPTIONS_MAX);
    live->recent = recent_new();
    lws_set_log_level(LLL_ERR | LLL_WARN, on_log);
    struct lws_context_creation_info info = {
        .port = CONTEXT_PORT_NO_LISTEN_SERVER,
        .protocols = live_protocols,
        .options = LWS_SERVER_OPTION_EXPLICIT_VHOSTS,
        .user = live,
        .max_http_header_pool = 64,
        .fd_limit_per_thread = LIVE_CLIENTS_MAX + 64,
        .retry_and_idle_policy = &live_idle,
        .gid = (gid_t)-1,
        .uid = (uid_t)-1,
    };
    live->context = lws_create_context(&info);
    live->vhost = live->context ? lws_create_vhost(live->context, &info) : NULL;
    if (!live->vhost || pthread_create(&live->thread, NULL, live_main, live) != 0) {
        if (live->context)
            lws_context_destroy(live->context);
        mailbox_free(live->adoptions);
        recent_free(live->recent);
        free(live);
        return fail_null(err, UNAVAILABLE, "the websocket service did not start");
    }
    live->watcher = (struct feed_watcher){.wake = on_note, .self = live};
    feed_watch(services->feed, &live->watcher);
    return live;
}

void live_stop(struct live *live)
{
    if (!live)
        return;
    feed_unwatch(live->services->feed, &live->watcher);
    mailbox_close(live->adoptions);
    atomic_store(&live->stopping, true);
    lws_cancel_service(live->context);
    pthread_join(live->thread, NULL);
    mailbox_free(live->adoptions);
    recent_free(live->recent);
    str_release(&live->out);
    free(live);
}
