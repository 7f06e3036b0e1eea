/* reply.c - replies, and the one table between error codes and HTTP. */

#include <ctype.h>
#include <zlib.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "server/reply.h"
#include "server/request.h"

struct reply_code {
    enum error_code code;
    int status;
    const char *title;
    const char *hint;
};

static const struct reply_code reply_codes[] = {
    {OK, 200, "OK", ""},
    {CANCELLED, 503, "The request was cancelled", "Send it again."},
    {UNKNOWN, 500, "Unknown error", "The server's log has the request id."},
    {INVALID, 400, "The request is not valid",
     "Correct the field that is named and send it again."},
    {DEADLINE, 504, "It took too long", "Try again in a moment."},
    {NOT_FOUND, 404, "There is no such thing",
     "List what there is with GET on the collection."},
    {EXISTS, 409, "It exists already", ""},
    {DENIED, 403, "Your role does not allow this",
     "Ask an administrator for a token with a higher role."},
    {EXHAUSTED, 507, "A limit or the disk is full",
     "Free some space, or wait until there is less in the queue."},
    {PRECONDITION, 409, "Not possible in the present state", "Look at the state first."},
    {ABORTED, 409, "Something changed in between", "Read it again and repeat the request."},
    {OUT_OF_RANGE, 400, "Out of range", ""},
    {UNIMPLEMENTED, 501, "This server cannot do that", ""},
    {INTERNAL, 500, "A fault in the server", "The server's log has the request id."},
    {UNAVAILABLE, 503, "Not available just now", "Try again in a moment."},
    {DATA_LOSS, 500, "Stored data is damaged", "Restore the folder from a backup."},
    {UNAUTHENTICATED, 401, "You are not signed in",
     "Open a login link (`trainyard login --dir DIR` prints one), or send `Authorization: "
     "Bearer TOKEN` (`trainyard token create --dir DIR`)."},
};

static const struct reply_code *code_row(int code)
{
    for (int i = 0; i < ARRAY_LEN(reply_codes); i++)
        if ((int)reply_codes[i].code == code)
            return &reply_codes[i];
    return &reply_codes[2];
}

int reply_status(int code)
{
    return code_row(code)->status;
}

const char *reply_hint(int code)
{
    return code_row(code)->hint;
}

