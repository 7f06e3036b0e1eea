/*
 * main.c - load HOST:PORT TOKEN CONNECTIONS SECONDS WHAT METHOD PATH [FILE]: how many requests
 * a second a server answers, and how long each waits.
 *
 * Each connection has a thread that sends the request again and again, with FILE as its body,
 * and waits for its answer, as a script would.  Eight '@' in the body become a number that no
 * other request has.  Prints a line of JSON; exits 1 when an answer was another than 2xx.
 */

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/base.h"
#include "base/clock.h"
#include "base/str.h"

enum { WAITS_MAX = 4000000, MARK_BYTES = 8 };

struct load {
    struct sockaddr_in address;
    struct str request;
    size_t mark; /* where the number goes; 0: nowhere */
    uint64_t end_us;
    atomic_long sent;
    atomic_int failed;
    uint32_t *waits_us; /* of each answer */
};

static bool read_file(const char *path, struct str *text)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    size_t count;
    while ((count = fread(str_extend(text, 4096), 1, 4096, file)) == 4096)
        continue;
    text->size -= 4096 - count;
    fclose(file);
    return true;
}

/* One answer: its head, and as many bytes as that says. */
static bool read_answer(int fd, char *bytes, size_t size)
{
    size_t used = 0;
    const char *body = NULL;
    size_t length = 0;
    while (!body || used < (size_t)(body - bytes) + length) {
        ssize_t count = recv(fd, bytes + used, size - 1 - used, 0);
        if (count <= 0)
            return false;
        used += (size_t)count;
        bytes[used] = 0;
        if (body || !(body = strstr(bytes, "\r\n\r\n")))
            continue;
        body += 4;
        const char *field = strcasestr(bytes, "\r\nContent-Length: ");
        length = field ? strtoul(field + 18, NULL, 10) : 0;
    }
    return strncmp(bytes, "HTTP/1.1 2", 10) == 0;
}

static void *load_main(void *argument)
{
    struct load *load = argument;
    char bytes[65536] = "";
    char *request = alloc_array(load->request.size, 1);
    memcpy(request, load->request.data, load->request.size);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    bool ok = connect(fd, (struct sockaddr *)&load->address, sizeof(load->address)) == 0;
    for (;;) {
        uint64_t asked_us = clock_monotonic_us();
        long number = atomic_fetch_add(&load->sent, 1);
        if (!ok || asked_us >= load->end_us || number >= WAITS_MAX) {
            atomic_fetch_sub(&load->sent, 1);
            break;
        }
        if (load->mark) {
            char text[24];
            snprintf(text, sizeof(text), "%*ld", MARK_BYTES, number);
            memcpy(request + load->mark, text, MARK_BYTES);
        }
        ok = send(fd, request, load->request.size, MSG_NOSIGNAL) ==
                 (ssize_t)load->request.size &&
             read_answer(fd, bytes, sizeof(bytes));
        load->waits_us[number] = (uint32_t)(clock_monotonic_us() - asked_us);
    }
    if (!ok && !atomic_exchange(&load->failed, 1))
        fprintf(stderr, "load: not accepted: %.300s\n", bytes);
    close(fd);
    free(request);
    return NULL;
}

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void print(struct load *load, const char *what, int connections, double seconds)
{
    long count = atomic_load(&load->sent);
    qsort(load->waits_us, (size_t)count, sizeof(*load->waits_us), by_size);
    printf("{\"case\": \"%s, %d connections\", \"value\": %.0f, \"unit\": \"1/s\", \"p50_ms\": "
           "%.3f, \"p99_ms\": %.3f}\n",
           what, connections, (double)count / seconds,
           count ? load->waits_us[count / 2] / 1e3 : 0,
           count ? load->waits_us[count * 99 / 100] / 1e3 : 0);
}

int main(int argc, char **argv)
{
    struct load load = {.address.sin_family = AF_INET};
    struct str body = {0};
    char *colon = argc == 8 || argc == 9 ? strrchr(argv[1], ':') : NULL;
    int connections = colon ? (int)strtol(argv[3], NULL, 10) : 0;
    if (connections < 1 || (argc == 9 && !read_file(argv[8], &body))) {
        fputs("usage: load HOST:PORT TOKEN CONNECTIONS SECONDS WHAT METHOD PATH [FILE]\n",
              stderr);
        return 2;
    }
    str_printf(&load.request,
               "%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"
               "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
               argv[6], argv[7], argv[1], argv[2], body.size);
    const char *mark = body.size ? strstr(str_text(&body), "@@@@@@@@") : NULL;
    if (mark)
        load.mark = load.request.size + (size_t)(mark - body.data);
    str_add_bytes(&load.request, body.data, body.size);
    *colon = 0;
    load.address.sin_port = htons((uint16_t)strtol(colon + 1, NULL, 10));
    inet_pton(AF_INET, argv[1], &load.address.sin_addr);
    load.waits_us = alloc_array(WAITS_MAX, sizeof(*load.waits_us));
    uint64_t start_us = clock_monotonic_us();
    load.end_us = start_us + strtoull(argv[4], NULL, 10) * 1000000;
    pthread_t *threads = alloc_array((size_t)connections, sizeof(*threads));
    for (int i = 0; i < connections; i++)
        if (pthread_create(&threads[i], NULL, load_main, &load))
            return 1;
    for (int i = 0; i < connections; i++)
        pthread_join(threads[i], NULL);
    print(&load, argv[5], connections, (double)(clock_monotonic_us() - start_us) / 1e6);
    free(threads);
    free(load.waits_us);
    str_release(&body);
    str_release(&load.request);
    return atomic_load(&load.failed);
}
