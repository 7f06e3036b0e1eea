/*
 * tf_sessions.c - recorded sessions of TensorFlow's clients and servers, held with ours.
 *
 *   tf-sessions FILE.client.tfrecord... FILE.workers.tfrecord...
 *
 * What clients did is done to masters of ours; what each task of a cluster was asked by masters
 * and other tasks, to a worker of ours in its place.  Prints a line for each call whose answer
 * is another; exits 1 if there was one.
 */

#include <stdlib.h>

#include "kernels/list.h"
#include "tests/interop/sessions/sessions.h"

static bool hold(const char *path, struct session_totals *totals, struct error *err)
{
    struct session_calls calls;
    bool ok = session_calls_read(&calls, path, err);
    if (ok && strstr(path, ".workers."))
        ok = session_worker(&calls, "ps", 0, totals, err) &&
             session_worker(&calls, "worker", 0, totals, err) &&
             session_worker(&calls, "worker", 1, totals, err);
    else if (ok)
        ok = session_clients(&calls, totals, err);
    session_calls_release(&calls);
    return ok;
}

int main(int argc, char **argv)
{
    struct session_totals totals = {0};
    if (argc < 2) {
        fprintf(stderr,
                "usage: tf-sessions FILE.client.tfrecord... FILE.workers.tfrecord...\n");
        return 2;
    }
    kernels_add(false);
    for (int i = 1; i < argc; i++) {
        struct error err;
        if (!hold(argv[i], &totals, &err)) {
            printf("FAIL %s: %s\n", argv[i], err.text);
            totals.failed++;
        }
    }
    printf("%d passed, %d failed, %d left out\n", totals.passed, totals.failed,
           totals.left_out);
    return totals.failed > 0;
}
