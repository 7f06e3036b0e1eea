/* restart.c - trainyard restart. */

#include "cli/cli.h"
#include "cli/end.h"

int restart_main(int argc, char **argv)
{
    static const struct end end = {
        .usage = "restart JOB...     (a new attempt, from a checkpoint that is written first)",
        .verb = "restart"};
    return end_jobs(argc, argv, &end);
}
