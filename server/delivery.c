/* delivery.c - what a webhook is sent, and the libcurl handle that sends it. */

#include <arpa/inet.h>
#include <jansson.h>
#include <sodium.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "db/events.h"
#include "db/jobs.h"
#include "db/webhooks.h"
#include "server/address.h"
#include "server/delivery.h"
#include "server/job.h"

#define CONNECT_TIMEOUT_S 5

struct delivery {
    struct db_delivery row;
    CURL *curl;
    struct curl_slist *headers;
    char *body;
    char problem[CURL_ERROR_SIZE];
    char text[CURL_ERROR_SIZE + 80];
    size_t answered; /* bytes */
    bool anywhere;
    bool refused; /* since its address is not public */
};

/* --- the URL --- */

/* A host that is a numeric address, as it stands or in brackets. */
static bool host_is_private(const char *host)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    char inside[64];
    size_t size = strlen(host);
    if (inet_pton(AF_INET, host, &v4.sin_addr) == 1)
        return !address_is_public((const struct sockaddr *)&v4);
    if (size < 3 || size > sizeof(inside) || host[0] != '[')
        return false;
    memcpy(inside, host + 1, size - 2);
    inside[size - 2] = '\0';
    return inet_pton(AF_INET6, inside, &v6.sin6_addr) != 1 ||
           !address_is_public((const struct sockaddr *)&v6);
}

static bool check_parts(CURLU *parts, bool anywhere, struct error *err)
{
    char *scheme = NULL, *host = NULL, *extra = NULL;
    bool ok = false;
    if (curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0) ||
        curl_url_get(parts, CURLUPART_HOST, &host, 0))
        error_at(err, "/url", INVALID, "the URL has no scheme or no host");
    else if (strcmp(scheme, "https") != 0 && !(anywhere && strcmp(scheme, "http") == 0))
        error_at(err, "/url", INVALID, "the URL begins with %.20s://, allowed: https://%s",
                 scheme, anywhere ? " and http://" : "");
    else if (!curl_url_get(parts, CURLUPART_USER, &extra, 0) ||
             !curl_url_get(parts, CURLUPART_PASSWORD, &extra, 0) ||
             !curl_url_get(parts, CURLUPART_FRAGMENT, &extra, 0))
        error_at(err, "/url", INVALID, "the URL must have no user, password or fragment");
    else if (!anywhere && host_is_private(host))
        error_at(err, "/url", INVALID,
                 "%.80s is no public address; the server was not started with "
                 "--webhooks-anywhere",
                 host);
    else
        ok = true;
    curl_free(scheme);
    curl_free(host);
    curl_free(extra);
    return ok;
}

bool delivery_check_url(const char *url, bool anywhere, struct error *err)
{
    size_t size = strlen(url);
    if (size > DB_WEBHOOK_URL_BYTES)
        return error_at(err, "/url", INVALID, "the URL has %zu bytes, allowed: at most %d",
                        size, DB_WEBHOOK_URL_BYTES);
    for (const char *c = url; *c; c++)
        if ((unsigned char)*c <= ' ' || (unsigned char)*c >= 127)
            return error_at(err, "/url", INVALID,
                            "byte %d of the URL is no printable ASCII character",
                            (int)(c - url) + 1);
    CURLU *parts = curl_url();
    assert(parts);
    CURLUcode code = curl_url_set(parts, CURLUPART_URL, url, 0);
    bool ok =
        code ? error_at(err, "/url", INVALID, "this is no URL: %s", curl_url_strerror(code))
             : check_parts(parts, anywhere, err);
    curl_url_cleanup(parts);
    return ok;
}

/* --- what is sent --- */

