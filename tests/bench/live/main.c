/*
 * main.c - live HOST:PORT TOKEN JOB CLIENTS DEAF RATE SECONDS PID: how long a point is on its
 * way to those who watch, and what they cost the server, whose process is PID.
 *
 * CLIENTS websockets follow the metrics of JOB; DEAF of them never read.  RATE points a second
 * are written over REST, each with a step of its own, and timed from before the request to each
 * client that reads it.  With RATE 0 somebody else writes, and a point is timed from its own
 * `time`, in whole milliseconds.  Prints a line of JSON; exits 1 when a client that reads lost
 * its connection, or nothing came.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/base.h"
#include "base/clock.h"
#include "base/str.h"

enum {
    POINTS_MAX = 1000000,
    FIRST_STEP = 10000000, /* so that all have as many digits */
    WAITS_MAX = 4000000,
    CARRIED_MAX = 64, /* what is looked for is shorter */
    DEAF_BYTES = 4096,
    WARM_US = 1000000,
};

static const char step_key[] = "\"step\":1", time_key[] = "\"time\":\"2";

struct client {
    int fd;
    char carried[CARRIED_MAX]; /* the end of what came last */
    size_t carried_size;
};

struct bench {
    struct sockaddr_in address;
    const char *host, *token, *job;
    int clients_count, deaf_count, rate;
    struct client *clients;
    uint64_t begin_us, end_us;
    uint64_t *sent_us; /* of each point */
    uint32_t *waits_us;
    long waits_count, messages, lost;
    bool refused;
};

static int open_connection(const struct bench *bench, int receive_bytes)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (receive_bytes)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes));
    if (connect(fd, (const struct sockaddr *)&bench->address, sizeof(bench->address)) == 0)
        return fd;
    perror("connect");
    exit(1);
}

static bool send_all(int fd, const struct str *bytes)
{
    return send(fd, bytes->data, bytes->size, MSG_NOSIGNAL) == (ssize_t)bytes->size;
}

/* --- clients --- */

/* A text frame as clients send it; the mask of zeros leaves the text as it is. */
static void add_frame(struct str *out, const char *text)
{
    size_t size = strlen(text);
    assert(size < 65536);
    str_add_char(out, (char)0x81);
    str_add_char(out, (char)(size < 126 ? 0x80 | size : 0xfe));
    if (size >= 126) {
        str_add_char(out, (char)(size >> 8));
        str_add_char(out, (char)size);
    }
    str_add_bytes(out, "\0\0\0\0", 4);
    str_add(out, text);
}

static void subscribe(struct bench *bench, struct client *client, bool deaf)
{
    struct str text = {0}, message = {0};
    client->fd = open_connection(bench, deaf ? DEAF_BYTES : 0);
    str_printf(&text,
               "GET /api/v1/stream HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"
               "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
               "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
               bench->host, bench->token);
    char answer[4096];
    size_t used = 0;
    ssize_t count = -1;
    bool ok = send_all(client->fd, &text);
    while (ok && !memmem(answer, used, "\r\n\r\n", 4) && used < sizeof(answer) &&
           (count = recv(client->fd, answer + used, sizeof(answer) - used, 0)) > 0)
        used += (size_t)count;
    if (count <= 0 || memcmp(answer, "HTTP/1.1 101", 12) != 0) {
        fprintf(stderr, "live: no websocket: %.*s\n", (int)used, answer);
        exit(1);
    }
    str_printf(&message,
               "{\"op\":\"subscribe\",\"id\":1,\"topic\":\"job.metrics\",\"job\":\"%s\",\"max_"
               "hz\":100}",
               bench->job);
    str_clear(&text);
    add_frame(&text, str_text(&message));
    if (!send_all(client->fd, &text))
        exit(1);
    str_release(&text);
    str_release(&message);
    fcntl(client->fd, F_SETFL, O_NONBLOCK);
}

static void note(struct bench *bench, uint64_t sent_us, uint64_t now_us)
{
    if (sent_us && now_us >= sent_us && bench->waits_count < WAITS_MAX)
        bench->waits_us[bench->waits_count++] = (uint32_t)(now_us - sent_us);
}

