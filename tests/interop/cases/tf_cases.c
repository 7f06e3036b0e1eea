/*
 * tf_cases.c - TensorFlow's recorded answers: every graph is run here, every value compared.
 *
 *   tf-cases [--ref] [--threads N] [--no-optimise] [--without PASS,...] [--only TEXT]
 *            [--but TEXT] [--memory BYTES] [--times N] [--texts] [--master]
 *            [--tasks N [--seed N]] FILE.tfrecord...
 *   tf-cases --graphs FOLDER FILE.tfrecord...     writes each case's GraphDef there
 *   tf-cases --signatures                         prints the signature of every op
 *   tf-cases --ops                                prints the name of each op that we can run
 *
 * Prints a line for each case that failed and for each op that is missing; exits 1 if any
 * failed.  With --memory what a step keeps is limited (session.h); with --times each case is
 * run so often, and must give the same bits.  With --texts errors must have the recorded words.
 * With --master they are sent to TensorFlow's MasterService, served by this process; with
 * --tasks N over so many tasks, each graph cut by chance.  Gradients, which are ours to make,
 * are left out then.
 */

#include "tests/interop/cases/cases.h"

#include <stdlib.h>

#include "base/map.h"
#include "kernels/list.h"
#include "runtime/optimise.h"

int main(int argc, char **argv)
{
    struct case_totals totals = {.missing = map_new()};
    struct case_wanted wanted = {.times = 1};
    bool ref_only = false;
    const char *graphs = NULL;
    int first = 1;
    if (argc == 2 && strcmp(argv[1], "--signatures") == 0) {
        case_signatures_print();
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "--ops") == 0) {
        kernels_add(false);
        case_missing_begin();
        case_missing_print();
        return 0;
    }
    for (; first < argc && strncmp(argv[first], "--", 2) == 0; first++) {
        if (strcmp(argv[first], "--ref") == 0)
            ref_only = true;
        else if (strcmp(argv[first], "--no-optimise") == 0)
            wanted.options.no_optimise = true;
        else if (strcmp(argv[first], "--without") == 0 && first + 1 < argc &&
                 optimise_parse(argv[first + 1], &wanted.options.passes_off))
            first++;
        else if (strcmp(argv[first], "--threads") == 0 && first + 1 < argc)
            wanted.options.threads = (int)strtol(argv[++first], NULL, 10);
        else if (strcmp(argv[first], "--texts") == 0)
            wanted.texts = true;
        else if (strcmp(argv[first], "--memory") == 0 && first + 1 < argc)
            wanted.options.memory_limit = strtoll(argv[++first], NULL, 10);
        else if (strcmp(argv[first], "--times") == 0 && first + 1 < argc)
            wanted.times = (int)strtol(argv[++first], NULL, 10);
        else if (strcmp(argv[first], "--master") == 0)
            wanted.master_tasks = wanted.master_tasks ? wanted.master_tasks : 1;
        else if (strcmp(argv[first], "--tasks") == 0 && first + 1 < argc)
            wanted.master_tasks = (int)strtol(argv[++first], NULL, 10);
        else if (strcmp(argv[first], "--seed") == 0 && first + 1 < argc)
            wanted.seed = strtoull(argv[++first], NULL, 10);
        else if (strcmp(argv[first], "--only") == 0 && first + 1 < argc)
            wanted.only = argv[++first];
        else if (strcmp(argv[first], "--but") == 0 && first + 1 < argc)
            wanted.but = argv[++first];
        else if (strcmp(argv[first], "--graphs") == 0 && first + 1 < argc)
            graphs = argv[++first];
        else
            break;
    }
    if (first >= argc || argv[first][0] == '-' || wanted.master_tasks < 0 ||
        wanted.master_tasks > 8) {
        fprintf(stderr, "usage: tf-cases [--ref] [--threads N] [--no-optimise] "
                        "[--without PASS,...] [--only TEXT] [--but TEXT] [--memory BYTES] "
                        "[--times N] [--texts] [--master] [--tasks 1..8 [--seed N]] "
                        "FILE.tfrecord...\n");
        return 2;
    }
    if (graphs) {
        for (; first < argc; first++)
            case_records_write_graphs(argv[first], graphs);
        return 0;
    }
    kernels_add(ref_only);
    case_missing_begin();
    for (; first < argc; first++)
        case_child_file(argv[first], &wanted, &totals);
    for (int i = 0; i < map_count(totals.missing); i++) {
        int *cases = map_value(totals.missing, i);
        printf("missing %s: %d cases\n", map_key(totals.missing, i), *cases);
        free(cases);
    }
    map_free(totals.missing);
    case_missing_end();
    printf("%d passed, %d failed, %d skipped\n", totals.passed, totals.failed, totals.skipped);
    return totals.failed > 0;
}
