/* shared_memory_test.c - memory that other processes map, and buffers in it. */

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/buffer_shared.h"
#include "runtime/resource.h"
#include "runtime/shared_memory.h"
#include "tests/unit/test.h"

#define SIZE ((size_t)5 << 20)
#define LARGE_PAGE ((size_t)2 << 20)

static struct error err;

static char *bytes_of(const struct shared_memory *memory)
{
    return memory->data;
}

/* What `memory` has for another process, which may write there: the exit status of that. */
static int look(const struct shared_memory *memory, bool writable)
{
    pid_t owner = getpid(), child = fork();
    if (!child) {
        struct shared_memory there;
        if (!shared_memory_open(&there, owner, memory->file, SIZE, writable))
            _exit(255);
        int seen = bytes_of(&there)[SIZE - 1];
        if (writable)
            bytes_of(&there)[0] = 9;
        shared_memory_free(&there);
        _exit(seen);
    }
    int status;
    CHECK_INT(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(another_process_maps_it)
{
    struct shared_memory memory;
    CHECK(shared_memory_new(&memory, SIZE));
    CHECK(memory.size >= SIZE && (uintptr_t)memory.data % LARGE_PAGE == 0);
    CHECK_INT(bytes_of(&memory)[SIZE - 1], 0);
    bytes_of(&memory)[SIZE - 1] = 7;
    CHECK_INT(look(&memory, false), 7);
    CHECK_INT(bytes_of(&memory)[0], 0);
    CHECK_INT(look(&memory, true), 7);
    CHECK_INT(bytes_of(&memory)[0], 9);
    shared_memory_free(&memory);
    CHECK_INT(fcntl(memory.file, F_GETFD), -1);
}

/* Who maps it reads on when its owner has given it up. */
TEST(it_lasts_as_long_as_anybody_has_it)
{
    struct shared_memory memory, there;
    CHECK(shared_memory_new(&memory, SIZE));
    bytes_of(&memory)[5] = 3;
    CHECK(ftruncate(memory.file, 1));
    CHECK(shared_memory_open(&there, getpid(), memory.file, SIZE, false));
    shared_memory_free(&memory);
    CHECK_INT(bytes_of(&there)[5], 3);
    shared_memory_free(&there);
}

/* Files that are none, that are too short, and that could be made so while they are read. */
TEST(what_does_not_last_is_not_mapped)
{
    struct shared_memory memory, there;
    int pipes[2];
    CHECK(!pipe(pipes));
    CHECK(shared_memory_new(&memory, SIZE));
    int other = memfd_create("other", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    CHECK(other >= 0 && !ftruncate(other, (off_t)memory.size));
    pid_t self = getpid();
    CHECK(!shared_memory_open(&there, self, pipes[0], SIZE, false));
    CHECK(!shared_memory_open(&there, self, other, SIZE, false));
    CHECK(!shared_memory_open(&there, self, memory.file, memory.size + 1, false));
    CHECK(!shared_memory_open(&there, self, memory.file, SIZE_MAX - 5, false));
    CHECK(!shared_memory_open(&there, self, memory.file, 0, false));
    CHECK(!shared_memory_open(&there, self, -1, SIZE, false));
    CHECK(!shared_memory_open(&there, self, 0, SIZE, false));
    CHECK(!shared_memory_open(&there, self, 100000, SIZE, false));
    CHECK(!fcntl(other, F_ADD_SEALS, F_SEAL_SHRINK));
    CHECK(shared_memory_open(&there, self, other, SIZE, false));
    shared_memory_free(&there);
    shared_memory_free(&memory);
    close(other);
    close(pipes[0]);
    close(pipes[1]);
}

/* A limit on files ends no process. */
TEST(where_there_is_none_that_is_said)
{
    struct shared_memory memory;
    struct rlimit before, limit;
    CHECK(!getrlimit(RLIMIT_FSIZE, &before));
    limit = (struct rlimit){SIZE / 2, before.rlim_max};
    CHECK(!setrlimit(RLIMIT_FSIZE, &limit));
    bool made = shared_memory_new(&memory, SIZE);
    CHECK(!setrlimit(RLIMIT_FSIZE, &before));
    CHECK(!made);
    CHECK(!shared_memory_new(&memory, SIZE_MAX));
    CHECK(!shared_memory_new(&memory, 0));
}

/* --- buffers --- */

static struct tensor sent(int count)
{
    struct tensor value;
    buffer_share_large();
    CHECK_OK(tensor_init_sent(&value, F32, &SHAPE(count), &err), &err);
    return value;
}

TEST(large_tensors_that_are_sent_are_in_such_memory)
{
    struct tensor large = sent(1500000), small = sent(1000), bools, strings;
    CHECK(large.buffer->file > 0 && large.data == large.buffer->data);
    CHECK(!small.buffer->file);
    CHECK_OK(tensor_init_sent(&strings, STRING, &SHAPE(1500000), &err), &err);
    CHECK(!strings.buffer->file);
    CHECK_OK(tensor_init(&bools, BOOL, &SHAPE(15000000), &err), &err);
    CHECK(!bools.buffer->file);
    tensor_release(&large);
    tensor_release(&small);
    tensor_release(&bools);
    tensor_release(&strings);
    buffer_free_spare();
}

/* Nobody writes it, and nobody else gets its memory, unless it was given back. */
TEST(what_is_borrowed_stays_as_it_is)
{
    struct tensor value = sent(1500000);
    CHECK(tensor_is_exclusive(&value));
    buffer_borrow(value.buffer);
    buffer_borrow(value.buffer);
    CHECK(!tensor_is_exclusive(&value));
    buffer_give_back(value.buffer);
    CHECK(!tensor_is_exclusive(&value));
    buffer_give_back(value.buffer);
    CHECK(tensor_is_exclusive(&value));

    struct shared_memory there;
    CHECK(shared_memory_open(&there, getpid(), value.buffer->file, SIZE, false));
    tensor_f32_mut(&value)[0] = 5;
    buffer_borrow(value.buffer);
    tensor_release(&value); /* never given back */
    struct tensor next = sent(1500000);
    memset(next.data, 0, tensor_bytes(&next));
    CHECK(((float *)there.data)[0] == 5);
    tensor_release(&next);
    shared_memory_free(&there);
    buffer_free_spare();
}

/* The process has files to open besides: what is too much is in other memory. */
TEST(there_are_only_so_many)
{
    enum { MANY = 40 };
    struct tensor values[MANY];
    struct rlimit before, limit;
    buffer_free_spare();
    CHECK(!getrlimit(RLIMIT_NOFILE, &before));
    limit = (struct rlimit){80, before.rlim_max};
    CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
    for (int round = 0; round < 2; round++) {
        int shared = 0;
        for (int i = 0; i < MANY; i++) {
            values[i] = sent(1100000);
            shared += values[i].buffer->file > 0;
        }
        CHECK_INT(shared, 20);
        for (int i = 0; i < MANY; i++)
            tensor_release(&values[i]);
    }
    CHECK(!setrlimit(RLIMIT_NOFILE, &before));
    buffer_free_spare();
    buffer_share_large();
}

/* --- variables --- */

static struct variable *variable_of(struct tensor *value)
{
    struct variable *v = variable_new("v", F32, &value->shape);
    CHECK_OK(variable_assign(v, value, &err), &err);
    tensor_release(value);
    return v;
}

/* One that other tasks have copied some times is moved to where they map it, by an update. */
TEST(a_variable_moves_to_where_it_is_mapped)
{
    struct tensor value;
    buffer_share_large();
    CHECK_OK(tensor_init(&value, F32, &SHAPE(1500000), &err), &err);
    tensor_f32_mut(&value)[7] = 7;
    struct variable *v = variable_of(&value);
    CHECK_OK(variable_make_exclusive(v, &err), &err);
    CHECK(!v->value.buffer->file);
    v->value.buffer->copied = 10;
    CHECK_OK(variable_make_exclusive(v, &err), &err);
    CHECK(v->value.buffer->file > 0);
    CHECK(tensor_f32(&v->value)[7] == 7);

    /* It stays there, and what is mapped stays as it is. */
    const void *before = v->value.data;
    CHECK_OK(variable_make_exclusive(v, &err), &err);
    CHECK(v->value.data == before);
    struct tensor mapped;
    tensor_share(&mapped, &v->value);
    buffer_borrow(mapped.buffer);
    CHECK_OK(variable_make_exclusive(v, &err), &err);
    CHECK(v->value.data != before && v->value.buffer->file > 0);
    buffer_give_back(mapped.buffer);
    tensor_release(&mapped);

    resource_unref(&v->resource);
    buffer_free_spare();
}

/* Its readers here see what it is updated to, other tasks what they were given. */
TEST(a_variable_by_reference_changes_for_its_own_task)
{
    struct tensor value = sent(1500000), here;
    struct variable *v = variable_of(&value);
    v->by_ref = true;
    CHECK(v->value.buffer->file > 0);
    tensor_share(&here, &v->value);
    const void *before = v->value.data;
    CHECK_OK(variable_make_exclusive(v, &err), &err);
    CHECK(v->value.data == before);

    buffer_borrow(here.buffer);
    CHECK_OK(variable_make_exclusive(v, &err), &err);
    CHECK(v->value.data != before && v->value.buffer->file > 0);
    struct tensor next;
    CHECK_OK(tensor_clone(&next, &here, &err), &err);
    before = v->value.data;
    CHECK_OK(variable_assign(v, &next, &err), &err);
    CHECK(v->value.data == before);
    buffer_borrow(v->value.buffer);
    CHECK_OK(variable_assign(v, &next, &err), &err);
    CHECK(v->value.data != before && v->value.buffer->file > 0);

    /* It moves there while nobody reads it: an update may go on elsewhere. */
    tensor_release(&v->value);
    v->value = next;
    v->value.buffer->copied = 10;
    tensor_release(&here);
    tensor_share(&here, &v->value);
    CHECK_OK(variable_make_exclusive(v, &err), &err);
    CHECK(!v->value.buffer->file);
    tensor_release(&here);
    CHECK_OK(variable_make_exclusive(v, &err), &err);
    CHECK(v->value.buffer->file > 0);
    resource_unref(&v->resource);
    buffer_free_spare();
}

/* Another task's memory is given back as soon as its value is kept. */
TEST(a_variable_keeps_no_memory_of_another_task)
{
    struct tensor value = sent(1500000);
    tensor_f32_mut(&value)[7] = 7;
    const void *there = value.data;
    int file = value.buffer->file;
    value.buffer->file = -1; /* as of a tensor that is mapped */
    struct variable *v = variable_new("v", F32, &value.shape);
    CHECK_OK(variable_assign(v, &value, &err), &err);
    CHECK(v->value.data != there && tensor_f32(&v->value)[7] == 7);
    value.buffer->file = file;
    tensor_release(&value);
    resource_unref(&v->resource);
    buffer_free_spare();
}
