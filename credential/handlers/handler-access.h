/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the handler of one watch is given for itself, and what the supervisor is told of it. */
#include <systemd/sd-event.h>

#include "credential/state.h"

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

/* Whether the handler has what it is to have: a token, where it is to act as a service account, that has not
 * expired. */
bool access_is_usable(const struct access *access);
/* Tells the supervisor how it stands (ACCESS). */
void access_tell(struct access *access);
