/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A watch on one Lease. It proves nothing: all that it brings is a reason to read that Lease. It is begun again when it ends.
 */
#include <systemd/sd-event.h>

#include "ipc/child.h"
#include "kube/client.h"
#include "lease/lease-object.h"

struct lease_watch {
        /* Set once by the caller, and borrowed. on_change may call lease_watch_set(). */
        struct child *child;
        struct kube_client *client;
        const struct lease_names *names;
        uint64_t pause_usec; /* before it is begun again */
        void (*on_change)(void *userdata);
        void *userdata;
        /* Its own. */
        char name[LEADER_NAME_MAX + 1]; /* of the Lease; "": none is watched */
        struct kube_transfer *transfer;
        sd_event_source *retry;
};

/* Watches the Lease `name` from now on. "": none. Not to be called once the client is gone. */
void lease_watch_set(struct lease_watch *watch, const char *name);
