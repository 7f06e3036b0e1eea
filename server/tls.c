/* tls.c - a loop over encrypted connections, each copied to and from a plain socket. */

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/log.h"
#include "server/farewell.h"
#include "server/tls.h"

#define TLS_BUFFER 16384 /* what a record holds */
#define TLS_EVENTS 256
#define TLS_TURNS 16 /* of one connection before others have theirs */
#define TLS_HANDSHAKE_US (10 * UINT64_C(1000000))
#define TLS_CLOSE_US                                                                           \
    (5 * UINT64_C(1000000)) /* for what is left to be sent to one that is over */
#define TLS_LOOK_MS 1000    /* at deadlines, and at the certificate's file */
#define TLS_FIRST_BYTE 0x16 /* of a handshake */

struct bytes {
    unsigned char data[TLS_BUFFER];
    size_t from, to;
};

struct connection {
    struct connection *next, *previous;
    SSL *ssl;
    int client; /* encrypted */
    int plain;  /* our end of the pair */
    bool begun; /* its first byte has come */
    bool shaken;
    bool client_ended; /* nothing more comes from there ... */
    bool told;         /* ... and the plain side knows */
    bool plain_ended;
    bool answered;    /* to the end: what the client still sends may be much */
    bool wants_write; /* the TLS library, before it can go on */
    bool again;       /* has more to do at once */
    bool dead;
    uint64_t until_us; /* then it is closed; 0: lives as long as the plain side */
    uint32_t client_events, plain_events;
    struct bytes in, out; /* from the client, to it */
};

struct tls {
    struct tls_options options;
    char *certificate, *key;
    SSL_CTX *context;
    struct timespec changed; /* the certificate's file */
    int epoll, wake;
    atomic_bool stopping;
    pthread_t thread;
    struct connection *connections;
    int count;
};

/* What epoll says which of a connection's two sockets it means by: the lowest bit. */
static void *tag(struct connection *c, bool plain)
{
    return (char *)c + plain;
}

/* --- certificate and key --- */

static bool tls_failed(struct error *err, const char *what, const char *path)
{
    char text[200] = "unknown reason";
    unsigned long code = ERR_peek_last_error();
    if (code)
        ERR_error_string_n(code, text, sizeof(text));
    ERR_clear_error();
    return fail(err, INVALID, "%s %s: %s", what, path, text);
}

static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_size,
                           const unsigned char *in, unsigned in_size, void *self)
{
    static const unsigned char known[] = "\x08http/1.1";
    (void)ssl;
    (void)self;
    return SSL_select_next_proto((unsigned char **)out, out_size, known, sizeof(known) - 1, in,
                                 in_size) == OPENSSL_NPN_NEGOTIATED
               ? SSL_TLSEXT_ERR_OK
               : SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* Owned; NULL on failure. */
static SSL_CTX *context_new(const char *certificate, const char *key, struct error *err)
{
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    bool ok = context || tls_failed(err, "cannot start TLS with", certificate);
    if (ok) {
        SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
        SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE |
                                         SSL_OP_NO_COMPRESSION);
        SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
        SSL_CTX_set_session_id_context(context, (const unsigned char *)"trainyard", 9);
        SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
        ok = SSL_CTX_use_certificate_chain_file(context, certificate) == 1 ||
             tls_failed(err, "cannot use the certificate", certificate);
    }
    ok = ok && (SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) == 1 ||
                tls_failed(err, "cannot use the key", key));
    ok = ok && (SSL_CTX_check_private_key(context) == 1 ||
                tls_failed(err, "the certificate does not belong to the key", key));
    if (!ok)
        SSL_CTX_free(context);
    return ok ? context : NULL;
}

bool tls_check(const char *certificate, const char *key, struct error *err)
{
    SSL_CTX *context = context_new(certificate, key, err);
    SSL_CTX_free(context);
    return context != NULL;
}

