/* path_test.c - which names of files may be put below a folder of ours. */

#include "base/alloc.h"
#include "base/path.h"
#include "tests/unit/test.h"

TEST(path_below_a_folder)
{
    static const char *const good[] = {"a", "a.b", "a/b", "..a", "a..", "a/.b/c", "träin.py"};
    for (int i = 0; i < ARRAY_LEN(good); i++)
        CHECK(path_is_below(good[i]));
}

TEST(path_that_leads_elsewhere)
{
    static const char *const bad[] = {
        "",     "/",      "/a",    "a/",   "a//b", ".",    "..",
        "../a", "a/../b", "a/./b", "a/..", "a\\b", "a\nb", "\xff\xfe",
    };
    for (int i = 0; i < ARRAY_LEN(bad); i++)
        CHECK(!path_is_below(bad[i]));
}

TEST(path_of_bounded_length_and_depth)
{
    char path[PATH_BYTES_MAX + 2];
    memset(path, 'a', sizeof(path));
    path[256] = '/';
    path[400] = '\0';
    CHECK(!path_is_below(path)); /* a part of 256 bytes */
    path[255] = '/';
    path[256] = 'a';
    CHECK(path_is_below(path));
    memset(path, 'a', sizeof(path));
    path[200] = path[400] = '/';
    path[PATH_BYTES_MAX + 1] = '\0';
    CHECK(!path_is_below(path));
    path[PATH_BYTES_MAX] = '\0';
    CHECK(path_is_below(path));
    CHECK(path_is_below("a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p"));
    CHECK(!path_is_below("a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q"));
}
