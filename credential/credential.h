/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The state of the credential process: what is in use now, and how it is kept fresh. Private to credential/.
 */
#include "credential/kubeconfig.h"
#include "ipc/child.h"

struct credential {
        struct child *child;
        struct message *config; /* CONFIG_CREDENTIAL; owned */
        struct kubeconfig current;
        uint64_t serial; /* grows with each change; 0: nothing loaded yet */
        sd_event_source *timer;
        bool complained; /* once for each series of failures to read again */
};

/* Loads, sends and arms the timer. 0, or negative after child_fatal(). */
int credential_begin(struct credential *credential);
/* Looks at the files again. Tells the others when something changed, or when somebody asked. What cannot be
 * read, or leads to another cluster, leaves the old credential in use. */
int credential_reload(struct credential *credential, bool asked);
void credential_done(struct credential *credential); /* wipes */
