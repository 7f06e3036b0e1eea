/* attention.c - which client a thread attends to. */

#include "proto/attention.h"
#include "proto/channel.h"

struct attention {
    int depth;
    bool gives;                /* it is taking answers: what they have it call is not noted */
    struct rpc_client *client; /* held; NULL: no call was begun */
    bool (*over)(void *arg);   /* while it gives */
    void *arg;
};

static _Thread_local struct attention mine;

void attention_begin(void)
{
    mine.depth++;
}

void attention_end(void)
{
    assert(mine.depth > 0);
    if (--mine.depth || !mine.client)
        return;
    mine.client->transport->client_drop(mine.client);
    mine.client = NULL;
}

void attention_keep(bool keeps)
{
    channel_keep(keeps);
}

void attention_send(void)
{
    channel_send_kept();
}

void attention_note(struct rpc_client *client)
{
    if (!mine.depth || mine.gives || mine.client == client || !client->transport->client_attend)
        return;
    if (mine.client)
        mine.client->transport->client_drop(mine.client);
    mine.client = client;
    client->transport->client_hold(client);
}

struct attention *attention_mine(void)
{
    return mine.client && !mine.gives ? &mine : NULL;
}

void attention_give(bool (*over)(void *arg), void *arg, uint64_t until_ns)
{
    assert(attention_mine());
    mine.gives = true;
    mine.over = over;
    mine.arg = arg;
    mine.client->transport->client_attend(mine.client, over, arg, until_ns);
    mine.gives = false;
}

bool attention_is_over(void)
{
    return mine.gives && mine.over(mine.arg);
}

void attention_call(struct attention *attention)
{
    if (attention != &mine)
        attention->client->transport->client_nudge(attention->client);
}
