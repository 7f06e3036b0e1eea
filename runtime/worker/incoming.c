/* incoming.c - from messages to a tensor. */

#include "runtime/worker/incoming.h"
#include "base/error.h"
#include "runtime/held.h"
#include "runtime/tensor_pb.h"
#include "runtime/turn.h"
#include "runtime/worker/borrowed.h"
#include "runtime/worker/wire.h"

/* The elements, then whether they were the tensor's all the while. */
static bool read_over_fabric(const struct incoming *incoming,
                             const struct wire_received *received, struct error *err)
{
    int64_t mark;
    const struct near_place *place = &received->place;
    return fabric_read(incoming->fabric, place->address, &received->keys.elements,
                       incoming->value.data, tensor_bytes(&incoming->value), err) &&
           fabric_read(incoming->fabric, place->mark, &received->keys.mark, &mark, sizeof(mark),
                       err) &&
           (mark == incoming->request_id ||
            fail(err, UNAVAILABLE, "a tensor was read after it had been given up"));
}

static bool read_lent(const struct incoming *incoming, const struct wire_received *received,
                      struct error *err)
{
    if (incoming->near)
        return near_read(incoming->near, &received->place, incoming->request_id,
                         incoming->value.data, tensor_bytes(&incoming->value), err);
    return incoming->fabric
               ? read_over_fabric(incoming, received, err)
               : fail(err, INVALID, "a task that is not near says where its memory is");
}

/* Memory for what is lent is asked for when the value has its turn; 0: it needs none. */
static uint64_t begin_turn(const struct incoming *incoming, const void *head, size_t size)
{
    size_t lent = incoming->wants_turn ? wire_read_lent(head, size) : 0;
    return lent >= TURN_BYTES_MIN ? turn_begin(incoming->step_id, lent) : 0;
}

static bool take_lent(struct incoming *incoming, const struct wire_received *received,
                      struct error *err)
{
    if (!read_lent(incoming, received, err))
        return false;
    tensor_settle(&incoming->value);
    return true;
}

static struct buffer *borrow(void *arg, const struct near_place *place, size_t size)
{
    struct incoming *incoming = arg;
    struct buffer *buffer = incoming->near && incoming->lender
                                ? borrowed_buffer(incoming->lender, incoming->near, place,
                                                  incoming->request_id, size)
                                : NULL;
    incoming->is_borrowed = buffer;
    return buffer;
}

static bool take_head(struct incoming *incoming, const void *bytes, size_t size,
                      struct error *err)
{
    struct wire_received received;
    uint64_t turn = begin_turn(incoming, bytes, size);
    const struct wire_borrower borrower = {borrow, incoming};
    bool ok = wire_read_received(bytes, size, &borrower, &received, err);
    if (turn && ok && received.value.buffer)
        turn_give(turn, &received.value);
    else if (turn)
        turn_end(turn);
    incoming->was_lent = received.place.address && !incoming->is_borrowed;
    if (!ok)
        return false;
    incoming->has_begun = true;
    incoming->dead = received.dead;
    incoming->value = received.value;
    incoming->sent_us = received.sent_us;
    if (received.dead)
        return true;
    incoming->is_held = held_add(&incoming->value, err);
    if (!incoming->is_held)
        return false;
    if (incoming->was_lent)
        return take_lent(incoming, &received, err);
    if (!incoming->is_borrowed)
        incoming->missing = (size_t)received.content_bytes;
    return true;
}

bool incoming_take(struct incoming *incoming, const void *bytes, size_t size, struct error *err)
{
    if (!incoming->has_begun)
        return take_head(incoming, bytes, size, err);
    if (!size || size > incoming->missing)
        return fail(err, INVALID, "%zu bytes of elements came where %zu are missing", size,
                    incoming->missing);
    size_t have = tensor_bytes(&incoming->value) - incoming->missing;
    memcpy((char *)incoming->value.data + have, bytes, size);
    incoming->missing -= size;
    if (!incoming->missing)
        tensor_settle(&incoming->value);
    return true;
}

bool incoming_end(struct incoming *incoming, struct error *err)
{
    if (!incoming->has_begun || incoming->missing)
        return fail(err, INTERNAL, "an answer to RecvTensor ends %zu bytes before its tensor",
                    incoming->missing);
    return true;
}

void incoming_arrived(struct incoming *incoming)
{
    if (incoming->is_held)
        held_drop(&incoming->value);
    incoming->is_held = false;
}

void incoming_release(struct incoming *incoming)
{
    incoming_arrived(incoming);
    tensor_release(&incoming->value);
}
