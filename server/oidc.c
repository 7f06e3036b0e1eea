/* oidc.c - the provider's endpoints, and what its ID token must say. */

#include "server/oidc.h"

#include <curl/curl.h>
#include <jansson.h>
#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "server/url.h"

#define ANSWER_BYTES_MAX (256 << 10)
#define ANSWER_S 10L
#define KNOWN_US UINT64_C(3600000000) /* then its endpoints are asked for again */
#define AT_ONCE 3                     /* more would hold up those who change something */
#define CLOCKS_S 60                   /* by which the provider's clock may differ */
#define SECRET_BYTES 32
#define VARIANT sodium_base64_VARIANT_URLSAFE_NO_PADDING

struct oidc {
    char *issuer, *client_id, *client_secret, *claim, *redirect;
    atomic_int asking;                      /* who wait for the provider */
    uint8_t key[crypto_secretbox_KEYBYTES]; /* of cookies; another after each start */
    pthread_mutex_t lock;                   /* guards: all below */
    char *authorization, *token;            /* endpoints; NULL: not known */
    uint64_t known_us;
};

/* What goes over the network is encrypted, what stays on this machine need not be. */
static bool is_safe(const char *url)
{
    static const char *const good[] = {"https://", "http://127.0.0.1:", "http://localhost:"};
    for (int i = 0; i < ARRAY_LEN(good); i++)
        if (strncmp(url, good[i], strlen(good[i])) == 0)
            return true;
    return false;
}

struct oidc *oidc_new(const struct oidc_options *options, struct error *err)
{
    size_t size = strlen(options->issuer);
    if (!is_safe(options->issuer) || size > 500)
        return fail_null(
            err, INVALID,
            "--oidc-issuer is '%.100s'; it must begin with https:// (or be on this "
            "machine, http://127.0.0.1:PORT)",
            options->issuer);
    if (!options->client_id || !*options->client_id)
        return fail_null(err, INVALID, "--oidc-issuer needs --oidc-client, the client's id");
    while (size && options->issuer[size - 1] == '/')
        size--;
    struct oidc *oidc = alloc_bytes(sizeof(*oidc));
    oidc->issuer = alloc_text_n(options->issuer, size);
    oidc->client_id = alloc_text(options->client_id);
    oidc->client_secret = options->client_secret ? alloc_text(options->client_secret) : NULL;
    oidc->claim = alloc_text(options->claim);
    oidc->redirect = alloc_text(options->redirect);
    pthread_mutex_init(&oidc->lock, NULL);
    crypto_secretbox_keygen(oidc->key);
    return oidc;
}

void oidc_free(struct oidc *oidc)
{
    if (!oidc)
        return;
    if (oidc->client_secret)
        sodium_memzero(oidc->client_secret, strlen(oidc->client_secret));
    sodium_memzero(oidc->key, sizeof(oidc->key));
    pthread_mutex_destroy(&oidc->lock);
    free(oidc->issuer);
    free(oidc->client_id);
    free(oidc->client_secret);
    free(oidc->claim);
    free(oidc->redirect);
    free(oidc->authorization);
    free(oidc->token);
    free(oidc);
}

const char *oidc_issuer(const struct oidc *oidc)
{
    return oidc->issuer;
}

/* --- asking the provider --- */

static size_t on_bytes(char *bytes, size_t one, size_t size, void *into)
{
    struct str *answer = into;
    if (answer->size + one * size > ANSWER_BYTES_MAX)
        return 0;
    str_add_bytes(answer, bytes, one * size);
    return one * size;
}

