/* dataflow_transfer.c - values of a run from and to the other parts of its step. */

#include <inttypes.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "proto/attention.h"
#include "runtime/cancel.h"
#include "runtime/dataflow_call.h"
#include "runtime/rendezvous.h"
#include "runtime/turn.h"
#include "runtime/waits.h"

/* --- frames: each part makes the same ids, without a word to the others --- */

/* TensorFlow's Hash64: that of Austin Appleby's MurmurHash2 for 64 bits. */
uint64_t dataflow_transfer_hash(const char *name)
{
    const uint64_t factor = UINT64_C(0xc6a4a7935bd1e995);
    size_t size = strlen(name);
    uint64_t hash = UINT64_C(0xDECAFCAFFE) ^ (size * factor);
    for (; size >= 8; size -= 8, name += 8) {
        uint64_t word;
        memcpy(&word, name, sizeof(word));
        word *= factor;
        word ^= word >> 47;
        hash = (hash ^ word * factor) * factor;
    }
    for (size_t i = size; i > 0; i--)
        hash ^= (uint64_t)(unsigned char)name[i - 1] << (8 * (i - 1));
    if (size)
        hash *= factor;
    hash = (hash ^ hash >> 47) * factor;
    return hash ^ hash >> 47;
}

static uint64_t combine(uint64_t a, uint64_t b)
{
    return a ^ (b + UINT64_C(0x9e3779b97f4a7800) + (a << 10) + (a >> 4));
}

uint64_t dataflow_transfer_frame_id(const struct dataflow_frame *parent, int64_t iteration,
                                    const struct dataflow_loop *loop)
{
    return combine(parent->id, combine((uint64_t)iteration, loop->hash));
}

/* --- sending and receiving --- */

static void add_key(struct str *key, const struct dataflow_iteration *iteration,
                    const struct node *node)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t incarnation = (uint64_t)node_attr_int(node, "send_device_incarnation", 0);
    str_add(key, node_attr_string(node, "send_device", ""));
    str_add_char(key, ';');
    char *at = str_extend(key, 16);
    for (int i = 0; i < 16; i++)
        at[i] = digits[incarnation >> (60 - 4 * i) & 15];
    str_add_char(key, ';');
    str_add(key, node_attr_string(node, "recv_device", ""));
    str_add_char(key, ';');
    str_add(key, node_attr_string(node, "tensor_name", ""));
    if (iteration->frame->id || iteration->number)
        str_printf(key, ";%" PRIu64 ":%" PRId64, iteration->frame->id, iteration->number);
    else
        str_add(key, ";0:0"); /* what is no loop's, so nearly all */
}

static bool find_rendezvous(const struct dataflow_run *run, struct rendezvous **rendezvous,
                            struct error *err)
{
    *rendezvous = run->options ? run->options->rendezvous : NULL;
    return *rendezvous || fail(err, INVALID, "this step has no other part to meet");
}

/*
 * What a reference leads to may change before it is received, and TensorFlow's masters count on
 * it: they have who reads a variable after its update receive it then, though it was sent
 * before.  Others than numbers are sent as they are now, for they cannot be read while they
 * change.
 */
static bool may_change(const struct dataflow_node *node)
{
    const struct edge *edge = &node->node->inputs[0];
    int type = edge->from->output_types[edge->output];
    return dtype_is_ref(type) && (BIT(dtype_base(type)) & DTYPES_PLAIN);
}

static bool take_value(struct dataflow_run *run, struct dataflow_iteration *iteration,
                       const struct dataflow_node *node, struct tensor *value,
                       struct error *err)
{
    const struct edge *edge = &node->node->inputs[0];
    struct variable *none = NULL;
    struct tensor seen = {0};
    if (!dtype_is_ref(edge->from->output_types[edge->output]) || may_change(node))
        return dataflow_take_input(run, iteration, node, 0, value, &none, err);
    if (!dataflow_take_input(run, iteration, node, 0, &seen, &none, err))
        return false;
    bool ok = tensor_clone(value, &seen, err);
    tensor_release(&seen);
    return ok;
}

static bool give(struct dataflow_run *run, struct dataflow_iteration *iteration,
                 const struct dataflow_node *node, bool live, struct error *err)
{
    struct rendezvous *rendezvous;
    struct tensor value = {0};
    if (!find_rendezvous(run, &rendezvous, err) ||
        (live && !take_value(run, iteration, node, &value, err)))
        return false;
    struct str key = {0};
    add_key(&key, iteration, node->node);
    attention_keep(true);
    bool ok = live && may_change(node)
                  ? rendezvous_send_changing(rendezvous, str_text(&key), &value, err)
                  : rendezvous_send_own(rendezvous, str_text(&key), &value, !live, err);
    attention_keep(false);
    str_release(&key);
    tensor_release(&value);
    return ok;
}

