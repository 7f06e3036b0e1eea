/* archive.c - zip files, over libzip. */

#include "runtime/io/archive.h"

#include <errno.h>
#include <zip.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/io/file.h"

#define ARCHIVE_DOS_DATE 0x21 /* 1 January 1980, the first that the format knows */

struct archive {
    zip_t *zip;
    char *path;
    int count;
};

static bool refuse(struct error *err, const char *path, zip_error_t *why)
{
    if (zip_error_system_type(why) == ZIP_ET_SYS && zip_error_code_system(why)) {
        errno = zip_error_code_system(why);
        return file_error(err, "read", path);
    }
    enum error_code code = DATA_LOSS;
    if (zip_error_code_zip(why) == ZIP_ER_MEMORY)
        code = EXHAUSTED;
    else if (zip_error_code_zip(why) == ZIP_ER_NOENT)
        code = NOT_FOUND;
    return fail(err, code, "%s is no zip file that can be read: %s", path,
                zip_error_strerror(why));
}

/* Takes the source. */
static struct archive *open_source(const char *path, zip_source_t *source, zip_error_t *why,
                                   struct error *err)
{
    zip_t *zip = source ? zip_open_from_source(source, ZIP_RDONLY, why) : NULL;
    if (!zip) {
        zip_source_free(source);
        refuse(err, path, why);
        zip_error_fini(why);
        return NULL;
    }
    zip_error_fini(why);
    zip_int64_t count = zip_get_num_entries(zip, 0);
    if (count > ARCHIVE_ENTRIES_MAX) {
        zip_discard(zip);
        return fail_null(err, EXHAUSTED, "%s has %lld entries, allowed: at most %d", path,
                         (long long)count, ARCHIVE_ENTRIES_MAX);
    }
    struct archive *archive = alloc_bytes(sizeof(*archive));
    *archive = (struct archive){zip, alloc_text(path), (int)count};
    return archive;
}

struct archive *archive_open(const char *path, struct error *err)
{
    zip_error_t why;
    zip_error_init(&why);
    return open_source(path, zip_source_file_create(path, 0, -1, &why), &why, err);
}

struct archive *archive_open_bytes(const char *name, const void *bytes, size_t size,
                                   struct error *err)
{
    zip_error_t why;
    zip_error_init(&why);
    return open_source(name, zip_source_buffer_create(bytes, size, 0, &why), &why, err);
}

void archive_close(struct archive *archive)
{
    if (!archive)
        return;
    zip_discard(archive->zip);
    free(archive->path);
    free(archive);
}

int archive_count(const struct archive *archive)
{
    return archive->count;
}

const char *archive_name(const struct archive *archive, int index)
{
    const char *name = zip_get_name(archive->zip, (zip_uint64_t)index, 0);
    return name ? name : "";
}

int archive_find(const struct archive *archive, const char *name)
{
    for (int i = 0; i < archive->count; i++) {
        if (!strcmp(archive_name(archive, i), name))
            return i;
    }
    return -1;
}

/* All of an opened entry; one byte more than it claims would be a lie. */
static bool read_all(zip_file_t *file, int64_t claimed, struct str *out)
{
    const int64_t step = 1 << 20;
    char last;
    str_clear(out);
    while ((int64_t)out->size < claimed) {
        int64_t room = claimed - (int64_t)out->size;
        size_t before = out->size;
        if (room > step)
            room = step;
        zip_int64_t got = zip_fread(file, str_extend(out, (size_t)room), (zip_uint64_t)room);
        out->size = before + (got > 0 ? (size_t)got : 0);
        if (got <= 0)
            return false;
    }
    return zip_fread(file, &last, 1) == 0; /* also where the checksum is compared */
}

bool archive_read(struct archive *archive, int index, int64_t bytes_max, struct str *out,
                  struct error *err)
{
    const char *name = archive_name(archive, index);
    zip_stat_t info;
    if (zip_stat_index(archive->zip, (zip_uint64_t)index, 0, &info) ||
        !(info.valid & ZIP_STAT_SIZE))
        return fail(err, DATA_LOSS, "%s: entry \"%s\" has no size", archive->path, name);
    if (info.size > (zip_uint64_t)bytes_max)
        return fail(err, EXHAUSTED, "%s: entry \"%s\" has %llu bytes, allowed: at most %lld",
                    archive->path, name, (unsigned long long)info.size, (long long)bytes_max);
    zip_file_t *file = zip_fopen_index(archive->zip, (zip_uint64_t)index, 0);
    bool ok = file && read_all(file, (int64_t)info.size, out);
    if (!ok)
        fail(err, DATA_LOSS, "%s: entry \"%s\" cannot be read: %s", archive->path, name,
             file ? zip_file_strerror(file) : zip_strerror(archive->zip));
    if (file)
        zip_fclose(file);
    return ok;
}

/* --- writing --- */

/* What libzip put together in memory, to the file. */
static bool store(const char *path, zip_source_t *whole, struct error *err)
{
    zip_stat_t info;
    struct str bytes = {0};
    bool ok =
        !zip_source_stat(whole, &info) && info.valid & ZIP_STAT_SIZE && !zip_source_open(whole);
    if (ok) {
        zip_int64_t size = (zip_int64_t)info.size;
        ok = zip_source_read(whole, str_extend(&bytes, info.size), info.size) == size;
        zip_source_close(whole);
    }
    if (!ok)
        fail(err, INTERNAL, "%s cannot be put together: %s", path,
             zip_error_strerror(zip_source_error(whole)));
    ok = ok && file_write(path, bytes.data, bytes.size, err);
    str_release(&bytes);
    return ok;
}

static bool add(zip_t *zip, const struct archive_entry *entry)
{
    zip_source_t *source = zip_source_buffer(zip, entry->bytes, entry->size, 0);
    if (!source)
        return false;
    zip_int64_t index = zip_file_add(zip, entry->name, source, ZIP_FL_ENC_UTF_8);
    if (index < 0) {
        zip_source_free(source);
        return false;
    }
    zip_uint64_t at = (zip_uint64_t)index;
    return !zip_set_file_compression(zip, at, entry->deflate ? ZIP_CM_DEFLATE : ZIP_CM_STORE,
                                     0) &&
           !zip_file_set_dostime(zip, at, 0, ARCHIVE_DOS_DATE, 0);
}

bool archive_write(const char *path, const struct archive_entry *entries, int count,
                   struct error *err)
{
    zip_error_t why;
    zip_error_init(&why);
    zip_source_t *whole = zip_source_buffer_create(NULL, 0, 0, &why);
    if (whole)
        zip_source_keep(whole); /* one reference is the archive's */
    zip_t *zip = whole ? zip_open_from_source(whole, ZIP_CREATE | ZIP_TRUNCATE, &why) : NULL;
    bool ok = zip;
    for (int i = 0; ok && i < count; i++)
        ok = add(zip, &entries[i]);
    ok = ok && !zip_close(zip);
    if (!ok) {
        fail(err, INTERNAL, "%s cannot be put together: %s", path,
             zip ? zip_strerror(zip) : zip_error_strerror(&why));
        if (zip)
            zip_discard(zip);
        else if (whole)
            zip_source_free(whole);
    }
    ok = ok && store(path, whole, err);
    zip_source_free(whole);
    zip_error_fini(&why);
    return ok;
}
