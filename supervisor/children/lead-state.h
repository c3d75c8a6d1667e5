/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The lead of this replica, as its children are told of it (supervisor/lead.h has the whole). */
#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "ipc/message.h"

struct child_slot;
struct supervisor;

struct supervisor_lead {
        struct child_slot *child; /* the lease process; NULL: there is no `replicas` */
        enum lead_state state;
        char member[256], leader[256], trouble[640], successor[256];
        uint64_t epoch; /* of who leads */
        uint64_t stop_boottime, kill_boottime;
        uint64_t ledger_epoch; /* of the last lead that the ledger knows of; kept in the state folder */
        uint64_t takeovers;    /* in this life: 1 if it leads, or has led */
        bool clean;
        bool ledger_is_new; /* it has no rows of a former life */
        bool is_releasing;  /* the lease process was told, and ends */
        bool is_cut_off;    /* a run was ended in the middle of a write, which may be on its way yet */
        sd_event_source *stop_timer;
};

bool lead_is_due(const struct child_slot *child); /* the child runs also while another replica leads */
/* To a worker that is ready, before its first RUN; and to the lease process. */
void lead_tell(const struct child_slot *child);
/* All children but the lease process are reaped. Returns whether its end is to be waited for: it is told to release the lead, or,
 * if not all that we started is proven to be gone, and its writes with it, killed: then the lease runs out. */
bool lead_release(struct supervisor *supervisor, bool proven);
void lead_done(struct supervisor *supervisor);
