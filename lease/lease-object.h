/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The election's Leases as objects of Kubernetes: requests for what it asks, and what answers say. It has no process, and
 * no connection.
 *
 * A member Lease has its life as the last word of spec.holderIdentity, after the name of the host or pod for
 * people. The leader record has the leader's member as spec.holderIdentity, and the record itself
 * (leader-record.h) as an annotation, OPERATOR/leader. A client that knows nothing of us and takes the Lease
 * (client-go) changes the spec, and leaves the annotation. So the annotation counts only with the holder and
 * the duration that it names.
 */
#include "base/text.h"
#include "election/election.h"

struct lease_names { /* borrowed */
        const char *operator_name, *namespace_name, *record, *who;
        bool is_shared;         /* the record may be held by somebody who knows nothing of us (client-go) */
        uint64_t duration_usec; /* of our leases */
        const char *
                cluster; /* the UID of the namespace kube-system; LEASE_CLUSTER_UNKNOWN: we may not see it */
};
#define LEASE_CLUSTER_UNKNOWN "unknown"

/* One request. method: NULL where there was no memory. */
struct lease_request {
        const char *method;
        char *path;
        struct text body; /* empty: there is none */
};

/* rest: lines of the record that stay as they are in ask->version; "" or NULL: none. realtime_usec: for people. */
void lease_request_make(const struct lease_names *names, const struct leader_member *self,
                        const struct election_ask *ask, const char *rest, uint64_t realtime_usec,
                        struct lease_request *ret);
/* A watch on the Lease `name`: any event means that the Lease is to be read. */
void lease_watch_make(const struct lease_names *names, const char *name, struct lease_request *ret);
/* Deletes a member Lease, and only this one ("UID resourceVersion"). */
void lease_deletion_make(const struct lease_names *names, const char *member, const char *version,
                         struct lease_request *ret);
void lease_request_done(struct lease_request *request);

/* "UID resourceVersion" of the Lease. -EBADMSG: it is none. */
int lease_version(const char *json, size_t size, char ret[static ELECTION_VERSION_MAX]);
/* The life in a member Lease; "": it has none that is ours to read. */
void lease_life(const char *json, size_t size, char ret[static LEADER_LIFE_MAX + 1]);
/* The duration in a Lease, bounded by LEADER_DURATION_MAX; 0: it has none. */
uint64_t lease_duration(const char *json, size_t size);
/* The record in its Lease, as leader_record_read() returns it. Where somebody else holds it, or has held it last: in a shared one
 * claim.foreign, with an epoch above the annotation's, so that no ledger of ours counts as complete; else -EBADMSG. */
int lease_record(const struct lease_names *names, const char *json, size_t size, struct leader_record *ret,
                 struct error *error);
