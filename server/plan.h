/*
 * plan.h - what a spec would come to if it were submitted now.
 */
#pragma once

#include <jansson.h>

#include "db/jobs.h"
#include "runtime/model/model.h"

struct request;
struct spec;

#define PLAN_ROLES_MAX 4

struct plan {
    struct db_need needs[PLAN_ROLES_MAX];
    int needs_count;
    int tasks_count;
    bool starts_now;            /* of plan_forecast(), as `text` */
    bool has_model;             /* the dataset says what its examples look like */
    struct model_summary model; /* with has_model; lives in the request's arena */
    char text[400]; /* for a person: "1 task, 1 CPU in all; would start now. 61,706 parameters."
                     */
};

/*
 * Works out what the tasks need and whether that can be had.  Fails with INVALID and a pointer
 * when the dataset is unknown, layers do not fit it or each other, there are more than
 * LIMIT_JOB_TASKS tasks, or no node could ever hold one of them.
 */
bool plan_make(struct request *req, const struct spec *spec, struct plan *plan,
               struct error *err) CHECKED;

/* Adds whether it would start now, and the text.  Fails with UNAVAILABLE. */
bool plan_forecast(struct request *req, struct plan *plan, struct error *err) CHECKED;

/* {text, starts_now, tasks, needs: […], parameters, layers: [{name, layer, output_shape,
 * parameters}]}, owned. */
json_t *plan_json(const struct plan *plan, const struct spec *spec);