const char *delivery_sign(const char *secret, int64_t time_s, const char *body,
                          char out[DELIVERY_SIGNATURE_BYTES])
{
    unsigned char mac[crypto_auth_hmacsha256_BYTES];
    char hex[sizeof(mac) * 2 + 1];
    char time[32];
    crypto_auth_hmacsha256_state state;
    int size = snprintf(time, sizeof(time), "%lld.", (long long)time_s);
    crypto_auth_hmacsha256_init(&state, (const unsigned char *)secret, strlen(secret));
    crypto_auth_hmacsha256_update(&state, (const unsigned char *)time, (size_t)size);
    crypto_auth_hmacsha256_update(&state, (const unsigned char *)body, strlen(body));
    crypto_auth_hmacsha256_final(&state, mac);
    sodium_bin2hex(hex, sizeof(hex), mac, sizeof(mac));
    snprintf(out, DELIVERY_SIGNATURE_BYTES, "t=%lld,v1=%s", (long long)time_s, hex);
    return out;
}

/* The event and its job, as `job`; `*time_us` gets when it was. */
static json_t *job_of(struct db_conn *conn, int64_t seq, struct arena *arena, int64_t *time_us,
                      struct error *err)
{
    struct db_event *event;
    struct db_job job;
    int count;
    if (!db_events_since(conn, 0, seq - 1, 1, arena, &event, &count, err))
        return NULL;
    if (count == 0 || event->seq != seq)
        return fail_null(err, NOT_FOUND, "event %lld is not kept any more", (long long)seq);
    if (!db_jobs_find(conn, event->job, arena, &job, err))
        return NULL;
    *time_us = event->wall_us;
    const char *from =
        event->state_from < 0 ? "" : db_job_state_name((enum job_state)event->state_from);
    return json_pack("{s:s, s:I, s:s, s:s, s:s, s:s, s:o, s:i, s:o, s:o}", "id", job.id,
                     "number", (json_int_t)job.number, "name", job.name, "project", job.project,
                     "user", job.user, "state", db_job_state_name((enum job_state)event->state),
                     "from", job_text(from), "attempt", event->attempt, "reason",
                     job_text(event->reason), "text", job_text(event->text));
}

char *delivery_body(struct db_conn *conn, const struct db_delivery *row,
                    const struct db_webhook *webhook, struct error *err)
{
    struct arena *arena = arena_new();
    int64_t time_us = row->created_us;
    json_t *job = row->seq ? job_of(conn, row->seq, arena, &time_us, err) : NULL;
    char *text = NULL;
    if (job || !row->seq) {
        json_t *body = json_pack("{s:I, s:s, s:o, s:I}", "id", (json_int_t)row->id, "type",
                                 job ? "job.state" : "test", "time", job_time(time_us),
                                 "webhook", (json_int_t)webhook->id);
        if (job)
            json_object_set(body, "job", job);
        text = json_dumps(body, JSON_COMPACT);
        json_decref(body);
        if (!text)
            fail(err, INTERNAL, "delivery %lld cannot be written as JSON", (long long)row->id);
    }
    json_decref(job);
    arena_free(arena);
    return text;
}

/* --- the try --- */

