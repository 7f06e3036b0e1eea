/*
 * limits.h - every bound in one place: how much may come in, how long one waits.
 *
 * A size from outside is checked against one of these before it sizes anything.
 */
#pragma once

/* Messages from outside */
#define LIMIT_MESSAGE_DEPTH 64                 /* nested protobuf messages */
#define LIMIT_MESSAGE_FIELDS 64000000          /* fields in one message, all levels */
#define LIMIT_MESSAGE_BYTES (INT64_C(2) << 30) /* one protobuf message on a task port */
#define LIMIT_CONTROL_MESSAGE_BYTES (16 << 20) /* one message between server and agent */
#define LIMIT_MESSAGE_EXPANSION 16             /* parsed bytes per byte on the wire ... */
#define LIMIT_MESSAGE_EXPANSION_BASE (4 << 20) /* ... beyond this allowance */

/* Graphs and tensors */
#define LIMIT_GRAPH_NODES 2000000
#define LIMIT_GRAPH_EDGES 10000000
#define LIMIT_NODE_NAME_BYTES 4096
#define LIMIT_GRAPH_FUNCTIONS 100000
#define LIMIT_FUNCTION_DEPTH 100   /* calls inside calls */
#define LIMIT_LOWERED_NODES 300000 /* that the calls of one run may become */
#define LIMIT_TENSOR_RANK 32
#define LIMIT_TENSOR_BYTES (INT64_C(64) << 30)
#define LIMIT_RENDEZVOUS_WAITING 1000000 /* values and receivers of one step */
#define LIMIT_RENDEZVOUS_KEY_BYTES 8192
#define LIMIT_WORKER_STEPS 100000 /* that one worker knows at a time */
#define LIMIT_STEP_BUFFERS 100000 /* of collectives, of one step, that wait */
#define LIMIT_COLLECTIVE_GROUPS 10000
#define LIMIT_COLLECTIVE_GROUP_SIZE 10000 /* devices */
#define LIMIT_COLLECTIVE_INSTANCES 1000000
#define LIMIT_WORKER_THREADS 1024 /* that run parts of steps */
#define LIMIT_CLOSER_THREADS 16   /* that end sessions */
#define LIMIT_WORKER_SESSIONS 10000
#define LIMIT_WORKER_GRAPHS 100000           /* of one session */
#define LIMIT_LIST_ITEMS (1 << 24)           /* tensors in a tensor array, list or stack */
#define LIMIT_LIST_DEPTH 64                  /* lists in lists */
#define LIMIT_META_GRAPH_BYTES (32 << 20)    /* of a spec, decompressed */
#define LIMIT_IMAGE_BYTES (INT64_C(1) << 30) /* the pixels of one image file */

/* Names of jobs, datasets, nodes, artifacts: [A-Za-z0-9._-], not "." or ".." */
#define LIMIT_NAME_BYTES 128

/* HTTP */
#define LIMIT_HTTP_BODY_BYTES (1 << 20)
#define LIMIT_HTTP_URL_BYTES 2048
#define LIMIT_HTTP_CONNECTIONS 4000
#define LIMIT_PAGE_ITEMS 1000

/* JSON */
#define LIMIT_JSON_DEPTH 32
#define LIMIT_JSON_MEMBERS 10000

/* Jobs and nodes */
#define LIMIT_JOB_TASKS 256
#define LIMIT_NODES 10000
#define LIMIT_JOBS_QUEUED 100000

/* Records and logs */
#define LIMIT_RECORD_BYTES (INT64_C(256) << 20) /* one record of an event file */
#define LIMIT_SPOOL_BYTES (INT64_C(64) << 30)   /* decompressed for one dataset */
#define LIMIT_CHECKPOINT_INDEX_BYTES (INT64_C(1) << 30)
#define LIMIT_LOG_LINE_BYTES 16384
#define LIMIT_SHIP_BYTES (1 << 20) /* one batch of a file from agent to server */

/* Files of jobs */
#define LIMIT_FILE_BYTES (64 << 20)               /* one that is uploaded */
#define LIMIT_ARTIFACTS 1000                      /* that one task leaves */
#define LIMIT_ARTIFACTS_BYTES (INT64_C(16) << 30) /* all of them */

/* Copies of them, on nodes that do not see the server's folder */
#define LIMIT_CHECKPOINT_FILES 1000          /* of one job */
#define LIMIT_DATASET_LIST_BYTES (256 << 20) /* dataset.json, which names its files */

/* Datasets that are uploaded */
#define LIMIT_DATASET_PATH_BYTES 255             /* a file's name within its dataset */
#define LIMIT_DESCRIBE_S 600                     /* to find out what is in it */
#define LIMIT_DISK_LEFT_BYTES (INT64_C(1) << 30) /* the disk keeps so much free */

/* Waiting, in milliseconds */
#define LIMIT_RPC_MS 10000
#define LIMIT_CLEANUP_MS 100        /* for parts of a step that is over to end by themselves */
#define LIMIT_WORKER_CALL_MS 300000 /* a worker's answer: it may have a large graph to read */
#define LIMIT_PARTIAL_IDLE_MS 3600000 /* a part of a step for its next call */
#define LIMIT_LONG_POLL_MS 2000
#define LIMIT_SHUTDOWN_MS 5000
