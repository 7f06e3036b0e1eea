/* backup.c - copies of the two databases. */

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "db/backup.h"
#include "db/folder.h"
#include "db/internal.h"

static bool copy_one(const char *folder, const char *to, enum db_file file, struct error *err)
{
    char *source = alloc_printf("%s/%s", folder, db_file_names[file]);
    char *target = alloc_printf("%s/%s", to, db_file_names[file]);
    struct db_conn *conn = db_conn_open(source, false, err);
    bool ok = conn && db_copy(conn, target, err);
    db_conn_close(conn);
    free(source);
    free(target);
    return ok;
}

static void folder_remove(const char *folder)
{
    for (int file = 0; file < 2; file++) {
        char *path = alloc_printf("%s/%s", folder, db_file_names[file]);
        (void)unlink(path);
        free(path);
    }
    (void)rmdir(folder);
}

static bool make_and_fill(const char *folder, const char *partial, struct error *err)
{
    if (mkdir(partial, 0700))
        return error_errno(err, errno == ENOSPC ? EXHAUSTED : DENIED,
                           "cannot make the folder %s", partial);
    return copy_one(folder, partial, DB_METRICS, err) &&
           copy_one(folder, partial, DB_CONTROL, err) && db_folder_sync(partial, err);
}

bool db_backup(const char *folder, const char *to, struct error *err)
{
    char *control = alloc_printf("%s/%s", folder, db_file_names[DB_CONTROL]);
    bool known = access(control, F_OK) == 0;
    free(control);
    if (!known)
        return fail(err, NOT_FOUND, "%s is no folder of a server", folder);
    if (access(to, F_OK) == 0)
        return fail(err, EXISTS, "%s is there already: a backup is a new folder", to);

    char *partial = alloc_printf("%s.partial", to);
    folder_remove(partial); /* of one that was cut off */
    bool ok = make_and_fill(folder, partial, err);
    if (ok && rename(partial, to))
        ok = error_errno(err, DENIED, "cannot rename %s to %s", partial, to);
    if (!ok)
        folder_remove(partial);
    free(partial);
    return ok;
}
