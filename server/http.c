/* http.c - libmicrohttpd's callbacks: a request from its first byte to its reply. */

#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/str.h"
#include "server/deadline.h"
#include "server/door.h"
#include "server/farewell.h"
#include "server/http.h"
#include "server/live.h"
#include "server/reply.h"
#include "server/request.h"
#include "server/routes.h"
#include "server/workers.h"

#define HTTP_HEADERS_MAX 64
#define HTTP_HEADER_MEMORY                                                                     \
    (32 << 10) /* of a connection: request line, headers, reply headers */
#define HTTP_IDLE_S 15
#define HTTP_PER_ADDRESS 2000
#define HTTP_WORKERS 8
#define HTTP_TAKERS 2

/* One of the two doors; what libmicrohttpd's callbacks get. */
struct http_door {
    struct http *http;
    struct MHD_Daemon *daemon;
    bool local;
};

struct http {
    const struct services *services;
    struct live *live;
    struct farewell *farewell;
    struct deadline *deadline;
    struct workers *workers;
    struct http_door tcp; /* without a listener: unused */
    struct http_door unix_socket;
    struct http_door taken[HTTP_TAKERS]; /* for http_take(), in turn: libmicrohttpd gives no
                                          * pool to a daemon that does not listen */
    atomic_uint taken_next;
    char *socket_path;
    atomic_uint_fast64_t requests; /* numbers the request ids */
};

struct http_waker {
    pthread_mutex_t lock; /* guards: asleep, woken.  A leaf: nothing else is locked under it */
    struct MHD_Connection *connection;
    bool asleep;
    bool woken; /* while awake: look again before sleeping */
};

enum phase {
    PHASE_HEAD,
    PHASE_BODY,
    PHASE_WORKED, /* a worker has made the reply */
    PHASE_REPLIED,
    PHASE_TAKEN,
};

/* A request as libmicrohttpd sees it. */
struct exchange {
    struct work work; /* the first member */
    struct http_door *door;
    struct MHD_Connection *connection;
    enum phase phase;
    bool admitted; /* by routes.c; else its reply is ready */
    char *target;  /* as it came, with its query */
    struct str body;
    bool early; /* answered before its body was read: the connection ends so */
    struct url_pair headers[HTTP_HEADERS_MAX];
    struct request request;
    struct http_waker waker;
};

/* --- a request begins --- */

static void *on_target(void *argument, const char *target, struct MHD_Connection *connection)
{
    struct http_door *door = argument;
    struct exchange *x = alloc_bytes(sizeof(*x));
    x->door = door;
    x->connection = connection;
    x->target = alloc_text(target);
    pthread_mutex_init(&x->waker.lock, NULL);
    x->waker.connection = connection;

    struct request *req = &x->request;
    req->arena = arena_new();
    req->services = door->http->services;
    req->local = door->local;
    req->id = arena_printf(req->arena, "req_%08llx%06llx",
                           (unsigned long long)req->services->started_us / 1000,
                           (unsigned long long)atomic_fetch_add(&door->http->requests, 1));
    req->headers = x->headers;
    return x;
}

static enum MHD_Result on_header(void *argument, enum MHD_ValueKind kind, const char *name,
                                 const char *value)
{
    (void)kind;
    struct exchange *x = argument;
    int count = x->request.headers_count++;
    if (count < HTTP_HEADERS_MAX)
        x->headers[count] = (struct url_pair){name, value ? value : ""};
    return MHD_YES;
}

static int count_header(const struct request *req, const char *name)
{
    int count = 0;
    for (int i = 0; i < req->headers_count; i++)
        count += strcasecmp(req->headers[i].name, name) == 0;
    return count;
}

