/* dataset_test.c - datasets: drawn, described, downloaded from a server of its own. */

#include <fcntl.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <signal.h>
#include <sodium.h>

#include "base/alloc.h"
#include "base/str.h"
#include "cli/dataset.h"
#include "cli/digits.h"
#include "tests/unit/folder.h"
#include "tests/unit/test.h"

/* --- a server that knows one file, and can break off --- */

#define CONTENT_BYTES 300000

static struct {
    struct MHD_Daemon *daemon;
    char url[64];
    char content[CONTENT_BYTES];
    bool ignores_ranges;
    int64_t cut; /* the first answer ends after so many bytes; 0: whole */
    int requests;
} site;

static ssize_t site_read(void *data, uint64_t place, char *out, size_t size)
{
    int64_t start = (int64_t)(intptr_t)data;
    int64_t at = start + (int64_t)place;
    if (site.cut && at >= site.cut)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    int64_t left = (site.cut ? site.cut : CONTENT_BYTES) - at;
    size_t part = (int64_t)size < left ? size : (size_t)left;
    memcpy(out, site.content + at, part);
    return (ssize_t)part;
}

static enum MHD_Result site_answer(void *data, struct MHD_Connection *connection,
                                   const char *url, const char *method, const char *version,
                                   const char *body, size_t *body_size, void **state)
{
    (void)data;
    (void)method;
    (void)version;
    (void)body;
    (void)body_size;
    static int seen;
    if (!*state) {
        *state = &seen;
        return MHD_YES;
    }
    if (site.requests++ > 0)
        site.cut = 0;
    int64_t start = 0;
    unsigned status = MHD_HTTP_OK;
    const char *range = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Range");
    if (range && !site.ignores_ranges) {
        start = strtoll(range + strlen("bytes="), NULL, 10);
        status = MHD_HTTP_PARTIAL_CONTENT;
    }
    struct MHD_Response *response;
    if (strcmp(url, "/file") == 0) {
        response = MHD_create_response_from_callback((uint64_t)(CONTENT_BYTES - start), 4096,
                                                     site_read, (void *)(intptr_t)start, NULL);
    } else {
        status = MHD_HTTP_NOT_FOUND;
        response = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    }
    if (status == MHD_HTTP_PARTIAL_CONTENT) {
        char text[80];
        snprintf(text, sizeof(text), "bytes %lld-%d/%d", (long long)start, CONTENT_BYTES - 1,
                 CONTENT_BYTES);
        MHD_add_response_header(response, "Content-Range", text);
    }
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

/* Starts the server afresh and returns what to expect of its file. */
static struct dataset_file site_start(void)
{
    CHECK(sodium_init() >= 0);
    for (int i = 0; i < CONTENT_BYTES; i++)
        site.content[i] = (char)(i * 2654435761u >> 11);
    site.ignores_ranges = false;
    site.cut = 0;
    site.requests = 0;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    site.daemon = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, site_answer,
                                   NULL, MHD_OPTION_SOCK_ADDR, &address, MHD_OPTION_END);
    CHECK(site.daemon);
    snprintf(site.url, sizeof(site.url), "http://127.0.0.1:%d/file",
             MHD_get_daemon_info(site.daemon, MHD_DAEMON_INFO_BIND_PORT)->port);

    struct dataset_file expected = {.name = "file", .bytes = CONTENT_BYTES};
    unsigned char digest[crypto_hash_sha256_BYTES];
    crypto_hash_sha256(digest, (unsigned char *)site.content, CONTENT_BYTES);
    sodium_bin2hex(expected.sha256, sizeof(expected.sha256), digest, sizeof(digest));
    return expected;
}

static void site_stop(void)
{
    MHD_stop_daemon(site.daemon);
}

static void check_file(const char *path)
{
    struct error err;
    char found[DATASET_SHA256_TEXT];
    int64_t bytes;
    struct dataset_file expected = {0};
    unsigned char digest[crypto_hash_sha256_BYTES];
    crypto_hash_sha256(digest, (unsigned char *)site.content, CONTENT_BYTES);
    sodium_bin2hex(expected.sha256, sizeof(expected.sha256), digest, sizeof(digest));
    CHECK_OK(dataset_files_sha256(path, found, &bytes, &err), &err);
    CHECK_INT(bytes, CONTENT_BYTES);
    CHECK_TEXT(found, expected.sha256);
    char *part = alloc_printf("%s.part", path);
    CHECK(access(part, F_OK) < 0);
    free(part);
}

TEST(dataset_downloads_a_file)
{
    struct error err;
    struct dataset_file expected = site_start();
    CHECK_OK(dataset_fetch_file(site.url, folder_path("a"), &expected, &err), &err);
    check_file(folder_path("a"));
    site_stop();
}

/* The connection breaks in the middle: the rest is asked for, not all again. */
TEST(dataset_download_goes_on)
{
    struct error err;
    struct dataset_file expected = site_start();
    site.cut = 100000;
    CHECK_OK(dataset_fetch_file(site.url, folder_path("b"), &expected, &err), &err);
    CHECK_INT(site.requests, 2);
    check_file(folder_path("b"));
    site_stop();
}

TEST(dataset_download_begins_again_without_ranges)
{
    struct error err;
    struct dataset_file expected = site_start();
    site.cut = 100000;
    site.ignores_ranges = true;
    CHECK_OK(dataset_fetch_file(site.url, folder_path("c"), &expected, &err), &err);
    check_file(folder_path("c"));
    site_stop();
}

