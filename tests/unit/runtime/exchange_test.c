/* exchange_test.c - tensors on their way between tasks, and what others send in their place. */
/* Faults of docs/reliability.md: F47. */

#include "runtime/held.h"
#include "tests/unit/runtime/near.h"

/* One message from TensorFlow's method, chunks behind the first from ours; never twice. */
TEST(large_tensors_come_in_both_forms)
{
    static const char stock[] = "/tensorflow.WorkerService/RecvTensor";
    static const struct {
        const char *method;
        enum dtype dtype;
        int count, messages;
    } cases[] = {
        {stock, F32, 3000000, 1},
        {stock, BOOL, 200001, 1},
        {stock, F64, 5, 1},
        {SERVICE_CHUNKS, F32, 3000000, 4},
        {SERVICE_CHUNKS, BOOL, 4194305, 3},
        {SERVICE_CHUNKS, F32, 1048576, 1},
        {SERVICE_CHUNKS, F64, 5, 1},
    };
    start();
    scalar(world, "one", 1);
    struct rpc_client *client = ps_client();
    char key[300];
    send_key(key);
    for (int i = 0; i < ARRAY_LEN(cases); i++) {
        struct tensor value;
        struct got got;
        CHECK_OK(tensor_init(&value, cases[i].dtype, &SHAPE(cases[i].count), &err), &err);
        for (int64_t k = 0; k < value.count; k++)
            tensor_set_number(&value, k, (double)(k % 251 % (value.dtype == BOOL ? 2 : 251)));
        struct wire_receive in = {.step_id = 100 + i, .key = key, .request_id = 7 + i};
        put(in.step_id, key, &value);
        CHECK_OK(receive_from_ps(client, cases[i].method, &in, &got), &err);
        CHECK_INT(got.messages, cases[i].messages);
        CHECK(tensor_equal(&value, &got.incoming.value));
        incoming_release(&got.incoming);
        CHECK(!receive_from_ps(client, cases[i].method, &in, &got));
        CHECK_INT(err.code, ABORTED);
        CHECK(strstr(err.text, "The same RecvTensor request was received twice."));
        incoming_release(&got.incoming);
        tensor_release(&value);
    }
    rpc_client_free(client);
    stop();
}

/* --- more than there is room for --- */

static void await_nothing_held(void)
{
    for (int i = 0; held_bytes() && i < 5000; i++)
        usleep(1000);
    CHECK_INT(held_bytes(), 0);
}

/* A step that needs more fails and says so; nothing of it stays, and smaller ones go on. */
TEST(steps_that_exchange_too_much_fail)
{
    static const enum peer kinds[] = {PEER_STOCK, PEER_FAR, PEER_NEAR};
    start();
    struct edge x = placeholder(world, "x", F32);
    on(2, node1(world, "Neg", "far", on(0, node1(world, "Neg", "ps", x))));
    extend(session, world);
    struct tensor in = zeros(1000000), out;
    const char *feed = "x", *fetch = "far";
    const struct session_run run = {.feeds = &feed,
                                    .feed_values = &in,
                                    .feeds_count = 1,
                                    .fetches = &fetch,
                                    .fetches_count = 1,
                                    .timeout_ms = 20000};
    for (int i = 0; i < ARRAY_LEN(kinds); i++) {
        if (kinds[i] != PEER_NEAR)
            ((struct remote *)cluster->links[0])->peer = kinds[i];
        else
            remote_learn((struct remote *)cluster->links[0], true);
        held_set_max(3000000);
        CHECK_FAILS(cluster_session_run(session, &run, &out, &err), &err, EXHAUSTED);
        CHECK(
            strstr(err.text, "of 3000000 bytes are between tasks already (--exchange-bytes)"));
        await_nothing_held();
        CHECK(fetch_number(session, "x", 3, "far") == 3);
        held_set_max(50000000);
        CHECK_OK(cluster_session_run(session, &run, &out, &err), &err);
        tensor_release(&out);
        await_nothing_held();
    }
    held_set_max(0);
    tensor_release(&in);
    stop();
}

