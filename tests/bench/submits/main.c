/*
 * main.c - submits HOST:PORT TOKEN CONNECTIONS SECONDS FILE: how many jobs a second a server
 * takes.
 *
 * Each connection has a thread that posts the spec in FILE again and again and waits for its
 * 201, as a script would.  Prints a line of JSON; exits 1 when an answer was another.
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

struct load {
    struct sockaddr_in address;
    struct str request;
    uint64_t end_us;
    atomic_long done;
    atomic_int failed;
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
    return strncmp(bytes, "HTTP/1.1 201", 12) == 0;
}

static void *load_main(void *argument)
{
    struct load *load = argument;
    char bytes[65536];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    bool ok = connect(fd, (struct sockaddr *)&load->address, sizeof(load->address)) == 0;
    while (ok && clock_monotonic_us() < load->end_us) {
        ok = send(fd, load->request.data, load->request.size, MSG_NOSIGNAL) ==
                 (ssize_t)load->request.size &&
             read_answer(fd, bytes, sizeof(bytes));
        atomic_fetch_add(&load->done, ok);
    }
    if (!ok && !atomic_exchange(&load->failed, 1))
        fprintf(stderr, "submits: not accepted: %.300s\n", bytes);
    close(fd);
    return NULL;
}

int main(int argc, char **argv)
{
    struct load load = {.address.sin_family = AF_INET};
    struct str spec = {0};
    char *colon = argc == 6 ? strrchr(argv[1], ':') : NULL;
    int connections = argc == 6 ? (int)strtol(argv[3], NULL, 10) : 0;
    if (!colon || connections < 1 || !read_file(argv[5], &spec)) {
        fputs("usage: submits HOST:PORT TOKEN CONNECTIONS SECONDS FILE\n", stderr);
        return 2;
    }
    str_printf(&load.request,
               "POST /api/v1/jobs HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"
               "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
               argv[1], argv[2], spec.size);
    str_add_bytes(&load.request, spec.data, spec.size);
    *colon = 0;
    load.address.sin_port = htons((uint16_t)strtol(colon + 1, NULL, 10));
    inet_pton(AF_INET, argv[1], &load.address.sin_addr);
    uint64_t start_us = clock_monotonic_us();
    load.end_us = start_us + strtoull(argv[4], NULL, 10) * 1000000;
    pthread_t *threads = alloc_array((size_t)connections, sizeof(*threads));
    for (int i = 0; i < connections; i++)
        if (pthread_create(&threads[i], NULL, load_main, &load))
            return 1;
    for (int i = 0; i < connections; i++)
        pthread_join(threads[i], NULL);
    double seconds = (double)(clock_monotonic_us() - start_us) / 1e6;
    printf(
        "{\"case\": \"submits on disk, %d connections\", \"value\": %.0f, \"unit\": \"1/s\"}\n",
        connections, (double)atomic_load(&load.done) / seconds);
    free(threads);
    str_release(&spec);
    str_release(&load.request);
    return atomic_load(&load.failed);
}
