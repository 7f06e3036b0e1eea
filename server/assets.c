/* assets.c - looking up and sending files of the page. */

#include "server/assets.h"
#include "base/arena.h"
#include "server/reply.h"
#include "server/request.h"

/* Made from build/web/ by the Makefile: rows of struct asset. */
static const struct asset assets[] = {
#include "assets.inc"
};

static const char content_policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; "
    "font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

const struct asset *assets_find(const char *path)
{
    for (int i = 0; i < ARRAY_LEN(assets); i++)
        if (strcmp(assets[i].path, path) == 0)
            return &assets[i];
    return NULL;
}

static const char *content_type(const char *path)
{
    static const struct {
        const char *ending;
        const char *type;
    } types[] = {
        {".html", "text/html; charset=utf-8"},
        {".js", "text/javascript; charset=utf-8"},
        {".css", "text/css; charset=utf-8"},
        {".svg", "image/svg+xml"},
        {".json", "application/json"},
        {".png", "image/png"},
        {".ico", "image/x-icon"},
        {".woff2", "font/woff2"},
    };
    const char *dot = strrchr(path, '.');
    for (int i = 0; dot && i < ARRAY_LEN(types); i++)
        if (strcmp(types[i].ending, dot) == 0)
            return types[i].type;
    return "application/octet-stream";
}

/* The path belongs to the page: no file ending, and not the API's. */
static bool is_page(const char *path)
{
    return !strchr(strrchr(path, '/'), '.') && strncmp(path, "/api/", 5) != 0 &&
           strcmp(path, "/api") != 0;
}

bool assets_reply(struct request *req)
{
    if (strcmp(req->method, "GET") != 0 && strcmp(req->method, "HEAD") != 0)
        return false;
    const struct asset *asset = assets_find(req->url.path);
    if (!asset && is_page(req->url.path))
        asset = assets_find("/index.html");
    if (!asset)
        return false;
    bool hashed =
        strstr(asset->path, "/chunk-") != NULL; /* the name changes with the contents */
    reply_header(req, "Cache-Control",
                 hashed ? "public, max-age=31536000, immutable" : "no-cache");
    reply_header(req, "ETag", asset->etag);
    reply_header(req, "Vary", "Accept-Encoding");
    reply_header(req, "Content-Security-Policy", content_policy);
    reply_header(req, "Cross-Origin-Opener-Policy", "same-origin");
    const char *known = request_header(req, "If-None-Match");
    if (known && strcmp(known, asset->etag) == 0)
        return reply_bytes(req, 304, NULL, "", 0);
    const char *accepted = request_header(req, "Accept-Encoding");
    if (asset->gzip_size && accepted && strstr(accepted, "gzip")) {
        reply_header(req, "Content-Encoding", "gzip");
        return reply_bytes(req, 200, content_type(asset->path), asset->gzip, asset->gzip_size);
    }
    return reply_bytes(req, 200, content_type(asset->path), asset->bytes, asset->size);
}
