/*
 * routes.h - the one table of what the server answers.
 *
 * Each file in server/api/ has a table of routes; routes.c lists the tables.  The OpenAPI
 * document is made from them, so a route cannot be missing there.
 */
#pragma once

#include "server/auth.h"

struct error;
struct request;

/*
 * Fills in req->reply and returns true, or returns false: then the dispatcher answers with the
 * problem in `err` (with the status in req->reply.status, if the handler set one).
 */
typedef bool route_handler(struct request *req, struct error *err);

struct route {
    const char *method;
    const char *pattern; /* segments: literal, "{name}" or "{name}:verb" */
    int role;            /* AUTH_PUBLIC, or the lowest that may call it (AUTH_IN_PROJECT) */
    route_handler *handler;
    const char *summary;
    /* "limit:integer cursor:string", and what it reads of the head, "If-Match:header"; NULL:
     * none */
    const char *query;
    const char *body; /* name of the schema, or the media type of a file; NULL: takes none */
    int status;       /* of success */
    /* Name of the schema of the answer, or a media type; NULL: any JSON.  What else may be
     * answered that is no problem follows, by its status: "Job 200:Plan". */
    const char *answer;
};

/* Whether it asks other machines, so that even a GET is called by a worker (workers.h). */
bool routes_waits(const struct route *route);

/* The tables, in the order in which they are documented; each ends with an empty row. */
extern const struct route *const routes_all[];
extern const int routes_all_count;

enum routes_match { ROUTES_FOUND, ROUTES_NO_PATH, ROUTES_NO_METHOD };

/*
 * Finds the route of a method and a decoded path; HEAD counts as GET.  `params` gets copies of
 * the parts that matched {…}, in the arena.  ROUTES_NO_METHOD: `allow` gets "GET, POST".
 */
struct arena;
enum routes_match routes_find(struct arena *arena, const char *method, const char *path,
                              const struct route **route, const char **params,
                              const char **allow);

/*
 * Looks at the head of a request, before its body is taken: who is it (auth.c), which route,
 * may he.  True: it goes on to routes_dispatch(); false: the reply is there already.
 */
bool routes_admit(struct request *req);

/* Calls the handler of a request that was admitted.  Always leaves a reply. */
void routes_dispatch(struct request *req);