/* "2026-11-25T03:41:08.123Z" */
static uint64_t read_time(const char *text)
{
    struct tm tm = {0};
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S.", &tm);
    return rest ? (uint64_t)timegm(&tm) * 1000000 + strtoul(rest, NULL, 10) * 1000 : 0;
}

/* Times all points whose text ends in `bytes`, and carries the end over. */
static void look_through(struct bench *bench, struct client *client, char *bytes, size_t size)
{
    const char *key = bench->rate ? step_key : time_key;
    uint64_t now_us = clock_monotonic_us(), wall_us = clock_wall_us();
    const char *at = bytes, *end = bytes + size;
    while ((at = memmem(at, (size_t)(end - at), key, strlen(key))) && end - at >= 40) {
        const char *value = at + strlen(key) - 1;
        at = value;
        if (!bench->rate) {
            note(bench, read_time(value), wall_us);
            continue;
        }
        unsigned long point = strtoul(value, NULL, 10) - FIRST_STEP;
        if (point < POINTS_MAX && bench->sent_us[point] > bench->begin_us + WARM_US)
            note(bench, bench->sent_us[point], now_us);
    }
    /* A key that is not whole yet, or whose value is not. */
    const char *keep = at ? at : size < strlen(key) ? bytes : end - strlen(key) + 1;
    client->carried_size = (size_t)(end - keep);
    memmove(client->carried, keep, client->carried_size);
}

static void receive(struct bench *bench, struct client *client)
{
    static char bytes[1 << 20];
    size_t size = client->carried_size;
    memcpy(bytes, client->carried, size);
    ssize_t count = recv(client->fd, bytes + size, sizeof(bytes) - 1 - size, 0);
    if (count < 0 && errno == EAGAIN)
        return;
    if (count <= 0) {
        bench->lost++;
        close(client->fd);
        return;
    }
    bench->messages++;
    size += (size_t)count;
    bytes[size] = 0;
    look_through(bench, client, bytes, size);
}

static void watch(struct bench *bench)
{
    struct epoll_event events[256];
    int poller = epoll_create1(EPOLL_CLOEXEC);
    for (int i = bench->deaf_count; i < bench->clients_count; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &bench->clients[i]};
        epoll_ctl(poller, EPOLL_CTL_ADD, bench->clients[i].fd, &event);
    }
    while (clock_monotonic_us() < bench->end_us) {
        int count = epoll_wait(poller, events, ARRAY_LEN(events), 20);
        for (int i = 0; i < count; i++)
            receive(bench, events[i].data.ptr);
    }
    close(poller);
}

/* --- who writes --- */

