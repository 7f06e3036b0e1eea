/* certificate.c - see certificate.h. */

#include <limits.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/random.h>

#include "base/arena.h"
#include "base/error.h"
#include "server/certificate.h"

/* RFC 5280 4.1.2.5: no end that is known. */
#define FOREVER "99991231235959Z"
#define BEGUN "20000101000000Z"
#define CLOCKS_DIFFER_S 3600
#define MARK_URI "trainyard:token:"
#define PEM_BYTES_MAX (16 << 10)

static bool library_failed(struct error *err)
{
    char text[200] = "unknown reason";
    unsigned long code = ERR_peek_last_error();
    if (code)
        ERR_error_string_n(code, text, sizeof(text));
    ERR_clear_error();
    return fail(err, INTERNAL, "cannot make a certificate: %s", text);
}

static bool add_extension(X509 *certificate, X509 *issuer, int kind, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, kind, value);
    bool ok = extension && X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
    return ok;
}

/* What both kinds have: whose it is, and by whom. */
static bool describe(X509 *certificate, EVP_PKEY *key, const char *name, X509 *issuer,
                     long serial)
{
    X509_NAME *subject = X509_get_subject_name(certificate);
    return X509_set_version(certificate, X509_VERSION_3) &&
           ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial) &&
           X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const uint8_t *)name, -1,
                                      -1, 0) &&
           X509_set_issuer_name(certificate, X509_get_subject_name(issuer)) &&
           X509_set_pubkey(certificate, key);
}

static bool fill(X509 *certificate, EVP_PKEY *key, const char *name)
{
    char names[200];
    snprintf(names, sizeof(names), "DNS:%s", name);
    return describe(certificate, key, name, certificate, 1) &&
           ASN1_TIME_set_string_X509(X509_getm_notBefore(certificate), BEGUN) &&
           ASN1_TIME_set_string_X509(X509_getm_notAfter(certificate), FOREVER) &&
           add_extension(certificate, certificate, NID_basic_constraints,
                         "critical,CA:TRUE,pathlen:0") &&
           add_extension(certificate, certificate, NID_key_usage,
                         "critical,digitalSignature,keyCertSign") &&
           add_extension(certificate, certificate, NID_ext_key_usage,
                         "serverAuth,clientAuth") &&
           add_extension(certificate, certificate, NID_subject_alt_name, names) &&
           X509_sign(certificate, key, NULL);
}

/* `names`: what it says of the client beside its name (subjectAltName); NULL: nothing. */
static bool fill_client(X509 *certificate, EVP_PKEY *key, const char *client, const char *names,
                        int64_t seconds, X509 *issuer, EVP_PKEY *issuer_key)
{
    char name[ub_common_name + 1]; /* a name may be longer; it is only for those who look */
    long serial;
    snprintf(name, sizeof(name), "%s", client);
    return getrandom(&serial, sizeof(serial), 0) == (ssize_t)sizeof(serial) &&
           describe(certificate, key, name, issuer, serial & LONG_MAX) &&
           X509_gmtime_adj(X509_getm_notBefore(certificate), -CLOCKS_DIFFER_S) &&
           X509_gmtime_adj(X509_getm_notAfter(certificate), (long)seconds) &&
           add_extension(certificate, issuer, NID_basic_constraints, "critical,CA:FALSE") &&
           add_extension(certificate, issuer, NID_key_usage, "critical,digitalSignature") &&
           add_extension(certificate, issuer, NID_ext_key_usage, "clientAuth") &&
           (!names || add_extension(certificate, issuer, NID_subject_alt_name, names)) &&
           X509_sign(certificate, issuer_key, NULL);
}

/* What was written into `memory`, in the arena. */
static const char *text_of(BIO *memory, struct arena *arena)
{
    char *bytes;
    long size = BIO_get_mem_data(memory, &bytes);
    return arena_printf(arena, "%.*s", (int)size, bytes);
}

static bool write_texts(X509 *certificate, EVP_PKEY *pair, struct arena *arena,
                        const char **text, const char **key)
{
    BIO *first = BIO_new(BIO_s_mem()), *second = BIO_new(BIO_s_secmem());
    bool ok = first && second && PEM_write_bio_X509(first, certificate) &&
              PEM_write_bio_PrivateKey(second, pair, NULL, NULL, 0, NULL, NULL);
    if (ok) {
        *text = text_of(first, arena);
        *key = text_of(second, arena);
    }
    BIO_free(first);
    BIO_free(second);
    return ok;
}

static EVP_PKEY *keys_of(const uint8_t seed[CERTIFICATE_SEED_BYTES])
{
    return EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, CERTIFICATE_SEED_BYTES);
}

/* The certificate of the seed, and its keys; NULL when the library fails. */
static X509 *make(const uint8_t seed[CERTIFICATE_SEED_BYTES], const char *name, EVP_PKEY **pair)
{
    X509 *made = X509_new();
    *pair = keys_of(seed);
    if (made && *pair && fill(made, *pair, name))
        return made;
    X509_free(made);
    return NULL;
}

