/* held_test.c - what is between tasks is counted once, and bounded. */

#include <pthread.h>

#include "runtime/held.h"
#include "runtime/tensor.h"
#include "tests/unit/test.h"

static struct error err;

static struct tensor new_tensor(enum dtype dtype, int count)
{
    struct tensor tensor;
    CHECK_OK(tensor_init(&tensor, dtype, &SHAPE(count), &err), &err);
    return tensor;
}

TEST(a_buffer_counts_once)
{
    struct tensor a = new_tensor(F32, 1000), b = new_tensor(F32, 500), shared;
    tensor_share(&shared, &a);
    held_set_max(5000);
    CHECK_OK(held_add(&a, &err) && held_add(&shared, &err), &err);
    CHECK_INT(held_bytes(), 4000);
    CHECK_FAILS(held_add(&b, &err), &err, EXHAUSTED);
    CHECK_TEXT(err.text, "no room for 2000 bytes of a tensor: 4000 of 5000 bytes are between "
                         "tasks already (--exchange-bytes)");
    held_add_again(&shared);
    held_drop(&a);
    held_drop(&shared);
    CHECK_INT(held_bytes(), 4000);
    held_drop(&a);
    CHECK_INT(held_bytes(), 0);
    CHECK_OK(held_add(&b, &err), &err);
    held_drop(&b);
    held_set_max(0);
    CHECK_OK(held_add(&b, &err), &err);
    held_drop(&b);
    tensor_release(&a);
    tensor_release(&b);
    tensor_release(&shared);
}

TEST(strings_count_with_what_they_say)
{
    struct tensor text = new_tensor(STRING, 2);
    tensor_set_string(&text, 1, "0123456789", 10);
    CHECK_OK(held_add(&text, &err), &err);
    CHECK_INT(held_bytes(), 2 * (int)sizeof(struct tensor_string) + 10);
    held_drop(&text);
    CHECK_INT(held_bytes(), 0);
    tensor_release(&text);
}

static void *hold_often(void *arg)
{
    struct error mine;
    for (int i = 0; i < 100000; i++) {
        CHECK_OK(held_add(arg, &mine), &mine);
        held_drop(arg);
    }
    return NULL;
}

TEST(threads_may_be_first_and_last_together)
{
    struct tensor tensor = new_tensor(F32, 1000);
    pthread_t threads[4];
    held_set_max(16000); /* each may reserve it for a moment */
    for (int i = 0; i < 4; i++)
        CHECK(!pthread_create(&threads[i], NULL, hold_often, &tensor));
    for (int i = 0; i < 4; i++)
        CHECK(!pthread_join(threads[i], NULL));
    CHECK_INT(held_bytes(), 0);
    tensor_release(&tensor);
}
