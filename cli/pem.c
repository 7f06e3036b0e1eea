/* pem.c - reads PEM files. */

#include "cli/pem.h"

#include <errno.h>

#include "base/alloc.h"

#define PEM_BYTES_MAX (256 << 10)

/* The text of a file that holds `what` ("CERTIFICATE-----"); owned. */
static char *pem_text(const char *option, const char *name, const char *path, const char *what,
                      struct error *err)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return fail_null(err, NOT_FOUND, "--%s%s: cannot read '%s': %s", option, name, path,
                         strerror(errno));
    char *text = alloc_array(PEM_BYTES_MAX + 1, 1);
    size_t size = fread(text, 1, PEM_BYTES_MAX + 1, file);
    bool broken = ferror(file);
    fclose(file);
    bool fits = size <= PEM_BYTES_MAX;
    if (fits)
        text[size] = 0;
    if (!broken && fits && strstr(text, "-----BEGIN ") && strstr(text, what))
        return text;
    free(text);
    if (broken || fits)
        return fail_null(err, INVALID, "--%s%s: '%s' is no PEM file with a %.*s", option, name,
                         path, (int)strcspn(what, "-"), what);
    return fail_null(err, INVALID, "--%s%s: '%s' has more than %d bytes", option, name, path,
                     PEM_BYTES_MAX);
}

static bool read_one(const struct pem_paths *paths, const char *name, const char *path,
                     const char *what, const char **out, struct error *err)
{
    if (path)
        *out = pem_text(paths->option, name, path, what, err);
    return !path || *out;
}

bool pem_read(const struct pem_paths *paths, struct pem *out, struct error *err)
{
    *out = (struct pem){0};
    if (!paths->certificate != !paths->key)
        return fail(err, INVALID, "--%scert and --%skey belong together: give both",
                    paths->option, paths->option);
    bool ok = read_one(paths, "ca", paths->ca, "CERTIFICATE-----", &out->tls.ca, err) &&
              read_one(paths, "cert", paths->certificate, "CERTIFICATE-----",
                       &out->tls.certificate, err) &&
              read_one(paths, "key", paths->key, "PRIVATE KEY-----", &out->tls.key, err);
    if (!ok)
        pem_release(out);
    return ok;
}

void pem_release(struct pem *pem)
{
    free((char *)pem->tls.ca);
    free((char *)pem->tls.certificate);
    free((char *)pem->tls.key);
    *pem = (struct pem){0};
}

const struct rpc_tls *pem_tls(const struct pem *pem)
{
    return pem->tls.ca || pem->tls.certificate ? &pem->tls : NULL;
}
