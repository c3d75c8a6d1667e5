/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The state of the credential process: what is in use now, and how it is kept fresh. Private to credential/.
 */
#include "credential/plugin.h"
#include "ipc/child.h"
#include "kube/client.h"

struct credential {
        struct child *child;
        struct message *config;    /* CONFIG_CREDENTIAL; owned */
        struct kubeconfig source;  /* as the files have it */
        struct kubeconfig current; /* the same with what the plugin has brought: as last handed out */
        uint64_t serial;           /* grows with each change; 0: nothing handed out yet */
        uint64_t repeated_serial;  /* was handed out again without a change, because somebody asked */
        sd_event_source *timer;
        bool closed_in;  /* no program can be run */
        bool complained; /* once for each series of failures to read again */
        /* The exec plugin: one run at a time. */
        struct plugin *plugin;
        struct plugin_credential brought;
        uint64_t brought_boottime;
        bool has_brought, plugin_complained;
        sd_event_source *plugin_timer; /* the next run */
        bool plugin_waits;             /* for it, after a failure or a refusal: nobody hurries it */
        unsigned plugin_failures, plugin_refusals, plugin_expired; /* in a row */
        uint64_t started_boottime;
        /* What handlers are given for themselves (access.c, account.c). */
        struct access *access;
        size_t access_count;
        struct kube_client *client; /* NULL: no token is asked for */
};

/* What the handler of one watch is given. */
struct access {
        struct credential *credential;
        const struct record_access *config;
        char *files_trouble; /* why a file of it cannot be read now; NULL: all is well */
        /* Of a service account: */
        char *namespace_name;
        struct kube_transfer *transfer;
        sd_event_source *timer, *expiry; /* the next request; the end of what it has */
        uint64_t expires_boottime, expires_realtime;
        uint64_t failing_boottime;           /* since when; 0: it does not */
        unsigned failures;                   /* in a row */
        char *account_trouble, *account_why; /* what is told; why the last attempt has failed */
        int exit_code;                       /* what that would come to past the deadline */
};

/* access.c: a kubeconfig that a handler can be given. */
int access_load_kubeconfig(const char *path, struct kubeconfig *ret, struct error *error);
/* Copies everything; what cannot be had at the start ends us (child_fatal()). */
int access_begin(struct credential *credential);
/* Looks at the files again. */
void access_refresh(struct credential *credential);
void access_done(struct credential *credential);
/* A kubeconfig, and its token as a file of its own, which client libraries read again. token: NULL: that of
 * `config`. */
int access_write_kubeconfig(const struct access *access, const struct kubeconfig *config, const char *token,
                            struct error *error);
/* The same for the token that is there: server or certificates may be others. 0. */
int access_rewrite(const struct access *access);
void access_tell(struct access *access); /* the supervisor how it stands */

/* account.c: tokens of service accounts. */
bool account_is_wanted(const struct credential *credential);
int account_begin(struct credential *credential);
int account_published(struct credential *credential); /* there is another credential to ask with */
bool account_is_usable(const struct access *access);
void account_done(struct access *access);

/* Shown for the first failure on, for how long: doubled with each, from a second to a minute. */
uint64_t credential_backoff(unsigned failures);

/* Loads, sends and arms the timer. 0, or negative after child_fatal(). */
int credential_begin(struct credential *credential);
/* Looks at the files again, or runs the plugin again. Tells the others when something changed, or when
 * somebody asked for the first time. What cannot be read, or leads to another cluster, leaves the old
 * credential in use. */
int credential_reload(struct credential *credential, bool asked);
void credential_done(struct credential *credential); /* wipes */

/* renew.c: the plugin's part. */
int plugin_run(struct credential *credential);
int plugin_refused(struct credential *credential);  /* a 401 with what it has brought */
int plugin_run_anew(struct credential *credential); /* it is another one */
void plugin_stop(struct credential *credential);
/* credential.c: what is in use now, as others are told it. `ret->header` is the caller's. */
int credential_message(const struct credential *credential, struct message_credential *ret);
/* Files and plugin together, under a new serial. */
int credential_publish(struct credential *credential);
