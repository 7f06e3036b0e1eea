/* outgoing.c - from a tensor to messages. */

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "runtime/held.h"
#include "runtime/tensor.h"
#include "runtime/worker/fabric.h"
#include "runtime/worker/outgoing.h"
#include "runtime/worker/wire.h"
#include "runtime/worker/wire_collective.h"
#include "runtime/worker/worker.h"

struct outgoing {
    struct rpc_source base; /* first */
    struct tensor value;    /* a reference */
    bool is_buffer;         /* that answers RecvBuf */
    bool follows;           /* the elements, in chunks */
    bool has_begun;
    size_t sent; /* bytes of elements */
};

/* A reference for as long as the transport reads the elements. */
struct lent_piece {
    struct tensor value;
    atomic_bool is_made; /* orders what is before for the thread of the transport: thread
                            sanitizers do not see how it got there */
};

static void give_back(void *arg)
{
    struct lent_piece *lent = arg;
    bool made = atomic_load_explicit(&lent->is_made, memory_order_acquire);
    assert(made);
    held_drop(&lent->value);
    tensor_release(&lent->value);
    free(lent);
}

/* The next elements, `size` of them at most, where they are. */
static struct rpc_piece lend(struct outgoing *outgoing, size_t size)
{
    struct lent_piece *lent = alloc_bytes(sizeof(*lent));
    size_t left = tensor_bytes(&outgoing->value) - outgoing->sent;
    tensor_share(&lent->value, &outgoing->value);
    held_add_again(&lent->value);
    const struct rpc_piece piece = {.data = (const char *)lent->value.data + outgoing->sent,
                                    .size = size < left ? size : left,
                                    .release = give_back,
                                    .arg = lent};
    atomic_store_explicit(&lent->is_made, true, memory_order_release);
    outgoing->sent += piece.size;
    return piece;
}

static int next(struct rpc_source *source, struct rpc_piece pieces[RPC_PIECES_MAX], bool *last)
{
    struct outgoing *outgoing = (struct outgoing *)source;
    int count = 0;
    if (!outgoing->has_begun) {
        struct str head = {0};
        if (outgoing->is_buffer)
            wire_write_buffer_head(tensor_bytes(&outgoing->value), &head);
        else
            wire_write_received_head(&outgoing->value, outgoing->follows, NULL, NULL, &head);
        outgoing->has_begun = true;
        size_t size = head.size;
        char *bytes = str_take(&head);
        pieces[count++] =
            (struct rpc_piece){.data = bytes, .size = size, .release = free, .arg = bytes};
        if (!outgoing->follows)
            pieces[count++] = lend(outgoing, SIZE_MAX);
    } else {
        pieces[count++] = lend(outgoing, WIRE_CHUNK_BYTES);
    }
    *last = outgoing->sent == tensor_bytes(&outgoing->value);
    return count;
}

static void free_outgoing(struct rpc_source *source)
{
    struct outgoing *outgoing = (struct outgoing *)source;
    held_drop(&outgoing->value);
    tensor_release(&outgoing->value);
    free(outgoing);
}

/* Small, or nothing that lies in one piece. */
static void reply_copied(struct rpc_call *call, const struct tensor *value, bool dead)
{
    struct str out = {0};
    wire_write_received(value, dead, &out);
    rpc_call_reply(call, out.data, out.size);
    str_release(&out);
}

/* Whether it goes into one message. */
static bool check_size(size_t size, struct error *err)
{
    return size + WIRE_SMALL_BYTES <= LIMIT_MESSAGE_BYTES ||
           fail(err, EXHAUSTED, "a tensor of %zu bytes is over the %lld of a message", size,
                (long long)LIMIT_MESSAGE_BYTES);
}

/* Of a plain type, from where its elements are. */
static void reply_lent(struct rpc_call *call, const struct tensor *value, bool is_buffer,
                       bool follows)
{
    struct tensor shared;
    struct error err;
    tensor_share(&shared, value);
    if (!held_add(&shared, &err)) {
        tensor_release(&shared);
        rpc_call_fail(call, &err);
        return;
    }
    struct outgoing *outgoing = alloc_bytes(sizeof(*outgoing));
    outgoing->base = (struct rpc_source){next, free_outgoing};
    outgoing->is_buffer = is_buffer;
    outgoing->follows = follows;
    outgoing->value = shared;
    rpc_call_reply_from(call, &outgoing->base);
}

void outgoing_reply(struct rpc_call *call, const struct tensor *value, bool dead, bool chunks)
{
    size_t size = dead ? 0 : tensor_bytes(value);
    bool plain = dead || BIT(value->dtype) & DTYPES_PLAIN;
    struct error err;
    if (!(plain && chunks) && !check_size(size, &err))
        rpc_call_fail(call, &err);
    else if (!plain || size < WIRE_SMALL_BYTES)
        reply_copied(call, value, dead);
    else
        reply_lent(call, value, false, chunks && size > WIRE_CHUNK_BYTES);
}

void outgoing_reply_buffer(struct rpc_call *call, const struct tensor *value)
{
    size_t size = tensor_bytes(value);
    struct error err;
    if (!check_size(size, &err)) {
        rpc_call_fail(call, &err);
    } else if (size < WIRE_SMALL_BYTES) {
        struct str out = {0};
        wire_write_buffer_head(size, &out);
        str_add_bytes(&out, value->data, size);
        rpc_call_reply(call, out.data, out.size);
        str_release(&out);
    } else {
        reply_lent(call, value, true, false);
    }
}

void outgoing_lend(struct rpc_call *call, const struct tensor *value, bool dead,
                   struct worker *worker, const struct loan *loan, bool fabric)
{
    struct near_place place;
    struct fabric_keys keys, *wanted = fabric ? &keys : NULL;
    bool lends = !dead && BIT(value->dtype) & DTYPES_PLAIN &&
                 tensor_bytes(value) >= WIRE_NEAR_BYTES &&
                 worker_lend(worker, loan, value, &place, wanted);
    if (!lends) {
        outgoing_reply(call, value, dead, true);
        return;
    }
    struct str head = {0};
    wire_write_received_head(value, false, &place, wanted, &head);
    rpc_call_reply(call, head.data, head.size);
    str_release(&head);
}
