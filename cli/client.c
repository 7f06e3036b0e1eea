/* client.c - libcurl, over TCP or DIR/control.sock. */

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "cli/client.h"

#define CLIENT_TIMEOUT_S 30
#define CLIENT_RETRY_US 500000
#define CLIENT_SILENCE_S 40 /* a stream says something every 15 s */

struct client {
    CURL *curl;
    char *url; /* "http://127.0.0.1:7070" */
    char *name;
    char *socket_path; /* NULL: TCP */
    char *bearer;      /* the header, or NULL */
    long timeout_s;    /* of one request */
    char problem[CURL_ERROR_SIZE];
};

/* --- which server --- */

static char *login_path(void)
{
    const char *config = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    if (config && *config)
        return alloc_printf("%s/trainyard/login", config);
    return alloc_printf("%s/.config/trainyard/login", home ? home : "");
}

static struct client *client_new(const char *url, const char *token, const char *socket_path)
{
    struct client *client = alloc_bytes(sizeof(*client));
    client->timeout_s = CLIENT_TIMEOUT_S;
    client->curl = curl_easy_init();
    assert(client->curl);
    size_t size = strlen(url);
    while (size && url[size - 1] == '/')
        size--;
    client->url = alloc_text_n(url, size);
    client->name = alloc_text(socket_path ? socket_path : client->url);
    client->socket_path = socket_path ? alloc_text(socket_path) : NULL;
    client->bearer = token ? alloc_printf("Authorization: Bearer %s", token) : NULL;
    return client;
}

static struct client *open_folder(const char *folder, struct error *err)
{
    char *path = alloc_printf("%s/control.sock", folder);
    struct client *client = NULL;
    if (access(path, F_OK) == 0)
        client = client_new("http://localhost", NULL, path);
    else
        fail(err, UNAVAILABLE, "no server runs on %s; start it with: trainyard serve --dir %s",
             folder, folder);
    free(path);
    return client;
}

struct client *client_open_url(const char *url, const char *token, struct error *err)
{
    if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
        return fail_null(err, INVALID,
                         "'%s' is no address of a server; it looks like http://127.0.0.1:7070",
                         url);
    return client_new(url, token, NULL);
}

static struct client *open_kept(struct error *err)
{
    char *path = login_path();
    json_t *kept = json_load_file(path, 0, NULL);
    free(path);
    const char *url = json_string_value(json_object_get(kept, "url"));
    const char *token = json_string_value(json_object_get(kept, "token"));
    struct client *client = NULL;
    if (url)
        client = client_open_url(url, token, err);
    else
        fail(err, INVALID,
             "which server? Give --dir DIR on its machine, or set TRAINYARD_URL and "
             "TRAINYARD_TOKEN, or sign "
             "in once with: trainyard login URL");
    json_decref(kept);
    return client;
}

struct client *client_open(const char *folder, struct error *err)
{
    const char *url = getenv("TRAINYARD_URL");
    const char *dir = getenv("TRAINYARD_DIR");
    if (folder)
        return open_folder(folder, err);
    if (url && *url)
        return client_open_url(url, getenv("TRAINYARD_TOKEN"), err);
    if (dir && *dir)
        return open_folder(dir, err);
    return open_kept(err);
}

void client_close(struct client *client)
{
    if (!client)
        return;
    curl_easy_cleanup(client->curl);
    free(client->url);
    free(client->name);
    free(client->socket_path);
    free(client->bearer);
    free(client);
}

const char *client_name(const struct client *client)
{
    return client->name;
}

bool client_is_local(const struct client *client)
{
    return client->socket_path != NULL;
}

bool client_keep(const char *url, const char *token, struct error *err)
{
    char *path = login_path();
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(path, 0700);
        *slash = '/';
    }
    json_t *json = json_pack("{s:s, s:s}", "url", url, "token", token);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && json_dumpfd(json, fd, JSON_INDENT(2)) == 0;
    if (fd >= 0)
        ok = close(fd) == 0 && ok;
    if (!ok)
        error_errno(err, UNAVAILABLE, "cannot write %s", path);
    json_decref(json);
    free(path);
    return ok;
}

/* --- one request --- */

static size_t on_bytes(char *bytes, size_t size, size_t count, void *into)
{
    str_add_bytes(into, bytes, size * count);
    return size * count;
}

