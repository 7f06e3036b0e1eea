/* certificate.c - see certificate.h. */

#include "task/certificate.h"
#include "base/error.h"
#include "base/limits.h"
#include "runtime/io/file.h"

/* Both are PEM in one text: each is found by its own line. */
bool certificate_read(const char *path, struct certificate *out, struct error *err)
{
    if (!path)
        return true;
    if (!file_read(path, LIMIT_NAME_BYTES * 128, &out->pem, err))
        return false;
    const char *text = str_text(&out->pem);
    if (!strstr(text, "CERTIFICATE-----") || !strstr(text, "PRIVATE KEY-----"))
        return fail(err, INVALID, "%s has no certificate with its key", path);
    out->tls =
        (struct rpc_tls){.ca = text, .certificate = text, .key = text, .name = RPC_TASKS_NAME};
    return true;
}

void certificate_release(struct certificate *certificate)
{
    str_release(&certificate->pem);
}

const struct rpc_tls *certificate_tls(const struct certificate *certificate)
{
    return certificate->tls.certificate ? &certificate->tls : NULL;
}
