/* yard.c - a server as serve.c starts it, as far as requests go. */

#include "tests/fuzz/yard.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"
#include "base/log.h"
#include "db/db.h"
#include "db/tokens.h"
#include "db/users.h"
#include "scheduler/loop.h"
#include "server/auth.h"
#include "server/dataset.h"
#include "server/farewell.h"
#include "server/feed.h"
#include "server/http.h"
#include "server/job_replies.h"
#include "server/json_room.h"
#include "server/live.h"
#include "server/request.h"
#include "server/tickets.h"
#include "server/webhooks.h"
#include "tests/fuzz/fuzz.h"

enum { INPUTS_MAX = 5000 };

static struct {
    char folder[64];
    char socket[96];
    struct db *db;
    struct feed *feed;
    struct loop *loop;
    struct webhooks *webhooks;
    struct auth *auth;
    struct job_replies *job_replies;
    struct tickets *tickets;
    struct services services;
    struct live *live;
    struct farewell *farewell;
    struct http *http;
    char token[DB_TOKEN_BYTES];
    int inputs;
} yard;

static int remove_one(const char *path, const struct stat *stat, int kind, struct FTW *where)
{
    (void)stat;
    (void)kind;
    (void)where;
    return remove(path);
}

static void yard_close(void)
{
    if (!yard.db)
        return;
    dataset_describe_end();
    feed_close(yard.feed);
    live_stop(yard.live);
    http_stop(yard.http);
    farewell_free(yard.farewell);
    webhooks_stop(yard.webhooks);
    loop_stop(yard.loop);
    loop_free(yard.loop);
    tickets_free(yard.tickets);
    job_replies_free(yard.job_replies);
    auth_free(yard.auth);
    db_close(yard.db);
    feed_free(yard.feed);
    yard.db = NULL;
    nftw(yard.folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void yard_open(void)
{
    struct error err;
    fuzz_path(yard.folder, "yard");
    snprintf(yard.socket, sizeof(yard.socket), "%s/control.sock", yard.folder);
    nftw(yard.folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    yard.db = db_open(yard.folder, &err);
    FUZZ_CHECK(yard.db);
    yard.feed = feed_new(yard.db, &err);
    yard.loop = loop_new(&(struct loop_options){.db = yard.db}, &err);
    FUZZ_CHECK(yard.feed && yard.loop && loop_start(yard.loop, &err));
    yard.webhooks = webhooks_start(yard.db, yard.feed, false);
    yard.auth = auth_new(yard.db, "http://127.0.0.1:7070", 0);
    yard.tickets = tickets_new();
    yard.job_replies = job_replies_new();
    yard.services = (struct services){.auth = yard.auth,
                                      .tickets = yard.tickets,
                                      .job_replies = yard.job_replies,
                                      .db = yard.db,
                                      .feed = yard.feed,
                                      .loop = yard.loop,
                                      .webhooks = yard.webhooks,
                                      .folder = yard.folder,
                                      .origin = "http://127.0.0.1:7070",
                                      .started_us = clock_monotonic_us(),
                                      .dataset_bytes = 1 << 20};
    yard.live = live_start(&yard.services, &err);
    yard.farewell = farewell_new(&err);
    FUZZ_CHECK(yard.live && yard.farewell);
    yard.http = http_start(&(struct http_options){-1, yard.socket, 2, yard.farewell},
                           &yard.services, yard.live, &err);
    FUZZ_CHECK(yard.http);
    FUZZ_CHECK(db_tokens_add(
        yard.db, &(struct db_token_new){DB_USER_ADMIN, TOKEN_API, ROLE_ADMIN, NULL, "fuzz", 0},
        yard.token, &err));
    yard.inputs = 0;
}

static int connect_local(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", yard.socket);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    FUZZ_CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    return fd;
}

/* As tls.c brings them: no port is used up. */
static int connect_taken(void)
{
    struct sockaddr_in from = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int pair[2];
    FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    FUZZ_CHECK(http_take(yard.http, pair[0], (struct sockaddr *)&from, sizeof(from)));
    return pair[1];
}

/* Whether there is something to read, within so long; libFuzzer's clock may ring meanwhile. */
static bool wait_for(int fd, int quiet_ms)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    int ready;
    while ((ready = poll(&wait, 1, quiet_ms)) < 0)
        FUZZ_CHECK(errno == EINTR);
    return ready > 0;
}

/* Reads on until the text is there (NULL: until the end), or nothing comes for so long. */
static size_t take(int fd, const char *until, int quiet_ms, char *answer, size_t got,
                   size_t size)
{
    answer[got] = 0;
    while (got + 1 < size && !(until && memmem(answer, got, until, strlen(until))) &&
           wait_for(fd, quiet_ms)) {
        ssize_t count = recv(fd, answer + got, size - 1 - got, 0);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            break;
        got += (size_t)count;
        answer[got] = 0;
    }
    return got;
}

/* Sends to a new server what all others build upon, to the end; a new one has no other inputs.
 */
static void talk_first(void)
{
    static const char job[] = "POST /api/v1/jobs HTTP/1.1\r\nHost: 127.0.0.1:7070\r\n"
                              "Connection: close\r\nContent-Type: application/json\r\n"
                              "Content-Length: 21\r\n\r\n{\"command\": [\"true\"]}";
    char answer[4096];
    int fd = connect_local();
    FUZZ_CHECK(send(fd, job, strlen(job), MSG_NOSIGNAL) == (ssize_t)strlen(job));
    take(fd, NULL, 10000, answer, 0, sizeof(answer));
    if (strncmp(answer, "HTTP/1.1 201", 12) != 0)
        fprintf(stderr, "the first job was answered by: %s\n", answer);
    FUZZ_CHECK(!strncmp(answer, "HTTP/1.1 201", 12));
    close(fd);
}

static void yard_ready(void)
{
    static bool begun;
    if (!begun) {
        begun = true;
        FUZZ_CHECK(sodium_init() >= 0);
        json_room_begin();
        signal(SIGPIPE, SIG_IGN);
        log_set_level(LOG_ERROR);
        atexit(yard_close);
    }
    if (yard.db)
        return;
    yard_open();
    talk_first();
}

const char *yard_handshake(void)
{
    static char text[512];
    yard_ready();
    snprintf(text, sizeof(text),
             "GET /api/v1/stream HTTP/1.1\r\nHost: 127.0.0.1:7070\r\nUpgrade: websocket\r\n"
             "Connection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
             "Sec-WebSocket-Version: 13\r\nAuthorization: Bearer %s\r\n\r\n",
             yard.token);
    return text;
}

size_t yard_talk(const char *handshake, const void *bytes, size_t size, const char *until,
                 int quiet_ms, char *answer, size_t answer_size)
{
    size_t got = 0;
    yard_ready();
    int fd = handshake ? connect_taken() : connect_local();
    if (handshake) {
        (void)!send(fd, handshake, strlen(handshake), MSG_NOSIGNAL);
        got = take(fd, "\r\n\r\n", 5000, answer, 0, answer_size);
    }
    /* The server may have refused, and gone, before the last byte. */
    (void)!send(fd, bytes, size, MSG_NOSIGNAL);
    if (!until)
        shutdown(fd, SHUT_WR);
    got = take(fd, until, quiet_ms, answer, got, answer_size);
    close(fd);
    if (++yard.inputs >= INPUTS_MAX)
        yard_close();
    return got;
}
