/* remove.c - trainyard remove. */

#include "cli/cli.h"
#include "cli/end.h"

int remove_main(int argc, char **argv)
{
    static const struct end end = {
        .usage =
            "remove JOB...     (that have ended, with their logs, metrics and checkpoints)",
        .verb = "",
        .method = "DELETE"};
    return end_jobs(argc, argv, &end);
}
