/*
 * show.h - what a training run tells the person, or the program, that started it.
 *
 * On a terminal one line that is drawn over; elsewhere a plain line each second; with `json`
 * one object a line, for programs.
 */
#pragma once

#include "base/base.h"
#include "runtime/spec/spec.h"
#include "runtime/train/train.h"

struct error;

struct show {
    bool json;
    bool terminal;                     /* stdout is one, and not json */
    bool drawn;                        /* a progress line stands there, to be drawn over */
    bool held_out;                     /* evaluations are of a validation part */
    const struct train_facts *facts;   /* once it has started */
    uint64_t last_us;                  /* when the last line of progress was shown */
    double sums[SPEC_METRICS_MAX + 1]; /* of each metric, over the points since then */
    int points;
};

void show_init(struct show *show, const struct spec *spec, bool json);
void show_start(struct show *show, const struct spec *spec, const struct train_facts *facts);
void show_report(struct show *show, const struct train_report *report);

/* A plain sentence, on a line of its own. */
void show_line(struct show *show, const char *format, ...) PRINTF_LIKE(2, 3);

/* Why it failed: on stderr, and as the last object with `json`. */
void show_error(struct show *show, const struct error *err);
