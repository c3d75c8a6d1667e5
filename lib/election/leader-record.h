/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The leader record: who leads, and what must outlive a leader, as lines of text in one Lease, in this order:
 *
 *      reconciled-leader 1
 *      operator widgets.example.com
 *      cluster 6a1f0c1e-...        (the UID of the namespace kube-system)
 *      epoch 1764216000
 *      writes 3                    (of the member that wrote it, so that each write is a change)
 *      duration 15000000           (of that member's leases, in microseconds)
 *      holder widgets-0 4f1c...    (member and life; absent: nobody holds it)
 *      released widgets-1          (absent, or with a successor, or without one)
 *      late                        (after "released": a write of that holder may still be on its way)
 *
 * It is foreign input: whoever may write Leases in its namespace may write anything here. So it is bounded, and what
 * does not have this form is refused as a whole.
 *
 * Rolling updates: unknown lines come after these, are kept as they are and written again, so a release that
 * adds a line loses nothing when an older one takes over. What an older release must not lead without gets
 * another number in the first line, which older ones refuse. Among these are the lines that outlive a
 * leader: lasting.h.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"

#define LEADER_RECORD_MAX   (64 * 1024) /* bytes */
#define LEADER_NAME_MAX     253         /* of a member or an operator: a DNS subdomain */
#define LEADER_LIFE_MAX     32
#define LEADER_DURATION_MIN (5 * UINT64_C(1000000))
#define LEADER_DURATION_MAX (60 * 60 * UINT64_C(1000000))

/* A replica: its name is that of its member Lease; each life of its lease process has a random number of its own. */
struct leader_member {
        char name[LEADER_NAME_MAX + 1], life[LEADER_LIFE_MAX + 1];
};

/* What the election has in the record. A plain value. */
struct leader_claim {
        struct leader_member holder; /* its name is "": nobody holds it */
        uint64_t epoch;              /* of the holder's tenure, or of the last one that is known */
        uint64_t writes, duration_usec;
        bool released; /* nobody holds it, and all that the last holder ran has been reaped */
        bool late;     /* ... but a write of it may still be on its way */
        bool foreign; /* never written: who holds it, or held it last, has no member Lease, and renews the record */
        char successor[LEADER_NAME_MAX + 1]; /* of a release: goes first; "": everybody may */
};

struct leader_record {
        char operator[LEADER_NAME_MAX + 1], cluster[LEADER_NAME_MAX + 1];
        struct leader_claim claim;
        char *rest; /* lines that this release does not know; owned; NULL: none */
};

/* operator, cluster: ours. *ret is left alone on failure:
 *   -EBADMSG          it is no leader record, or damaged
 *   -EPROTONOSUPPORT  it is of a newer release
 *   -EXDEV            it is another operator's or another cluster's
 *   -ENOMEM */
int leader_record_read(const char *text, size_t size, const char *operator, const char * cluster,
                       struct leader_record *ret, struct error *error);
/* Appends it to `text`, which is to be checked for lack of memory at the end. */
void leader_record_write(struct text *text, const struct leader_record *record);
void leader_record_done(struct leader_record *record);

/* Letters, digits, '-' and '.', neither empty nor too long. */
bool leader_name_fits(const char *name);
bool leader_member_is(const struct leader_member *a, const struct leader_member *b);
