/* archive.c - trainyard archive. */

#include "cli/cli.h"
#include "cli/end.h"

int archive_main(int argc, char **argv)
{
    static const struct end end = {.usage = "archive JOB...     (jobs --archived lists them)",
                                   .verb = "archive",
                                   .undo = "unarchive"};
    return end_jobs(argc, argv, &end);
}
