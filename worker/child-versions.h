/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A request is never older than our own writes. What a run has written to children of owned kinds goes to the ledger with
 * DONE (object/child-kinds.h), and comes back with the next RUN, which compares it with the stores of these kinds.
 */
#include "object/child-kinds.h"
#include "store/record.h"

struct run;

struct child_version {
        const struct record_watch *owned; /* the watch of its kind; borrowed */
        char *namespace_name;
        uint64_t version;
        bool deleted; /* in this version */
};

struct child_versions {
        struct child_version *item;
        size_t count;
        bool unknown; /* a write got no answer, or an unclear one */
};

void child_versions_done(struct child_versions *versions);
/* A version that the run has written, or was shown by the server itself. owned: NULL if the watch owns no such kind:
 * nothing is noted. deleted: the child is gone, and this is how the store may still show it. */
void child_versions_add(struct run *run, const struct record_watch *owned, const char *namespace_name,
                        const char *version, bool deleted);

/* For DONE: adds an entry of the ledger's text with all versions, the former run's included. */
void child_versions_print(const struct run *run, const char *api_version, const char *kind,
                          const char *namespace_name, struct text *out);
/* The same for all that RUN came with, or that the run has noted; deleted: only for those of which a child was deleted. */
void child_versions_print_former(const struct run *run, bool deleted, struct text *out);
/* Whether a run has anything to add to them. */
bool child_versions_are_news(const struct run *run);

/* Whether the store of an owned kind may lack one of our writes; namespace_name: NULL for any. */
bool child_versions_are_missed(const struct run *run, const struct record_watch *owned,
                               const char *namespace_name);
/* Whether that is so for any kind. */
bool child_versions_are_behind(const struct run *run);
/* Whether we have deleted it in this version: a store that shows it is stale. */
bool child_versions_deleted(const struct run *run, const struct record_watch *owned, const char *version);
