/* cancel.c - trainyard cancel. */

#include "cli/cli.h"
#include "cli/end.h"

int cancel_main(int argc, char **argv)
{
    return end_jobs(argc, argv, "cancel JOB...     (writes a checkpoint first)", "cancel");
}