static size_t on_header(char *bytes, size_t size, size_t count, void *into)
{
    static const char name[] = "X-Next-Offset:";
    int64_t *offset = into;
    if (size * count > sizeof(name) && strncasecmp(bytes, name, sizeof(name) - 1) == 0)
        *offset = strtoll(bytes + sizeof(name) - 1, NULL, 10);
    return size * count;
}

struct body { /* of a request */
    const void *bytes;
    size_t size;
    const char *type;
};

static struct curl_slist *headers_of(const struct client *client, const struct body *body,
                                     const char *key, const char *accept)
{
    struct curl_slist *headers = NULL;
    char line[300];
    if (client->bearer)
        headers = curl_slist_append(headers, client->bearer);
    if (body) {
        snprintf(line, sizeof(line), "Content-Type: %s", body->type);
        headers = curl_slist_append(headers, line);
    }
    if (key) {
        snprintf(line, sizeof(line), "Idempotency-Key: %s", key);
        headers = curl_slist_append(headers, line);
    }
    snprintf(line, sizeof(line), "Accept: %s", accept);
    headers = curl_slist_append(headers, line);
    return curl_slist_append(headers, "Expect:");
}

static void prepare(struct client *client, CURL *curl, const char *method, const char *url,
                    struct curl_slist *headers)
{
    curl_easy_reset(curl);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, client->problem);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    const char *authority = getenv("TRAINYARD_CA");
    if (authority && *authority)
        curl_easy_setopt(curl, CURLOPT_CAINFO, authority);
    curl_easy_setopt(curl, CURLOPT_NOPROXY, "localhost,127.0.0.1");
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_bytes);
    if (client->socket_path)
        curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, client->socket_path);
}

static bool unreachable(const struct client *client, CURLcode code, struct error *err)
{
    return fail(err, UNAVAILABLE, "the server at %s does not answer: %s", client->name,
                client->problem[0] ? client->problem : curl_easy_strerror(code));
}

static enum error_code code_of(const char *name, long status)
{
    for (int code = 1; name && code <= UNAUTHENTICATED; code++)
        if (strcmp(error_code_name((enum error_code)code), name) == 0)
            return (enum error_code)code;
    return status == 401 ? UNAUTHENTICATED : status == 404 ? NOT_FOUND : UNKNOWN;
}

/* What the server said, as an error of ours. */
static bool problem_of(const struct str *answer, long status, struct error *err)
{
    json_t *json = json_loadb(str_text(answer), answer->size, 0, NULL);
    const char *detail = json_string_value(json_object_get(json, "detail"));
    const char *hint = json_string_value(json_object_get(json, "hint"));
    const char *pointer = json_string_value(
        json_object_get(json_array_get(json_object_get(json, "errors"), 0), "pointer"));
    enum error_code code = code_of(json_string_value(json_object_get(json, "code")), status);
    bool show_hint = hint && code == UNAUTHENTICATED;
    error_at(err, pointer ? pointer : "", code, "%s%s%s",
             detail ? detail : "the server refused the request", show_hint ? ". " : "",
             show_hint ? hint : "");
    json_decref(json);
    return false;
}

/* Sends a request and reads the whole answer. */
static bool exchange(struct client *client, const char *method, const char *path,
                     const struct body *body, const char *key, const char *accept,
                     struct str *answer, int64_t *next_offset, struct error *err)
{
    char *url = alloc_printf("%s%s", client->url, path);
    struct curl_slist *headers = headers_of(client, body, key, accept);
    prepare(client, client->curl, method, url, headers);
    curl_easy_setopt(client->curl, CURLOPT_TIMEOUT, client->timeout_s);
    curl_easy_setopt(client->curl, CURLOPT_WRITEDATA, answer);
    if (next_offset) {
        *next_offset = -1;
        curl_easy_setopt(client->curl, CURLOPT_HEADERFUNCTION, on_header);
        curl_easy_setopt(client->curl, CURLOPT_HEADERDATA, next_offset);
    }
    if (body) {
        curl_easy_setopt(client->curl, CURLOPT_POSTFIELDS, body->bytes);
        curl_easy_setopt(client->curl, CURLOPT_POSTFIELDSIZE, (long)body->size);
    }
    long status = 0;
    CURLcode code = curl_easy_perform(client->curl);
    curl_easy_getinfo(client->curl, CURLINFO_RESPONSE_CODE, &status);
    curl_slist_free_all(headers);
    free(url);
    if (code != CURLE_OK)
        return unreachable(client, code, err);
    return status < 400 || problem_of(answer, status, err);
}

