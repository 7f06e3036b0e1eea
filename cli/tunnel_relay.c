/*
 * tunnel_relay.c - one connection: in the clear on this side, TLS to the task on the other.
 *
 * DESIGN: each has a thread, which asks the server for an address and a certificate, connects,
 * and copies both ways until one end closes.  gRPC's frames are the same within TLS and without
 * (HTTP/2 without an upgrade), so nothing of them is looked at.
 */

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "cli/client.h"
#include "cli/tunnel.h"
#include "server/url.h"

#define CONNECT_MS 10000
#define LOOK_MS 500 /* between looks whether the tunnel is to end */
#define BUFFER_BYTES (256 << 10)

struct relay {
    struct tunnel_relays *shared;
    int near; /* the program here */
    char role[32];
    int index;
    int far; /* the task; -1 */
    SSL_CTX *context;
    SSL *tls;
};

char *tunnel_relay_path(const struct tunnel_options *options)
{
    struct str path = {0};
    str_add(&path, "/api/v1/jobs/");
    url_encode(&path, options->job);
    str_add(&path, ":tunnel");
    char *text = alloc_text(str_text(&path));
    str_release(&path);
    return text;
}

/* --- getting there --- */

static const char *address_of(const struct relay *relay, const json_t *pass)
{
    size_t i;
    json_t *task;
    json_array_foreach(json_object_get(pass, "tasks"), i, task)
    {
        const char *role = json_string_value(json_object_get(task, "role"));
        if (role && !strcmp(role, relay->role) &&
            json_integer_value(json_object_get(task, "index")) == relay->index)
            return json_string_value(json_object_get(task, "address"));
    }
    return NULL;
}

static bool wait_ready(const struct relay *relay, int fd, short events, uint64_t until_us)
{
    for (;;) {
        struct pollfd wait = {.fd = fd, .events = events};
        if (poll(&wait, 1, LOOK_MS) > 0)
            return true;
        if (clock_monotonic_us() > until_us || atomic_load(&relay->shared->stopping))
            return false;
    }
}

static bool connect_to(struct relay *relay, const char *address, uint64_t until_us,
                       struct error *err)
{
    const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    char *host = alloc_text(address), *colon = strrchr(host, ':');
    int code = EAI_NONAME, failure = 0, on = 1;
    socklen_t size = sizeof(failure);
    if (colon) {
        *colon = '\0';
        code = getaddrinfo(host, colon + 1, &wanted, &found);
    }
    free(host);
    if (code)
        return fail(err, UNAVAILABLE, "%s: %s", address, gai_strerror(code));
    relay->far = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (relay->far < 0 ||
        (connect(relay->far, found->ai_addr, found->ai_addrlen) && errno != EINPROGRESS))
        failure = errno;
    freeaddrinfo(found);
    if (!failure && (!wait_ready(relay, relay->far, POLLOUT, until_us) ||
                     getsockopt(relay->far, SOL_SOCKET, SO_ERROR, &failure, &size)))
        failure = ETIMEDOUT;
    errno = failure;
    if (failure)
        return error_errno(err, UNAVAILABLE, "cannot connect to %s", address);
    setsockopt(relay->far, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return true;
}

static bool tls_failed(struct error *err, const char *what)
{
    char text[200] = "the connection was closed";
    unsigned long code = ERR_peek_last_error();
    if (code)
        ERR_error_string_n(code, text, sizeof(text));
    ERR_clear_error();
    return fail(err, UNAVAILABLE, "%s: %s", what, text);
}

static BIO *text_bio(const json_t *pass, const char *name)
{
    const char *text = json_string_value(json_object_get(pass, name));
    return text ? BIO_new_mem_buf(text, -1) : NULL;
}

/* Shows the certificate of the pass, and trusts its authority alone. */
static bool prepare_tls(struct relay *relay, const json_t *pass, struct error *err)
{
    static const unsigned char protocols[] = "\2h2";
    const char *name = json_string_value(json_object_get(pass, "server_name"));
    BIO *texts[] = {text_bio(pass, "authority"), text_bio(pass, "certificate"),
                    text_bio(pass, "key")};
    X509 *authority = texts[0] ? PEM_read_bio_X509(texts[0], NULL, NULL, NULL) : NULL;
    X509 *certificate = texts[1] ? PEM_read_bio_X509(texts[1], NULL, NULL, NULL) : NULL;
    EVP_PKEY *key = texts[2] ? PEM_read_bio_PrivateKey(texts[2], NULL, NULL, NULL) : NULL;
    relay->context = SSL_CTX_new(TLS_client_method());
    bool ok = name && authority && certificate && key && relay->context &&
              SSL_CTX_set_min_proto_version(relay->context, TLS1_2_VERSION) &&
              X509_STORE_add_cert(SSL_CTX_get_cert_store(relay->context), authority) &&
              SSL_CTX_use_certificate(relay->context, certificate) &&
              SSL_CTX_use_PrivateKey(relay->context, key) &&
              !SSL_CTX_set_alpn_protos(relay->context, protocols, sizeof(protocols) - 1);
    if (ok) {
        SSL_CTX_set_verify(relay->context, SSL_VERIFY_PEER, NULL);
        SSL_CTX_set_mode(relay->context,
                         SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
        relay->tls = SSL_new(relay->context);
        ok = relay->tls && SSL_set1_host(relay->tls, name) &&
             SSL_set_tlsext_host_name(relay->tls, name) && SSL_set_fd(relay->tls, relay->far);
    }
    for (int i = 0; i < ARRAY_LEN(texts); i++)
        BIO_free(texts[i]);
    X509_free(authority);
    X509_free(certificate);
    EVP_PKEY_free(key);
    return ok || tls_failed(err, "cannot use what the server gave");
}

static bool shake_hands(const struct relay *relay, uint64_t until_us, struct error *err)
{
    int result;
    while ((result = SSL_connect(relay->tls)) != 1) {
        int why = SSL_get_error(relay->tls, result);
        if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE)
            return tls_failed(err, "the task and this tunnel do not trust each other");
        if (!wait_ready(relay, relay->far, why == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT,
                        until_us))
            return fail(err, DEADLINE, "the task did not answer within %d s",
                        CONNECT_MS / 1000);
    }
    return true;
}

static bool reach(struct relay *relay, struct error *err)
{
    uint64_t until_us = clock_monotonic_us() + CONNECT_MS * UINT64_C(1000);
    struct client *client = client_open(relay->shared->options->folder, err);
    if (!client)
        return false;
    char *path = tunnel_relay_path(relay->shared->options);
    json_t *pass = client_json(client, "POST", path, NULL, NULL, err);
    const char *address = pass ? address_of(relay, pass) : NULL;
    bool ok = address ? connect_to(relay, address, until_us, err) &&
                            prepare_tls(relay, pass, err) && shake_hands(relay, until_us, err)
                      : pass && fail(err, NOT_FOUND, "the job has no such task");
    json_decref(pass);
    free(path);
    client_close(client);
    return ok;
}

/* --- copying --- */

struct way { /* bytes that have been read and not been written yet */
    char *bytes;
    size_t from, to;
};

enum moved { MOVED, WAITS, ENDS };

/* What a call of OpenSSL came to; `events` gets what it waits for. */
static enum moved tls_moved(const struct relay *relay, int result, short *events)
{
    if (result > 0)
        return MOVED;
    int why = SSL_get_error(relay->tls, result);
    if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE)
        return ENDS;
    *events |= why == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
    return WAITS;
}