/* Where it waits or arrives: the value in its step, the answer that is being read. */
TEST(each_end_counts_what_it_has)
{
    start();
    scalar(world, "one", 1);
    struct rpc_client *client = ps_client();
    struct tensor value = zeros(1000000);
    struct got got;
    char key[300];
    send_key(key);
    put(400, key, &value);
    CHECK_INT(held_bytes(), 4000000);
    const struct wire_receive in = {.step_id = 400, .key = key, .request_id = 1};
    CHECK_OK(receive_from_ps(client, SERVICE_CHUNKS, &in, &got), &err);
    for (int i = 0; held_bytes() > 4000000 && i < 5000; i++)
        usleep(1000);
    CHECK_INT(held_bytes(), 4000000);
    incoming_release(&got.incoming);
    await_nothing_held();

    struct str head = {0};
    struct incoming incoming = {0};
    wire_write_received_head(&value, true, NULL, NULL, &head);
    held_set_max(3999999);
    CHECK_FAILS(incoming_take(&incoming, head.data, head.size, &err), &err, EXHAUSTED);
    incoming_release(&incoming);
    CHECK_INT(held_bytes(), 0);
    held_set_max(0);
    str_release(&head);
    tensor_release(&value);
    rpc_client_free(client);
    stop();
}

/* --- what another task may send in place of a tensor --- */

static bool take_text(struct incoming *incoming, const struct str *message)
{
    return incoming_take(incoming, message->data, message->size, &err);
}

static void add_size(struct str *out, size_t size)
{
    for (; size > 0x7f; size >>= 7)
        str_add_char(out, (char)(size | 0x80));
    str_add_char(out, (char)size);
}

/* Stock tasks send strings as elements too, their sizes in front: no bytes to be copied. */
TEST(large_strings_of_stock_tasks_are_read)
{
    static const size_t size = 200000;
    struct str elements = {0}, tensor = {0}, answer = {0};
    struct incoming incoming = {0};
    add_size(&elements, size);
    memset(str_extend(&elements, size), 's', size);
    str_add_bytes(&tensor, "\x08\x07\x12\x04\x12\x02\x08\x01\x22", 9); /* string [1] */
    add_size(&tensor, elements.size);
    str_add_bytes(&tensor, elements.data, elements.size);
    str_add_char(&answer, 0x0a);
    add_size(&answer, tensor.size);
    str_add_bytes(&answer, tensor.data, tensor.size);
    CHECK_OK(take_text(&incoming, &answer), &err);
    CHECK_OK(incoming_end(&incoming, &err), &err);
    CHECK_INT(tensor_strings(&incoming.value)[0].size, size);
    CHECK(tensor_strings(&incoming.value)[0].data[size - 1] == 's');
    incoming_release(&incoming);
    str_release(&elements);
    str_release(&tensor);
    str_release(&answer);
}

TEST(chunks_that_do_not_fit_are_refused)
{
    struct tensor value;
    struct str head = {0}, chunk = {0}, whole = {0};
    CHECK_OK(tensor_init(&value, F32, &SHAPE(1000), &err), &err);
    memset(value.data, 0, 4000);
    wire_write_received_head(&value, true, NULL, NULL, &head);
    memset(str_extend(&chunk, 2500), 1, 2500);

    struct incoming incoming = {0};
    CHECK_OK(take_text(&incoming, &head), &err);
    CHECK(!incoming_end(&incoming, &err));
    CHECK_INT(err.code, INTERNAL);
    CHECK_TEXT(err.text, "an answer to RecvTensor ends 4000 bytes before its tensor");
    CHECK_OK(take_text(&incoming, &chunk), &err);
    CHECK(!take_text(&incoming, &chunk));
    CHECK_INT(err.code, INVALID);
    CHECK_TEXT(err.text, "2500 bytes of elements came where 1500 are missing");
    incoming_release(&incoming);

    incoming = (struct incoming){0};
    CHECK(!incoming_end(&incoming, &err));
    /* Elements in the head, and more are said to follow. */
    wire_write_received(&value, false, &whole);
    str_add_bytes(&whole, "\xc0\x3e\xa0\x1f", 4);
    CHECK(!take_text(&incoming, &whole));
    CHECK_INT(err.code, INVALID);
    CHECK(strstr(err.text, "holds elements, and more follow"));
    /* 4,001 bytes, or less than none, for 1,000 floats. */
    head.data[head.size - 2] = (char)0xa1;
    CHECK(!take_text(&incoming, &head));
    CHECK(strstr(err.text, "4001 bytes of elements came for a float tensor of shape [1000]"));
    head.size -= 2;
    str_add_bytes(&head, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10);
    CHECK(!take_text(&incoming, &head));
    CHECK_INT(err.code, INVALID);
    incoming_release(&incoming);
    str_release(&head);
    str_release(&chunk);
    str_release(&whole);
    tensor_release(&value);
}
