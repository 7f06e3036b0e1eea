/*
 * plan.h - what a spec would come to if it were submitted now.
 */
#pragma once

#include <jansson.h>

#include "db/jobs.h"
#include "runtime/model/model.h"
#include "scheduler/whatif.h"

struct request;
struct spec;

#define PLAN_ROLES_MAX 4

struct plan {
    struct db_need needs[PLAN_ROLES_MAX];
    int needs_count;
    int tasks_count;
    struct whatif what;         /* of plan_forecast(), as `text` */
    bool has_model;             /* the dataset says what its examples look like */
    struct model_summary model; /* with has_model; lives in the request's arena */
    char text[1000]; /* for a person: "1 task, 1 CPU in all; would start now on n1." */
};

/*
 * Works out what the tasks need and whether that can be had.  Fails with INVALID and a pointer
 * when the dataset is unknown, layers do not fit it or each other, there are more than
 * LIMIT_JOB_TASKS tasks, or no node could ever hold one of them.
 */
bool plan_make(struct request *req, const struct spec *spec, struct plan *plan,
               struct error *err) CHECKED;

/* The same but for the nodes: those of plan_forecast() may be others. */
bool plan_make_for(struct request *req, const struct spec *spec, struct plan *plan,
                   struct error *err) CHECKED;

/* Adds when and where it would start, what it would delay or preempt, and the text.  Fails with
 * INVALID at what is wrong with the nodes, or cannot be held by them; and UNAVAILABLE. */
bool plan_forecast(struct request *req, const struct spec *spec,
                   const struct whatif_node *nodes, int nodes_count, struct plan *plan,
                   struct error *err) CHECKED;

/* {text, starts_now, …} of plan_whatif_json(), with {name, tasks, needs: […], parameters,
 * layers:
 * [{name, layer, output_shape, parameters}]}, owned. */
json_t *plan_json(const struct plan *plan, const struct spec *spec);