/* GET, or with a form POST; `user` and `password` may be NULL.  The JSON, owned. */
static json_t *ask(const char *url, const char *form, const char *user, const char *password,
                   struct error *err)
{
    CURL *curl = curl_easy_init();
    struct str answer = {0};
    char problem[CURL_ERROR_SIZE] = "";
    long status = 0;
    assert(curl);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, ANSWER_S);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, problem);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &answer);
    const char *authority = getenv("TRAINYARD_CA");
    if (authority && *authority)
        curl_easy_setopt(curl, CURLOPT_CAINFO, authority);
    if (form)
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, form);
    if (password) {
        curl_easy_setopt(curl, CURLOPT_USERNAME, user);
        curl_easy_setopt(curl, CURLOPT_PASSWORD, password);
    }
    CURLcode code = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_cleanup(curl);
    json_t *json = code ? NULL : json_loadb(str_text(&answer), answer.size, 0, NULL);
    str_release(&answer);
    if (code || !json_is_object(json) || status >= (form ? 500 : 400))
        fail(err, UNAVAILABLE, "the provider's %.200s gave no answer that helps: %s", url,
             code && problem[0] ? problem
             : code             ? curl_easy_strerror(code)
                                : "it is not JSON, or an error");
    else if (status >= 400)
        fail(err, UNAUTHENTICATED, "the provider refused: %.200s",
             json_string_value(json_object_get(json, "error"))
                 ? json_string_value(json_object_get(json, "error"))
                 : "it does not say why");
    else
        return json;
    json_decref(json);
    return NULL;
}

/* Looks the endpoints up (OpenID Connect Discovery 1.0, 4). */
static bool discover(struct oidc *oidc, struct error *err)
{
    char *url = alloc_printf("%s/.well-known/openid-configuration", oidc->issuer);
    json_t *json = ask(url, NULL, NULL, NULL, err);
    free(url);
    const char *issuer = json_string_value(json_object_get(json, "issuer"));
    const char *authorization =
        json_string_value(json_object_get(json, "authorization_endpoint"));
    const char *token = json_string_value(json_object_get(json, "token_endpoint"));
    size_t size = strlen(oidc->issuer);
    bool ok = json != NULL;
    if (ok && (!issuer || strncmp(issuer, oidc->issuer, size) != 0 ||
               strcmp(issuer + size + (issuer[size] == '/'), "") != 0))
        ok = fail(err, UNAVAILABLE, "the provider calls itself '%.100s', not %s",
                  issuer ? issuer : "", oidc->issuer);
    if (ok && (!authorization || !token || !is_safe(authorization) || !is_safe(token)))
        ok = fail(err, UNAVAILABLE, "the provider names no endpoints that are https");
    if (ok) {
        free(oidc->authorization);
        free(oidc->token);
        oidc->authorization = alloc_text(authorization);
        oidc->token = alloc_text(token);
        oidc->known_us = clock_monotonic_us();
    }
    json_decref(json);
    return ok;
}

/* Copies of the endpoints, in the arena. */
static bool endpoints(struct oidc *oidc, struct arena *arena, const char **authorization,
                      const char **token, struct error *err)
{
    pthread_mutex_lock(&oidc->lock);
    bool ok = (oidc->token && clock_monotonic_us() - oidc->known_us < KNOWN_US) ||
              discover(oidc, err);
    *authorization = ok ? arena_text(arena, oidc->authorization) : NULL;
    *token = ok ? arena_text(arena, oidc->token) : NULL;
    pthread_mutex_unlock(&oidc->lock);
    return ok;
}

/* --- the cookie --- */

static const char *base64(struct arena *arena, const uint8_t *bytes, size_t size)
{
    size_t room = sodium_base64_encoded_len(size, VARIANT);
    return sodium_bin2base64(arena_alloc(arena, room), room, bytes, size, VARIANT);
}

/* The bytes, followed by NUL; NULL when it is no base64. */
static uint8_t *unbase64(struct arena *arena, const char *text, size_t text_size, size_t *size)
{
    uint8_t *bytes = arena_alloc(arena, text_size + 1);
    if (sodium_base642bin(bytes, text_size, text, text_size, NULL, size, NULL, VARIANT))
        return NULL;
    bytes[*size] = 0;
    return bytes;
}

static const char *drawn(struct arena *arena)
{
    uint8_t bytes[SECRET_BYTES];
    randombytes_buf(bytes, sizeof(bytes));
    return base64(arena, bytes, sizeof(bytes));
}

/* What the second step must know of the first. */
struct step {
    const char *state, *nonce, *verifier;
    int64_t until_s;
};

