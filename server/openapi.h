/*
 * openapi.h - the description of the API for machines (OpenAPI 3.1), made from the table of
 * routes.
 */
#pragma once

#include <jansson.h>

/* The whole document, owned. */
json_t *openapi_document(void);

/* components.schemas (openapi_schemas.c); a row without a name ends it. */
struct openapi_schema {
    const char *name;
    const char *json;
};
extern const struct openapi_schema openapi_schemas[];

/* What is said of a parameter beside its type (openapi_parameters.c), wherever it is taken. */
extern const struct openapi_schema openapi_parameters[];