static json_t *exchange_json(struct client *client, const char *method, const char *path,
                             const struct body *body, const char *key, struct error *err)
{
    struct str answer = {0};
    json_t *json = NULL;
    if (exchange(client, method, path, body, key, "application/json", &answer, NULL, err)) {
        json = answer.size ? json_loadb(answer.data, answer.size, 0, NULL) : json_null();
        if (!json)
            fail(err, DATA_LOSS, "the answer of %s is no JSON", client->name);
    }
    str_release(&answer);
    return json;
}

json_t *client_json(struct client *client, const char *method, const char *path,
                    const char *body, const char *key, struct error *err)
{
    struct body json = {body, body ? strlen(body) : 0, "application/json"};
    return exchange_json(client, method, path, body ? &json : NULL, key, err);
}

void client_patience(struct client *client, int seconds)
{
    client->timeout_s = seconds;
}

json_t *client_put(struct client *client, const char *path, const void *bytes, size_t size,
                   struct error *err)
{
    struct body body = {bytes, size, "application/octet-stream"};
    return exchange_json(client, "PUT", path, &body, NULL, err);
}

bool client_text(struct client *client, const char *path, struct str *out, int64_t *next_offset,
                 struct error *err)
{
    return exchange(client, "GET", path, NULL, NULL, "text/plain", out, next_offset, err);
}

/* --- a file --- */

struct download {
    CURL *curl;
    int fd;
    int64_t left; /* that are to come */
    int error_number;
    struct str problem; /* what comes in place of the file */
};

static size_t on_piece(char *bytes, size_t one, size_t size, void *argument)
{
    struct download *download = argument;
    long status = 0;
    curl_easy_getinfo(download->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status >= 400) {
        if (download->problem.size < 65536)
            str_add_bytes(&download->problem, bytes, one * size);
        return one * size;
    }
    download->left -= (int64_t)size;
    for (size_t at = 0; download->left >= 0 && at < size;) {
        ssize_t count = write(download->fd, bytes + at, size - at);
        if (count < 0) {
            download->error_number = errno;
            return 0;
        }
        at += (size_t)count;
    }
    return download->left >= 0 ? one * size : 0;
}

