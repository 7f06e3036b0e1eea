/* made.h - calls that tests have made, and how they ended. */
#pragma once

#include "base/connection.h"
#include "base/str.h"
#include "proto/rpc.h"
#include "tests/unit/proto/counted.h"

enum { MADE_BYTES_MAX = 1 << 20 };

struct made {
    struct rpc_client *client;
    int over; /* how often it was told; guarded by count_lock */
    bool ok;
    struct str answer;
    struct error err;
    bool has_peer;
    struct endpoint peer;
};

static inline struct rpc_client *made_client(const char *address, const struct rpc_tls *tls)
{
    const struct rpc_client_options options = {
        .address = address, .message_bytes_max = MADE_BYTES_MAX, .tls = tls};
    struct error err;
    struct rpc_client *client = rpc_client_new(&options, &err);
    CHECK_OK(client, &err);
    return client;
}

static inline void made_ended(void *arg, const struct str *answer, const struct error *err)
{
    struct made *made = arg;
    made->ok = !err;
    made->has_peer = rpc_client_peer(made->client, &made->peer);
    if (err)
        made->err = *err;
    else
        str_add_bytes(&made->answer, answer->data, answer->size);
    count_up(&made->over, 1);
}

static inline void make(struct made *made, struct rpc_client *client, const char *text)
{
    struct str request = {0};
    *made = (struct made){.client = client};
    str_add(&request, text);
    rpc_client_start(client, "/t/Call", &request, made_ended, made);
    str_release(&request);
}

static inline void made_answered(struct made *made, const char *text)
{
    wait_for(&made->over, 1);
    CHECK_OK(made->ok, &made->err);
    CHECK_TEXT(str_text(&made->answer), text);
    str_release(&made->answer);
}

static inline void made_failed(struct made *made, int code)
{
    wait_for(&made->over, 1);
    CHECK_FAILS(made->ok, &made->err, (enum error_code)code);
}

/* --- answers of several messages --- */

struct made_sink {
    struct rpc_sink base;
    int taken, over; /* guarded by count_lock */
    int takes;       /* until it takes no more; 0: all */
    bool ok;
    struct str messages; /* each with a bar behind it */
    struct error err;
};

static inline bool made_take(struct rpc_sink *base, const void *bytes, size_t size,
                             struct error *err)
{
    struct made_sink *sink = (struct made_sink *)base;
    str_add_bytes(&sink->messages, bytes, size);
    str_add_char(&sink->messages, '|');
    count_up(&sink->taken, 1);
    return sink->taken != sink->takes || fail(err, ABORTED, "enough");
}

static inline void made_done(struct rpc_sink *base, const struct error *err)
{
    struct made_sink *sink = (struct made_sink *)base;
    sink->ok = !err;
    if (err)
        sink->err = *err;
    count_up(&sink->over, 1);
}

static inline void make_into(struct made_sink *sink, struct rpc_client *client)
{
    const struct str request = {0};
    *sink = (struct made_sink){.base = {made_take, made_done}, .takes = sink->takes};
    rpc_client_start_into(client, "/t/Stream", &request, &sink->base);
}