/* Refuses what another program on the way might read in another way than we do. */
static bool check_framing(struct request *req, struct error *err)
{
    for (int i = 0; i < req->headers_count; i++)
        if (strpbrk(req->headers[i].name, " \t\"(),/:;<=>?@[\\]{}") || !*req->headers[i].name)
            return fail(err, INVALID,
                        "a header's name has a character that does not belong there");
    const char *length = request_header(req, "Content-Length");
    const char *encoding = request_header(req, "Transfer-Encoding");
    if (length && encoding)
        return fail(err, INVALID, "Content-Length and Transfer-Encoding in one request");
    if (count_header(req, "Content-Length") > 1 || count_header(req, "Transfer-Encoding") > 1)
        return fail(err, INVALID, "a header about the body's length is there twice");
    if (count_header(req, "Host") > 1)
        return fail(err, INVALID, "two Host headers");
    if (encoding && strcasecmp(encoding, "chunked") != 0)
        return fail(err, UNIMPLEMENTED, "Transfer-Encoding other than chunked");
    if (length && (!*length || length[strspn(length, "0123456789")]))
        return fail(err, INVALID, "Content-Length is no number");
    return true;
}

static int64_t body_limit(const struct request *req)
{
    bool file = req->route && req->route->body && strchr(req->route->body, '/');
    return file ? LIMIT_FILE_BYTES : LIMIT_HTTP_BODY_BYTES;
}

static bool body_too_large(struct request *req, int64_t limit, struct error *err)
{
    req->reply.status = 413;
    return fail(err, EXHAUSTED, "the body is larger than %lld bytes", (long long)limit);
}

static bool check_head(struct exchange *x, struct error *err)
{
    struct request *req = &x->request;
    if (req->headers_count > HTTP_HEADERS_MAX) {
        req->headers_count = HTTP_HEADERS_MAX;
        return fail(err, INVALID, "more than %d headers", HTTP_HEADERS_MAX);
    }
    if (strlen(x->target) > LIMIT_HTTP_URL_BYTES) {
        req->reply.status = 414;
        return fail(err, INVALID, "the URL is longer than %d bytes", LIMIT_HTTP_URL_BYTES);
    }
    if (!check_framing(req, err) || !url_parse(req->arena, x->target, &req->url, err))
        return false;
    const char *length = request_header(req, "Content-Length");
    req->has_body =
        request_header(req, "Transfer-Encoding") || (length && length[strspn(length, "0")]);
    if (length && (strlen(length) > 18 || strtoll(length, NULL, 10) > LIMIT_FILE_BYTES))
        return body_too_large(req, LIMIT_FILE_BYTES, err);
    const char *coding = request_header(req, "Content-Encoding");
    if (coding && strcasecmp(coding, "identity") != 0) {
        req->reply.status = 415;
        return fail(err, UNIMPLEMENTED,
                    "Content-Encoding '%.40s' is not understood; send it plain", coding);
    }
    return true;
}

/* Once its route is known. */
static bool check_body_size(struct request *req, struct error *err)
{
    const char *length = request_header(req, "Content-Length");
    int64_t limit = body_limit(req);
    return !length || strtoll(length, NULL, 10) <= limit || body_too_large(req, limit, err);
}

/* --- the reply --- */

static ssize_t on_stream_read(void *argument, uint64_t position, char *bytes, size_t size)
{
    (void)position;
    struct exchange *x = argument;
    struct reply_stream *stream = x->request.reply.stream;
    for (;;) {
        int64_t count = stream->read(stream->self, bytes, size);
        if (count < 0)
            return MHD_CONTENT_READER_END_OF_STREAM;
        if (count > 0)
            return count;
        pthread_mutex_lock(&x->waker.lock);
        bool again = x->waker.woken;
        x->waker.woken = false;
        if (!again) {
            x->waker.asleep = true;
            MHD_suspend_connection(x->connection);
        }
        pthread_mutex_unlock(&x->waker.lock);
        if (!again)
            return 0;
    }
}

void http_wake(struct http_waker *waker)
{
    struct MHD_Connection *connection = waker->connection;
    pthread_mutex_lock(&waker->lock);
    bool asleep = waker->asleep;
    waker->asleep = false;
    waker->woken = waker->woken || !asleep;
    pthread_mutex_unlock(&waker->lock);
    if (asleep) /* behind all else: its own thread may end it, and free the waker, at once */
        MHD_resume_connection(connection);
}

