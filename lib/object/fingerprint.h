/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The trigger fingerprint: a keyed hash (keyed-hash.h) of the part of an object whose change is a reason to run. 0 is never
 * returned (it means "none" in the ledger and in messages).
 *
 * TRIGGER_ESSENCE: everything but apiVersion and kind (items of a LIST of built-in kinds lack them), status,
 * the fields that the server maintains (metadata.resourceVersion, generation, managedFields, selfLink,
 * creationTimestamp) and what is noted there for us (`ours` may be NULL). Members are hashed with their keys
 * in a form that does not depend on the order of keys or on white space, so that another API server
 * version's order of fields runs nothing. TRIGGER_GENERATION: the same with metadata.generation. TRIGGER_ANY: the UID and the resourceVersion. Where several
 * watches of ours have the object (ours->shared), each of their writes makes another resourceVersion; so
 * there it is the essence and the status, without what any of them notes. Of an object that is known by its
 * metadata alone it is the resourceVersion there, too. TRIGGER_JQ is lib/jq/program.h's.
 */
#include "ipc/message.h"
#include "object/bookkeeping.h"

/*
 * fingerprint_metadata: of an object that is watched with metadataOnly. Only its metadata counts, whether
 * the rest is there or not; so the answer to a write of the whole object compares with what the store holds.
 * There is no spec to see; metadata.generation, which the server raises when the spec changes, stands for it
 * and counts under TRIGGER_ESSENCE. Kinds without a generation (ConfigMap, Secret) show changes of their
 * data under TRIGGER_ANY only.
 */
#define FINGERPRINT_VERSION "2" /* grows when the same object gets another fingerprint than before */

int fingerprint_metadata(enum trigger trigger, const struct bookkeeping *ours, const char *json, size_t size,
                         uint64_t *ret_fingerprint);
/* Whether this is the metadata of an object without the rest, as metadataOnly stores it. */
bool fingerprint_is_partial(const char *json, size_t size);
int fingerprint_object(enum trigger trigger, const struct bookkeeping *ours, const char *json, size_t size,
                       uint64_t *ret_fingerprint);
