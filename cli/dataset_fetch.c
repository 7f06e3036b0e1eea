/* dataset_fetch.c - downloads datasets whose digests are known. */

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "cli/dataset.h"

#define FETCH_ATTEMPTS 3
#define FETCH_CONNECT_S 20L
#define FETCH_STALL_S 60L
#define TAR_BLOCK_BYTES 512
#define CIFAR_FILE_BYTES 30730000

/* Sizes and digests as their publishers and other projects name them. */
static const struct dataset_source sources[] = {
    {.name = "mnist",
     .url = "https://storage.googleapis.com/cvdf-datasets/mnist/",
     .files_count = 4,
     .files = {{"train-images-idx3-ubyte.gz", 9912422,
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"},
               {"train-labels-idx1-ubyte.gz", 28881,
                "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"},
               {"t10k-images-idx3-ubyte.gz", 1648877,
                "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"},
               {"t10k-labels-idx1-ubyte.gz", 4542,
                "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"}}},
    {.name = "fashion-mnist",
     .url = "https://storage.googleapis.com/tensorflow/tf-keras-datasets/",
     .files_count = 4,
     .files = {{"train-images-idx3-ubyte.gz", 26421880,
                "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"},
               {"train-labels-idx1-ubyte.gz", 29515,
                "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"},
               {"t10k-images-idx3-ubyte.gz", 4422102,
                "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"},
               {"t10k-labels-idx1-ubyte.gz", 5148,
                "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"}}},
    {.name = "cifar10",
     .url = "https://www.cs.toronto.edu/~kriz/",
     .is_archive = true,
     .files_count = 1,
     .files = {{"cifar-10-binary.tar.gz", 170052171,
                "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"}}},
};

const struct dataset_source *dataset_fetch_at(int index)
{
    return index >= 0 && index < ARRAY_LEN(sources) ? &sources[index] : NULL;
}

const struct dataset_source *dataset_fetch_find(const char *name)
{
    for (int i = 0; i < ARRAY_LEN(sources); i++) {
        if (!strcmp(sources[i].name, name))
            return &sources[i];
    }
    return NULL;
}

/* --- one file --- */

struct transfer {
    CURL *curl;
    const struct dataset_file *expected;
    const char *path; /* of the part */
    int fd;
    int64_t size; /* of the part so far */
    bool shows_progress;
    int error_number;
    bool is_too_long;
};

static size_t transfer_write(char *bytes, size_t one, size_t size, void *data)
{
    (void)one;
    struct transfer *transfer = data;
    if (transfer->size + (int64_t)size > transfer->expected->bytes) {
        transfer->is_too_long = true;
        return 0;
    }
    for (size_t done = 0; done < size;) {
        ssize_t count = write(transfer->fd, bytes + done, size - done);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0) {
            transfer->error_number = errno;
            return 0;
        }
        done += (size_t)count;
    }
    transfer->size += (int64_t)size;
    if (transfer->shows_progress)
        fprintf(stderr, "\r  %-32s %3d %%", transfer->expected->name,
                (int)(transfer->size * 100 / transfer->expected->bytes));
    return size;
}

static bool url_is_allowed(const char *url)
{
    static const char *const starts[] = {
        "https://",          "http://127.0.0.1:", "http://127.0.0.1/",
        "http://localhost:", "http://localhost/", "http://[::1]:"};
    for (int i = 0; i < ARRAY_LEN(starts); i++) {
        if (!strncmp(url, starts[i], strlen(starts[i])))
            return true;
    }
    return false;
}

static void transfer_set(struct transfer *transfer, const char *url, char *curl_text)
{
    CURL *curl = transfer->curl;
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "https,http");
    curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "https");
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(curl, CURLOPT_MAXREDIRS, 5L);
    curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, FETCH_CONNECT_S);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, FETCH_STALL_S);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "trainyard");
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, curl_text);
    curl_easy_setopt(curl, CURLOPT_RESUME_FROM_LARGE, (curl_off_t)transfer->size);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, transfer_write);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, transfer);
    if (strncmp(url, "https://", 8) != 0)
        curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
}

