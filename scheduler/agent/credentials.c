/* credentials.c - see credentials.h. */

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <time.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "proto/agent_certify_pb.h"
#include "proto/rpc.h"
#include "scheduler/agent/credentials.h"
#include "scheduler/agent/files.h"
#include "scheduler/agent/link.h"
#include "scheduler/agent/pin.h"

#define FILE_NAME "certificate.json"
#define AGAIN_US (60 * UINT64_C(1000000)) /* between two tries to renew */

struct credentials {
    char *folder;
    char *server;
    char *node_name;
    char *token; /* "": none */
    char *pin;   /* of the token; "": none */
    char *ca;    /* given by the user; NULL */

    /* Owned; NULL: none yet. */
    char *authority; /* what the server shows, when it is known by its pin */
    char *certificate;
    char *key;
    int64_t due_us; /* wall clock: half of the certificate's time is over */
    bool connected; /* the link shows it */
    uint64_t tried_us;
};

/* --- certificates --- */

static char *text_of(BIO *memory)
{
    char *bytes;
    long size = BIO_get_mem_data(memory, &bytes);
    return alloc_printf("%.*s", (int)size, bytes);
}

/* A key, and a request signed with it: PEM, owned. */
static bool make_request(char **key, char **request, struct error *err)
{
    EVP_PKEY *pair = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    X509_REQ *made = X509_REQ_new();
    BIO *first = BIO_new(BIO_s_secmem()), *second = BIO_new(BIO_s_mem());
    bool ok = pair && made && first && second && X509_REQ_set_pubkey(made, pair) &&
              X509_REQ_sign(made, pair, NULL) &&
              PEM_write_bio_PrivateKey(first, pair, NULL, NULL, 0, NULL, NULL) &&
              PEM_write_bio_X509_REQ(second, made);
    if (ok) {
        *key = text_of(first);
        *request = text_of(second);
    } else {
        ERR_clear_error();
        fail(err, INTERNAL, "cannot make a key for the node's certificate");
    }
    BIO_free(first);
    BIO_free(second);
    X509_REQ_free(made);
    EVP_PKEY_free(pair);
    return ok;
}

/* The middle of a certificate's time; false: it is none. */
static bool read_due(const char *text, int64_t *due_us)
{
    BIO *memory = BIO_new_mem_buf(text, -1);
    X509 *certificate = memory ? PEM_read_bio_X509(memory, NULL, NULL, NULL) : NULL;
    struct tm from, until;
    bool ok = certificate && ASN1_TIME_to_tm(X509_get0_notBefore(certificate), &from) &&
              ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &until);
    if (ok)
        *due_us = ((int64_t)timegm(&from) + (int64_t)timegm(&until)) / 2 * 1000000;
    X509_free(certificate);
    BIO_free(memory);
    ERR_clear_error();
    return ok;
}

/* --- what is kept --- */

static bool same_server(const struct credentials *c, const char *authority)
{
    char pin[PIN_BYTES];
    struct error err;
    return !*c->pin || (pin_of(authority, pin, &err) && strcmp(pin, c->pin) == 0);
}

/* A token for another server than the kept one wins. */
static bool read_kept(struct credentials *c, struct error *err)
{
    json_t *kept = files_read_json(c->folder, FILE_NAME, err);
    if (!kept)
        return err->code == NOT_FOUND;
    const char *authority = files_text(kept, "authority");
    const char *certificate = files_text(kept, "certificate");
    bool usable = (c->ca || (*authority && same_server(c, authority))) &&
                  read_due(certificate, &c->due_us);
    if (usable) {
        c->authority = c->ca ? NULL : alloc_text(authority);
        c->certificate = alloc_text(certificate);
        c->key = alloc_text(files_text(kept, "key"));
    }
    json_decref(kept);
    return true;
}

static bool keep(const struct credentials *c, const char *certificate, const char *key,
                 struct error *err)
{
    return files_write_json(c->folder, FILE_NAME,
                            json_pack("{s:s, s:s, s:s}", "certificate", certificate, "key", key,
                                      "authority", c->authority ? c->authority : ""),
                            err);
}

