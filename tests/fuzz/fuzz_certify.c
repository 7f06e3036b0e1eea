/*
 * fuzz_certify.c - certificates, and requests for them, as nodes bring them: PEM texts, or the
 * bytes within; the first byte says what.
 *
 * A signature stops nearly all that is not right.  So some inputs are signed here, a request by
 * a key of its own and a certificate by the authority, and what is behind the signature is read
 * as well.
 */

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "scheduler/agent/pin.h"
#include "server/certificate.h"
#include "tests/fuzz/fuzz.h"

#define NAME "nodes.trainyard"
#define MARK 7

static const uint8_t seed[CERTIFICATE_SEED_BYTES] = "the authority of this target...";

/* PEM, in the arena. */
static const char *wrap(const char *kind, const uint8_t *bytes, size_t size,
                        struct arena *arena)
{
    BIO *memory = BIO_new(BIO_s_mem());
    char *text;
    FUZZ_CHECK(memory && PEM_write_bio(memory, kind, "", bytes, (long)size) > 0);
    long length = BIO_get_mem_data(memory, &text);
    const char *wrapped = arena_printf(arena, "%.*s", (int)length, text);
    BIO_free(memory);
    return wrapped;
}

static void read_certificate(const char *text)
{
    struct certificate_client client;
    struct error err = {0};
    char pin[PIN_BYTES];
    if (certificate_read(seed, text, &client, &err))
        FUZZ_CHECK(client.name[0] && client.mark);
    else
        FUZZ_CHECK(err.code == UNAUTHENTICATED && err.text[0]);
    if (!pin_of(text, pin, &err))
        FUZZ_CHECK(err.code == INVALID);
}

/* What is given for a request is a certificate of who asked. */
static bool answer_request(const char *text, struct arena *arena)
{
    struct certificate_client client;
    struct error err = {0};
    const char *certificate;
    if (!certificate_answer(seed, NAME, text, "n1", MARK, 3600, arena, &certificate, &err)) {
        FUZZ_CHECK(err.code == INVALID && err.text[0]);
        return false;
    }
    FUZZ_CHECK(certificate_read(seed, certificate, &client, &err));
    FUZZ_CHECK(strcmp(client.name, "n1") == 0 && client.mark == MARK);
    return true;
}

static void answer_signed(const uint8_t *bytes, size_t size, struct arena *arena)
{
    static EVP_PKEY *key;
    X509_REQ *request = d2i_X509_REQ(NULL, &bytes, (long)size);
    if (!key)
        key = EVP_PKEY_new_raw_private_key(
            EVP_PKEY_ED25519, NULL, (const uint8_t *)"the key of a node, 32 bytes long", 32);
    uint8_t *encoded = NULL;
    int encoded_size;
    FUZZ_CHECK(key);
    if (request && X509_REQ_set_pubkey(request, key) && X509_REQ_sign(request, key, NULL) &&
        (encoded_size = i2d_X509_REQ(request, &encoded)) > 0)
        answer_request(wrap(PEM_STRING_X509_REQ, encoded, (size_t)encoded_size, arena), arena);
    OPENSSL_free(encoded);
    X509_REQ_free(request);
}

static void read_signed(const uint8_t *bytes, size_t size, struct arena *arena)
{
    static EVP_PKEY *key;
    X509 *certificate = d2i_X509(NULL, &bytes, (long)size);
    if (!key)
        key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, sizeof(seed));
    uint8_t *encoded = NULL;
    int encoded_size;
    FUZZ_CHECK(key);
    if (certificate && X509_sign(certificate, key, NULL) &&
        (encoded_size = i2d_X509(certificate, &encoded)) > 0)
        read_certificate(wrap(PEM_STRING_X509, encoded, (size_t)encoded_size, arena));
    OPENSSL_free(encoded);
    X509_free(certificate);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct arena *arena = arena_new();
    int kind = *data++ % 5;
    size--;
    if (kind == 0) {
        const char *text = arena_printf(arena, "%.*s", (int)size, (const char *)data);
        answer_request(text, arena);
        read_certificate(text);
    } else if (kind == 1) {
        answer_request(wrap(PEM_STRING_X509_REQ, data, size, arena), arena);
    } else if (kind == 2) {
        read_certificate(wrap(PEM_STRING_X509, data, size, arena));
    } else if (kind == 3) {
        answer_signed(data, size, arena);
    } else {
        read_signed(data, size, arena);
    }
    arena_free(arena);
    return 0;
}
