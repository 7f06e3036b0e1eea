/* nodes_test.c - what is stored of a node comes back, field by field. */

#include "base/arena.h"
#include "db/nodes.h"
#include "tests/unit/db/folder.h"

static bool set(struct db_conn *conn, void *node, struct error *err)
{
    return db_nodes_set(conn, node, "joined", 5, err);
}

TEST(db_nodes_come_back_whole)
{
    struct error err;
    char *folder = folder_new();
    struct arena *arena = arena_new();
    struct db *db = db_open(folder, &err);
    if (!db)
        CHECK_STOP("%s", err.text);
    struct db_node node = {.id = 3,
                           .name = "n3",
                           .identity = "secret",
                           .boot_id = "boot",
                           .version = "1",
                           .labels = "{}",
                           .epoch = 7,
                           .state = NODE_SUSPECT,
                           .draining = true,
                           .cpu_millis = 4000,
                           .memory_bytes = INT64_C(1) << 40,
                           .gpus = 2,
                           .gpu_type = "big",
                           .gpu_memory_bytes = INT64_C(1) << 36,
                           .joined_us = 123,
                           .asked_us = 456};
    /* Twice: the second time the row is there already. */
    for (int round = 0; round < 2; round++) {
        node.epoch += round;
        node.asked_us += round;
        CHECK_OK(db_write(db, DB_CONTROL, set, &node, &err), &err);
        struct db_node *found;
        int count = 0;
        struct db_conn *conn = db_read(db, DB_CONTROL, &err);
        CHECK_OK(conn && db_nodes_list(conn, arena, &found, &count, &err), &err);
        db_read_done(db, conn);
        CHECK_INT(count, 1);
        CHECK_INT(found->id, 3);
        CHECK_TEXT(found->name, "n3");
        CHECK_TEXT(found->identity, "secret");
        CHECK_TEXT(found->boot_id, "boot");
        CHECK_INT(found->epoch, 7 + round);
        CHECK_INT(found->state, NODE_SUSPECT);
        CHECK_INT(found->draining, true);
        CHECK_INT(found->cpu_millis, 4000);
        CHECK_INT(found->memory_bytes, INT64_C(1) << 40);
        CHECK_INT(found->gpus, 2);
        CHECK_TEXT(found->gpu_type, "big");
        CHECK_INT(found->gpu_memory_bytes, INT64_C(1) << 36);
        CHECK_INT(found->joined_us, 123);
        CHECK_INT(found->asked_us, 456 + round);
    }
    db_close(db);
    arena_free(arena);
    folder_free(folder);
}