/* One request that adds to the part; `*again` says whether another may help. */
static bool transfer_run(struct transfer *transfer, const char *url, bool *again,
                         struct error *err)
{
    char curl_text[CURL_ERROR_SIZE] = "";
    *again = false;
    transfer->curl = curl_easy_init();
    if (!transfer->curl)
        return fail(err, INTERNAL, "cannot start libcurl");
    transfer_set(transfer, url, curl_text);
    CURLcode result = curl_easy_perform(transfer->curl);
    long status = 0;
    curl_easy_getinfo(transfer->curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_cleanup(transfer->curl);
    if (result == CURLE_OK)
        return true;
    if (transfer->error_number) {
        errno = transfer->error_number;
        return error_errno(err, EXHAUSTED, "cannot write %s", transfer->path);
    }
    if (transfer->is_too_long)
        return fail(err, DATA_LOSS, "%s is longer than the %lld bytes expected", url,
                    (long long)transfer->expected->bytes);
    *again = true;
    if (transfer->size && (result == CURLE_RANGE_ERROR || status == 416)) {
        transfer->size = 0; /* the server cannot go on in the middle: from the front again */
        if (ftruncate(transfer->fd, 0) < 0 || lseek(transfer->fd, 0, SEEK_SET) < 0)
            return error_errno(err, UNKNOWN, "cannot write %s", transfer->path);
        return fail(err, UNAVAILABLE, "%s: the server cannot continue a download", url);
    }
    if (result == CURLE_HTTP_RETURNED_ERROR && status < 500)
        *again = false;
    if (result == CURLE_HTTP_RETURNED_ERROR)
        return fail(err, status == 404 ? NOT_FOUND : UNAVAILABLE, "%s: the server answered %ld",
                    url, status);
    return fail(err, UNAVAILABLE, "cannot download %s: %s", url,
                curl_text[0] ? curl_text : curl_easy_strerror(result));
}

/* Compares the complete part with what is expected; a wrong one is removed. */
static bool part_check(const char *part, const char *url, const struct dataset_file *expected,
                       struct error *err)
{
    char found[DATASET_SHA256_TEXT];
    int64_t bytes;
    if (!dataset_files_sha256(part, found, &bytes, err))
        return false;
    if (bytes == expected->bytes && !strcmp(found, expected->sha256))
        return true;
    unlink(part);
    if (bytes != expected->bytes)
        return fail(err, DATA_LOSS, "%s has %lld bytes in place of %lld", url, (long long)bytes,
                    (long long)expected->bytes);
    return fail(err, DATA_LOSS, "%s is not the file expected: its SHA-256 is %s in place of %s",
                url, found, expected->sha256);
}

bool dataset_fetch_file(const char *url, const char *path, const struct dataset_file *expected,
                        struct error *err)
{
    if (!url_is_allowed(url))
        return fail(err, INVALID, "%s: only https is allowed, or http on this machine", url);
    char *part = alloc_printf("%s.part", path);
    struct transfer transfer = {
        .expected = expected, .path = part, .shows_progress = isatty(STDERR_FILENO)};
    struct stat status;
    transfer.fd = open(part, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    bool ok = transfer.fd >= 0 && fstat(transfer.fd, &status) == 0;
    if (!ok)
        error_errno(err, DENIED, "cannot create %s", part);
    if (ok) {
        transfer.size = status.st_size;
        if (transfer.size > expected->bytes)
            transfer.size = ftruncate(transfer.fd, 0);
        lseek(transfer.fd, 0, SEEK_END);
        bool again = true;
        ok = transfer.size == expected->bytes;
        for (int i = 0; !ok && again && i < FETCH_ATTEMPTS; i++)
            ok = transfer_run(&transfer, url, &again, err);
        if (transfer.shows_progress)
            fprintf(stderr, "\n");
        if (ok && fsync(transfer.fd) < 0)
            ok = error_errno(err, EXHAUSTED, "cannot write %s", part);
    }
    if (transfer.fd >= 0)
        close(transfer.fd);
    ok = ok && part_check(part, url, expected, err);
    if (ok && rename(part, path) < 0)
        ok = error_errno(err, EXHAUSTED, "cannot rename %s", part);
    free(part);
    return ok;
}

/* --- archives --- */

/* The size in a header of tar: octal digits. */
static int64_t tar_size(const unsigned char *header)
{
    int64_t size = 0;
    for (int i = 124; i < 136 && header[i] >= '0' && header[i] <= '7'; i++)
        size = size * 8 + (header[i] - '0');
    return size;
}

/* The name's last part if it is one of CIFAR-10's binary files, else NULL. */
static const char *tar_wanted(const char *name)
{
    static const char *const wanted[] = {"data_batch_1.bin", "data_batch_2.bin",
                                         "data_batch_3.bin", "data_batch_4.bin",
                                         "data_batch_5.bin", "test_batch.bin"};
    const char *slash = strrchr(name, '/');
    const char *base = slash ? slash + 1 : name;
    for (int i = 0; i < ARRAY_LEN(wanted); i++) {
        if (!strcmp(base, wanted[i]))
            return wanted[i];
    }
    return NULL;
}

/* Copies `size` bytes and the padding behind them; `out` NULL skips them. */
static bool tar_copy(gzFile archive, int64_t size, FILE *out)
{
    unsigned char block[TAR_BLOCK_BYTES];
    for (int64_t left = size; left > 0; left -= TAR_BLOCK_BYTES) {
        if (gzread(archive, block, TAR_BLOCK_BYTES) != TAR_BLOCK_BYTES)
            return false;
        size_t part = left < TAR_BLOCK_BYTES ? (size_t)left : TAR_BLOCK_BYTES;
        if (out && fwrite(block, 1, part, out) < part)
            return false;
    }
    return true;
}

static bool tar_extract(gzFile archive, const char *archive_path, const char *folder,
                        const char *name, int64_t size, struct error *err)
{
    if (size != CIFAR_FILE_BYTES)
        return fail(err, DATA_LOSS, "%s: %s has %lld bytes in place of %d", archive_path, name,
                    (long long)size, CIFAR_FILE_BYTES);
    char *path = alloc_printf("%s/%s", folder, name);
    FILE *out = fopen(path, "wbe");
    bool ok =
        out && tar_copy(archive, size, out) && fflush(out) == 0 && fsync(fileno(out)) == 0;
    if (!ok)
        error_errno(err, EXHAUSTED, "cannot unpack %s to %s", archive_path, path);
    if (out)
        fclose(out);
    free(path);
    return ok;
}

bool dataset_fetch_unpack(const char *archive_path, const char *folder, struct error *err)
{
    gzFile archive = gzopen(archive_path, "rbe");
    if (!archive)
        return error_errno(err, NOT_FOUND, "cannot read %s", archive_path);
    unsigned char header[TAR_BLOCK_BYTES];
    int found = 0;
    bool ok = true;
    while (ok && gzread(archive, header, TAR_BLOCK_BYTES) == TAR_BLOCK_BYTES && header[0]) {
        char name[101] = "";
        memcpy(name, header, 100);
        const char *wanted = tar_wanted(name);
        int64_t size = tar_size(header);
        if (wanted) {
            ok = tar_extract(archive, archive_path, folder, wanted, size, err);
            found++;
        } else if (!tar_copy(archive, size, NULL)) {
            ok = fail(err, DATA_LOSS, "%s is cut short", archive_path);
        }
    }
    gzclose_r(archive);
    if (ok && found != 6)
        ok = fail(err, DATA_LOSS, "%s holds %d of the 6 files expected", archive_path, found);
    return ok;
}

bool dataset_fetch(const struct dataset_source *source, const char *url, const char *folder,
                   struct error *err)
{
    bool ok = true;
    const char *base = url ? url : source->url;
    for (int i = 0; ok && i < source->files_count; i++) {
        const char *name = source->files[i].name;
        char *path = alloc_printf("%s/%s", folder, name);
        char *from =
            alloc_printf("%s%s%s", base, base[strlen(base) - 1] == '/' ? "" : "/", name);
        if (access(path, F_OK) != 0)
            ok = dataset_fetch_file(from, path, &source->files[i], err);
        if (ok && source->is_archive) {
            ok = dataset_fetch_unpack(path, folder, err);
            unlink(path);
        }
        free(from);
        free(path);
    }
    return ok;
}
