/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The request that a handler reads on stdin: one line of JSON. */
#include "object/scan.h"
#include "store/owner.h"
#include "worker/run-state.h"

/* Appends an object of a store with its apiVersion and kind, which items of a LIST lack. */
void request_write_with_kind(const struct record_watch *config, const struct scan_object *object,
                             struct text *out);
/* Whether an object of an owned kind is a child of the run's object by its owner references, and so in the request. */
bool request_shows(const struct run *run, const char *json, size_t size);
/* The run's object as the handler is given it; where its content is unknown, its identity alone. *ret_json
 * is the caller's. 0, -ENOMEM, or that the object cannot be read. */
int request_complete_object(const struct run *run, char **ret_json);
/* Appends the request. id: what the answer must carry; 0 if there is none. -E2BIG: the request would be larger than
 * handler.requestLimit allows, and run->excess says by how much; -ECANCELED: the worker ends
 * (run_store_damaged). */
int request_build(struct run *run, uint64_t id, struct text *out);
/* A sentence for people: what the objects of this kind take in a request, beside `bytes` of others. Owned by
 * the caller; NULL: no memory. */
char *request_excess(const struct run *run, const struct record_watch *kind, size_t bytes,
                     const struct store_extent *extent);
