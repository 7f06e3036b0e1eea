/* rpc_http2_tls.c - bytes of connections, encrypted or not. */

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "proto/rpc_http2_host.h"

/* --- the context --- */

static bool tls_failed(struct error *err, const char *what)
{
    char text[200] = "unknown reason";
    unsigned long code = ERR_peek_last_error();
    if (code)
        ERR_error_string_n(code, text, sizeof(text));
    ERR_clear_error();
    return fail(err, UNAVAILABLE, "%s: %s", what, text);
}

static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_size,
                           const unsigned char *in, unsigned in_size, void *self)
{
    static const unsigned char known[] = "\x02h2";
    (void)ssl;
    (void)self;
    return SSL_select_next_proto((unsigned char **)out, out_size, known, sizeof(known) - 1, in,
                                 in_size) == OPENSSL_NPN_NEGOTIATED
               ? SSL_TLSEXT_ERR_OK
               : SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* Whoever is called looks at it. */
static int take_any(X509_STORE_CTX *store, void *arg)
{
    (void)arg;
    X509_STORE_CTX_set_error(store, X509_V_OK);
    return 1;
}

static X509 *read_certificate(BIO *bio)
{
    X509 *certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    if (!certificate)
        ERR_clear_error(); /* the text is at its end */
    return certificate;
}

/* The certificate and those that sign it, in one text. */
static bool use_certificate(SSL_CTX *context, const char *pem)
{
    BIO *bio = BIO_new_mem_buf(pem, -1);
    X509 *certificate = bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;
    bool ok = certificate && SSL_CTX_use_certificate(context, certificate) == 1;
    X509_free(certificate);
    while (ok && (certificate = read_certificate(bio)))
        ok = SSL_CTX_add0_chain_cert(context, certificate) == 1;
    BIO_free(bio);
    return ok;
}

static bool use_key(SSL_CTX *context, const char *pem)
{
    BIO *bio = BIO_new_mem_buf(pem, -1);
    EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL) : NULL;
    bool ok = key && SSL_CTX_use_PrivateKey(context, key) == 1;
    EVP_PKEY_free(key);
    BIO_free(bio);
    return ok;
}

static bool use_authorities(SSL_CTX *context, const char *pem)
{
    X509_STORE *store = SSL_CTX_get_cert_store(context);
    BIO *bio = BIO_new_mem_buf(pem, -1);
    X509 *authority;
    int count = 0;
    bool ok = bio;
    while (ok && (authority = read_certificate(bio))) {
        ok = X509_STORE_add_cert(store, authority) == 1 &&
             SSL_CTX_add_client_CA(context, authority) == 1;
        X509_free(authority);
        count++;
    }
    BIO_free(bio);
    return ok && count;
}

struct ssl_ctx_st *rpc_http2_tls_new(const struct rpc_tls *tls, struct error *err)
{
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    bool ok = context || tls_failed(err, "cannot start TLS");
    if (ok) {
        SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
        SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
        SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
        SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
        SSL_CTX_set_session_id_context(context, (const unsigned char *)"trainyard", 9);
        SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
        if (tls->ca)
            SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                               NULL);
        else if (tls->asks)
            SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
        if (!tls->ca && tls->asks)
            SSL_CTX_set_cert_verify_callback(context, take_any, NULL);
    }
    ok = ok && (use_certificate(context, tls->certificate) ||
                tls_failed(err, "cannot use the certificate"));
    ok = ok && ((use_key(context, tls->key) && SSL_CTX_check_private_key(context) == 1) ||
                tls_failed(err, "the certificate and its key are no pair"));
    ok = ok && (!tls->ca || use_authorities(context, tls->ca) ||
                tls_failed(err, "cannot use the authority's certificate"));
    if (ok)
        return context;
    SSL_CTX_free(context);
    return NULL;
}

void rpc_http2_tls_free(struct ssl_ctx_st *context)
{
    SSL_CTX_free(context);
}

/* --- the library's bytes: OpenSSL's own sockets would raise SIGPIPE --- */

static int bio_done(BIO *bio, ssize_t size)
{
    BIO_clear_retry_flags(bio);
    return size >= 0 ? (int)size : -1;
}

static int bio_write(BIO *bio, const char *data, int size)
{
    const struct http2_connection *connection = BIO_get_data(bio);
    ssize_t wrote = send(connection->socket, data, (size_t)size, MSG_DONTWAIT | MSG_NOSIGNAL);
    int done = bio_done(bio, wrote);
    if (wrote < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_write(bio);
    return done;
}

static int bio_read(BIO *bio, char *out, int size)
{
    const struct http2_connection *connection = BIO_get_data(bio);
    ssize_t got = recv(connection->socket, out, (size_t)size, MSG_DONTWAIT);
    int done = bio_done(bio, got);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_read(bio);
    return done;
}

static long bio_ctrl(BIO *bio, int what, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return what == BIO_CTRL_FLUSH;
}

static int bio_begin(BIO *bio)
{
    BIO_set_init(bio, 1);
    return 1;
}

static BIO_METHOD *bio_method;
static pthread_once_t bio_once = PTHREAD_ONCE_INIT;

static void bio_make(void)
{
    bio_method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "connection");
    assert(bio_method);
    BIO_meth_set_write(bio_method, bio_write);
    BIO_meth_set_read(bio_method, bio_read);
    BIO_meth_set_ctrl(bio_method, bio_ctrl);
    BIO_meth_set_create(bio_method, bio_begin);
}

