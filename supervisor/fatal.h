/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The operator cannot go on. Any part may call it in the middle of its work: the cause is logged at once, the
 * phase becomes PHASE_TEARDOWN, and teardown_begin() ends the children after the dispatch.
 */
#include <stdbool.h>
#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "os/slot.h"

struct child_slot;
struct supervisor;

struct supervisor_end {
        bool pending;    /* teardown_begin() is to be called */
        bool was_killed; /* a process that runs no handler, by SIGKILL: maybe for what a handler has done */
        const struct child_slot *child; /* its object is to blame; NULL: no object is */
        struct slot_view view;          /* the object that it was at */
        struct assignment *run;         /* of a worker: the run of this object; NULL: it was at none */
        char cause[1024];               /* for the termination message */
        char suspicion[1024]; /* the cause, unless a stop explains it until the timer is over ... */
        const struct child_slot *suspicious; /* ... and the child */
        sd_event_source *timer;
};

/* The run whose code a worker executes, by its slot; or the only run that it has. NULL: that is unknown. After a SIGKILL the
 * slot says nothing: whatever had the processor then has not caused it. *ret: the object that a watcher or worker is at. */
struct assignment *child_is_at(const struct child_slot *child, struct slot_view *ret);
/* child, key: may be NULL; key: of the object that it ends for. The first call counts, the others are
 * consequences. */
void supervisor_fatal(struct supervisor *supervisor, int exit_code, const struct child_slot *child,
                      const char *key, const char *format, ...) _printf_(5, 6);
/* The same (EXIT_CODE_SOFTWARE) a moment later, unless a stop was requested by then. The first of several
 * calls counts. */
void supervisor_fatal_unless_stopped(const struct child_slot *child, const char *format, ...) _printf_(2, 3);
