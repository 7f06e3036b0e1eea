/* pin.c - see pin.h. */

#include <errno.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sodium.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "scheduler/agent/pin.h"

#define WAIT_S 5 /* for each step of the handshake */

static bool pin_of_x509(const X509 *certificate, char pin[PIN_BYTES])
{
    uint8_t hash[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    if (!certificate || X509_digest(certificate, EVP_sha256(), hash, &size) != 1)
        return false;
    sodium_bin2base64(pin, PIN_BYTES, hash, size, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    return true;
}

bool pin_of(const char *text, char pin[PIN_BYTES], struct error *err)
{
    BIO *memory = BIO_new_mem_buf(text, -1);
    X509 *certificate = memory ? PEM_read_bio_X509(memory, NULL, NULL, NULL) : NULL;
    bool ok = pin_of_x509(certificate, pin);
    X509_free(certificate);
    BIO_free(memory);
    ERR_clear_error();
    return ok || fail(err, INVALID, "this is no certificate");
}

/* A connected socket whose waits end; -1. */
static int connect_to(const char *server, struct error *err)
{
    const char *colon = strrchr(server, ':');
    if (!colon)
        return fail(err, INVALID, "'%s' is no address: HOST:PORT is needed", server) - 1;
    char *host = alloc_printf("%.*s", (int)(colon - server), server);
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC};
    struct addrinfo *found = NULL;
    const struct timeval wait = {WAIT_S, 0};
    int fd = -1;
    int failed = getaddrinfo(host, colon + 1, &hints, &found);
    for (struct addrinfo *at = failed ? NULL : found; at && fd < 0; at = at->ai_next) {
        fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, 0);
        if (fd < 0)
            break;
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)); /* of connect() too */
        if (connect(fd, at->ai_addr, at->ai_addrlen) == 0)
            break;
        close(fd);
        fd = -1;
    }
    if (fd < 0)
        fail(err, UNAVAILABLE, "cannot reach %s: %s", server,
             failed ? gai_strerror(failed) : strerror(errno));
    if (found)
        freeaddrinfo(found);
    free(host);
    return fd;
}

/* Of what the other side shows, the certificate with this pin: PEM, owned; NULL. */
static char *find_pinned(SSL *ssl, const char *pin)
{
    STACK_OF(X509) *chain = SSL_get_peer_cert_chain(ssl); /* its own is the first */
    for (int i = 0; i < sk_X509_num(chain); i++) {
        char shown[PIN_BYTES];
        char *bytes;
        X509 *certificate = sk_X509_value(chain, i);
        if (!pin_of_x509(certificate, shown) || strcmp(shown, pin) != 0)
            continue;
        BIO *memory = BIO_new(BIO_s_mem());
        bool ok = memory && PEM_write_bio_X509(memory, certificate);
        long size = ok ? BIO_get_mem_data(memory, &bytes) : 0;
        char *text = ok ? alloc_printf("%.*s", (int)size, bytes) : NULL;
        BIO_free(memory);
        return text;
    }
    return NULL;
}

/* Nothing is believed of who answers but that it shows this certificate; that it has its key
 * shows when the certificate is what a connection trusts. */
static char *ask(int fd, const char *server, const char *pin, struct error *err)
{
    static const unsigned char protocol[] = "\x02h2";
    char *text = NULL;
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *ssl = context ? SSL_new(context) : NULL;
    bool shaken = ssl && SSL_set_min_proto_version(ssl, TLS1_2_VERSION) &&
                  SSL_set_alpn_protos(ssl, protocol, sizeof(protocol) - 1) == 0 &&
                  SSL_set_fd(ssl, fd) && SSL_connect(ssl) == 1;
    if (!shaken)
        fail(err, UNAVAILABLE, "%s does not speak TLS", server);
    else if (!(text = find_pinned(ssl, pin)))
        fail(err, DENIED,
             "%s does not show the certificate that the token names: it is another server, or "
             "one with a certificate of its own, which needs --ca",
             server);
    ERR_clear_error();
    SSL_free(ssl);
    SSL_CTX_free(context);
    return text;
}

char *pin_fetch(const char *server, const char *pin, struct error *err)
{
    int fd = connect_to(server, err);
    if (fd < 0)
        return NULL;
    char *text = ask(fd, server, pin, err);
    close(fd);
    return text;
}