static enum moved near_moved(ssize_t count, short event, short *events)
{
    if (count > 0)
        return MOVED;
    if (count == 0 || (errno != EAGAIN && errno != EINTR))
        return ENDS;
    *events |= event;
    return WAITS;
}

/* One step from the program here to the task. */
static enum moved move_out(struct relay *relay, struct way *way, short *near, short *far)
{
    if (way->from == way->to) {
        ssize_t count = recv(relay->near, way->bytes, BUFFER_BYTES, 0);
        way->from = 0;
        way->to = count > 0 ? (size_t)count : 0;
        return near_moved(count, POLLIN, near);
    }
    int count = SSL_write(relay->tls, way->bytes + way->from, (int)(way->to - way->from));
    way->from += count > 0 ? (size_t)count : 0;
    return tls_moved(relay, count, far);
}

static enum moved move_in(struct relay *relay, struct way *way, short *near, short *far)
{
    if (way->from == way->to) {
        int count = SSL_read(relay->tls, way->bytes, BUFFER_BYTES);
        way->from = 0;
        way->to = count > 0 ? (size_t)count : 0;
        return tls_moved(relay, count, far);
    }
    ssize_t count =
        send(relay->near, way->bytes + way->from, way->to - way->from, MSG_NOSIGNAL);
    way->from += count > 0 ? (size_t)count : 0;
    return near_moved(count, POLLOUT, near);
}

static void copy(struct relay *relay)
{
    struct way out = {.bytes = alloc_bytes(BUFFER_BYTES)};
    struct way in = {.bytes = alloc_bytes(BUFFER_BYTES)};
    fcntl(relay->near, F_SETFL, fcntl(relay->near, F_GETFL) | O_NONBLOCK);
    while (!atomic_load(&relay->shared->stopping)) {
        struct pollfd wait[] = {{.fd = relay->near}, {.fd = relay->far}};
        ERR_clear_error();
        enum moved first = move_out(relay, &out, &wait[0].events, &wait[1].events);
        enum moved second =
            first == ENDS ? ENDS : move_in(relay, &in, &wait[0].events, &wait[1].events);
        if (first == ENDS || second == ENDS)
            break;
        if (first == WAITS && second == WAITS)
            (void)poll(wait, ARRAY_LEN(wait), LOOK_MS);
    }
    (void)SSL_shutdown(relay->tls);
    free(out.bytes);
    free(in.bytes);
}

/* --- life --- */

static void *relay_main(void *arg)
{
    struct relay *relay = arg;
    struct tunnel_relays *shared = relay->shared;
    struct error err;
    int on = 1;
    setsockopt(relay->near, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if ((shared->options->any_user || tunnel_peer_is_own(relay->near, &err)) &&
        reach(relay, &err))
        copy(relay);
    else if (!atomic_load(&shared->stopping))
        fprintf(stderr, "trainyard: tunnel to %s:%d: %s\n", relay->role, relay->index,
                err.text);
    SSL_free(relay->tls);
    SSL_CTX_free(relay->context);
    if (relay->far >= 0)
        close(relay->far);
    close(relay->near);
    free(relay);
    atomic_fetch_sub(&shared->count, 1);
    return NULL;
}

void tunnel_relay_start(struct tunnel_relays *shared, int fd, const char *role, int index)
{
    pthread_t thread;
    struct relay *relay = alloc_bytes(sizeof(*relay));
    *relay = (struct relay){.shared = shared, .near = fd, .index = index, .far = -1};
    snprintf(relay->role, sizeof(relay->role), "%s", role);
    if (atomic_fetch_add(&shared->count, 1) < TUNNEL_RELAYS_MAX &&
        !pthread_create(&thread, NULL, relay_main, relay)) {
        pthread_detach(thread);
        return;
    }
    fprintf(stderr, "trainyard: tunnel to %s:%d: more than %d connections\n", role, index,
            TUNNEL_RELAYS_MAX);
    atomic_fetch_sub(&shared->count, 1);
    close(fd);
    free(relay);
}
