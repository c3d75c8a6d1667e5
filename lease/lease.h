/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * reconciled-lease drives the election (lib/election) against the API server, in a process of its own that nothing else can
 * hold up, and tells the supervisor how this replica stands (LEASE).
 *
 * - At its start nothing of a former life runs: the supervisor holds the state folder, from which the member's name is made.
 * - A lead ends by the clock, never by an answer (election_hold()).
 * - A supervisor that hears nothing, though the lead is renewed, ends the process: nothing runs then, and another replica
 *   shall lead.
 * - RELEASE says that nothing of ours runs: the record is released, our member Lease goes, and so does the process. Any other
 *   end releases nothing: then the lease runs out.
 * - What must outlive a leader (election/lasting.h) is the supervisor's: LASTING brings it, LEASE says when the record has it,
 *   and what the leader before us has left.
 */
#include <systemd/sd-event.h>

#include "ipc/child.h"
#include "kube/client.h"
#include "lease/lease-watch.h"

struct lease_lane { /* of the member Lease, or of the record */
        struct lease *lease;
        struct election_ask ask; /* in flight */
        char failure[512];       /* of the last request; "": it succeeded */
        bool is_of_write;        /* ... which was a write: that reads succeed does not end the trouble */
};

struct lease {
        struct child *child;
        struct message *config_message; /* owns what `names` and `config` point to */
        const struct message_config_lease *config;
        struct lease_names names;
        char cluster[LEADER_NAME_MAX + 1]; /* "": not known yet */
        struct kube_client *client;
        struct election election; /* once `cluster` is known */
        struct lease_lane member_lane, record_lane;
        char *rest;    /* the lines after the claim in the record, in the version that was last read */
        char *lasting; /* what is to be there while we lead (LASTING); NULL: as it is */
        uint64_t serial, sent_serial,
                written_serial; /* of `lasting`; of what the last write had; of what the record has */
        struct lease_watch record_watch, holder_watch;
        sd_event_source *wake, *identify;
        uint64_t refresh_serial;
        uint64_t former_epoch; /* of the lead that our last ASK_TAKE replaced */
        bool released, clean;  /* ... it was released; and none of its writes may be on its way */
        bool leaves;           /* RELEASE came */
        bool deletes;          /* our member Lease is being deleted: the last request */
        bool has_led;
        uint64_t heard_until; /* the supervisor knows that we lead, and until then; 0: not yet */
        char refusal[512];    /* why the record is not ours to take */
        struct message_lease told;
        char told_leader[LEADER_NAME_MAX + 1], told_trouble[600];
};

extern const struct child_operations lease_operations;
void lease_done(struct lease *lease);