static curl_socket_t on_socket(void *self, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct delivery *delivery = self;
    (void)purpose;
    if (!delivery->anywhere && !address_is_public(&address->addr)) {
        delivery->refused = true;
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static size_t on_answer(char *bytes, size_t size, size_t count, void *self)
{
    struct delivery *delivery = self;
    (void)bytes;
    delivery->answered += size * count;
    return delivery->answered <= DELIVERY_ANSWER_BYTES ? size * count : 0;
}

/* Sets an option that this libcurl has: anything else is our mistake. */
#define SET(curl, option, value)                                                               \
    do {                                                                                       \
        CURLcode set = curl_easy_setopt(curl, option, value);                                  \
        assert(set == CURLE_OK);                                                               \
        (void)set;                                                                             \
    } while (0)

static void prepare(struct delivery *delivery, const char *url)
{
    CURL *curl = delivery->curl;
    SET(curl, CURLOPT_URL, url);
    SET(curl, CURLOPT_PROTOCOLS_STR, delivery->anywhere ? "http,https" : "https");
    SET(curl, CURLOPT_FOLLOWLOCATION, 0L);
    SET(curl, CURLOPT_PROXY, "");
    SET(curl, CURLOPT_NOPROXY, "*");
    SET(curl, CURLOPT_NOSIGNAL, 1L);
    SET(curl, CURLOPT_QUICK_EXIT, 1L);
    SET(curl, CURLOPT_FORBID_REUSE, 1L); /* each address is looked at */
    SET(curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_TIMEOUT_S);
    SET(curl, CURLOPT_TIMEOUT, (long)DELIVERY_TIMEOUT_S);
    SET(curl, CURLOPT_ERRORBUFFER, delivery->problem);
    SET(curl, CURLOPT_OPENSOCKETFUNCTION, on_socket);
    SET(curl, CURLOPT_OPENSOCKETDATA, delivery);
    SET(curl, CURLOPT_WRITEFUNCTION, on_answer);
    SET(curl, CURLOPT_WRITEDATA, delivery);
    SET(curl, CURLOPT_PRIVATE, delivery);
    SET(curl, CURLOPT_HTTPHEADER, delivery->headers);
    SET(curl, CURLOPT_POST, 1L);
    SET(curl, CURLOPT_POSTFIELDSIZE, (long)strlen(delivery->body));
    SET(curl, CURLOPT_POSTFIELDS, delivery->body);
}

struct delivery *delivery_new(const struct db_delivery *row, const struct db_webhook *webhook,
                              const char *secret, char *body, bool anywhere)
{
    char signature[DELIVERY_SIGNATURE_BYTES];
    struct delivery *delivery = alloc_bytes(sizeof(*delivery));
    delivery->row = *row;
    delivery->row.error = ""; /* what it was lives elsewhere */
    delivery->body = body;
    delivery->anywhere = anywhere;
    delivery->curl = curl_easy_init();
    assert(delivery->curl);
    delivery_sign(secret, (int64_t)(clock_wall_us() / 1000000), body, signature);
    char *lines[] = {
        alloc_printf("Trainyard-Signature: %s", signature),
        alloc_printf("Trainyard-Delivery: %lld", (long long)row->id),
        alloc_printf("Trainyard-Event: %s", row->seq ? "job.state" : "test"),
        alloc_printf("Content-Type: application/json"),
        alloc_printf("User-Agent: trainyard"),
        alloc_printf("Expect:"),
    };
    for (int i = 0; i < ARRAY_LEN(lines); i++) {
        delivery->headers = curl_slist_append(delivery->headers, lines[i]);
        free(lines[i]);
    }
    prepare(delivery, webhook->url);
    return delivery;
}

void delivery_free(struct delivery *delivery)
{
    if (!delivery)
        return;
    curl_easy_cleanup(delivery->curl);
    curl_slist_free_all(delivery->headers);
    free(delivery->body);
    free(delivery);
}

CURL *delivery_curl(struct delivery *delivery)
{
    return delivery->curl;
}

const struct db_delivery *delivery_row(const struct delivery *delivery)
{
    return &delivery->row;
}

const char *delivery_result(struct delivery *delivery, CURLcode code, int *status)
{
    long answer = 0;
    curl_easy_getinfo(delivery->curl, CURLINFO_RESPONSE_CODE, &answer);
    *status = (int)answer;
    if (delivery->refused)
        snprintf(delivery->text, sizeof(delivery->text), "its address is not public");
    else if (delivery->answered > DELIVERY_ANSWER_BYTES)
        snprintf(delivery->text, sizeof(delivery->text), "answered more than %d bytes",
                 DELIVERY_ANSWER_BYTES);
    else if (code != CURLE_OK)
        snprintf(delivery->text, sizeof(delivery->text), "%s",
                 delivery->problem[0] ? delivery->problem : curl_easy_strerror(code));
    else if (answer < 200 || answer > 299)
        snprintf(delivery->text, sizeof(delivery->text), "answered %ld", answer);
    return delivery->text;
}
