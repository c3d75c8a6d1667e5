/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The operator's configuration: /etc/reconciled/reconciled.yaml and the *.yaml files of conf.d beside it, or
 * the file that
 * --config names. Read whole, checked whole: config_load() collects every problem with file, line and key
 * before it gives up, and changes nothing outside `ret`.
 *
 * A static library (config_dep), shared by the supervisor and `reconciledctl check`.
 */
#include "base/cron.h"
#include "base/error.h"
#include "ipc/message.h"

/* A pair of a mapping whose keys are the author's own. */
struct config_pair {
        char *name, *value;
};

struct config_handler {
        struct config_pair *environment; /* as the handler gets it: ${NAME} is replaced. May hold secrets */
        size_t environment_count;
        /* For this handler alone (access.h): */
        struct config_pair *credentials; /* a file's name for the handler, and where it is copied from */
        size_t credentials_count;
        bool kubernetes;            /* access to the API server, by one of these two: */
        char *kubernetes_file;      /* a kubeconfig; NULL */
        char *kubernetes_account;   /* a service account, whose token is asked for; NULL */
        char *kubernetes_namespace; /* the account's namespace; NULL: the operator's own */
        enum handler_kind kind;
        bool dry_run; /* it keeps its hands off all else when a request says dryRun; default false */
        char **serve; /* until the file is checked; then it moves to `exec`, and `kind` records it */
        size_t serve_count;
        char *plugin;             /* likewise: the file is exec[0] then */
        unsigned parallel;        /* requests that one process of `serve` has at a time; default 1 */
        unsigned batch_max;       /* objects that one run of `exec` is for; 0: no batch */
        uint64_t batch_wait_usec; /* default 20ms */
        unsigned rate_milli;      /* runs in a thousand seconds; 0: no limit */
        unsigned rate_burst;      /* default 1 */
        unsigned recycle_runs;    /* 0: never */
        uint64_t recycle_memory;  /* bytes; 0: never */
        uint64_t limit_memory;    /* bytes; 0: no limit */
        uint64_t request_max;     /* bytes; default 32 MiB */
        unsigned limit_pids;      /* processes and threads; 0: no limit */
        uint64_t user_pids;       /* processes of its user, together; 0: no limit, or no user */
        char *version;      /* any text (${NAME} is replaced); another text means another handler; NULL */
        char *user;         /* as whom it runs; NULL: as the operator */
        char *home;         /* the user's home */
        unsigned uid, gid;  /* likewise */
        unsigned limit_cpu; /* thousandths of a CPU; 0: no limit */
        char **exec;        /* NULL-terminated argv; exec[0] is an absolute path of an executable file */
        size_t exec_count;
        uint64_t timeout_usec; /* default 2m */
        uint64_t grace_usec;   /* between TERM and KILL; default 5s */
};

/* The reaction when the server refuses our own write for good (400, 403, 405, 413, 422 and the like). */
enum on_unrecoverable { ON_UNRECOVERABLE_THROTTLE, ON_UNRECOVERABLE_CRASH };

/* The fate of children that a failed attempt has made or changed. */
enum prune { PRUNE_AFTER, PRUNE_BEFORE };
enum heirs { HEIRS_LISTED, HEIRS_MARKED };
enum on_failure { ON_FAILURE_KEEP, ON_FAILURE_ROLLBACK };

/* Which objects run after each start. */
enum on_start { ON_START_CHANGED, ON_START_ALL };

/* The reaction when a watch has not worked for its deadline. */
enum on_deadline { ON_DEADLINE_FATAL, ON_DEADLINE_ISOLATE };

/* What a watch is there for. But for the first, it has one object, a ConfigMap of the operator's own, for which its handler runs
 * when it is due, and not when something changes. */
enum config_own { OWN_NONE, OWN_SCHEDULE, OWN_STARTUP };

/* The fate of a scheduled run that could not begin in time. */
enum on_missed { ON_MISSED_ONCE, ON_MISSED_SKIP };

/* What follows when the handler of `startup` fails. */
enum startup_failure { STARTUP_RETRY, STARTUP_FATAL };

/* A kind of objects that objects of a watch own. */
struct config_owned {
        char *api_version, *kind, *label_selector;
        char *names; /* jq, of `related`: only those that it names; NULL = all */
        bool confidential;
        bool metadata_only;
        char **namespace; /* of `patches`: where, beside the object's own namespace; patterns as of a watch */
        size_t namespace_count;
        unsigned line;
};