static const char *seal(const struct oidc *oidc, struct arena *arena, const struct step *step)
{
    const char *text = arena_printf(arena, "%s %s %s %lld", step->state, step->nonce,
                                    step->verifier, (long long)step->until_s);
    size_t size = strlen(text), whole = crypto_secretbox_NONCEBYTES + crypto_secretbox_MACBYTES;
    uint8_t *box = arena_alloc(arena, whole + size);
    randombytes_buf(box, crypto_secretbox_NONCEBYTES);
    crypto_secretbox_easy(box + crypto_secretbox_NONCEBYTES, (const uint8_t *)text, size, box,
                          oidc->key);
    return base64(arena, box, whole + size);
}

static bool unseal(const struct oidc *oidc, struct arena *arena, const char *cookie,
                   struct step *step)
{
    size_t size, least = crypto_secretbox_NONCEBYTES + crypto_secretbox_MACBYTES;
    uint8_t *box = unbase64(arena, cookie, strlen(cookie), &size);
    if (!box || size < least)
        return false;
    char *text = arena_alloc(arena, size - least + 1);
    if (crypto_secretbox_open_easy((uint8_t *)text, box + crypto_secretbox_NONCEBYTES,
                                   size - crypto_secretbox_NONCEBYTES, box, oidc->key))
        return false;
    text[size - least] = 0;
    char *rest = NULL;
    step->state = strtok_r(text, " ", &rest);
    step->nonce = strtok_r(NULL, " ", &rest);
    step->verifier = strtok_r(NULL, " ", &rest);
    const char *until = strtok_r(NULL, " ", &rest);
    step->until_s = until ? strtoll(until, NULL, 10) : 0;
    return step->until_s > (int64_t)(clock_wall_us() / 1000000);
}

/* --- the two steps --- */

static void add_pair(struct str *out, const char *name, const char *value)
{
    str_printf(out, "%s%s=", out->size ? "&" : "", name);
    url_encode(out, value);
}

/* One more who may have to wait for the provider; false when there are enough. */
static bool enter(struct oidc *oidc, struct error *err)
{
    if (atomic_fetch_add(&oidc->asking, 1) < AT_ONCE)
        return true;
    atomic_fetch_sub(&oidc->asking, 1);
    return fail(err, EXHAUSTED, "others are signing in just now: try again in a moment");
}

static void leave(struct oidc *oidc)
{
    atomic_fetch_sub(&oidc->asking, 1);
}

bool oidc_begin(struct oidc *oidc, struct arena *arena, const char **url, const char **cookie,
                struct error *err)
{
    const char *authorization, *token;
    if (!enter(oidc, err))
        return false;
    bool ok = endpoints(oidc, arena, &authorization, &token, err);
    leave(oidc);
    if (!ok)
        return false;
    struct step step = {drawn(arena), drawn(arena), drawn(arena),
                        (int64_t)(clock_wall_us() / 1000000) + OIDC_COOKIE_S};
    uint8_t hash[crypto_hash_sha256_BYTES];
    crypto_hash_sha256(hash, (const uint8_t *)step.verifier, strlen(step.verifier));
    struct str query = {0};
    add_pair(&query, "response_type", "code");
    add_pair(&query, "client_id", oidc->client_id);
    add_pair(&query, "redirect_uri", oidc->redirect);
    add_pair(&query, "scope", "openid profile email");
    add_pair(&query, "state", step.state);
    add_pair(&query, "nonce", step.nonce);
    add_pair(&query, "code_challenge", base64(arena, hash, sizeof(hash)));
    add_pair(&query, "code_challenge_method", "S256");
    *url = arena_printf(arena, "%s%s%s", authorization, strchr(authorization, '?') ? "&" : "?",
                        str_text(&query));
    *cookie = seal(oidc, arena, &step);
    str_release(&query);
    return true;
}

/* The claims of an ID token, owned: the part between its dots. */
static json_t *claims_of(struct arena *arena, const char *token)
{
    const char *dot = token ? strchr(token, '.') : NULL;
    const char *end = dot ? strchr(dot + 1, '.') : NULL;
    size_t size;
    if (!end)
        return NULL;
    const uint8_t *bytes = unbase64(arena, dot + 1, (size_t)(end - dot - 1), &size);
    return bytes ? json_loadb((const char *)bytes, size, 0, NULL) : NULL;
}

