/* rendezvous_test.c - values and receivers meet, whoever comes first, also across threads. */

#include <pthread.h>

#include "runtime/dataflow_call.h"
#include "runtime/rendezvous.h"
#include "tests/unit/test.h"

#define KEY "/job:a/replica:0/task:0/device:CPU:0;0000000000000001;/job:b;edge;0:"

static struct error err;

struct got {
    int count;
    bool dead;
    double value;
    struct error err;
};

static void get(void *arg, const struct tensor *value, bool dead, const struct error *error)
{
    struct got *got = arg;
    if (error)
        got->err = *error;
    else if (!dead)
        got->value = tensor_number(value, 0);
    got->dead = dead;
    __atomic_add_fetch(&got->count, 1, __ATOMIC_RELEASE);
}

static bool put(struct rendezvous *r, const char *key, double value)
{
    struct tensor tensor;
    CHECK_OK(tensor_init_scalar(&tensor, F32, value, &err), &err);
    bool ok = rendezvous_send(r, key, &tensor, false, &err);
    tensor_release(&tensor);
    return ok;
}

TEST(either_may_come_first)
{
    struct rendezvous *r = rendezvous_new("/job:a/replica:0/task:0", NULL, NULL);
    struct got first = {0}, second = {0}, dead = {0};
    CHECK_OK(put(r, KEY "0", 1), &err);
    rendezvous_receive(r, KEY "0", get, &first);
    CHECK_INT(first.count, 1);
    CHECK(first.value == 1);
    rendezvous_receive(r, KEY "1", get, &second);
    CHECK_INT(second.count, 0);
    CHECK_OK(put(r, KEY "1", 2), &err);
    CHECK(second.value == 2);
    CHECK_OK(rendezvous_send(r, KEY "2", NULL, true, &err), &err);
    rendezvous_receive(r, KEY "2", get, &dead);
    CHECK(dead.dead);
    CHECK_OK(put(r, KEY "3", 1), &err); /* nobody comes */
    rendezvous_unref(r);
}

static void keep(void *arg, const struct tensor *value, bool dead, const struct error *error)
{
    CHECK(!dead && !error);
    rendezvous_take(value, arg);
}

static void send_on(void *arg, const struct tensor *value, bool dead, const struct error *error)
{
    CHECK(!error);
    CHECK_OK(rendezvous_send(arg, KEY "0", value, dead, &err), &err);
}

/* What its giver needs no more is its receiver's alone, on whatever way; else it is shared. */
TEST(a_value_is_given_away)
{
    struct rendezvous *r = rendezvous_new("/job:a/replica:0/task:0", NULL, NULL);
    struct tensor value, got = {0};
    CHECK_OK(tensor_init_scalar(&value, F32, 7, &err), &err);
    rendezvous_receive(r, KEY "0", keep, &got);
    CHECK_OK(rendezvous_send(r, KEY "0", &value, false, &err), &err);
    CHECK(value.buffer && value.buffer == got.buffer);
    tensor_release(&got);

    rendezvous_receive(r, KEY "0", keep, &got);
    rendezvous_give(send_on, r, &value);
    CHECK(!value.buffer);
    CHECK(tensor_is_exclusive(&got));
    CHECK(tensor_number(&got, 0) == 7);

    struct got late = {0};
    rendezvous_give(send_on, r, &got); /* before its receiver */
    CHECK(!got.buffer);
    rendezvous_receive(r, KEY "0", get, &late);
    CHECK(late.value == 7);

    CHECK_OK(tensor_init_scalar(&value, F32, 8, &err), &err);
    rendezvous_give(get, &late, &value); /* who does not take it leaves it */
    CHECK(late.value == 8);
    CHECK(tensor_is_exclusive(&value));
    tensor_release(&value);
    rendezvous_unref(r);
}

/* Of what changes a receiver gets what it is when the two meet, for itself. */
TEST(a_value_may_change_until_it_is_received)
{
    struct rendezvous *r = rendezvous_new("/job:a/replica:0/task:0", NULL, NULL);
    struct tensor value, late = {0}, early = {0};
    CHECK_OK(tensor_init_scalar(&value, F32, 1, &err), &err);
    CHECK_OK(rendezvous_send_changing(r, KEY "0", &value, &err), &err);
    *(float *)value.data = 2;
    rendezvous_receive(r, KEY "0", keep, &late);
    rendezvous_receive(r, KEY "1", keep, &early);
    CHECK_OK(rendezvous_send_changing(r, KEY "1", &value, &err), &err);
    *(float *)value.data = 3;
    CHECK(tensor_number(&late, 0) == 2);
    CHECK(tensor_number(&early, 0) == 2);
    CHECK(tensor_is_exclusive(&value));
    tensor_release(&early);
    tensor_release(&late);
    CHECK_OK(rendezvous_send_changing(r, KEY "2", &value, &err), &err); /* nobody comes */
    tensor_release(&value);
    rendezvous_unref(r);
}

/* Values of one key are received in the order in which they were sent. */
TEST(a_key_used_twice)
{
    struct rendezvous *r = rendezvous_new("/job:a", NULL, NULL);
    struct got got[3] = {{0}};
    CHECK_OK(put(r, KEY "0", 1), &err);
    CHECK_OK(put(r, KEY "0", 2), &err);
    for (int i = 0; i < 3; i++)
        rendezvous_receive(r, KEY "0", get, &got[i]);
    CHECK(got[0].value == 1);
    CHECK(got[1].value == 2);
    CHECK_INT(got[2].count, 0);
    CHECK(rendezvous_withdraw(r, KEY "0", &got[2]));
    CHECK(!rendezvous_withdraw(r, KEY "0", &got[2]));
    rendezvous_unref(r);
}