bool rpc_http2_tls_open(struct http2_connection *connection)
{
    pthread_once(&bio_once, bio_make);
    SSL *ssl = SSL_new(connection->host->tls);
    BIO *bio = ssl ? BIO_new(bio_method) : NULL;
    if (!bio) {
        SSL_free(ssl);
        ERR_clear_error();
        return false;
    }
    BIO_set_data(bio, connection);
    SSL_set_bio(ssl, bio, bio);
    connection->tls = ssl;
    return true;
}

void rpc_http2_tls_close(struct http2_connection *connection)
{
    if (connection->tls && connection->is_shaken)
        (void)SSL_shutdown(connection->tls);
    SSL_free(connection->tls);
    connection->tls = NULL;
    ERR_clear_error();
}

/* --- connections --- */

/* NULL: it has shown none. */
static char *certificate_shown(SSL *ssl)
{
    X509 *certificate = SSL_get_peer_certificate(ssl);
    BIO *bio = certificate ? BIO_new(BIO_s_mem()) : NULL;
    char *text = NULL, *shown = NULL;
    if (bio && PEM_write_bio_X509(bio, certificate) == 1) {
        long size = BIO_get_mem_data(bio, &text);
        shown = alloc_text_n(text, (size_t)size);
    }
    BIO_free(bio);
    X509_free(certificate);
    return shown;
}

/* What a call of the library's that took nothing means; false: the connection is over. */
static bool may_go_on(struct http2_connection *connection, int said)
{
    int why = SSL_get_error(connection->tls, said);
    char text[200], quoted[400];
    unsigned long code = ERR_peek_last_error();
    bool waits = why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE;
    if (!waits && code) {
        ERR_error_string_n(code, text, sizeof(text));
        log_line(LOG_DEBUG, "rpc", "peer=%s msg=%s", connection->peer,
                 log_quote(text, quoted, sizeof(quoted)));
    }
    ERR_clear_error();
    return waits;
}

bool rpc_http2_shake(struct http2_connection *connection)
{
    int said = SSL_accept(connection->tls);
    if (said == 1) {
        connection->is_shaken = true;
        if (connection->host->asks)
            connection->certificate = certificate_shown(connection->tls);
        return true;
    }
    connection->wants_room = SSL_get_error(connection->tls, said) == SSL_ERROR_WANT_WRITE;
    return may_go_on(connection, said);
}

bool rpc_http2_has_more(const struct http2_connection *connection)
{
    return connection->tls && SSL_pending(connection->tls);
}

ssize_t rpc_http2_read(struct http2_connection *connection, void *out, size_t size)
{
    if (connection->tls) {
        int got = SSL_read(connection->tls, out, (int)size);
        return got > 0 ? got : may_go_on(connection, got) ? 0 : -1;
    }
    ssize_t got = recv(connection->socket, out, size, MSG_DONTWAIT);
    if (got > 0)
        return got;
    return got < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

static const char *span_data(const struct http2_out *out, int index, size_t *size)
{
    const struct http2_span *span = &out->spans[(out->first + index) % RPC_HTTP2_SPANS];
    *size = span->size;
    return span->message ? span->data : out->text.data + span->at;
}

/* Small stretches share a record. */
static ssize_t write_encrypted(struct http2_connection *connection, const struct http2_out *out)
{
    char record[16384];
    size_t have = 0;
    for (int i = 0; i < out->count && have < sizeof(record); i++) {
        size_t size;
        const char *data = span_data(out, i, &size);
        size_t part = size < sizeof(record) - have ? size : sizeof(record) - have;
        memcpy(record + have, data, part);
        have += part;
    }
    int wrote = SSL_write(connection->tls, record, (int)have);
    return wrote > 0 ? wrote : may_go_on(connection, wrote) ? 0 : -1;
}

ssize_t rpc_http2_write(struct http2_connection *connection, const struct http2_out *out)
{
    struct iovec spans[RPC_HTTP2_SPANS];
    struct msghdr message = {.msg_iov = spans, .msg_iovlen = (size_t)out->count};
    if (connection->tls)
        return connection->is_shaken ? write_encrypted(connection, out) : 0;
    for (int i = 0; i < out->count; i++)
        spans[i].iov_base = (void *)span_data(out, i, &spans[i].iov_len);
    for (;;) {
        ssize_t wrote = sendmsg(connection->socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (wrote >= 0)
            return wrote;
        if (errno != EINTR)
            return errno == EAGAIN ? 0 : -1;
    }
}