static void *write_main(void *argument)
{
    struct bench *bench = argument;
    struct str request = {0}, body = {0};
    char answer[4096];
    int fd = open_connection(bench, 0);
    uint64_t start_us = clock_monotonic_us(), now_us;
    for (int n = 0; n < POINTS_MAX; n++) {
        uint64_t due_us = start_us + (uint64_t)n * 1000000 / (uint64_t)bench->rate;
        while ((now_us = clock_monotonic_us()) < due_us)
            usleep((useconds_t)(due_us - now_us));
        if (now_us > bench->end_us - 500000)
            break;
        str_clear(&request);
        str_clear(&body);
        str_printf(&body,
                   "{\"points\":[{\"step\":%d,\"values\":{\"loss\":%g,\"accuracy\":0.5,"
                   "\"examples_per_second\":12345.5}}]}",
                   FIRST_STEP + n, 1.0 / (n + 1));
        str_printf(&request,
                   "POST /api/v1/jobs/%s/metrics HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer "
                   "%s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                   bench->job, bench->host, bench->token, body.size, str_text(&body));
        bench->sent_us[n] = now_us;
        if (!send_all(fd, &request) || recv(fd, answer, sizeof(answer), 0) < 12 ||
            memcmp(answer, "HTTP/1.1 200", 12) != 0)
            bench->refused = true;
    }
    close(fd);
    return NULL;
}

/* --- what it cost --- */

/* Of the server: processor time in seconds, memory in MiB. */
static void read_cost(const char *pid, double *cpu, double *memory)
{
    char path[64], line[1024] = "";
    snprintf(path, sizeof(path), "/proc/%s/stat", pid);
    FILE *file = fopen(path, "re");
    if (!file || !fgets(line, sizeof(line), file))
        exit(1);
    fclose(file);
    unsigned long user = 0, kernel = 0;
    long pages = 0;
    const char *rest = strrchr(line, ')');
    if (!rest || sscanf(rest + 1,
                        " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %*d %*d %*d %*d "
                        "%*d %*d %*u %*u %ld",
                        &user, &kernel, &pages) != 3)
        exit(1);
    *cpu = (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
    *memory = (double)pages * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void print(struct bench *bench, double cpu_seconds, double seconds, double memory)
{
    long count = bench->waits_count;
    qsort(bench->waits_us, (size_t)count, sizeof(*bench->waits_us), by_size);
    printf("{\"case\": \"point to %d websocket client%s, %d of them deaf, ",
           bench->clients_count, bench->clients_count == 1 ? "" : "s", bench->deaf_count);
    if (bench->rate)
        printf("%d written a second over REST", bench->rate);
    else
        printf("written into an event file");
    printf("\", \"value\": %.1f, \"unit\": \"ms, p99\", \"p50_ms\": %.1f, \"max_ms\": %.1f, "
           "\"messages_per_s\": %.0f, \"cores\": %.3f, \"resident_mib\": %.1f}\n",
           bench->waits_us[count * 99 / 100] / 1e3, bench->waits_us[count / 2] / 1e3,
           bench->waits_us[count - 1] / 1e3, (double)bench->messages / seconds,
           cpu_seconds / seconds, memory);
}

int main(int argc, char **argv)
{
    char *colon = argc == 9 ? strrchr(argv[1], ':') : NULL;
    if (!colon) {
        fputs("usage: live HOST:PORT TOKEN JOB CLIENTS DEAF RATE SECONDS PID\n", stderr);
        return 2;
    }
    struct bench bench = {.address.sin_family = AF_INET,
                          .host = alloc_text(argv[1]),
                          .token = argv[2],
                          .job = argv[3],
                          .clients_count = (int)strtol(argv[4], NULL, 10),
                          .deaf_count = (int)strtol(argv[5], NULL, 10),
                          .rate = (int)strtol(argv[6], NULL, 10)};
    *colon = 0;
    bench.address.sin_port = htons((uint16_t)strtol(colon + 1, NULL, 10));
    inet_pton(AF_INET, argv[1], &bench.address.sin_addr);
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){65536, 65536});
    bench.sent_us = alloc_array(POINTS_MAX, sizeof(*bench.sent_us));
    bench.waits_us = alloc_array(WAITS_MAX, sizeof(*bench.waits_us));
    bench.clients = alloc_array((size_t)bench.clients_count, sizeof(*bench.clients));
    for (int i = 0; i < bench.clients_count; i++)
        subscribe(&bench, &bench.clients[i], i < bench.deaf_count);
    double cpu_before, cpu_after, memory;
    read_cost(argv[8], &cpu_before, &memory);
    bench.begin_us = clock_monotonic_us();
    bench.end_us = bench.begin_us + strtoull(argv[7], NULL, 10) * 1000000;
    pthread_t writer;
    if (bench.rate && pthread_create(&writer, NULL, write_main, &bench))
        return 1;
    watch(&bench);
    read_cost(argv[8], &cpu_after, &memory);
    if (bench.rate)
        pthread_join(writer, NULL);
    if (bench.lost || bench.refused || !bench.waits_count) {
        fprintf(stderr, "live: %ld connections lost, %ld points came%s\n", bench.lost,
                bench.waits_count, bench.refused ? ", some were refused" : "");
        return 1;
    }
    print(&bench, cpu_after - cpu_before, (double)(clock_monotonic_us() - bench.begin_us) / 1e6,
          memory);
    return 0;
}
