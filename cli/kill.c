/* kill.c - trainyard kill. */

#include "cli/cli.h"
#include "cli/end.h"

int kill_main(int argc, char **argv)
{
    static const struct end end = {.usage = "kill JOB...     (at once, without a checkpoint)",
                                   .verb = "kill",
                                   .arrays = true};
    return end_jobs(argc, argv, &end);
}
