/* path.c - what may name a file of somebody else. */

#include "base/path.h"
#include "base/str.h"

bool path_is_below(const char *path)
{
    size_t size = strlen(path);
    int depth = 0;
    if (!size || size > PATH_BYTES_MAX || !str_is_utf8(path, size))
        return false;
    for (const char *c = path; *c; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f || *c == '\\')
            return false;
    }
    for (const char *part = path;; part++) {
        size_t part_size = strcspn(part, "/");
        bool dots = (part_size == 1 && part[0] == '.') ||
                    (part_size == 2 && part[0] == '.' && part[1] == '.');
        if (!part_size || part_size > 255 || dots || ++depth > PATH_DEPTH_MAX)
            return false;
        part += part_size;
        if (!*part)
            return true;
    }
}
