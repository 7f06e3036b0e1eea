/* kill.c - trainyard kill. */

#include "cli/cli.h"
#include "cli/end.h"

int kill_main(int argc, char **argv)
{
    return end_jobs(argc, argv, "kill JOB...     (at once, without a checkpoint)", "kill");
}