TEST(dataset_download_is_checked)
{
    struct error err;
    struct dataset_file expected = site_start();
    expected.sha256[0] = expected.sha256[0] == '0' ? '1' : '0';
    CHECK_FAILS(dataset_fetch_file(site.url, folder_path("d"), &expected, &err), &err,
                DATA_LOSS);
    CHECK(strstr(err.text, expected.sha256));
    CHECK(access(folder_path("d"), F_OK) < 0);
    CHECK(access(folder_path("d.part"), F_OK) < 0);
    expected.bytes = 1000;
    CHECK_FAILS(dataset_fetch_file(site.url, folder_path("d"), &expected, &err), &err,
                DATA_LOSS);
    CHECK(strstr(err.text, "1000"));
    char *missing = alloc_printf("%s-not", site.url);
    CHECK_FAILS(dataset_fetch_file(missing, folder_path("d"), &expected, &err), &err,
                NOT_FOUND);
    free(missing);
    site_stop();
    CHECK_FAILS(dataset_fetch_file(site.url, folder_path("e"), &expected, &err), &err,
                UNAVAILABLE);
    CHECK_FAILS(dataset_fetch_file("http://example.com/x", folder_path("e"), &expected, &err),
                &err, INVALID);
    CHECK_FAILS(dataset_fetch_file("file:///etc/passwd", folder_path("e"), &expected, &err),
                &err, INVALID);
}

TEST(dataset_download_tells_of_a_full_disk)
{
    struct error err;
    struct dataset_file expected = site_start();
    struct rlimit before, limit;
    CHECK(!getrlimit(RLIMIT_FSIZE, &before));
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    limit = (struct rlimit){.rlim_cur = 50000, .rlim_max = before.rlim_max};
    CHECK(!setrlimit(RLIMIT_FSIZE, &limit));
    bool ok = dataset_fetch_file(site.url, folder_path("f"), &expected, &err);
    CHECK(!setrlimit(RLIMIT_FSIZE, &before));
    signal(SIGXFSZ, handler);
    CHECK(!ok);
    CHECK_INT(err.code, EXHAUSTED);
    CHECK(strstr(err.text, "f.part"));
    site_stop();
}

/* --- drawn digits and descriptions --- */

TEST(digits_are_the_same_for_the_same_seed)
{
    uint8_t a[DIGITS_PIXELS], b[DIGITS_PIXELS];
    int seen[10] = {0};
    for (int i = 0; i < 300; i++) {
        int label = digits_draw(7, i, a);
        CHECK_INT(digits_draw(7, i, b), label);
        CHECK(!memcmp(a, b, sizeof(a)));
        digits_draw(8, i, b);
        CHECK(memcmp(a, b, sizeof(a)));
        seen[label]++;
    }
    for (int digit = 0; digit < 10; digit++)
        CHECK(seen[digit] > 10);
}

TEST(dataset_describes_what_was_written)
{
    struct error err;
    struct dataset_files files, back;
    const char *folder = folder_path("digits");
    CHECK(!mkdir(folder, 0700));
    CHECK_OK(digits_write(folder, 30, 20, 1, &err), &err);
    CHECK_OK(dataset_files_describe(folder, &files, &err), &err);
    CHECK_TEXT(files.format, "idx");
    CHECK_INT(files.train_count, 30);
    CHECK_INT(files.test_count, 20);
    CHECK_INT(files.files_count, 4);
    CHECK_INT(files.files[0].bytes, 16 + 30 * 784);
    CHECK_OK(dataset_files_write(folder, "digits", &files, &err), &err);
    CHECK_OK(dataset_files_read(folder, &back, &err), &err);
    CHECK_INT(back.files_count, 4);
    CHECK_TEXT(back.files[3].sha256, files.files[3].sha256);
    CHECK(json_equal(back.columns, files.columns));
    CHECK_INT(json_array_size(back.columns), 2);
    dataset_files_release(&back);
    dataset_files_release(&files);

    CHECK(!truncate(folder_path("digits/t10k-images-idx3-ubyte"), 1000));
    CHECK_FAILS(dataset_files_describe(folder, &files, &err), &err, DATA_LOSS);
    CHECK(strstr(err.text, "t10k-images-idx3-ubyte ends at byte 1000"));
    dataset_files_release(&files);
    CHECK(!unlink(folder_path("digits/t10k-images-idx3-ubyte")));
    CHECK_FAILS(dataset_files_describe(folder, &files, &err), &err, NOT_FOUND);
    dataset_files_release(&files);
    CHECK_FAILS(dataset_files_describe(folder_path("nothing"), &files, &err), &err, NOT_FOUND);
    dataset_files_release(&files);
}

TEST(dataset_sources_are_complete)
{
    for (int i = 0; dataset_fetch_at(i); i++) {
        const struct dataset_source *source = dataset_fetch_at(i);
        CHECK(dataset_fetch_find(source->name) == source);
        CHECK(!strncmp(source->url, "https://", 8));
        for (int f = 0; f < source->files_count; f++) {
            CHECK_INT(strlen(source->files[f].sha256), 64);
            CHECK(source->files[f].bytes > 0);
        }
    }
    CHECK(!dataset_fetch_find("digits"));
}