/* A new certificate is for those that connect from now on. */
static void look_at_certificate(struct tls *tls)
{
    struct stat info;
    if (stat(tls->certificate, &info) != 0 || (info.st_mtim.tv_sec == tls->changed.tv_sec &&
                                               info.st_mtim.tv_nsec == tls->changed.tv_nsec))
        return;
    struct error err;
    char text[400];
    SSL_CTX *context = context_new(tls->certificate, tls->key, &err);
    if (!context) {
        /* Perhaps its key is not there yet: it is tried again at the next look. */
        log_line(LOG_WARN, "tls", "msg=%s", log_quote(err.text, text, sizeof(text)));
        return;
    }
    SSL_CTX_free(tls->context); /* connections hold it as long as they need it */
    tls->context = context;
    tls->changed = info.st_mtim;
    log_line(LOG_INFO, "tls", "msg=\"the certificate was read anew\"");
}

/* --- connections --- */

static void connection_free(struct tls *tls, struct connection *c)
{
    if (c->next)
        c->next->previous = c->previous;
    *(c->previous ? &c->previous->next : &tls->connections) = c->next;
    tls->count--;
    SSL_free(c->ssl);
    epoll_ctl(tls->epoll, EPOLL_CTL_DEL, c->client, NULL); /* it may live on elsewhere */
    if (c->answered)
        farewell_take(tls->options.farewell, c->client);
    else
        close(c->client);
    if (c->plain >= 0)
        close(c->plain);
    free(c);
}

/* Nothing to be told of a socket: it leaves epoll, which tells of its end again and again. */
static void watch_one(struct tls *tls, int fd, void *what, uint32_t events, uint32_t *now)
{
    struct epoll_event event = {.events = events, .data.ptr = what};
    int how = !events ? EPOLL_CTL_DEL : *now ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    if (fd >= 0 && events != *now && epoll_ctl(tls->epoll, how, fd, &event) == 0)
        *now = events;
}

static void watch(struct tls *tls, struct connection *c)
{
    bool reads = !c->client_ended && (!c->shaken || c->in.to < TLS_BUFFER);
    bool takes = !c->plain_ended && c->out.to < TLS_BUFFER;
    watch_one(tls, c->client, tag(c, false),
              (reads ? EPOLLIN : 0) | (c->wants_write ? EPOLLOUT : 0), &c->client_events);
    watch_one(tls, c->plain, tag(c, true),
              (takes ? EPOLLIN : 0) | (c->in.from < c->in.to ? EPOLLOUT : 0), &c->plain_events);
}

/* What a call of the TLS library came to: true when it goes on, later. */
static bool go_on(struct connection *c, int result)
{
    switch (SSL_get_error(c->ssl, result)) {
    case SSL_ERROR_WANT_WRITE:
        c->wants_write = true;
        return true;
    case SSL_ERROR_WANT_READ:
        return true;
    default:
        ERR_clear_error();
        return false;
    }
}

