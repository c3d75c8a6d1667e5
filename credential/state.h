/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The state of the credential process: what is in use now, and how it is kept fresh. Private to credential/.
 */
#include "base/backoff.h"
#include "base/duration.h"
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
        bool plugin_waits;             /* no attempt before this time, after a failure or a refusal */
        unsigned plugin_failures, plugin_refusals, plugin_expired; /* in a row */
        uint64_t started_boottime;
        /* What handlers are given for themselves (handlers/). */
        struct access *access;
        size_t access_count;
        struct kube_client *client;                        /* NULL: no token is asked for */
        void (*on_refused)(struct credential *credential); /* the client was answered 401 */
};

#define CREDENTIAL_BACKOFF_MIN_USEC USEC_PER_SEC
#define CREDENTIAL_BACKOFF_MAX_USEC USEC_PER_MINUTE

/* How long to wait after this many failures in a row (1 at least), in microseconds. */
static inline uint64_t credential_backoff(unsigned failures)
{
        return backoff_after(CREDENTIAL_BACKOFF_MIN_USEC, CREDENTIAL_BACKOFF_MAX_USEC, failures);
}
