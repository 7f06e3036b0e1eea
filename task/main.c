/* main.c - trainyard-task: the modes that compute.  `trainyard train` runs this program. */

#include <unistd.h>

#include "base/failpoint.h"
#include "kernels/list.h"
#include "task/mode_checkpoint.h"
#include "task/mode_classes.h"
#include "task/mode_dataset.h"
#include "task/mode_evaluate.h"
#include "task/mode_export.h"
#include "task/mode_gpus.h"
#include "task/mode_graph.h"
#include "task/mode_predict.h"
#include "task/mode_serve.h"
#include "task/mode_trace.h"
#include "task/mode_train.h"

/*
 * libgomp reads its settings before main(): how long idle threads spin, above all.  Long
 * spinning starves whoever else needs the core, none costs a wake-up in every step.
 */
static void settle_threads(char **argv)
{
    if (getenv("GOMP_SPINCOUNT") || getenv("OMP_WAIT_POLICY"))
        return;
    setenv("GOMP_SPINCOUNT", "20000", 1);
    char path[4096];
    ssize_t size = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (size <= 0)
        return; /* without /proc it goes on as it is, only slower */
    path[size] = 0;
    execv(path, argv); /* by its own path, so that ps shows the program's name */
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } modes[] = {{"checkpoint", mode_checkpoint}, {"classes", mode_classes},
                 {"dataset", mode_dataset},       {"evaluate", mode_evaluate},
                 {"export", mode_export},         {"gpus", mode_gpus},
                 {"graph", mode_graph},           {"predict", mode_predict},
                 {"trace", mode_trace},           {"train", mode_train}};

    if (!failpoint_arm())
        return 2;
    settle_threads(argv);
    kernels_add(false);
    if (mode_serve_wanted(argc, argv))
        return mode_serve(argc - 1, argv + 1);
    for (int i = 0; argc > 1 && i < ARRAY_LEN(modes); i++) {
        if (!strcmp(argv[1], modes[i].name))
            return modes[i].run(argc - 2, argv + 2);
    }
    fputs("usage: trainyard-task MODE ...; modes:", stderr);
    for (int i = 0; i < ARRAY_LEN(modes); i++)
        fprintf(stderr, "%s %s", i ? "," : "", modes[i].name);
    fputs(" (MODE --help tells more), or --cluster FILE --job NAME --task N for a task of a "
          "cluster\n",
          stderr);
    return 2;
}