/* It may be for others besides us, if it names us as who asked for it. */
static bool is_for_us(const struct oidc *oidc, const json_t *claims)
{
    const json_t *audience = json_object_get(claims, "aud");
    const char *party = json_string_value(json_object_get(claims, "azp"));
    bool named =
        json_is_string(audience) && strcmp(json_string_value(audience), oidc->client_id) == 0;
    size_t i;
    json_t *one;
    json_array_foreach(audience, i, one) named |=
        json_is_string(one) && strcmp(json_string_value(one), oidc->client_id) == 0;
    return named &&
           (party ? strcmp(party, oidc->client_id) == 0 : json_array_size(audience) <= 1);
}

/* What Core 1.0, 3.1.3.7 asks of it. */
static bool check_claims(const struct oidc *oidc, const json_t *claims, const char *nonce,
                         struct error *err)
{
    const char *issuer = json_string_value(json_object_get(claims, "iss"));
    const char *said = json_string_value(json_object_get(claims, "nonce"));
    const char *subject = json_string_value(json_object_get(claims, "sub"));
    int64_t now_s = (int64_t)(clock_wall_us() / 1000000);
    double until = json_number_value(json_object_get(claims, "exp"));
    size_t size = strlen(oidc->issuer);
    const char *what = NULL;
    if (!claims)
        what = "it is no token";
    else if (!issuer || strncmp(issuer, oidc->issuer, size) != 0 ||
             strcmp(issuer + size + (issuer[size] == '/'), "") != 0)
        what = "it is of another issuer";
    else if (!is_for_us(oidc, claims))
        what = "it is for somebody else";
    else if (!(until > (double)(now_s - CLOCKS_S)))
        what = "it has run out";
    else if (!said || strcmp(said, nonce) != 0)
        what = "it is not of this sign-in";
    else if (!subject || !*subject || strlen(subject) > 255)
        what = "it does not say who it is of";
    return !what || fail(err, UNAUTHENTICATED, "the provider's ID token is refused: %s", what);
}

static bool read_person(const struct oidc *oidc, struct arena *arena, const json_t *claims,
                        struct oidc_person *person, struct error *err)
{
    const char *name = json_string_value(json_object_get(claims, oidc->claim));
    if (!name || !*name)
        return fail(err, UNAUTHENTICATED,
                    "the provider does not tell '%s', which is the user's name here",
                    oidc->claim);
    person->name = arena_text_n(arena, name, strcspn(name, "@"));
    person->subject = arena_printf(arena, "%s %s", oidc->issuer,
                                   json_string_value(json_object_get(claims, "sub")));
    return true;
}

bool oidc_finish(struct oidc *oidc, struct arena *arena, const char *cookie, const char *state,
                 const char *code, struct oidc_person *person, struct error *err)
{
    const char *authorization, *token;
    struct step step;
    if (!unseal(oidc, arena, cookie, &step) || strlen(state) != strlen(step.state) ||
        sodium_memcmp(state, step.state, strlen(state)) != 0)
        return fail(err, UNAUTHENTICATED,
                    "this sign-in was not begun here, or more than %d minutes ago: begin again",
                    OIDC_COOKIE_S / 60);
    if (!enter(oidc, err))
        return false;
    struct str form = {0};
    add_pair(&form, "grant_type", "authorization_code");
    add_pair(&form, "code", code);
    add_pair(&form, "redirect_uri", oidc->redirect);
    add_pair(&form, "client_id", oidc->client_id);
    add_pair(&form, "code_verifier", step.verifier);
    json_t *answer = NULL;
    if (endpoints(oidc, arena, &authorization, &token, err))
        answer = ask(token, str_text(&form), oidc->client_id, oidc->client_secret, err);
    leave(oidc);
    str_release(&form);
    if (!answer)
        return false;
    json_t *claims = claims_of(arena, json_string_value(json_object_get(answer, "id_token")));
    bool ok = check_claims(oidc, claims, step.nonce, err) &&
              read_person(oidc, arena, claims, person, err);
    json_decref(claims);
    json_decref(answer);
    return ok;
}
