/* http2_tls.c - bytes of wires that are encrypted, by OpenSSL. */

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "proto/http2_wire.h"

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

static bool use_authorities(SSL_CTX *context, const char *pem, bool names)
{
    X509_STORE *store = SSL_CTX_get_cert_store(context);
    BIO *bio = BIO_new_mem_buf(pem, -1);
    X509 *authority;
    int count = 0;
    bool ok = bio;
    while (ok && (authority = read_certificate(bio))) {
        ok = X509_STORE_add_cert(store, authority) == 1 &&
             (!names || SSL_CTX_add_client_CA(context, authority) == 1);
        X509_free(authority);
        count++;
    }
    BIO_free(bio);
    return ok && count;
}

static void ask_clients(SSL_CTX *context, const struct rpc_tls *tls)
{
    if (tls->ca) {
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    } else if (tls->asks) {
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
        SSL_CTX_set_cert_verify_callback(context, take_any, NULL);
    }
}

struct ssl_ctx_st *http2_tls_new(const struct rpc_tls *tls, bool serves, struct error *err)
{
    SSL_CTX *context = SSL_CTX_new(serves ? TLS_server_method() : TLS_client_method());
    bool ok = context || tls_failed(err, "cannot start TLS");
    if (ok) {
        SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
        SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
        SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
        SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    }
    if (ok && serves) {
        SSL_CTX_set_session_id_context(context, (const unsigned char *)"trainyard", 9);
        SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
        ask_clients(context, tls);
    } else if (ok) {
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
        ok = (!SSL_CTX_set_alpn_protos(context, (const unsigned char *)"\x02h2", 3) &&
              (tls->ca || SSL_CTX_set_default_verify_paths(context) == 1)) ||
             tls_failed(err, "cannot start TLS");
    }
    if (ok && tls->certificate)
        ok = (use_certificate(context, tls->certificate) ||
              tls_failed(err, "cannot use the certificate")) &&
             ((use_key(context, tls->key) && SSL_CTX_check_private_key(context) == 1) ||
              tls_failed(err, "the certificate and its key are no pair"));
    ok = ok && (!tls->ca || use_authorities(context, tls->ca, serves) ||
                tls_failed(err, "cannot use the authority's certificate"));
    if (ok)
        return context;
    SSL_CTX_free(context);
    return NULL;
}

void http2_tls_free(struct ssl_ctx_st *context)
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
    const struct http2_wire *wire = BIO_get_data(bio);
    ssize_t wrote = send(wire->socket, data, (size_t)size, MSG_DONTWAIT | MSG_NOSIGNAL);
    int done = bio_done(bio, wrote);
    if (wrote < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_write(bio);
    return done;
}

static int bio_read(BIO *bio, char *out, int size)
{
    const struct http2_wire *wire = BIO_get_data(bio);
    ssize_t got = recv(wire->socket, out, (size_t)size, MSG_DONTWAIT);
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

/* The name is told to the server, unless it is an address, and must be in its certificate. */
static bool expect(SSL *ssl, const char *name)
{
    unsigned char address[16];
    if (inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1;
    return SSL_set1_host(ssl, name) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
}

bool http2_tls_open(struct http2_wire *wire, struct ssl_ctx_st *context, const char *name)
{
    pthread_once(&bio_once, bio_make);
    SSL *ssl = SSL_new(context);
    BIO *bio = ssl ? BIO_new(bio_method) : NULL;
    if (!bio || (name && !expect(ssl, name))) {
        BIO_free(bio);
        SSL_free(ssl);
        ERR_clear_error();
        return false;
    }
    BIO_set_data(bio, wire);
    SSL_set_bio(ssl, bio, bio);
    if (name)
        SSL_set_connect_state(ssl);
    else
        SSL_set_accept_state(ssl);
    wire->tls = ssl;
    return true;
}

void http2_tls_close(struct http2_wire *wire)
{
    ERR_clear_error();
    if (wire->tls && wire->is_shaken)
        (void)SSL_shutdown(wire->tls);
    SSL_free(wire->tls);
    wire->tls = NULL;
    ERR_clear_error();
}

/* --- wires --- */

char *http2_tls_shown(const struct http2_wire *wire)
{
    X509 *certificate = SSL_get_peer_certificate(wire->tls);
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
static bool may_go_on(const struct http2_wire *wire, int said, char why[200])
{
    int kind = SSL_get_error(wire->tls, said);
    unsigned long code = ERR_peek_last_error();
    bool waits = kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE;
    if (!waits && code)
        ERR_error_string_n(code, why, 200);
    else if (!waits)
        snprintf(why, 200, "the other end hung up");
    ERR_clear_error();
    return waits;
}

/* The same, where the log is told, and who has asked for it. */
static ssize_t taken(const struct http2_wire *wire, int said)
{
    char why[200] = "", quoted[400];
    if (said > 0)
        return said;
    if (may_go_on(wire, said, why))
        return 0;
    if (wire->why)
        memcpy(wire->why, why, sizeof(why));
    log_line(LOG_DEBUG, "rpc", "peer=%s msg=%s", wire->peer,
             log_quote(why, quoted, sizeof(quoted)));
    return -1;
}

bool http2_tls_shake(struct http2_wire *wire, char why[200])
{
    ERR_clear_error(); /* what others have left there would be taken for this one's */
    int said = SSL_do_handshake(wire->tls);
    long verified = SSL_get_verify_result(wire->tls);
    wire->is_shaken = said == 1;
    wire->wants_room = said != 1 && SSL_get_error(wire->tls, said) == SSL_ERROR_WANT_WRITE;
    if (said == 1 || may_go_on(wire, said, why))
        return true;
    if (verified != X509_V_OK)
        snprintf(why, 200, "certificate verify failed: %s",
                 X509_verify_cert_error_string(verified));
    return false;
}

bool http2_tls_has_more(const struct http2_wire *wire)
{
    return wire->tls && SSL_pending(wire->tls);
}

ssize_t http2_tls_read(struct http2_wire *wire, void *out, size_t size)
{
    ERR_clear_error();
    return taken(wire, SSL_read(wire->tls, out, (int)size));
}

ssize_t http2_tls_write(struct http2_wire *wire, const void *bytes, size_t size)
{
    ERR_clear_error();
    return taken(wire, SSL_write(wire->tls, bytes, (int)size));
}
