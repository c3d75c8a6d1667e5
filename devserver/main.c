/* SPDX-License-Identifier: Apache-2.0 */
/* reconciled-devserver: options, kubeconfig, loop. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/duration.h"
#include "base/error.h"
#include "base/exit-code.h"
#include "base/text.h"
#include "devserver/cluster/account-token.h"
#include "devserver/cluster/backup.h"
#include "devserver/cluster/builtin.h"
#include "devserver/cluster/load.h"
#include "devserver/daemon.h"
#include "devserver/fault/fault-read.h"
#include "devserver/fault/fault.h"
#include "devserver/http/certificate.h"
#include "devserver/http/write-kubeconfig.h"
#include "devserver/objects/gc-queue.h"
#include "devserver/read/serve-list.h"
#include "devserver/request-log.h"
#include "devserver/schema/schema-pattern.h"
#include "devserver/server.h"
#include "devserver/storage/storage.h"
#include "devserver/stream/serve-watch.h"

#define LOADS_MAX   64
#define HISTORY_MAX 10000000

struct options {
        const char *listen, *kubeconfig, *request_log, *token, *tls_certificate, *tls_key, *account;
        const char *load[LOADS_MAX], *fault[LOADS_MAX];
        size_t load_count, fault_count, history;
        unsigned version_minor;
        bool no_watch_list;
        uint64_t bookmark_usec;
        uint64_t token_life_usec;
        bool tls, allow_remote, load_as_is;
};

enum {
        OPTION_TLS_CERT = 256,
        OPTION_TLS_KEY,
        OPTION_TOKEN_FILE,
        OPTION_BOOKMARK,
        OPTION_HISTORY,
        OPTION_FAULTS,
        OPTION_WATCH_LIST,
        OPTION_VERSION_MINOR,
        OPTION_REMOTE,
        OPTION_AS_IS,
        OPTION_TOKEN_LIFE,
        OPTION_ACCOUNT
};

static const struct option option[] = {
        {"listen", required_argument, NULL, 'l'},
        {"kubeconfig", required_argument, NULL, 'k'},
        {"load", required_argument, NULL, 'L'},
        {"request-log", required_argument, NULL, 'r'},
        {"tls", no_argument, NULL, 't'},
        {"tls-cert", required_argument, NULL, OPTION_TLS_CERT},
        {"tls-key", required_argument, NULL, OPTION_TLS_KEY},
        {"token", required_argument, NULL, 'T'},
        {"token-file", required_argument, NULL, OPTION_TOKEN_FILE},
        {"service-account", required_argument, NULL, OPTION_ACCOUNT},
        {"max-token-expiration", required_argument, NULL, OPTION_TOKEN_LIFE},
        {"bookmark-interval", required_argument, NULL, OPTION_BOOKMARK},
        {"history", required_argument, NULL, OPTION_HISTORY},
        {"faults", required_argument, NULL, OPTION_FAULTS},
        {"watch-list", required_argument, NULL, OPTION_WATCH_LIST},
        {"version-minor", required_argument, NULL, OPTION_VERSION_MINOR},
        {"allow-remote", no_argument, NULL, OPTION_REMOTE},
        {"load-as-is", no_argument, NULL, OPTION_AS_IS},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {0},
};

static void help(void)
{
        puts("Usage: reconciled-devserver [OPTION...]\n"
             "An in-memory Kubernetes API server: for a first try, and for tests of handlers.\n\n"
             "  --listen ADDRESS:PORT     default 127.0.0.1:0 (any free port; the URL is printed)\n"
             "  --kubeconfig FILE         write a kubeconfig that works; it appears when the server is "
             "ready\n"
             "  --load FILE...            load manifests (YAML or JSON)\n"
             "  --tls                     make a certificate; --tls-cert FILE --tls-key FILE use given "
             "ones\n"
             "  --token TOKEN             ask every client for this bearer token (--token-file FILE)\n"
             "  --service-account NAMESPACE/NAME\n"
             "                            make this service account, unless it is loaded\n"
             "  --max-token-expiration TIME\n"
             "                            of tokens of service accounts; default: as is asked for\n"
             "  --request-log FILE        one JSON line a request\n"
             "  --bookmark-interval TIME  default 60s\n"
             "  --history N               events that are kept; older resourceVersions are gone (410); "
             "default 10000\n"
             "  --faults FILE             what is to go wrong, and when: a YAML list (docs/devserver.md)\n"
             "  --watch-list on|off       whether watches may send initial events (default on)\n"
             "  --version-minor N         the version that is claimed: 1.N (default 31; 33 without "
             "watch-list)\n"
             "  --load-as-is              keep status, uid and deletionTimestamp of what is loaded; unknown "
             "kinds\n"
             "                            get a definition, unknown namespaces are made\n"
             "  --allow-remote            listen on other addresses than loopback\n"
             "  --help, --version\n\n"
             "Nothing is kept on disk. It ends with 0 on SIGTERM and SIGINT.");
}

/* ---- options */