static bool receive(struct client *client, const char *path, const char *part,
                    struct download *download, struct error *err)
{
    int64_t have = lseek(download->fd, 0, SEEK_END);
    struct body *none = NULL;
    download->left -= have;
    if (download->left <= 0)
        return true;
    char *url = alloc_printf("%s%s", client->url, path);
    struct curl_slist *headers = headers_of(client, none, NULL, "application/octet-stream");
    prepare(client, client->curl, "GET", url, headers);
    curl_easy_setopt(client->curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(client->curl, CURLOPT_LOW_SPEED_TIME, client->timeout_s);
    curl_easy_setopt(client->curl, CURLOPT_RESUME_FROM_LARGE, (curl_off_t)have);
    curl_easy_setopt(client->curl, CURLOPT_WRITEFUNCTION, on_piece);
    curl_easy_setopt(client->curl, CURLOPT_WRITEDATA, download);
    long status = 0;
    CURLcode code = curl_easy_perform(client->curl);
    curl_easy_getinfo(client->curl, CURLINFO_RESPONSE_CODE, &status);
    curl_slist_free_all(headers);
    free(url);
    if (status >= 400)
        return problem_of(&download->problem, status, err);
    errno = download->error_number;
    if (errno)
        return error_errno(err, errno == ENOSPC ? EXHAUSTED : UNAVAILABLE, "cannot write %s",
                           part);
    return code == CURLE_OK || download->left < 0 || unreachable(client, code, err);
}

bool client_download(struct client *client, const char *path, const char *to, int64_t size,
                     struct error *err)
{
    char *part = alloc_printf("%s.part", to);
    struct download download = {.curl = client->curl, .left = size};
    download.fd = open(part, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    bool ok = download.fd >= 0 || error_errno(err, UNAVAILABLE, "cannot write %s", part);
    ok = ok && receive(client, path, part, &download, err);
    if (ok && download.left) {
        ok = fail(err, DATA_LOSS, "%s: %lld bytes %s than the server has; remove it", part,
                  (long long)llabs(download.left), download.left < 0 ? "more" : "fewer");
    }
    if (download.fd >= 0 && close(download.fd) && ok)
        ok = error_errno(err, UNAVAILABLE, "cannot write %s", part);
    if (ok && rename(part, to))
        ok = error_errno(err, UNAVAILABLE, "cannot rename %s", part);
    str_release(&download.problem);
    free(part);
    return ok;
}

/* --- server-sent events --- */

struct follow {
    struct client *client;
    CURL *curl; /* of its own: the events may ask for more */
    const struct client_follower *follower;
    struct str line;
    char topic[40];
    char position[200]; /* the last id: where to go on */
    bool any;           /* something has come on this connection */
    bool done;          /* the follower has had enough */
};

static void take_line(struct follow *follow, const char *line)
{
    if (strncmp(line, "id: ", 4) == 0)
        snprintf(follow->position, sizeof(follow->position), "%s", line + 4);
    else if (strncmp(line, "event: ", 7) == 0)
        snprintf(follow->topic, sizeof(follow->topic), "%s", line + 7);
    else if (strncmp(line, "data: ", 6) == 0) {
        json_t *event = json_loads(line + 6, 0, NULL);
        if (event && !follow->follower->event(follow->follower->self, follow->topic, event))
            follow->done = true;
        json_decref(event);
    }
}

static size_t on_stream(char *bytes, size_t size, size_t count, void *argument)
{
    struct follow *follow = argument;
    long status = 0;
    curl_easy_getinfo(follow->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status >= 400) {
        str_add_bytes(&follow->line, bytes, size * count);
        return size * count;
    }
    if (!follow->any && follow->follower->lost)
        follow->follower->lost(follow->follower->self, false);
    follow->any = true;
    for (size_t i = 0; i < size * count && !follow->done; i++) {
        if (bytes[i] != '\n') {
            str_add_char(&follow->line, bytes[i]);
            continue;
        }
        take_line(follow, str_text(&follow->line));
        str_clear(&follow->line);
    }
    return follow->done ? 0 : size * count;
}

static int on_progress(void *argument, curl_off_t total, curl_off_t now, curl_off_t up_total,
                       curl_off_t up_now)
{
    const struct follow *follow = argument;
    (void)total, (void)now, (void)up_total, (void)up_now;
    follow->follower->tick(follow->follower->self);
    return 0;
}

/* One connection, until it breaks or is not wanted any more.  False: a problem that will not go
 * away. */
static bool follow_once(struct follow *follow, const char *url, struct error *err)
{
    struct client *client = follow->client;
    struct curl_slist *headers = headers_of(client, NULL, NULL, "text/event-stream");
    if (*follow->position) {
        char line[300];
        snprintf(line, sizeof(line), "Last-Event-ID: %s", follow->position);
        headers = curl_slist_append(headers, line);
    }
    follow->any = false;
    str_clear(&follow->line);
    prepare(client, follow->curl, "GET", url, headers);
    curl_easy_setopt(follow->curl, CURLOPT_WRITEFUNCTION, on_stream);
    curl_easy_setopt(follow->curl, CURLOPT_WRITEDATA, follow);
    curl_easy_setopt(follow->curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(follow->curl, CURLOPT_LOW_SPEED_TIME, (long)CLIENT_SILENCE_S);
    curl_easy_setopt(follow->curl, CURLOPT_CONNECTTIMEOUT, 5L);
    if (follow->follower->tick) {
        curl_easy_setopt(follow->curl, CURLOPT_NOPROGRESS, 0L);
        curl_easy_setopt(follow->curl, CURLOPT_XFERINFOFUNCTION, on_progress);
        curl_easy_setopt(follow->curl, CURLOPT_XFERINFODATA, follow);
    }
    curl_easy_perform(follow->curl);
    long status = 0;
    curl_easy_getinfo(follow->curl, CURLINFO_RESPONSE_CODE, &status);
    curl_slist_free_all(headers);
    if (status >= 400 && status < 500)
        return problem_of(&follow->line, status, err);
    return true;
}

bool client_follow(struct client *client, const char *path,
                   const struct client_follower *follower, struct error *err)
{
    struct follow follow = {.client = client, .follower = follower, .curl = curl_easy_init()};
    assert(follow.curl);
    char *url = alloc_printf("%s%s", client->url, path);
    bool ok = true;
    while (ok && !follow.done) {
        ok = follow_once(&follow, url, err);
        if (!ok || follow.done)
            break;
        if (follower->lost)
            follower->lost(follower->self, true);
        usleep(CLIENT_RETRY_US);
    }
    free(url);
    str_release(&follow.line);
    curl_easy_cleanup(follow.curl);
    return ok;
}
