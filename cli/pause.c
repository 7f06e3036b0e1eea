/* pause.c - trainyard pause. */

#include "cli/cli.h"
#include "cli/end.h"

int pause_main(int argc, char **argv)
{
    static const struct end end = {.usage = "pause JOB...     (writes a checkpoint first)",
                                   .verb = "pause",
                                   .arrays = true};
    return end_jobs(argc, argv, &end);
}
