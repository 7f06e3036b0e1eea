/* delivery_test.c - how deliveries are signed, and which URLs may be called. */

#include "base/str.h"
#include "server/delivery.h"
#include "server/webhooks.h"
#include "tests/unit/test.h"

/* As Python's hmac.new(b"whsec_key", b"1700000000.{\"id\":1}", "sha256") has it. */
TEST(the_signature_is_what_others_compute)
{
    char text[DELIVERY_SIGNATURE_BYTES];
    CHECK_TEXT(delivery_sign("whsec_key", 1700000000, "{\"id\":1}", text),
               "t=1700000000,v1="
               "b4b2239fbcfd19444434236225195630a7e65f858e6ea3b868d31c5811a25616");
    char other[DELIVERY_SIGNATURE_BYTES];
    delivery_sign("whsec_key", 1700000001, "{\"id\":1}", other);
    CHECK(strcmp(strstr(text, "v1"), strstr(other, "v1")) != 0); /* the time is signed too */
}

TEST(urls_of_the_internet_are_taken)
{
    static const char *const good[] = {
        "https://example.com", "https://example.com:8443/a?b=c",
        "https://1.1.1.1/x",   "https://[2606:4700::1111]/x",
        "https://localhost/", /* looked at when connected to */
    };
    struct error err;
    for (int i = 0; i < ARRAY_LEN(good); i++)
        CHECK_OK(delivery_check_url(good[i], false, &err), &err);
}

TEST(other_urls_are_refused_by_what_is_wrong)
{
    static const struct {
        const char *url, *why;
    } bad[] = {
        {"", "no URL"},
        {"example.com/x", "no URL"},
        {"https://", "no URL"},
        {"http://example.com/", "begins with http"},
        {"ftp://example.com/", "begins with ftp"},
        {"https://user@example.com/", "no user"},
        {"https://user:word@example.com/", "no user"},
        {"https://example.com/#part", "fragment"},
        {"https://10.0.0.1/", "no public address"},
        {"https://2130706433/", "no public address"},
        {"https://0177.0.0.1/", "no public address"},
        {"https://[::ffff:127.0.0.1]/", "no public address"},
        {"https://[fe80::1]/", "no public address"},
        {"https://example.com/a b", "byte 22"},
        {"https://example.com/\x01", "byte 21"},
        {"https://ex\xc3\xa4mple.com/", "byte 11"},
    };
    struct error err;
    for (int i = 0; i < ARRAY_LEN(bad); i++) {
        CHECK_FAILS(delivery_check_url(bad[i].url, false, &err), &err, INVALID);
        CHECK_TEXT(err.pointer, "/url");
        if (!strstr(err.text, bad[i].why))
            CHECK_STOP("%s: %s", bad[i].url, err.text);
    }
}

TEST(an_url_that_is_too_long_is_refused)
{
    struct str url = {0};
    struct error err;
    str_add(&url, "https://example.com/");
    while (url.size <= 2048)
        str_add_char(&url, 'a');
    CHECK_FAILS(delivery_check_url(str_text(&url), false, &err), &err, INVALID);
    CHECK(strstr(err.text, "2049 bytes") != NULL);
    str_release(&url);
}

TEST(anywhere_lets_http_and_private_addresses_through)
{
    struct error err;
    CHECK_OK(delivery_check_url("http://127.0.0.1:8080/x", true, &err), &err);
    CHECK_FAILS(delivery_check_url("file:///etc/passwd", true, &err), &err, INVALID);
}

TEST(tries_are_ever_further_apart_and_end)
{
    for (int tries = 1; tries < WEBHOOKS_TRIES_MAX - 1; tries++)
        CHECK(webhooks_backoff_s(tries) > 0 &&
              webhooks_backoff_s(tries) < webhooks_backoff_s(tries + 1));
    CHECK_INT(webhooks_backoff_s(WEBHOOKS_TRIES_MAX), 0);
}
