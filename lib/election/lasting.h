/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What must outlive a leader, as lines of the leader record after those of the election:
 *
 *      uninstalling SINCE USER
 *      paused WATCH SINCE USER REASON
 *      running WATCH KEY UID ALONE                 (begins only once the record has this line)
 *      crashed WATCH KEY UID CRASHES UNTIL
 *      doubtful WATCH KEY UID CRASHES UNTIL UNREAD
 *
 * Texts are percent-escaped, "-" is an empty one; times are microseconds since 1970; ALONE and UNREAD are 0 or 1. SINCE: when
 * it was ordered; USER: by which UID; CRASHES: over this object, 0: it was in flight in one; UNTIL: the end of the quarantine or
 * doubt, 0: none. More CRASHES than LASTING_CRASHES_MAX are written as so many.
 *
 * Like the rest of the record these lines are foreign input: what they name becomes rows of the ledger, names of files and
 * messages. A line that begins as one of these and is not exactly such a line (KEY and UID: object/identity.h) is
 * LASTING_DAMAGED, which nobody keeps. One that begins otherwise is of another release, and stays: so a release that wants
 * more of a line gives it another name.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/text.h"

#define LASTING_MAX                                                                                         \
        (24 * 1024) /* bytes of all lines that this release writes: a part of LEADER_RECORD_MAX */
#define LASTING_CRASHES_MAX UINT64_C(1000000)

enum lasting_kind {
        LASTING_UNINSTALL,
        LASTING_PAUSE,
        LASTING_RUN,
        LASTING_CRASH,
        LASTING_DOUBT,
        LASTING_OTHER, /* of another release */
        LASTING_DAMAGED,
};

/* A line. Its kind decides which texts it has; the others are NULL. lasting_next() allocates the texts, lasting_done() frees them. */
struct lasting {
        enum lasting_kind kind;
        char *watch, *key, *uid;
        char *reason;
        uint64_t since, user;
        uint64_t crashes, until;
        uint64_t flag;    /* ALONE or UNREAD */
        const char *line; /* as it is in the text, without its end; borrowed */
        size_t line_size;
};

/* Reads the line at *at, and moves *at past it. false if there is none, or (errno ENOMEM) no memory. */
bool lasting_next(const char **at, struct lasting *ret);
void lasting_write(struct text *text, const struct lasting *lasting); /* of a kind that has a name */
void lasting_done(struct lasting *lasting);

#define _cleanup_lasting_ _cleanup_(lasting_done)