struct credentials *credentials_open(const struct credentials_options *options,
                                     struct error *err)
{
    struct credentials *c = alloc_bytes(sizeof(*c));
    const char *token = options->token ? options->token : "";
    const char *dot = strchr(token, '.');
    c->folder = alloc_text(options->folder);
    c->server = alloc_text(options->server);
    c->node_name = alloc_text(options->node_name);
    c->token = dot ? alloc_printf("%.*s", (int)(dot - token), token) : alloc_text(token);
    c->pin = alloc_text(dot ? dot + 1 : "");
    c->ca = options->ca ? alloc_text(options->ca) : NULL;
    bool ok = read_kept(c, err);
    if (ok && !c->ca && !c->authority && !*c->pin)
        ok = *token ? fail(err, INVALID,
                           "the token does not say which server it is of (it has no '.' with a "
                           "fingerprint behind it): make one with trainyard token create "
                           "--join, or give --ca")
                    : fail(err, INVALID,
                           "this node has no certificate yet: give it a join token "
                           "(trainyard token create --join)");
    if (ok)
        return c;
    credentials_free(c);
    return NULL;
}

void credentials_free(struct credentials *c)
{
    if (!c)
        return;
    free(c->folder);
    free(c->server);
    free(c->node_name);
    free(c->token);
    free(c->pin);
    free(c->ca);
    free(c->authority);
    free(c->certificate);
    free(c->key);
    free(c);
}

/* --- getting one --- */

static struct rpc_tls tls_of(const struct credentials *c)
{
    return (struct rpc_tls){.ca = c->ca ? c->ca : c->authority,
                            .certificate = c->certificate,
                            .key = c->key,
                            .name = c->ca ? NULL : RPC_NODES_NAME};
}

/* A new one, kept and shown from now on.  `token` "": by the one that the link shows. */
static bool certify(struct credentials *c, struct link *link, const char *token,
                    struct error *err)
{
    char *key = NULL, *request = NULL;
    struct arena *arena = arena_new();
    struct agent_certify_response response;
    int64_t due_us;
    bool ok = make_request(&key, &request, err);
    if (ok) {
        const struct agent_certify_request ask = {token, c->node_name, request};
        ok = link_certify(link, &ask, arena, &response, err);
    }
    if (ok && !read_due(response.certificate, &due_us))
        ok = fail(err, INTERNAL, "the server answered with no certificate");
    ok = ok && keep(c, response.certificate, key, err);
    if (ok) {
        free(c->certificate);
        free(c->key);
        c->certificate = alloc_text(response.certificate);
        c->key = key;
        c->due_us = due_us;
        key = NULL;
        const struct rpc_tls tls = tls_of(c);
        c->connected = ok = link_connect(link, &tls, err);
        log_line(LOG_INFO, "agent", "node=%s msg=\"has a new certificate\"", c->node_name);
    }
    free(key);
    free(request);
    arena_free(arena);
    return ok;
}

/* By the token, to a server that is known by its pin (or `ca`). */
static bool certify_by_token(struct credentials *c, struct link *link, struct error *err)
{
    if (!*c->token)
        return fail(err, UNAUTHENTICATED,
                    "this node has no certificate that its server takes: give it a join token "
                    "(trainyard token create --join)");
    if (!c->ca && !c->authority) {
        c->authority = pin_fetch(c->server, c->pin, err);
        if (!c->authority)
            return false;
    }
    const struct rpc_tls tls = tls_of(c);
    return link_connect(link, &tls, err) && certify(c, link, c->token, err);
}

bool credentials_connect(struct credentials *c, struct link *link, struct error *err)
{
    if (c->connected)
        return true;
    if (!c->certificate)
        return certify_by_token(c, link, err);
    const struct rpc_tls tls = tls_of(c);
    return c->connected = link_connect(link, &tls, err);
}

bool credentials_refused(struct credentials *c)
{
    if (!c->certificate || !*c->token)
        return false;
    free(c->certificate);
    free(c->key);
    c->certificate = c->key = NULL;
    c->connected = false;
    return true;
}

bool credentials_are_due(struct credentials *c)
{
    uint64_t now_us = clock_monotonic_us();
    if (!c->connected || (int64_t)clock_wall_us() < c->due_us ||
        (c->tried_us && now_us < c->tried_us + AGAIN_US))
        return false;
    c->tried_us = now_us;
    return true;
}

bool credentials_renew(struct credentials *c, struct link *link, struct error *err)
{
    return certify(c, link, "", err);
}