bool certificate_make(const uint8_t seed[CERTIFICATE_SEED_BYTES], const char *name,
                      struct arena *arena, const char **certificate, const char **key,
                      struct error *err)
{
    EVP_PKEY *pair;
    X509 *made = make(seed, name, &pair);
    bool ok = (made && write_texts(made, pair, arena, certificate, key)) || library_failed(err);
    X509_free(made);
    EVP_PKEY_free(pair);
    return ok;
}

bool certificate_sign(const uint8_t seed[CERTIFICATE_SEED_BYTES], const char *name,
                      const char *client, int seconds, struct arena *arena,
                      const char **certificate, const char **key, struct error *err)
{
    EVP_PKEY *issuer_key, *pair = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    X509 *issuer = make(seed, name, &issuer_key), *made = X509_new();
    bool ok = (pair && issuer && made &&
               fill_client(made, pair, client, NULL, seconds, issuer, issuer_key) &&
               write_texts(made, pair, arena, certificate, key)) ||
              library_failed(err);
    X509_free(made);
    X509_free(issuer);
    EVP_PKEY_free(pair);
    EVP_PKEY_free(issuer_key);
    return ok;
}

/* --- for requests of others --- */

static BIO *text_open(const char *text)
{
    return BIO_new_mem_buf(text, (int)strnlen(text, PEM_BYTES_MAX));
}

/* The key that the request is of and signed with; owned, NULL: none. */
static EVP_PKEY *request_key(const char *text)
{
    BIO *memory = text_open(text);
    X509_REQ *request = memory ? PEM_read_bio_X509_REQ(memory, NULL, NULL, NULL) : NULL;
    EVP_PKEY *key = request ? X509_REQ_get_pubkey(request) : NULL;
    bool good = key && EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519 &&
                X509_REQ_verify(request, key) == 1;
    X509_REQ_free(request);
    BIO_free(memory);
    if (good)
        return key;
    ERR_clear_error();
    EVP_PKEY_free(key);
    return NULL;
}

bool certificate_answer(const uint8_t seed[CERTIFICATE_SEED_BYTES], const char *name,
                        const char *request, const char *client, int64_t mark, int64_t seconds,
                        struct arena *arena, const char **certificate, struct error *err)
{
    EVP_PKEY *pair = request_key(request);
    if (!pair)
        return fail(err, INVALID,
                    "this is no request for a certificate: PEM, PKCS #10, signed with its "
                    "Ed25519 key");
    const char *names =
        arena_printf(arena, "DNS:%s,URI:" MARK_URI "%lld", client, (long long)mark);
    EVP_PKEY *issuer_key;
    X509 *issuer = make(seed, name, &issuer_key), *made = X509_new();
    BIO *memory = BIO_new(BIO_s_mem());
    bool ok = (issuer && made && memory &&
               fill_client(made, pair, client, names, seconds, issuer, issuer_key) &&
               PEM_write_bio_X509(memory, made)) ||
              library_failed(err);
    if (ok)
        *certificate = text_of(memory, arena);
    BIO_free(memory);
    X509_free(made);
    X509_free(issuer);
    EVP_PKEY_free(pair);
    EVP_PKEY_free(issuer_key);
    return ok;
}

/* --- what certificates say --- */

/* Owned; NULL: it is none. */
static X509 *read_text(const char *text)
{
    BIO *memory = text_open(text);
    X509 *certificate = memory ? PEM_read_bio_X509(memory, NULL, NULL, NULL) : NULL;
    BIO_free(memory);
    ERR_clear_error();
    return certificate;
}

static void read_name(const GENERAL_NAME *entry, struct certificate_client *client)
{
    int kind;
    const ASN1_STRING *value = GENERAL_NAME_get0_value(entry, &kind);
    if (kind != GEN_DNS && kind != GEN_URI)
        return;
    char text[sizeof(client->name)];
    snprintf(text, sizeof(text), "%.*s", ASN1_STRING_length(value),
             (const char *)ASN1_STRING_get0_data(value));
    if (kind == GEN_DNS)
        memcpy(client->name, text, sizeof(text));
    else if (strncmp(text, MARK_URI, strlen(MARK_URI)) == 0)
        client->mark = strtoll(text + strlen(MARK_URI), NULL, 10);
}

static bool read_client(X509 *certificate, struct certificate_client *client)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    struct tm until;
    *client = (struct certificate_client){0};
    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++)
        read_name(sk_GENERAL_NAME_value(names, i), client);
    GENERAL_NAMES_free(names);
    if (!ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &until))
        return false;
    client->until_us = (int64_t)timegm(&until) * 1000000;
    return client->name[0] && client->mark;
}

bool certificate_read(const uint8_t seed[CERTIFICATE_SEED_BYTES], const char *text,
                      struct certificate_client *client, struct error *err)
{
    EVP_PKEY *issuer_key = keys_of(seed);
    if (!issuer_key)
        return library_failed(err);
    X509 *certificate = read_text(text);
    bool ok = certificate && X509_verify(certificate, issuer_key) == 1 &&
              X509_get_extended_key_usage(certificate) == XKU_SSL_CLIENT &&
              read_client(certificate, client);
    ERR_clear_error();
    X509_free(certificate);
    EVP_PKEY_free(issuer_key);
    return ok || fail(err, UNAUTHENTICATED,
                      "the certificate is not of this server's authority: join again with a "
                      "token (trainyard token create --join)");
}