static char *read_whole_file(const char *path)
{
        _cleanup_text_ struct text text = TEXT_EMPTY;
        _cleanup_fclose_ FILE *file = fopen(path, "re");
        char buffer[4096];
        size_t size;

        if (!file) {
                fprintf(stderr, "reconciled-devserver: %s: %s\n", path, strerror(errno));
                return NULL;
        }
        while ((size = fread(buffer, 1, sizeof(buffer), file)) > 0)
                text_append(&text, buffer, size);
        return text_take(&text);
}

static int usage(const char *text, const char *argument)
{
        fprintf(stderr, "reconciled-devserver: %s: %s\nTry 'reconciled-devserver --help'.\n", text,
                argument);
        return -EINVAL;
}

static int parse_history(const char *text, size_t *ret)
{
        char *end;
        unsigned long long history = strtoull(text, &end, 10);

        if (text[0] < '0' || text[0] > '9' || *end || history == 0 || history > HISTORY_MAX)
                return usage("--history takes a number from 1 to 10000000", text);
        *ret = (size_t)history;
        return 0;
}

static int parse_minor(const char *text, unsigned *ret)
{
        char *end;
        unsigned long minor = strtoul(text, &end, 10);

        if (text[0] < '0' || text[0] > '9' || *end || minor > 999)
                return usage("--version-minor takes a number up to 999", text);
        *ret = (unsigned)minor;
        return 0;
}

static int take_option(struct options *options, int c)
{
        static char *token; /* from a file: lives as long as the process */

        switch (c) {
        case 'l':
                options->listen = optarg;
                return 0;
        case 'k':
                options->kubeconfig = optarg;
                return 0;
        case 'L':
                if (options->load_count == LOADS_MAX)
                        return usage("too many files to load", optarg);
                options->load[options->load_count++] = optarg;
                return 0;
        case 'r':
                options->request_log = optarg;
                return 0;
        case 't':
                options->tls = true;
                return 0;
        case 'T':
                options->token = optarg;
                return 0;
        case OPTION_TLS_CERT:
                options->tls_certificate = optarg;
                return 0;
        case OPTION_TLS_KEY:
                options->tls_key = optarg;
                return 0;
        case OPTION_TOKEN_FILE:
                free(token);
                token = read_whole_file(optarg);
                if (!token)
                        return -EINVAL;
                token[strcspn(token, "\r\n")] = '\0';
                options->token = token;
                return 0;
        case OPTION_BOOKMARK:
                return duration_parse(optarg, &options->bookmark_usec) < 0 ? usage("no duration", optarg)
                                                                           : 0;
        case OPTION_ACCOUNT:
                options->account = optarg;
                return 0;
        case OPTION_TOKEN_LIFE:
                return duration_parse(optarg, &options->token_life_usec) < 0 ||
                                       options->token_life_usec < USEC_PER_SEC
                               ? usage("no duration of at least a second", optarg)
                               : 0;
        case OPTION_HISTORY:
                return parse_history(optarg, &options->history);
        case OPTION_FAULTS:
                if (options->fault_count == LOADS_MAX)
                        return usage("too many files of faults", optarg);
                options->fault[options->fault_count++] = optarg;
                return 0;
        case OPTION_WATCH_LIST:
                if (strcmp(optarg, "on") != 0 && strcmp(optarg, "off") != 0)
                        return usage("--watch-list takes on or off", optarg);
                options->no_watch_list = strcmp(optarg, "off") == 0;
                return 0;
        case OPTION_VERSION_MINOR:
                return parse_minor(optarg, &options->version_minor);
        case OPTION_REMOTE:
                options->allow_remote = true;
                return 0;
        case OPTION_AS_IS:
                options->load_as_is = true;
                return 0;
        default:
                return -EINVAL;
        }
}

static int parse_options(int argc, char **argv, struct options *options)
{
        int c, r = 0;

        while (r >= 0 && (c = getopt_long(argc, argv, "h", option, NULL)) >= 0) {
                if (c == 'h' || c == 'V') {
                        if (c == 'h')
                                help();
                        else
                                puts("reconciled-devserver " RECONCILED_VERSION);
                        return 1;
                }
                r = take_option(options, c);
        }
        /* --load a.yaml b.yaml: what follows belongs to it. */
        for (; r >= 0 && optind < argc; optind++) {
                optarg = argv[optind];
                r = options->load_count > 0 ? take_option(options, 'L')
                                            : usage("an argument that is no option", optarg);
        }
        if (r >= 0 && !options->tls_certificate != !options->tls_key)
                r = usage("--tls-cert and --tls-key go together",
                          options->tls_key ? options->tls_key : options->tls_certificate);
        return r;
}

/* ---- start */

