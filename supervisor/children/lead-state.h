/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The lead of this replica, as its children are told of it (supervisor/lead.h has the whole). */
#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "ipc/message.h"

struct assignment;
struct child_slot;
struct supervisor;

enum lasting_left_out { LEFT_OUT_NOTHING, LEFT_OUT_OTHERS, LEFT_OUT_ORDERS };

struct supervisor_lasting { /* supervisor/lead-lasting.h */
        char *kept; /* lines that are not ours to change: of other releases, and of watches that are not configured */
        char *sent;                /* the lines that the lease process has; NULL: none yet */
        uint64_t serial, recorded; /* of these, and of those that the record has */
        uint64_t sent_boottime;
        sd_event_source *timer;
        bool is_due;     /* something may have changed */
        bool is_ordered; /* ... and somebody waits for it to be written */
        uint64_t
                names_until; /* CLOCK_BOOTTIME: each run is named; 0: what was in flight when the last leader ended is known */
        enum lasting_left_out left_out; /* since the record has no place for it; logged */
};

struct supervisor_lead {
        struct child_slot *child; /* the lease process; NULL: there is no `replicas` */
        enum lead_state state;
        char member[256], leader[256], trouble[640], successor[256];
        uint64_t epoch; /* of who leads */
        uint64_t stop_boottime, kill_boottime;
        uint64_t
                ledger_epoch; /* of the last lead that the ledger is right after; kept in the state folder */
        uint64_t own_epoch;   /* of our own last lead; likewise */
        uint64_t takeovers;   /* in this life: 1 if it leads, or has led */
        bool clean;
        bool is_refused; /* the record: we could not take over */
        struct supervisor_lasting lasting;
        bool ledger_is_new; /* it has no rows of a former life */
        bool is_releasing;  /* the lease process was told, and ends */
        bool was_missed;    /* we were stopped until the kernel had killed our workers */
        bool is_cut_off;    /* a run was ended, or a write had no answer: it may be on its way yet */
        sd_event_source *stop_timer;
};

/* An effect of the controller: a RUN that has to be named waits until the record has it. */
bool lasting_may_leave(void *userdata, struct assignment *given);
void lasting_is_due(
        struct supervisor *supervisor); /* something has changed that need not be written at once */
/* An order was carried out: it may be confirmed once `recorded` is this number, or more. 0: at once. */
uint64_t lasting_order(struct supervisor *supervisor);

bool lead_is_due(const struct child_slot *child); /* the child runs also while another replica leads */
/* Sends the lead to a worker that is ready, before its first RUN; and to the lease process. */
void lead_tell(const struct child_slot *child);
/* All children but the lease process are reaped. Returns whether its end is to be waited for: it is told to release the lead, or,
 * if not all that we started is proven to be gone, killed: then the lease runs out. */
bool lead_release(struct supervisor *supervisor, bool proven);
void lead_done(struct supervisor *supervisor);