const char *reply_status_text(int status)
{
    static const struct {
        int status;
        const char *text;
    } texts[] = {
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {204, "No Content"},
        {206, "Partial Content"},
        {303, "See Other"},
        {304, "Not Modified"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {409, "Conflict"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {415, "Unsupported Media Type"},
        {416, "Range Not Satisfiable"},
        {421, "Misdirected Request"},
        {422, "Unprocessable Content"},
        {426, "Upgrade Required"},
        {429, "Too Many Requests"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {507, "Insufficient Storage"},
    };
    for (int i = 0; i < ARRAY_LEN(texts); i++)
        if (texts[i].status == status)
            return texts[i].text;
    return "";
}

static void drop_bytes(struct reply *reply)
{
    if (reply->owned)
        free((void *)reply->bytes);
    reply->bytes = NULL;
    reply->size = 0;
    reply->owned = false;
}

bool reply_bytes(struct request *req, int status, const char *type, const void *bytes,
                 size_t size)
{
    drop_bytes(&req->reply);
    req->reply.status = status;
    req->reply.type = type;
    req->reply.bytes = bytes;
    req->reply.size = size;
    return true;
}

bool reply_owned(struct request *req, int status, const char *type, char *bytes, size_t size)
{
    reply_bytes(req, status, type, bytes, size);
    req->reply.owned = true;
    return true;
}

bool reply_file(struct request *req, int status, const char *type, int file, int64_t first,
                size_t size)
{
    reply_bytes(req, status, type, NULL, size);
    req->reply.is_file = true;
    req->reply.file = file;
    req->reply.file_first = first;
    return true;
}

bool reply_json(struct request *req, int status, json_t *json, struct error *err)
{
    char *text = json ? json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(json);
    if (!text)
        return fail(err, INTERNAL, "the answer could not be written as JSON");
    return reply_owned(req, status, "application/json", text, strlen(text));
}

void reply_header(struct request *req, const char *name, const char *value)
{
    assert(req->reply.headers_count < REPLY_HEADERS_MAX);
    req->reply.headers[req->reply.headers_count++] = (struct url_pair){name, value};
}

/* "gzip, br", and not "gzip;q=0". */
static bool takes_gzip(const struct request *req)
{
    const char *accepted = request_header(req, "Accept-Encoding");
    const char *found = accepted ? strstr(accepted, "gzip") : NULL;
    return found && strncmp(found, "gzip;q=0", 8) != 0;
}

void reply_compress(struct request *req)
{
    struct reply *reply = &req->reply;
    bool text = reply->type && (strcmp(reply->type, "application/json") == 0 ||
                                strncmp(reply->type, "text/plain", 10) == 0);
    if (!text || !reply->owned || reply->size < REPLY_GZIP_BYTES || req->local ||
        !takes_gzip(req))
        return;
    z_stream z = {.next_in = (void *)reply->bytes, .avail_in = (uInt)reply->size};
    if (reply->size > UINT32_MAX || deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, 15 + 16, 8, 0))
        return; /* it goes as it is */
    size_t room = deflateBound(&z, (uLong)reply->size);
    char *bytes = malloc(room);
    z.next_out = (void *)bytes;
    z.avail_out = (uInt)room;
    bool ok = bytes && room <= UINT32_MAX && deflate(&z, Z_FINISH) == Z_STREAM_END;
    size_t size = z.total_out;
    deflateEnd(&z);
    if (!ok) {
        free(bytes);
        return;
    }
    reply_owned(req, reply->status, reply->type, bytes, size);
    reply_header(req, "Content-Encoding", "gzip");
    reply_header(req, "Vary", "Accept-Encoding");
}

/* "/errors/invalid-argument": the page that explains the code. */
static const char *type_url(struct request *req, enum error_code code)
{
    char *url = arena_printf(req->arena, "/errors/%s", error_code_name(code));
    for (char *c = url + strlen("/errors/"); *c; c++)
        *c = *c == '_' ? '-' : (char)tolower((unsigned char)*c);
    return url;
}

static void add_member(struct str *out, const char *name, const char *text)
{
    str_printf(out, "%s\"%s\":", out->size > 1 ? "," : "", name);
    str_add_json(out, text, strlen(text)); /* which mends what is no UTF-8 */
}

/* Where the status says more than the code; NULL where it does not. */
static const char *status_hint(int status)
{
    switch (status) {
    case 413:
        return "Send less at once.";
    case 429:
        return "Send fewer requests, and the next after the time in Retry-After.";
    default:
        return NULL;
    }
}

void reply_problem(struct request *req, int status, const struct error *err)
{
    const struct reply_code *row = code_row(err->code);
    if (!status)
        status = row->status;
    struct str out = {0};
    str_add(&out, "{");
    add_member(&out, "type", type_url(req, err->code));
    add_member(&out, "title", row->title);
    str_printf(&out, ",\"status\":%d", status);
    add_member(&out, "detail", err->text);
    add_member(&out, "instance", req->url.path ? req->url.path : "");
    add_member(&out, "code", error_code_name(err->code));
    add_member(&out, "request_id", req->id);
    const char *hint = status_hint(status) ? status_hint(status) : row->hint;
    if (*hint)
        add_member(&out, "hint", hint);
    if (*err->pointer) {
        str_add(&out, ",\"errors\":[{\"pointer\":");
        str_add_json(&out, err->pointer, strlen(err->pointer));
        add_member(&out, "detail", err->text);
        str_add(&out, "}]");
    }
    str_add(&out, "}");

    if (req->reply.stream) {
        req->reply.stream->free(req->reply.stream->self);
        req->reply.stream = NULL;
    }
    req->reply.websocket = false;
    size_t size = out.size;
    reply_owned(req, status, "application/problem+json", str_take(&out), size);
    if (status == 401)
        reply_header(req, "WWW-Authenticate", "Bearer realm=\"trainyard\"");
    if (status == 429 || status == 503)
        reply_header(req, "Retry-After", "1");
}
