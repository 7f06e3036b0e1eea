/* kubernetes_http.c - calls of the Kubernetes API. */

#include <curl/curl.h>
#include <jansson.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "scheduler/engines/kubernetes.h"

#define ANSWER_MAX (32 << 20) /* a thousand pods with all that is said of them */
#define TOKEN_MAX 16384

struct answer {
    struct str bytes;
    bool too_long;
};

static size_t on_bytes(char *bytes, size_t size, size_t count, void *self)
{
    struct answer *answer = self;
    answer->too_long = size * count > ANSWER_MAX - answer->bytes.size;
    if (answer->too_long)
        return 0;
    str_add_bytes(&answer->bytes, bytes, size * count);
    return size * count;
}

static int on_progress(void *self, curl_off_t total, curl_off_t now, curl_off_t up_total,
                       curl_off_t up_now)
{
    const struct kubernetes_api *api = self;
    (void)total, (void)now, (void)up_total, (void)up_now;
    return api->stop && atomic_load(api->stop);
}

/* Read for each call: Kubernetes replaces it every hour. */
static bool read_token(const char *path, struct str *header, struct error *err)
{
    char token[TOKEN_MAX + 1];
    FILE *file = fopen(path, "re");
    if (!file)
        return error_errno(err, UNAVAILABLE, "cannot read the token file %s", path);
    size_t size = fread(token, 1, TOKEN_MAX, file);
    fclose(file);
    token[size] = 0;
    token[strcspn(token, "\r\n")] = 0;
    str_printf(header, "Authorization: Bearer %s", token);
    return true;
}

static CURL *prepare(const struct kubernetes_api *api, const char *method, const char *url,
                     const char *body, struct answer *answer, char *problem)
{
    CURL *curl = curl_easy_init();
    assert(curl);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(curl, CURLOPT_NOPROXY, "*"); /* it is inside */
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)api->timeout_ms);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, problem);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, (void *)(uintptr_t)api);
    if (strncmp(url, "https:", 6) == 0)
        curl_easy_setopt(curl, CURLOPT_CAINFO, api->ca_file);
    if (body) {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, (long)strlen(body));
    }
    return curl;
}

/* What an answer that is no success says. */
static bool refused(const char *method, const char *path, long status, const struct str *bytes,
                    struct error *err)
{
    json_t *json = json_loadb(str_text(bytes), bytes->size, 0, NULL);
    const char *message = json_string_value(json_object_get(json, "message"));
    enum error_code code = status == 404                    ? NOT_FOUND
                           : status == 409                  ? EXISTS
                           : status == 401 || status == 403 ? DENIED
                                                            : UNAVAILABLE;
    fail(err, code, "%s %.200s: status %ld: %.500s", method, path, status,
         message ? message : "");
    json_decref(json);
    return false;
}

static bool finish(const struct kubernetes_api *api, const char *method, const char *path,
                   CURLcode code, long status, struct answer *answer, const char *problem,
                   json_t **json, struct error *err)
{
    if (answer->too_long)
        return fail(err, EXHAUSTED, "%s %.200s: the answer is longer than %d bytes", method,
                    path, ANSWER_MAX);
    if (code == CURLE_ABORTED_BY_CALLBACK)
        return fail(err, CANCELLED, "%s: the server is ending", path);
    if (code != CURLE_OK)
        return fail(err, UNAVAILABLE, "%s %s%.200s: %s", method, api->url, path,
                    problem[0] ? problem : curl_easy_strerror(code));
    if (status < 200 || status > 299)
        return refused(method, path, status, &answer->bytes, err);
    *json = json_loadb(str_text(&answer->bytes), answer->bytes.size, 0, NULL);
    return true;
}

bool kubernetes_http_call(const struct kubernetes_api *api, const char *method,
                          const char *path, const char *body, json_t **json, struct error *err)
{
    struct answer answer = {0};
    struct str header = {0};
    char problem[CURL_ERROR_SIZE] = "";
    *json = NULL;
    if (!read_token(api->token_file, &header, err))
        return false;
    char *url = alloc_printf("%s%s", api->url, path);
    CURL *curl = prepare(api, method, url, body, &answer, problem);
    struct curl_slist *headers = curl_slist_append(NULL, str_text(&header));
    headers = curl_slist_append(headers, "Accept: application/json");
    headers = curl_slist_append(headers, "Content-Type: application/json");
    headers = curl_slist_append(headers, "Expect:");
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    long status = 0;
    CURLcode code = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    bool ok = finish(api, method, path, code, status, &answer, problem, json, err);
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
    free(url);
    str_release(&header);
    str_release(&answer.bytes);
    return ok;
}