static struct MHD_Response *make_response(struct exchange *x)
{
    struct reply *reply = &x->request.reply;
    if (reply->stream) {
        reply->stream->start(reply->stream->self, &x->waker);
        return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 8192, on_stream_read, x,
                                                 NULL);
    }
    if (reply->is_file) {
        struct MHD_Response *response = MHD_create_response_from_fd_at_offset64(
            reply->size, reply->file, (uint64_t)reply->file_first);
        if (response)
            reply->is_file = false;
        return response;
    }
    enum MHD_ResponseMemoryMode mode =
        reply->owned ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT;
    struct MHD_Response *response =
        MHD_create_response_from_buffer(reply->size, (void *)reply->bytes, mode);
    if (response)
        reply->owned = false;
    return response;
}

static enum MHD_Result send_reply(struct exchange *x, bool close_after)
{
    struct reply *reply = &x->request.reply;
    struct MHD_Response *response = make_response(x);
    if (!response)
        return MHD_NO;
    if (reply->type)
        MHD_add_response_header(response, "Content-Type", reply->type);
    bool cached = false;
    for (int i = 0; i < reply->headers_count; i++) {
        MHD_add_response_header(response, reply->headers[i].name, reply->headers[i].value);
        cached |= strcmp(reply->headers[i].name, "Cache-Control") == 0;
    }
    if (!cached)
        MHD_add_response_header(response, "Cache-Control", "no-store");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
    MHD_add_response_header(response, "X-Request-Id", x->request.id);
    if (x->request.services->encrypted && !x->door->local)
        MHD_add_response_header(response, "Strict-Transport-Security", "max-age=31536000");
    if (close_after)
        MHD_add_response_header(response, "Connection", "close");
    x->phase = PHASE_REPLIED;
    x->early = close_after && x->request.has_body;
    enum MHD_Result result =
        MHD_queue_response(x->connection, (unsigned)reply->status, response);
    MHD_destroy_response(response);
    return result;
}

/* The handshake as text, for libwebsockets to read: only what it needs to see. */
static void handshake_text(const struct exchange *x, struct str *text)
{
    static const char *const names[] = {"Host", "Upgrade", "Connection", "Sec-WebSocket-Key",
                                        "Sec-WebSocket-Version"};
    str_add(text, "GET /api/v1/stream HTTP/1.1\r\n");
    for (int i = 0; i < ARRAY_LEN(names); i++) {
        const char *value = request_header(&x->request, names[i]);
        str_printf(text, "%s: %s\r\n", names[i], value ? value : "");
    }
    str_add(text, "\r\n");
}

/* Hands the connection over to live.c; libmicrohttpd sleeps on it until it is closed there. */
static enum MHD_Result hand_over(struct exchange *x)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    int fd = fcntl(info->connect_fd, F_DUPFD_CLOEXEC, 3);
    if (fd < 0)
        return MHD_NO;
    struct str text = {0};
    handshake_text(x, &text);
    x->phase = PHASE_TAKEN;
    x->waker.asleep = true;
    MHD_suspend_connection(x->connection);
    if (!live_adopt(x->door->http->live, fd, &text, &x->request.user, &x->waker)) {
        close(fd);
        http_wake(&x->waker);
    }
    str_release(&text);
    return MHD_YES;
}

static enum MHD_Result reject(struct exchange *x, const struct error *err)
{
    reply_problem(&x->request, x->request.reply.status, err);
    return send_reply(x, true);
}