#define WORKERS_MAX 64
#define WINDOW_MAX  128

struct config_watch {
        struct config_owned *owns; /* each becomes a watch of its own, with `owner` */
        size_t owns_count;
        struct config_owned *related; /* likewise: what the objects depend on, in their namespaces */
        size_t related_count;
        struct config_owned *answers; /* kinds of children that are answered, and not followed */
        size_t answers_count;
        char **child_namespace; /* where children may be beside the object's own namespace; patterns */
        size_t child_namespace_count;
        struct config_owned *patches; /* kinds of objects of others of which handlers may set fields */
        size_t patches_count;
        bool is_related;     /* with `owner`: these are related, not owned */
        char *related_names; /* jq; "" */
        char *owner;         /* the name of the watch whose objects own these; NULL: an ordinary watch */
        char *name;          /* unique; letters, digits, '-', '.', '_' (it names folders and ledger rows) */
        char *api_version, *kind;
        char *id; /* keeps apart what watches of one kind note on objects; "" = the kind's only watch, or the
                     one of several that has none */
        char *finalizers; /* its finalizer, and those of the operator's former names, with commas between them */
        char *finalizer_key, *children_key, *patched_key; /* under which it notes that (config_name_notes) */
        char *conditions; /* the types of conditions in which the watches of its kind tell how runs go, with
                             commas between them; told where several may have an object; "" */
        bool shared;      /* has an id, or is not the only watch of its kind */
        char **namespace; /* names, patterns with * and ?, "!" before those to leave out; none = all */
        size_t namespace_count;
        char *label_selector, *field_selector; /* "" = none */
        bool metadata_only;                    /* the handler sees apiVersion, kind and metadata */
        bool confidential; /* Secrets, and kinds that the configuration marks: their content never goes to a disk */
        bool required; /* default true: a resource that is not served counts as trouble */
        enum on_deadline on_deadline;
        bool previous;         /* the handler is given the object as it was at its last success */
        bool finalizer;        /* objects are held until `finalize` has succeeded */
        char *ready_condition; /* the type of a condition in the object's status that tells how its runs go;
                                  "" */
        bool events;           /* Events about failures; default true */
        bool children_force;   /* fields of children are taken over from others; default false */
        bool children_adopt;   /* objects without an owner are taken as children; default false */
        bool children_events;  /* Events about children that are created, deleted, adopted or released */
        enum trigger trigger;
        char *trigger_jq;     /* program of TRIGGER_JQ: a run is due when its value changes; "" */
        char *filter;         /* jq: objects for which it is false are not selected; "" = all are */
        unsigned concurrency; /* at most this many runs at once; default: config_at_once() */
        bool serial;          /* the file sets it to 1: one run begins when the one before it is over */
        struct config_handler handler;
        uint64_t resync_usec;                      /* default 10h; 0 = never */
        uint64_t retry_first_usec, retry_max_usec; /* default 1s, 10m */
        unsigned quarantine_after;                 /* crashes without a success; default 3 */
        uint64_t quarantine_usec;                  /* default 1h */
        unsigned retry_attempts;      /* failures in a row, then it waits for a change; 0 = no limit */
        uint64_t retry_throttle_usec; /* default 1s: the unit of onUnrecoverable: throttle */
        enum on_unrecoverable on_unrecoverable;
        enum on_start on_start;
        enum on_failure on_failure;
        enum heirs children_heirs; /* which children of a former object of the same name are taken */
        enum prune children_prune; /* children that are left out, after or before others are ready */
        uint64_t wait_usec;   /* how long children may take to become ready; 0 = they are not waited for */
        uint64_t settle_usec; /* how long undoing may take; default 30s */
        bool unselected;  /* the handler learns of objects that are not selected any more; default false */
        bool allow_fatal; /* the handler may end the operator: exit status 70 */
        uint64_t deadline_usec;                            /* default 5m */
        uint64_t reconnect_first_usec, reconnect_max_usec; /* default 800ms, 30s */
        uint64_t stall_usec, watch_timeout_usec;           /* default 70s, 5m */
        uint64_t initial_events_usec;                      /* default 30s */
        enum config_own own;
        char *own_name; /* of the ConfigMap; NULL: OWN_NONE */
        char *cron, *time_zone;
        struct cron due; /* what `cron` says */
        enum on_missed on_missed;
        enum startup_failure startup_failure;
        char **related_namespace; /* of OWN_SCHEDULE and OWN_STARTUP: where related objects are; patterns */
        size_t related_namespace_count;
        unsigned line;      /* file and line, for later errors */
        char *file, *place; /* place: "watches[0]", "watches[0].owns[0]" */
};

