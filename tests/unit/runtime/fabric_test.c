/* fabric_test.c - memory of another process read over UCX, by each way that this machine has.
 */

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/worker/fabric.h"
#include "tests/unit/test.h"

enum { COUNT = 3 << 20 };

struct offer { /* through a pipe */
    size_t address_size;
    struct fabric_key key;
    uint64_t at;
    char address[FABRIC_ADDRESS_BYTES_MAX];
};

/* A process of its own lends COUNT bytes until it is ended. */
static void lend(int to)
{
    struct error err;
    struct offer offer = {0};
    unsigned char *bytes = alloc_bytes(COUNT);
    for (int i = 0; i < COUNT; i++)
        bytes[i] = (unsigned char)(i * 7 + i / 1000);
    if (!fabric_open(&err))
        _exit(3);
    struct fabric_memory *memory = fabric_lend(bytes, COUNT, &offer.key);
    if (!memory)
        _exit(4);
    const void *address = fabric_address(&offer.address_size);
    memcpy(offer.address, address, offer.address_size);
    offer.at = (uint64_t)(uintptr_t)bytes;
    if (write(to, &offer, sizeof(offer)) != (ssize_t)sizeof(offer))
        _exit(5);
    for (;;)
        pause();
}

/* 0 when all bytes came; another number says where it ended. */
static int read_all(const struct offer *offer, pid_t lender)
{
    struct error err;
    unsigned char *bytes = alloc_bytes(COUNT);
    if (!fabric_open(&err))
        return 1;
    struct fabric_peer *peer = fabric_connect(offer->address, offer->address_size, &err);
    if (!peer)
        return 2;
    for (int round = 0; round < 5; round++) {
        memset(bytes, 0, COUNT);
        if (!fabric_read(peer, offer->at, &offer->key, bytes, COUNT, &err)) {
            fprintf(stderr, "%s\n", err.text);
            return 3;
        }
        for (int i = 0; i < COUNT; i++)
            if (bytes[i] != (unsigned char)(i * 7 + i / 1000))
                return 4;
    }
    if (fabric_read(peer, offer->at, &(struct fabric_key){0}, bytes, COUNT, &err) ||
        err.code != INVALID)
        return 5;
    /* A lender that dies is an error, in time. */
    kill(lender, SIGKILL);
    waitpid(lender, NULL, 0);
    usleep(200000);
    if (fabric_read(peer, offer->at, &offer->key, bytes, COUNT, &err) ||
        err.code != UNAVAILABLE)
        return 6;
    fabric_disconnect(peer);
    free(bytes);
    fabric_close();
    return 0;
}

/* Both in processes of their own: UCX reads its settings once. */
static void try(const char *ways)
{
    int pipes[2], status;
    struct offer offer;
    CHECK_INT(setenv("UCX_TLS", ways, 1), 0);
    CHECK_INT(setenv("UCX_LOG_LEVEL", "fatal", 1), 0);
    CHECK_INT(pipe(pipes), 0);
    pid_t lender = fork();
    if (!lender)
        lend(pipes[1]);
    CHECK_INT(read(pipes[0], &offer, sizeof(offer)), sizeof(offer));
    pid_t reader = fork();
    if (!reader)
        _exit(read_all(&offer, lender));
    CHECK_INT(waitpid(reader, &status, 0), reader);
    kill(lender, SIGKILL);
    waitpid(lender, NULL, 0);
    close(pipes[0]);
    close(pipes[1]);
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        CHECK_STOP("UCX_TLS=%s: the reader ended with %x", ways, (unsigned)status);
}

/* Not with ThreadSanitizer, to which UCX's threads and what they share are not told. */
static bool is_there(void)
{
#ifdef __SANITIZE_THREAD__
    return false;
#endif
    int status;
    pid_t child = fork();
    struct error err;
    if (!child)
        _exit(fabric_open(&err) ? 0 : err.code == NOT_FOUND ? 1 : 2);
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) < 2);
    return !WEXITSTATUS(status);
}

TEST(fabric_reads_by_tcp)
{
    if (!is_there()) {
        printf("skip fabric_reads_by_tcp: there is no libucp, or ThreadSanitizer watches\n");
        skip();
    }
    try("tcp");
}

TEST(fabric_reads_by_shared_memory)
{
    if (!is_there())
        skip();
    try("posix,sysv,cma,tcp");
}