bool dataflow_transfer_send(struct dataflow_run *run, struct dataflow_iteration *iteration,
                            const struct dataflow_node *node, bool live, struct error *err)
{
    struct waits *waits = run->options ? run->options->waits : NULL;
    uint64_t start_ns = waits ? clock_monotonic_ns() : 0;
    bool ok = give(run, iteration, node, live, err);
    if (waits)
        waits->send_ns += clock_monotonic_ns() - start_ns;
    return ok;
}

/* Kernels were chosen by the shape that it was said to have. */
static bool has_shape(const struct node *node, const struct tensor *value, struct error *err)
{
    char found[SHAPE_TEXT_BYTES], wanted[SHAPE_TEXT_BYTES];
    const struct shape *shape = node_attr_shape(node, "_shape");
    return !shape || shape_equal(shape, &value->shape) ||
           fail(err, INTERNAL, "{{node %s}} was to receive %s, and %s has come", node->name,
                shape_text(shape, wanted, sizeof(wanted)),
                shape_text(&value->shape, found, sizeof(found)));
}

static void received(void *arg, const struct tensor *value, bool dead, const struct error *err)
{
    struct dataflow_started *started = arg;
    const struct node *node = started->node->node;
    struct error why;
    if (err) {
        why = *err;
        if (strncmp(why.text, EXECUTE_DERIVED, strlen(EXECUTE_DERIVED)) != 0)
            (void)error_prefix(&why, EXECUTE_DERIVED);
        dataflow_call_post(started, &why);
        return;
    }
    started->dead = dead;
    started->travel_ns = rendezvous_travel();
    if (dead) {
        dataflow_call_post(started, NULL);
    } else if ((int)value->dtype != node->output_types[0]) {
        (void)fail(&why, INTERNAL,
                   "Output 0 of type %s does not match declared output type %s for node "
                   "{{node %s}}",
                   dtype_name(value->dtype), dtype_name(node->output_types[0]), node->name);
        dataflow_call_post(started, &why);
    } else if (!has_shape(node, value, &why)) {
        dataflow_call_post(started, &why);
    } else {
        rendezvous_take(value, &started->received);
        dataflow_call_post(started, NULL);
    }
}

/* It adds what it reads to what this process keeps, and waits for nothing else. */
static bool is_update(const struct dataflow_node *node)
{
    if (!node->step || node->step->kernel->start || node->node->controls_count)
        return false;
    const char *name = node->node->op->name;
    return strstr(name, "Apply") || !strncmp(name, "AssignAdd", 9) ||
           !strncmp(name, "AssignSub", 9);
}

/* Whether the value is used up as soon as it has come. */
static bool is_used_up(const struct dataflow_run *run, const struct dataflow_node *node)
{
    int readers = 0;
    for (int i = 0; i < node->edges_count; i++) {
        const struct dataflow_edge *edge = &run->flow->edges[node->edges_first + i];
        if (edge->output == DATAFLOW_CONTROL)
            continue;
        if (!is_update(&run->flow->nodes[edge->to]))
            return false;
        readers++;
    }
    return readers > 0;
}

bool dataflow_transfer_receive(struct dataflow_run *run, struct dataflow_iteration *iteration,
                               const struct dataflow_node *node, struct error *err)
{
    struct rendezvous *rendezvous;
    if (!find_rendezvous(run, &rendezvous, err))
        return false;
    struct dataflow_started *started = alloc_bytes(sizeof(*started));
    started->run = run;
    started->iteration = iteration;
    started->node = node;
    run->started++;
    struct str key = {0};
    add_key(&key, iteration, node->node);
    attention_keep(true);
    turn_set_wanted(is_used_up(run, node));
    rendezvous_receive(rendezvous, str_text(&key), received, started);
    turn_set_wanted(false);
    attention_keep(false);
    str_release(&key);
    return true;
}

/* --- the end --- */

static void abort_step(void *arg)
{
    struct dataflow_run *run = arg;
    const struct error err = {.code = CANCELLED,
                              .text = EXECUTE_DERIVED "the run was cancelled"};
    rendezvous_abort(run->options->rendezvous, &err);
}

bool dataflow_transfer_open(struct dataflow_run *run, struct error *err)
{
    if (!run->options || !run->options->rendezvous)
        return true;
    return cancel_add(run->step.cancel, abort_step, run, &run->transfer_ticket) ||
           fail(err, CANCELLED, "the run was cancelled before it began");
}

void dataflow_transfer_close(struct dataflow_run *run)
{
    if (run->options && run->options->rendezvous)
        (void)cancel_remove(run->step.cancel, run->transfer_ticket);
}