struct config {
        char *operator_name; /* field manager, finalizer prefix, Event source: a DNS subdomain */
        char **former;       /* former names of the operator: its notes under them are its own */
        size_t former_count;
        char *namespace; /* namespace of the operator's own objects; NULL if it needs none, or it is unknown */
        char *former_names;    /* the same, with commas between them; "" */
        char *kubeconfig;      /* "" = default search */
        char *kubeconfig_file; /* where cluster.kubeconfig was set; "" with the default search */
        unsigned kubeconfig_line;
        char *context;                    /* "" = current-context */
        unsigned workers;                 /* default 4, 1..64 */
        unsigned window;                  /* runs that a worker has begun; default 32 */
        uint64_t heartbeat_interval_usec; /* default a quarter of the deadline, at most 5s */
        uint64_t heartbeat_deadline_usec; /* default 20s */
        uint64_t stop_grace_usec; /* default 30s: how long running handlers may go on after SIGTERM */
        unsigned page_limit;      /* objects of a LIST's page; default 500 */
        uint64_t secrets_memory;  /* bytes of each store of confidential objects; default 256 MiB */
        bool secrets_allow_disk;  /* if there is no memory for them, they may lie on a disk */
        uint64_t previous_total;  /* bytes of what `previous` keeps of a watch; default 256 MiB */
        char *record;             /* a folder for requests and answers of runs; "" = they are not kept */
        bool gateway;             /* the key is there: HTTP for health and metrics */
        char *gateway_listen;     /* default 127.0.0.1:9464 */
        char *gateway_token_file; /* "" = no token */
        char *gateway_certificate_file, *gateway_key_file; /* files for TLS; "" = none */
        bool replicas;                   /* the key is there: one of several leads (lease/) */
        char *replicas_lease;            /* the name of the leader record; default: the operator's */
        char *replicas_namespace;        /* of the Leases */
        uint64_t replicas_duration_usec; /* default 15s, 5s to 1h */
        bool replicas_compatible;        /* the record is shared with an operator of client-go */
        struct config_watch *watch;
        size_t watch_count;
};

/* The longest name of a leader record. A member Lease's name, which begins with it, must be valid, too. */
#define REPLICAS_LEASE_MAX 200

struct config_problem {
        char *file;    /* as opened */
        unsigned line; /* from 1; 0 = the file as a whole */
        char *key;     /* "watches[0].handler.timeout"; "" = the document */
        char *text;    /* the mistake, and how to mend it */
        bool warning;  /* does not prevent the start */
};

struct config_problems {
        struct config_problem *problem;
        size_t count;
};

/* path: a file, or NULL for the default place with its conf.d. Returns 0 (ret filled; problems holds
 * warnings only), -EINVAL when there is at least one error (ret untouched, problems filled), -ENOMEM. */
int config_load(const char *path, struct config **ret, struct config_problems *problems);
bool config_has_errors(const struct config_problems *problems); /* more than warnings */
/* The number of objects that the handlers of all workers can be at work on, without `concurrency`. */
unsigned config_at_once(const struct config *config, const struct config_watch *watch);
/* "schedule", "startup" or "": the action that handlers see in the place of "reconcile". */
const char *config_own_action(const struct config_watch *watch);
/* A configuration with all defaults but texts, which config_load() sets; NULL on lack of memory. */
struct config *config_new(void);
void config_free(struct config *config);
void config_problems_done(struct config_problems *problems);
/* Adds a problem that was found later. line: 0 for the watch's line; key: below the watch. The text begins with
 * the watch's name. Without memory the problem is dropped. */
void config_problem_add(struct config_problems *problems, const struct config_watch *watch, unsigned line,
                        bool warning, const char *key, const char *format, ...) _printf_(6, 7);
/* "file:line: key: text" into `line`. */
int config_problem_format(const struct config_problem *problem, struct text *line);
DEFINE_CLEANUP(struct config *, config_free);