static struct deadline_entry *connection_entry(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

/*
 * Answers in the middle of a chunked body that is too large, and closes.  libmicrohttpd answers
 * only before a body or after it, so this is written past it.
 */
static enum MHD_Result refuse_body(struct exchange *x)
{
    struct request *req = &x->request;
    struct error err;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (!body_too_large(req, body_limit(req), &err))
        reply_problem(req, req->reply.status, &err);
    struct str text = {0};
    str_printf(&text,
               "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nCache-Control: "
               "no-store\r\nX-Request-Id: %s\r\nConnection: close\r\n\r\n",
               req->reply.status, reply_status_text(req->reply.status), req->reply.type,
               req->reply.size, req->id);
    str_add_bytes(&text, req->reply.bytes, req->reply.size);
    ssize_t sent = send(info->connect_fd, text.data, text.size, MSG_NOSIGNAL | MSG_DONTWAIT);
    x->early = sent == (ssize_t)text.size;
    str_release(&text);
    return MHD_NO;
}

static enum MHD_Result take_body(struct exchange *x, const char *bytes, size_t *size)
{
    size_t count = *size;
    *size = 0;
    if ((int64_t)(x->body.size + count) > body_limit(&x->request))
        return refuse_body(x);
    str_add_bytes(&x->body, bytes, count);
    return MHD_YES;
}

static void work(struct work *work)
{
    struct exchange *x = (struct exchange *)work;
    routes_dispatch(&x->request);
    x->phase = PHASE_WORKED;
    MHD_resume_connection(x->connection); /* it asks for the answer again */
}

/* A request that changes something waits for the disk, and others not for it. */
static enum MHD_Result give_away(struct exchange *x)
{
    MHD_suspend_connection(x->connection);
    if (!workers_give(x->door->http->workers, &x->work))
        work(&x->work); /* the server is ending */
    return MHD_YES;
}

static enum MHD_Result answer(struct exchange *x)
{
    struct request *req = &x->request;
    if (x->phase == PHASE_WORKED)
        return send_reply(x, false);
    req->body = str_text(&x->body);
    req->body_size = x->body.size;
    bool reads = strcmp(req->method, "GET") == 0 || strcmp(req->method, "HEAD") == 0;
    if (x->admitted && (!reads || routes_waits(req->route)))
        return give_away(x);
    if (x->admitted)
        routes_dispatch(req);
    if (req->reply.websocket)
        return hand_over(x);
    return send_reply(x, false);
}

/* --- libmicrohttpd calls --- */

static enum MHD_Result on_call(void *argument, struct MHD_Connection *connection,
                               const char *url, const char *method, const char *version,
                               const char *upload, size_t *upload_size, void **state)
{
    (void)url;
    struct http_door *door = argument;
    struct exchange *x = *state;
    struct error err;
    if (x->phase == PHASE_TAKEN)
        return MHD_NO; /* the websocket is over: close */
    if (x->phase == PHASE_HEAD) {
        x->phase = PHASE_BODY;
        x->request.method = method;
        deadline_set(door->http->deadline, connection_entry(connection), DEADLINE_BODY_MS);
        MHD_get_connection_values(connection, MHD_HEADER_KIND, on_header, x);
        bool known = strcmp(version, "HTTP/1.1") == 0 || strcmp(version, "HTTP/1.0") == 0;
        if (!known && !fail(&err, INVALID, "only HTTP/1.0 and HTTP/1.1 are spoken here"))
            return reject(x, &err);
        if (!check_head(x, &err))
            return reject(x, &err);
        x->admitted = routes_admit(&x->request);
        if (x->admitted && !check_body_size(&x->request, &err))
            return reject(x, &err);
        /* An answer now closes the connection: right for one whose body nobody wants. */
        return x->admitted || !x->request.has_body ? MHD_YES : send_reply(x, true);
    }
    if (*upload_size)
        return take_body(x, upload, upload_size);
    deadline_set(door->http->deadline, connection_entry(connection), 0);
    return answer(x);
}

/* libmicrohttpd closes the connection: its client has a moment to see why. */
static void say_farewell(const struct exchange *x)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    int fd = fcntl(info->connect_fd, F_DUPFD_CLOEXEC, 3);
    if (fd >= 0)
        farewell_take(x->door->http->farewell, fd);
}

static void on_completed(void *argument, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode why)
{
    (void)why;
    struct http_door *door = argument;
    struct exchange *x = *state;
    if (!x)
        return;
    *state = NULL;
    if (x->early)
        say_farewell(x);
    struct deadline_entry *entry = connection_entry(connection);
    if (entry)
        deadline_set(door->http->deadline, entry, DEADLINE_HEAD_MS);
    struct reply *reply = &x->request.reply;
    if (reply->stream)
        reply->stream->free(reply->stream->self);
    if (reply->owned)
        free((void *)reply->bytes);
    if (reply->is_file)
        close(reply->file);
    arena_free(x->request.arena);
    str_release(&x->body);
    pthread_mutex_destroy(&x->waker.lock);
    free(x->target);
    free(x);
}

static void on_connection(void *argument, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode what)
{
    struct http_door *door = argument;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        *context = deadline_add(door->http->deadline, info->connect_fd);
    } else if (*context) {
        deadline_remove(door->http->deadline, *context);
        *context = NULL;
    }
}

