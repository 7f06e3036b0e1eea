/* cancel.c - trainyard cancel. */

#include "cli/cli.h"
#include "cli/end.h"

int cancel_main(int argc, char **argv)
{
    static const struct end end = {.usage = "cancel JOB...     (writes a checkpoint first)",
                                   .verb = "cancel",
                                   .arrays = true};
    return end_jobs(argc, argv, &end);
}
