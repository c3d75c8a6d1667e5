/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The election's Leases as objects of Kubernetes: requests for what it asks, and what answers say. It has no process, and
 * no connection.
 *
 * A member Lease has its life as the last word of spec.holderIdentity, behind the name of the host or pod for people. The
 * leader record has the leader's member as spec.holderIdentity, for people, and the record itself (leader-record.h) as an
 * annotation, OPERATOR/leader.
 */
#include "base/text.h"
#include "election/election.h"

struct lease_names { /* borrowed */
        const char *operator_name, *namespace_name, *record, *who;
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
/* A watch on the leader record: whatever it brings, the record is to be read. */
void lease_watch_make(const struct lease_names *names, struct lease_request *ret);
/* Deletes a member Lease, and only this one ("UID resourceVersion"). */
void lease_deletion_make(const struct lease_names *names, const char *member, const char *version,
                         struct lease_request *ret);
void lease_request_done(struct lease_request *request);

/* "UID resourceVersion" of the Lease. -EBADMSG: it is none. */
int lease_version(const char *json, size_t size, char ret[static ELECTION_VERSION_MAX]);
/* The life in a member Lease; "": it has none that is ours to read. */
void lease_life(const char *json, size_t size, char ret[static LEADER_LIFE_MAX + 1]);
/* The record in its Lease, as leader_record_read() returns it. -EBADMSG as well: a Lease of somebody else, without a
 * record. */
int lease_record(const struct lease_names *names, const char *json, size_t size, struct leader_record *ret,
                 struct error *error);
