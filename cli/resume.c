/* resume.c - trainyard resume. */

#include "cli/cli.h"
#include "cli/end.h"

int resume_main(int argc, char **argv)
{
    static const struct end end = {
        .usage = "resume JOB...     (from the checkpoint)", .verb = "resume", .arrays = true};
    return end_jobs(argc, argv, &end);
}
