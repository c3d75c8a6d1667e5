/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the ledger keeps of an object's children: their number, kinds and namespaces, should their list be lost or cut,
 * and for each of these the resourceVersions that the operator's last runs know of. A text:
 *
 *   ?3#1a2b,v1/Node,apps/v1/Deployment@default=7:10.15.-20
 *
 * 3       how many children there are; 1a2b: a hash of which
 * ?       the last run does not know what it has written: no store is believed
 * 7       the epoch of the kind's store (store/meta.h): in another one these versions prove nothing
 * 10, 15  versions that a run has written, or was shown by the server itself
 * -20     a child was deleted in this version
 *
 * CHILD_VERSIONS_MAX at most, those of the last run first.
 */
#include "object/scan.h"

#define CHILD_VERSIONS_MAX 1000 /* as many children as an object may have */

struct child_kind {
        struct span api_version, kind, namespace_name; /* not quoted; namespace_name may be empty */
        uint64_t epoch;                                /* 0 if there are no versions */
        struct span versions;                          /* "10.15.-20"; may be empty */
};

bool child_kinds_are_unknown(const char *kinds);
size_t child_kinds_count(const char *kinds); /* of children */
uint64_t child_kinds_hash(const char *kinds);
bool child_kinds_are_none(const char *kinds);
/* The next entry; *at: where it begins, at first the text. false: there is no other. */
bool child_kinds_next(const char **at, struct child_kind *ret);
bool child_kind_is(const struct child_kind *kind, const char *api_version, const char *name);

/* The next version, as above. */
bool child_kind_next_version(struct span *left, uint64_t *ret, bool *ret_deleted);
/* Whether a run knows this version; deleted: because it has deleted the child in that version. */
bool child_kind_has(const struct child_kind *kind, uint64_t version, bool deleted);
/* The same for all entries of a kind. */
bool child_kinds_have(const char *kinds, const char *api_version, const char *kind, uint64_t epoch,
                      uint64_t version, bool deleted);