static int start_http(struct server *server, const struct options *options, struct error *error)
{
        const char *listen = options->listen ? options->listen : "127.0.0.1:0";
        const char *colon = strrchr(listen, ':');
        _cleanup_free_ char *address = NULL;
        char *end;
        unsigned long port;

        if (!colon)
                return error_set(error, -EINVAL, "--listen takes ADDRESS:PORT, not \"%s\"", listen);
        port = strtoul(colon + 1, &end, 10);
        if (end == colon + 1 || *end || port > 65535)
                return error_set(error, -EINVAL, "\"%s\" is no port", colon + 1);
        address = strndup(listen, (size_t)(colon - listen));
        if (!address)
                return error_set(error, -ENOMEM, "no memory");
        if (strcmp(address, "localhost") != 0 && strncmp(address, "127.", 4) != 0 && !options->allow_remote)
                return error_set(
                        error, -EINVAL,
                        "%s is not a loopback address: anyone who reaches it rules this server; say "
                        "--allow-remote if that is meant",
                        address);
        return daemon_start(server, address, (uint16_t)port, error);
}

static int prepare_tls(struct server *server, const struct options *options, struct error *error)
{
        if (options->tls_certificate && options->tls_key) {
                server->certificate = read_whole_file(options->tls_certificate);
                server->key = read_whole_file(options->tls_key);
                server->authority = server->certificate ? strdup(server->certificate) : NULL;
                return server->certificate && server->key
                               ? 0
                               : error_set(error, -EINVAL, "the certificate cannot be read");
        }
        return options->tls ? certificate_make(server, true, error) : 0;
}

static int start_server(struct server *server, const struct options *options, struct error *error)
{
        int r;

        if (options->request_log && !(server->request_log = fopen(options->request_log, "ae")))
                return error_set(error, -errno, "%s: %s", options->request_log, strerror(errno));
        if (options->kubeconfig && !(server->kubeconfig = strdup(options->kubeconfig)))
                return error_set(error, -ENOMEM, "no memory");
        r = prepare_tls(server, options, error);
        for (size_t i = 0; i < options->load_count && r >= 0; i++)
                r = load_file(server, options->load[i], error);
        if (r >= 0 && options->account)
                r = load_account(server, options->account, error);
        for (size_t i = 0; i < options->fault_count && r >= 0; i++)
                r = faults_load(server, options->fault[i], error);
        if (r >= 0)
                r = start_http(server, options, error);
        if (r >= 0)
                r = kubeconfig_write(server, error);
        if (r < 0)
                return r;
        puts(server->url);
        fflush(stdout);
        return 0;
}

static int serve_cluster(const struct options *options)
{
        struct server server = {
                .bookmark_usec = options->bookmark_usec,
                .watch_list = !options->no_watch_list,
                .load_as_is = options->load_as_is,
                .token_life_usec = options->token_life_usec,
                .version_minor = options->version_minor ? options->version_minor
                                 : options->no_watch_list
                                         ? 33
                                         : 31, /* kubectl of newer servers speaks protobuf */
        };
        _cleanup_error_ struct error error = ERROR_NONE;
        sigset_t mask;
        int r;

        sigemptyset(&mask);
        sigaddset(&mask, SIGTERM);
        sigaddset(&mask, SIGINT);
        sigprocmask(SIG_BLOCK, &mask, NULL);
        signal(SIGPIPE, SIG_IGN);
        if (storage_init(&server.storage, options->history) < 0 || sd_event_default(&server.event) < 0)
                return EXIT_CODE_SOFTWARE;
        server.storage.on_event = watch_on_event;
        server.storage.on_forget = watch_on_forget;
        server.storage.userdata = &server;
        server.token = options->token ? strdup(options->token) : NULL;
        sd_event_add_signal(server.event, NULL, SIGTERM, NULL, NULL);
        sd_event_add_signal(server.event, NULL, SIGINT, NULL, NULL);
        builtin_add(&server);
        server.storage.history_lost =
                server.storage.resource_version; /* version 1 is the past, as on a real server */
        r = start_server(&server, options, &error);
        if (r < 0)
                fprintf(stderr, "reconciled-devserver: %s\n", error_message(&error));
        else
                sd_event_loop(server.event);
        daemon_stop(&server);
        snapshots_free(&server);
        backups_free(&server);
        faults_remove(&server, 0);
        gc_done(&server);
        patterns_done();
        storage_done(&server.storage);
        free(server.token);
        account_tokens_free(&server);
        free(server.certificate);
        free(server.key);
        free(server.authority);
        free(server.authority_key);
        free(server.url);
        free(server.kubeconfig);
        if (server.request_log)
                fclose(server.request_log);
        sd_event_unref(server.event);
        return r < 0 ? (r == -EINVAL ? EXIT_CODE_USAGE : EXIT_CODE_IO) : EXIT_CODE_OK;
}

int main(int argc, char **argv)
{
        struct options options = {.history = 10000, .bookmark_usec = 60 * USEC_PER_SEC};
        int r = parse_options(argc, argv, &options);

        if (r != 0)
                return r > 0 ? EXIT_CODE_OK : EXIT_CODE_USAGE;
        return serve_cluster(&options);
}