/* Somebody who speaks plain HTTP to this port is told so. */
static bool is_plain(struct connection *c)
{
    static const char answer[] = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; "
                                 "charset=utf-8\r\nConnection: close\r\n\r\n"
                                 "This port speaks TLS: use https://\n";
    unsigned char first = TLS_FIRST_BYTE;
    if (c->begun || recv(c->client, &first, 1, MSG_PEEK | MSG_DONTWAIT) != 1)
        return false;
    c->begun = true;
    if (first == TLS_FIRST_BYTE)
        return false;
    char rest[1024]; /* a socket that is closed with bytes unread may lose its answer */
    while (recv(c->client, rest, sizeof(rest), MSG_DONTWAIT) == (ssize_t)sizeof(rest))
        ;
    if (send(c->client, answer, sizeof(answer) - 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return true;
    return true;
}

/* The plain half is made once the hands are shaken: nobody else costs the server anything. */
static bool open_plain(const struct tls *tls, struct connection *c)
{
    int pair[2];
    struct sockaddr_storage from;
    socklen_t size = sizeof(from);
    if (getpeername(c->client, (struct sockaddr *)&from, &size) != 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0)
        return false;
    c->plain = pair[0];
    return tls->options.give(tls->options.self, pair[1], (struct sockaddr *)&from, size);
}

/* False: the connection is over. */
static bool shake(const struct tls *tls, struct connection *c)
{
    ERR_clear_error();
    int result = SSL_accept(c->ssl);
    if (result != 1)
        return go_on(c, result);
    c->shaken = true;
    c->until_us = 0;
    c->again = true;
    return open_plain(tls, c);
}

static void compact(struct bytes *bytes)
{
    if (bytes->from == bytes->to)
        bytes->from = bytes->to = 0;
}

/* From the client to the plain side.  False: the connection is over. */
static bool move_in(struct connection *c)
{
    if (!c->client_ended && c->in.to < TLS_BUFFER) {
        ERR_clear_error();
        int n = SSL_read(c->ssl, c->in.data + c->in.to, (int)(TLS_BUFFER - c->in.to));
        if (n > 0) {
            c->in.to += (size_t)n;
            c->again = true;
        } else if (SSL_get_error(c->ssl, n) == SSL_ERROR_ZERO_RETURN) {
            c->client_ended = true;
        } else if (!go_on(c, n)) {
            return false;
        }
    }
    if (c->in.from < c->in.to) {
        ssize_t n = send(c->plain, c->in.data + c->in.from, c->in.to - c->in.from,
                         MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EAGAIN && errno != EINTR) {
            c->client_ended = true; /* nobody reads it any more; an answer may still come */
            c->in.from = c->in.to;
        }
        c->in.from += n > 0 ? (size_t)n : 0;
        c->again |= n > 0;
    }
    compact(&c->in);
    if (c->client_ended && c->in.to == 0 && !c->told) {
        shutdown(c->plain, SHUT_WR);
        c->told = true;
    }
    return true;
}

/* From the plain side to the client.  False: the connection is over. */
static bool move_out(struct connection *c)
{
    if (!c->plain_ended && c->out.to < TLS_BUFFER) {
        ssize_t n =
            recv(c->plain, c->out.data + c->out.to, TLS_BUFFER - c->out.to, MSG_DONTWAIT);
        if (n > 0) {
            c->out.to += (size_t)n;
            c->again = true;
        } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
            c->plain_ended = true;
            c->until_us = clock_monotonic_us() + TLS_CLOSE_US;
        }
    }
    if (c->out.from < c->out.to) {
        ERR_clear_error();
        int n = SSL_write(c->ssl, c->out.data + c->out.from, (int)(c->out.to - c->out.from));
        if (n > 0) {
            c->out.from += (size_t)n;
            c->again = true;
        } else if (!go_on(c, n)) {
            return false;
        }
    }
    compact(&c->out);
    if (!c->plain_ended || c->out.to)
        return true;
    SSL_shutdown(c->ssl); /* says that this was all */
    c->answered = true;
    return false;
}

/*
 * An error of the client's socket is the end; one of the plain side (closed with a body unread
 * that nobody wanted) is taken from it, since the answer is there still.
 */
static void on_error(struct connection *c, const void *what)
{
    int error = 0;
    socklen_t size = sizeof(error);
    if (what == tag(c, false))
        c->dead = true;
    else
        getsockopt(c->plain, SOL_SOCKET, SO_ERROR, &error, &size);
}

/* Does what can be done without waiting; sets `dead` when it is over. */
static void turn(struct tls *tls, struct connection *c)
{
    for (int i = 0; i < TLS_TURNS && !c->dead; i++) {
        c->again = false;
        c->wants_write = false;
        if (!c->shaken)
            c->dead = is_plain(c) || !shake(tls, c);
        else
            c->dead = !move_in(c) || !move_out(c);
        if (!c->again)
            break;
    }
    if (!c->dead)
        watch(tls, c);
}

/* --- the loop --- */

static void accept_all(struct tls *tls)
{
    for (;;) {
        int fd = accept4(tls->options.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        SSL *ssl = tls->count < LIMIT_HTTP_CONNECTIONS ? SSL_new(tls->context) : NULL;
        if (!ssl || SSL_set_fd(ssl, fd) != 1) {
            SSL_free(ssl);
            close(fd);
            continue;
        }
        int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        struct connection *c = alloc_bytes(sizeof(*c));
        c->ssl = ssl;
        c->client = fd;
        c->plain = -1;
        c->until_us = clock_monotonic_us() + TLS_HANDSHAKE_US;
        c->next = tls->connections;
        if (c->next)
            c->next->previous = c;
        tls->connections = c;
        tls->count++;
        watch(tls, c);
        if (!c->client_events)
            connection_free(tls, c);
    }
}

/* Those that have more to do at once, and those whose time is over.  True: some have. */
static bool go_through(struct tls *tls)
{
    uint64_t now_us = clock_monotonic_us();
    bool again = false;
    struct connection *next;
    for (struct connection *c = tls->connections; c; c = next) {
        next = c->next;
        if (c->again && !c->dead)
            turn(tls, c);
        if (c->until_us && now_us > c->until_us)
            c->dead = true;
        if (c->dead)
            connection_free(tls, c);
        else
            again |= c->again;
    }
    return again;
}

static void *tls_main(void *argument)
{
    struct tls *tls = argument;
    struct epoll_event events[TLS_EVENTS];
    uint64_t look_us = 0;
    bool again = false;
    while (!atomic_load(&tls->stopping)) {
        int count = epoll_wait(tls->epoll, events, TLS_EVENTS, again ? 0 : TLS_LOOK_MS);
        bool dead = false;
        for (int i = 0; i < count; i++) {
            void *what = events[i].data.ptr;
            if (what == &tls->wake)
                continue;
            if (what == &tls->options.listener) {
                accept_all(tls);
                continue;
            }
            struct connection *c = (struct connection *)((uintptr_t)what & ~(uintptr_t)1);
            if (events[i].events & EPOLLERR)
                on_error(c, what);
            if (!c->dead)
                turn(tls, c);
            dead |= c->dead;
            again |= c->again;
        }
        uint64_t now_us = clock_monotonic_us();
        bool look = now_us - look_us >= TLS_LOOK_MS * UINT64_C(1000);
        if (look || again || dead)
            again = go_through(tls);
        if (look) {
            look_at_certificate(tls);
            look_us = now_us;
        }
    }
    return NULL;
}

static void tls_free(struct tls *tls)
{
    while (tls->connections)
        connection_free(tls, tls->connections);
    SSL_CTX_free(tls->context);
    close(tls->options.listener);
    if (tls->epoll >= 0)
        close(tls->epoll);
    if (tls->wake >= 0)
        close(tls->wake);
    free(tls->certificate);
    free(tls->key);
    free(tls);
}

struct tls *tls_start(const struct tls_options *options, struct error *err)
{
    struct tls *tls = alloc_bytes(sizeof(*tls));
    struct stat info;
    tls->options = *options;
    tls->certificate = alloc_text(options->certificate);
    tls->key = alloc_text(options->key);
    tls->epoll = epoll_create1(EPOLL_CLOEXEC);
    tls->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    tls->context = context_new(options->certificate, options->key, err);
    if (tls->context && stat(options->certificate, &info) == 0)
        tls->changed = info.st_mtim;
    struct epoll_event listener = {.events = EPOLLIN, .data.ptr = &tls->options.listener};
    struct epoll_event wake = {.events = EPOLLIN, .data.ptr = &tls->wake};
    bool ok = tls->context != NULL;
    if (ok && (tls->epoll < 0 || tls->wake < 0 ||
               epoll_ctl(tls->epoll, EPOLL_CTL_ADD, options->listener, &listener) != 0 ||
               epoll_ctl(tls->epoll, EPOLL_CTL_ADD, tls->wake, &wake) != 0 ||
               pthread_create(&tls->thread, NULL, tls_main, tls) != 0))
        ok = error_errno(err, EXHAUSTED, "the encrypted door did not open");
    if (!ok) {
        tls_free(tls);
        return NULL;
    }
    pthread_setname_np(tls->thread, "tls");
    return tls;
}

void tls_stop(struct tls *tls)
{
    if (!tls)
        return;
    uint64_t one = 1;
    atomic_store(&tls->stopping, true);
    if (write(tls->wake, &one, sizeof(one)) < 0)
        log_line(LOG_DEBUG, "tls", "msg=\"it ends a second later\"");
    pthread_join(tls->thread, NULL);
    tls_free(tls);
}
