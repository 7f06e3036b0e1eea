/* archive_test.c - zip files: what is written is read, what is damaged is refused. */

#include "base/alloc.h"
#include "base/str.h"
#include "runtime/io/archive.h"
#include "runtime/io/file.h"
#include "tests/unit/folder.h"

static const char text[] = "a line that is said again and again, a line that is said again";

static void write_some(const char *path)
{
    struct error err;
    char *large = alloc_bytes(3 << 20);
    const struct archive_entry entries[] = {{"metadata.json", text, sizeof(text), false},
                                            {"deflated/zeros.bin", large, 3 << 20, true},
                                            {"empty", "", 0, false}};
    CHECK_OK(archive_write(path, entries, ARRAY_LEN(entries), &err), &err);
    free(large);
}

TEST(what_is_written_is_read)
{
    struct error err;
    struct str out = {0};
    const char *path = folder_path("a.zip");
    write_some(path);
    struct archive *archive = archive_open(path, &err);
    CHECK_OK(archive, &err);
    CHECK_INT(archive_count(archive), 3);
    CHECK_TEXT(archive_name(archive, 1), "deflated/zeros.bin");
    CHECK_INT(archive_find(archive, "empty"), 2);
    CHECK_INT(archive_find(archive, "none"), -1);
    CHECK_OK(archive_read(archive, 0, 1000, &out, &err), &err);
    CHECK_INT(out.size, sizeof(text));
    CHECK(!memcmp(out.data, text, sizeof(text)));
    CHECK_OK(archive_read(archive, 1, 4 << 20, &out, &err), &err);
    CHECK_INT(out.size, 3 << 20);
    CHECK_INT(out.data[(3 << 20) - 1], 0);
    CHECK_FAILS(archive_read(archive, 1, 1000, &out, &err), &err, EXHAUSTED);
    CHECK(strstr(err.text, "deflated/zeros.bin") && strstr(err.text, "1000"));
    CHECK_OK(archive_read(archive, 2, 0, &out, &err), &err);
    CHECK_INT(out.size, 0);
    archive_close(archive);
    str_release(&out);
}

TEST(the_same_entries_give_the_same_bytes)
{
    struct error err;
    struct str a = {0}, b = {0};
    write_some(folder_path("b.zip"));
    CHECK_OK(file_read(folder_path("b.zip"), 1 << 20, &a, &err), &err);
    write_some(folder_path("c.zip"));
    CHECK_OK(file_read(folder_path("c.zip"), 1 << 20, &b, &err), &err);
    CHECK_INT(a.size, b.size);
    CHECK(!memcmp(a.data, b.data, a.size));
    str_release(&a);
    str_release(&b);
}

/* Every byte of the file changed, one after the other: an error, or what was written. */
TEST(damage_is_told)
{
    struct error err;
    struct str bytes = {0}, out = {0};
    const struct archive_entry entry = {"x", text, sizeof(text), true};
    CHECK_OK(archive_write(folder_path("d.zip"), &entry, 1, &err), &err);
    CHECK_OK(file_read(folder_path("d.zip"), 1 << 20, &bytes, &err), &err);
    int refused = 0;
    for (size_t i = 0; i < bytes.size; i++) {
        bytes.data[i] ^= 0x10;
        struct archive *archive = archive_open_bytes("d.zip", bytes.data, bytes.size, &err);
        if (archive && archive_count(archive) == 1 &&
            archive_read(archive, 0, 1000, &out, &err))
            CHECK(out.size == sizeof(text) && !memcmp(out.data, text, sizeof(text)));
        else
            refused++;
        archive_close(archive);
        bytes.data[i] ^= 0x10;
    }
    CHECK(refused > 40);
    CHECK_FAILS(archive_open_bytes("d.zip", text, sizeof(text), &err), &err, DATA_LOSS);
    CHECK(strstr(err.text, "d.zip"));
    CHECK_FAILS(archive_open(folder_path("nowhere.zip"), &err), &err, NOT_FOUND);
    str_release(&bytes);
    str_release(&out);
}