/* The target stays as it came: url.c decodes it. */
static size_t on_unescape(void *argument, struct MHD_Connection *connection, char *text)
{
    (void)argument;
    (void)connection;
    return strlen(text);
}

static void on_log(void *argument, const char *format, va_list args)
{
    (void)argument;
    char line[500];
    vsnprintf(line, sizeof(line), format, args);
    line[strcspn(line, "\n")] = 0;
    char quoted[600];
    log_line(LOG_DEBUG, "http", "msg=%s", log_quote(line, quoted, sizeof(quoted)));
}

/* --- start and stop --- */

static bool open_door(struct http_door *door, struct http *http, int listener, bool local,
                      int threads, struct error *err)
{
    door->http = http;
    door->local = local;
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME |
                     MHD_USE_ERROR_LOG |
                     (listener < 0 ? MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ITC : 0);
    struct MHD_OptionItem more[] = {
        {MHD_OPTION_THREAD_POOL_SIZE, threads, NULL},
        {listener < 0 ? MHD_OPTION_PER_IP_CONNECTION_LIMIT : MHD_OPTION_LISTEN_SOCKET,
         listener < 0 ? HTTP_PER_ADDRESS : listener, NULL},
        {local ? MHD_OPTION_END : MHD_OPTION_PER_IP_CONNECTION_LIMIT, HTTP_PER_ADDRESS, NULL},
        {MHD_OPTION_END, 0, NULL},
    };
    door->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, on_call, door, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)LIMIT_HTTP_CONNECTIONS,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)HTTP_IDLE_S,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_HEADER_MEMORY,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_URI_LOG_CALLBACK, on_target, door,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, door, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, door, MHD_OPTION_UNESCAPE_CALLBACK, on_unescape, NULL, MHD_OPTION_ARRAY,
        more, MHD_OPTION_END);
    if (!door->daemon) {
        if (listener >= 0)
            close(listener);
        return fail(err, UNAVAILABLE, "the web server did not start: %s",
                    errno ? strerror(errno) : "unknown reason");
    }
    return true;
}

struct http *http_start(const struct http_options *options, const struct services *services,
                        struct live *live, struct error *err)
{
    int local = door_unix(options->socket_path, err);
    if (local < 0)
        return NULL;
    struct http *http = alloc_bytes(sizeof(*http));
    http->services = services;
    http->live = live;
    http->farewell = options->farewell;
    http->deadline = deadline_new();
    http->workers = workers_new(HTTP_WORKERS, work);
    http->socket_path = alloc_text(options->socket_path);
    if (!http->workers)
        fail(err, EXHAUSTED, "the threads of the web server did not start");
    bool ok = http->workers && open_door(&http->unix_socket, http, local, true, 0, err);
    if (options->listener >= 0)
        ok = ok && open_door(&http->tcp, http, options->listener, false, options->threads, err);
    for (int i = 0; i < HTTP_TAKERS && options->listener < 0; i++)
        ok = ok && open_door(&http->taken[i], http, -1, false, 0, err);
    if (!ok) {
        http_stop(http);
        return NULL;
    }
    return http;
}

bool http_take(void *self, int fd, const struct sockaddr *from, socklen_t from_size)
{
    struct http *http = self;
    unsigned turn = atomic_fetch_add(&http->taken_next, 1);
    struct MHD_Daemon *daemon = http->taken[turn % HTTP_TAKERS].daemon;
    return MHD_add_connection(daemon, fd, from, from_size) == MHD_YES;
}

void http_stop(struct http *http)
{
    if (!http)
        return;
    workers_stop(http->workers); /* wakes the connections that wait for them */
    if (http->tcp.daemon)
        MHD_stop_daemon(http->tcp.daemon);
    for (int i = 0; i < HTTP_TAKERS; i++)
        if (http->taken[i].daemon)
            MHD_stop_daemon(http->taken[i].daemon);
    if (http->unix_socket.daemon)
        MHD_stop_daemon(http->unix_socket.daemon);
    unlink(http->socket_path);
    workers_free(http->workers);
    deadline_free(http->deadline);
    free(http->socket_path);
    free(http);
}
