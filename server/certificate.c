/* certificate.c - see certificate.h. */

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/arena.h"
#include "base/error.h"
#include "server/certificate.h"

/* RFC 5280 4.1.2.5: no end that is known. */
#define FOREVER "99991231235959Z"
#define BEGUN "20000101000000Z"

static bool library_failed(struct error *err)
{
    char text[200] = "unknown reason";
    unsigned long code = ERR_peek_last_error();
    if (code)
        ERR_error_string_n(code, text, sizeof(text));
    ERR_clear_error();
    return fail(err, INTERNAL, "cannot make a certificate: %s", text);
}

static bool add_extension(X509 *certificate, int kind, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, certificate, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, kind, value);
    bool ok = extension && X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
    return ok;
}

static bool fill(X509 *certificate, EVP_PKEY *key, const char *name)
{
    char names[200];
    X509_NAME *subject = X509_get_subject_name(certificate);
    snprintf(names, sizeof(names), "DNS:%s", name);
    return X509_set_version(certificate, X509_VERSION_3) &&
           ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1) &&
           ASN1_TIME_set_string_X509(X509_getm_notBefore(certificate), BEGUN) &&
           ASN1_TIME_set_string_X509(X509_getm_notAfter(certificate), FOREVER) &&
           X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const uint8_t *)name, -1,
                                      -1, 0) &&
           X509_set_issuer_name(certificate, subject) && X509_set_pubkey(certificate, key) &&
           add_extension(certificate, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
           add_extension(certificate, NID_key_usage, "critical,digitalSignature,keyCertSign") &&
           add_extension(certificate, NID_ext_key_usage, "serverAuth,clientAuth") &&
           add_extension(certificate, NID_subject_alt_name, names) &&
           X509_sign(certificate, key, NULL);
}

/* What was written into `memory`, in the arena. */
static const char *text_of(BIO *memory, struct arena *arena)
{
    char *bytes;
    long size = BIO_get_mem_data(memory, &bytes);
    return arena_printf(arena, "%.*s", (int)size, bytes);
}

bool certificate_make(const uint8_t seed[CERTIFICATE_SEED_BYTES], const char *name,
                      struct arena *arena, const char **certificate, const char **key,
                      struct error *err)
{
    EVP_PKEY *pair =
        EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, CERTIFICATE_SEED_BYTES);
    X509 *made = X509_new();
    BIO *first = BIO_new(BIO_s_mem()), *second = BIO_new(BIO_s_secmem());
    bool ok = pair && made && first && second && fill(made, pair, name) &&
              PEM_write_bio_X509(first, made) &&
              PEM_write_bio_PrivateKey(second, pair, NULL, NULL, 0, NULL, NULL);
    if (ok) {
        *certificate = text_of(first, arena);
        *key = text_of(second, arena);
    } else {
        library_failed(err);
    }
    BIO_free(first);
    BIO_free(second);
    X509_free(made);
    EVP_PKEY_free(pair);
    return ok;
}