TEST(an_abort_reaches_all)
{
    struct rendezvous *r = rendezvous_new("/job:a", NULL, NULL);
    struct got waits = {0}, late = {0};
    struct error first = {.code = ABORTED, .text = "first"};
    const struct error second = {.code = INTERNAL, .text = "second"};
    rendezvous_receive(r, KEY "0", get, &waits);
    CHECK_OK(put(r, KEY "9", 1), &err);
    CHECK(!rendezvous_aborted(r, &err));
    rendezvous_abort(r, &first);
    rendezvous_abort(r, &second);
    CHECK_INT(waits.count, 1);
    CHECK_TEXT(waits.err.text, "first");
    rendezvous_receive(r, KEY "9", get, &late);
    CHECK_INT(late.err.code, ABORTED);
    CHECK(!put(r, KEY "1", 1));
    CHECK_TEXT(err.text, "first");
    CHECK(rendezvous_aborted(r, &err));
    rendezvous_unref(r);
}

static struct fetch {
    char key[200];
    rendezvous_receiver *receiver;
    void *arg;
} asked;

static void ask(void *arg, const char *key, rendezvous_receiver *receiver, void *receiver_arg)
{
    struct fetch *fetch = arg;
    snprintf(fetch->key, sizeof(fetch->key), "%s", key);
    fetch->receiver = receiver;
    fetch->arg = receiver_arg;
}

/* Another task is asked; an abort does not wait for its answer, which then comes too late. */
TEST(what_other_tasks_send_is_fetched)
{
    struct rendezvous *r = rendezvous_new("/job:b/replica:0/task:0", ask, &asked);
    struct got got = {0}, lost = {0};
    struct tensor tensor;
    CHECK_OK(tensor_init_scalar(&tensor, F32, 4, &err), &err);
    rendezvous_receive(r, KEY "0", get, &got);
    CHECK_TEXT(asked.key, KEY "0");
    asked.receiver(asked.arg, &tensor, false, NULL);
    CHECK(got.value == 4);
    rendezvous_receive(r, KEY "1", get, &lost);
    struct error end = {.code = CANCELLED, .text = "over"};
    rendezvous_abort(r, &end);
    CHECK_INT(lost.err.code, CANCELLED);
    rendezvous_unref(r);
    asked.receiver(asked.arg, &tensor, false, NULL);
    CHECK_INT(lost.count, 1);
    tensor_release(&tensor);
}

TEST(keys_have_five_parts)
{
    CHECK_OK(rendezvous_check_key(KEY "0", &err), &err);
    CHECK_FAILS(rendezvous_check_key("a;b;c;d", &err), &err, INVALID);
    CHECK_TEXT(err.text, "Invalid  rendezvous key: a;b;c;d");
    CHECK_FAILS(rendezvous_check_key("a;b;c;d;e;f", &err), &err, INVALID);
    CHECK(rendezvous_key_is_from(KEY, "/job:a/replica:0/task:0"));
    CHECK(!rendezvous_key_is_from("/job:a/replica:0/task:10/device:CPU:0;",
                                  "/job:a/replica:0/task:1"));
}

enum { KEYS = 2000 };

static void *send_all(void *arg)
{
    char key[200];
    for (int i = 0; i < KEYS; i++) {
        struct tensor tensor;
        struct error error;
        snprintf(key, sizeof(key), KEY "%d", i);
        if (!tensor_init_scalar(&tensor, F32, i, &error) ||
            !rendezvous_send(arg, key, &tensor, false, &error))
            return arg;
        tensor_release(&tensor);
    }
    return NULL;
}

TEST(threads_meet)
{
    static struct got got[KEYS];
    struct rendezvous *r = rendezvous_new("/job:a", NULL, NULL);
    pthread_t thread;
    char key[200];
    void *bad;
    CHECK(!pthread_create(&thread, NULL, send_all, r));
    for (int i = 0; i < KEYS; i++) {
        snprintf(key, sizeof(key), KEY "%d", i);
        rendezvous_receive(r, key, get, &got[i]);
    }
    CHECK(!pthread_join(thread, &bad));
    CHECK(!bad);
    for (int i = 0; i < KEYS; i++) {
        CHECK_INT(__atomic_load_n(&got[i].count, __ATOMIC_ACQUIRE), 1);
        CHECK(got[i].value == i);
    }
    rendezvous_unref(r);
}

/* What TensorFlow 2.21 was seen to have on the wire. */
TEST(frames_have_tensorflows_ids)
{
    CHECK(dataflow_transfer_hash("") == UINT64_C(0x81769421199f9e3b));
    CHECK(dataflow_transfer_hash("a") == UINT64_C(0x29962dc026eac9fc));
    CHECK(dataflow_transfer_hash(";0;while/while_context") == UINT64_C(0x14c36a76ebc7ef86));
    const struct dataflow_loop loop = {.hash = dataflow_transfer_hash("wh/while_context")};
    const struct dataflow_loop outer = {.hash = dataflow_transfer_hash("out/while_context")};
    const struct dataflow_loop inner = {.hash = dataflow_transfer_hash("out/in/while_context")};
    struct dataflow_frame root = {0}, frame = {0};
    CHECK(dataflow_transfer_frame_id(&root, 0, &loop) == UINT64_C(1486316175881323702));
    frame.id = dataflow_transfer_frame_id(&root, 0, &outer);
    CHECK(frame.id == UINT64_C(17549900023139607827));
    CHECK(dataflow_transfer_frame_id(&frame, 0, &inner) == UINT64_C(419804632738088497));
    CHECK(dataflow_transfer_frame_id(&frame, 1, &inner) == UINT64_C(419804632738087474));
    CHECK(dataflow_transfer_frame_id(&frame, 2, &inner) == UINT64_C(419804632738090551));
}
