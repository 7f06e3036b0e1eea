/*
 * guard_test.c - no convolution writes or reads beyond the memory that oneDNN takes for itself,
 * nor beyond our tensors, packed filters and scratch memory.
 *
 * DESIGN.  This program has posix_memalign(), aligned_alloc() and free() of its own, which the
 * library calls in place of libc's.  While a test has them guarded, a block ends where a page
 * begins that nobody may touch, so the first line of memory beyond it ends the program.
 * Sanitizers bring their own.
 */
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/kernels/sample.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED true
#endif
#endif
#ifndef SANITIZED
#define SANITIZED false

enum { GUARDED_MAX = 4096 };

struct guarded {
    void *block;
    char *pages;
    size_t size; /* of the pages, the one behind the block included */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards: blocks, blocks_count */
static struct guarded blocks[GUARDED_MAX];
static int blocks_count;
static int64_t guarded_total;
static bool guarding;

void __libc_free(void *p);
void *__libc_memalign(size_t alignment, size_t size);

static void *guarded_block(size_t alignment, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t room = (size + alignment + page - 1) / page * page;
    pthread_mutex_lock(&lock);
    struct guarded *free_one = blocks_count < GUARDED_MAX ? &blocks[blocks_count] : NULL;
    char *pages = MAP_FAILED;
    if (free_one)
        pages =
            mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *block = NULL;
    if (pages != MAP_FAILED && !mprotect(pages + room, page, PROT_NONE)) {
        uintptr_t end = (uintptr_t)pages + room;
        block = (void *)((end - size) / alignment * alignment);
        *free_one = (struct guarded){block, pages, room + page};
        blocks_count++;
        guarded_total++;
    }
    pthread_mutex_unlock(&lock);
    return block;
}

int posix_memalign(void **block, size_t alignment, size_t size)
{
    *block = __atomic_load_n(&guarding, __ATOMIC_ACQUIRE) ? guarded_block(alignment, size)
                                                          : __libc_memalign(alignment, size);
    return *block ? 0 : ENOMEM;
}

void *aligned_alloc(size_t alignment, size_t size)
{
    void *block;
    return posix_memalign(&block, alignment, size) ? NULL : block;
}

static bool free_guarded(void *p)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < blocks_count && !found; i++) {
        if (blocks[i].block != p)
            continue;
        found = true;
        munmap(blocks[i].pages, blocks[i].size);
        blocks[i] = blocks[--blocks_count];
    }
    pthread_mutex_unlock(&lock);
    return found;
}

void free(void *p)
{
    int error = errno;
    if (p && !(__atomic_load_n(&blocks_count, __ATOMIC_ACQUIRE) && free_guarded(p)))
        __libc_free(p);
    errno = error;
}
#endif

static void check(int64_t height, int64_t in, int64_t out, int64_t window, int64_t stride)
{
    const int64_t strides[] = {1, stride, stride, 1};
    const struct attr attrs[] = {attr_int_list("strides", strides, 4),
                                 attr_string("padding", "SAME")};
    struct shape image = SHAPE(3, height, height, in), filter = SHAPE(window, window, in, out);
    int64_t size = (height + stride - 1) / stride;
    struct shape result = SHAPE(3, size, size, out);
    struct sample all[] = {
        {.op = "Conv2D", .inputs = {random_tensor(image), random_tensor(filter)}},
        {.op = "Conv2DBackpropInput",
         .inputs = {ints(image.dims, 4), random_tensor(filter), random_tensor(result)}},
        {.op = "Conv2DBackpropFilter",
         .inputs = {random_tensor(image), ints(filter.dims, 4), random_tensor(result)}},
    };
    for (int i = 0; i < ARRAY_LEN(all); i++) {
        all[i].inputs_count = i ? 3 : 2;
        all[i].attrs = attrs;
        all[i].attrs_count = 2;
        all[i].outputs_count = 1;
        all[i].tolerance = 2e-5;
        check_sample(&all[i]);
    }
}

TEST(convolutions_stay_in_the_librarys_memory)
{
#if !SANITIZED
    static const int64_t channels[] = {1, 3, 8, 12, 17};
    __atomic_store_n(&guarding, true, __ATOMIC_RELEASE);
    for (int i = 0; i < ARRAY_LEN(channels); i++)
        for (int64_t window = 1; window <= 5; window += 2)
            for (int64_t stride = 1; stride <= 2; stride++)
                check(6 + i % 3, channels[i], channels[(i + 3 * window) % ARRAY_LEN(channels)],
                      window, stride);
    __atomic_store_n(&guarding, false, __ATOMIC_RELEASE);
    CHECK(guarded_total > 0); /* the library does ask there for its memory */
#else
    (void)check;
    puts("skip: the sanitizer has memory of its own");
#endif
}
