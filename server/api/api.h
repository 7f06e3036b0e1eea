/*
 * api.h - the tables of routes, one per file of this folder; each ends with an empty row.
 *
 * To add a route: write its handler in the file of its resource, and its row in that file's
 * table.
 */
#pragma once

#include "server/routes.h"

extern const struct route health_routes[];
extern const struct route session_routes[];
extern const struct route oidc_routes[];
extern const struct route jobs_routes[];
extern const struct route jobs_list_routes[];
extern const struct route jobs_ended_routes[];
extern const struct route tunnel_routes[];
extern const struct route plan_routes[];
extern const struct route arrays_routes[];
extern const struct route story_routes[];
extern const struct route checkpoints_routes[];
extern const struct route metrics_routes[];
extern const struct route points_routes[];
extern const struct route logs_routes[];
extern const struct route graph_routes[];
extern const struct route files_routes[];
extern const struct route follow_routes[];
extern const struct route nodes_routes[];
extern const struct route examples_routes[];
extern const struct route passes_routes[];
extern const struct route queues_routes[];
extern const struct route tokens_routes[];
extern const struct route secrets_routes[];
extern const struct route users_routes[];
extern const struct route members_routes[];
extern const struct route webhooks_routes[];
extern const struct route datasets_routes[];
extern const struct route prometheus_routes[];
extern const struct route openapi_routes[];
