/* serve.c - trainyard serve. */

#include "server/serve.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/pem.h"
#include "server/auth.h"

#define SERVE_HOSTS_MAX 8
#define SERVE_RATE_MAX 100000000
#define SERVE_CPUS_MAX 100000
#define SERVE_DAYS_MAX 36500
#define SERVE_BYTES_MAX (INT64_C(1) << 50)
#define SERVE_GPUS_MAX 10000

/* "a,b" into its words, in place of the commas. */
static int split_hosts(char *text, const char **hosts)
{
    int count = 0;
    while (text && *text && count < SERVE_HOSTS_MAX) {
        hosts[count++] = text;
        text += strcspn(text, ",");
        if (*text)
            *text++ = 0;
    }
    return count;
}

static bool check_port(const char *name, int64_t port, int64_t least, struct error *err)
{
    return (port >= least && port <= 65535) ||
           fail(err, INVALID, "--%s is %lld; it must be from %lld to 65535", name,
                (long long)port, (long long)least);
}

static bool check_number(const char *name, int64_t value, int64_t most, struct error *err)
{
    return (value >= 0 && value <= most) ||
           fail(err, INVALID, "--%s is %lld; it must be from 0 to %lld", name, (long long)value,
                (long long)most);
}

int serve_main(int argc, char **argv)
{
    const char *hosts[SERVE_HOSTS_MAX];
    char *allowed = NULL;
    struct serve_options options = {
        .host = "127.0.0.1", .token_rate = AUTH_RATE_DEFAULT, .hosts = hosts};
    struct pem_paths paths = {.option = "agents-"};
    int64_t port = 7070;
    int64_t agents_port = 0;
    int64_t gpus = 0;
    int64_t cpus = 0;
    const struct option_row rows[] = {
        {"dir", OPTION_TEXT, &options.folder,
         "where everything is kept (made if it is missing)"},
        {"port", OPTION_NUMBER, &port, "of the page and the API; 0 takes a free one (7070)"},
        {"host", OPTION_TEXT, &options.host, "address to listen on (127.0.0.1)"},
        {"tls-cert", OPTION_TEXT, &options.tls_certificate,
         "PEM file: the certificate of the page and the API, which are https then"},
        {"tls-key", OPTION_TEXT, &options.tls_key, "PEM file with its key"},
        {"agents-port", OPTION_NUMBER, &agents_port,
         "of agents on other machines; -1: none (a free one)"},
        {"agents-host", OPTION_TEXT, &options.agents_host,
         "address to listen on for agents (--host)"},
        {"agents-cert", OPTION_TEXT, &paths.certificate,
         "PEM file: the certificate that agents are shown (one of the server's own)"},
        {"agents-key", OPTION_TEXT, &paths.key, "PEM file with its key"},
        {"agents-ca", OPTION_TEXT, &paths.ca,
         "PEM file: agents must show a certificate of this authority (of the server's own)"},
        {"engine-config", OPTION_TEXT, &options.engine_config,
         "JSON file: Slurm or Kubernetes, which brings nodes when jobs wait for them"},
        {"no-agent", OPTION_FLAG, &options.no_agent, "run no tasks on this machine"},
        {"cpus", OPTION_NUMBER, &cpus, "CPUs that tasks may use here (all)"},
        {"memory", OPTION_NUMBER, &options.memory_bytes, "bytes that tasks may use here (all)"},
        {"fake-gpus", OPTION_NUMBER, &gpus, "GPUs that do not exist, to try scheduling"},
        {"task-user", OPTION_TEXT, &options.task_user,
         "FIRST-LAST: unused user ids that tasks run as, one a job (as root)"},
        {"allow-host", OPTION_TEXT, &allowed,
         "other names that browsers use for this server, by commas"},
        {"token-rate", OPTION_NUMBER, &options.token_rate,
         "requests a second of one token; 0: any number (10000)"},
        {"oidc-issuer", OPTION_TEXT, &options.oidc_issuer,
         "let people sign in by this OpenID provider, https://HOST"},
        {"oidc-client", OPTION_TEXT, &options.oidc_client, "our id there"},
        {"oidc-secret", OPTION_TEXT, &options.oidc_secret,
         "file with our secret there, if any"},
        {"oidc-claim", OPTION_TEXT, &options.oidc_claim,
         "whose value is the user's name (preferred_username)"},
        {"oidc-role", OPTION_TEXT, &options.oidc_role,
         "of who comes for the first time: none, viewer, member (an admin adds users)"},
        {"oidc-redirect", OPTION_TEXT, &options.oidc_redirect,
         "our /oidc/callback as browsers reach it, behind a proxy"},
        {"keep-days", OPTION_NUMBER, &options.keep_days,
         "remove logs, points of metrics and traces so many days after a job ended (never)"},
        {"dataset-bytes", OPTION_NUMBER, &options.dataset_bytes,
         "that all datasets may have together, when one is uploaded; 0: what the disk has (0)"},
        {"webhooks-anywhere", OPTION_FLAG, &options.webhooks_anywhere,
         "webhooks may call addresses that are not public, and http"},
        {"insecure-i-know", OPTION_FLAG, &options.insecure,
         "listen on a host that is not loopback, unencrypted"},
        {"suspect-ms", OPTION_NUMBER, &options.suspect_ms,
         "a silent node gets nothing new after this (6000)"},
        {"lost-ms", OPTION_NUMBER, &options.lost_ms,
         "a silent node's tasks are given up after this (300000)"},
        {"grace-ms", OPTION_NUMBER, &options.grace_ms, "from TERM to KILL (30000)"},
        {"unkillable-ms", OPTION_NUMBER, &options.unkillable_ms,
         "after KILL, until the node of a task that still runs is drained (60000)"},
        {"backoff-ms", OPTION_NUMBER, &options.backoff_ms, "before a second attempt (10000)"},
        {0},
    };
    static const char usage[] = "serve --dir DIR [options]";
    struct options_words words;
    struct error err;
    if (cli_wants_help(argc, argv))
        return cli_usage(usage, rows, NULL);
    if (!options_parse(argc, argv, rows, 0, 0, &words, &err) ||
        !options_need(options.folder, "dir", "the folder where everything is kept", &err) ||
        !check_number("token-rate", options.token_rate, SERVE_RATE_MAX, &err) ||
        !check_number("keep-days", options.keep_days, SERVE_DAYS_MAX, &err) ||
        !check_number("dataset-bytes", options.dataset_bytes, SERVE_BYTES_MAX, &err) ||
        !check_number("cpus", cpus, SERVE_CPUS_MAX, &err) ||
        !check_number("memory", options.memory_bytes, SERVE_BYTES_MAX, &err) ||
        !check_number("fake-gpus", gpus, SERVE_GPUS_MAX, &err) ||
        !check_port("port", port, 0, &err) || !check_port("agents-port", agents_port, -1, &err))
        return cli_usage(usage, rows, &err);
    options.port = (int)port;
    options.agents_port = (int)agents_port;
    options.fake_gpus = (int)gpus;
    options.cpu_millis = cpus * 1000;
    options.hosts_count = split_hosts(allowed, hosts);
    struct pem pem;
    if (!pem_read(&paths, &pem, &err))
        return cli_fail(&err);
    options.agents_tls = pem_tls(&pem);
    bool ok = serve_run(&options, NULL, NULL, &err);
    pem_release(&pem);
    return ok ? CLI_OK : cli_fail(&err);
}
