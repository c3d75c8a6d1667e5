/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What an answer may write beside its own object: kinds and namespaces that the configuration names. Pure data. */
#include "ipc/message.h"

/* Flags for what is wrong with a child or a patch; 0 if nothing is. */
enum {
        CONFINED_KIND = 1, /* no entry names its kind, in any version */
        CONFINED_NAMESPACE =
                2, /* it is in another namespace than the object, and no entry of its kind names that one */
};

/* watch, key: of the object; is_patch: judged by `patches`, not as a child. The own namespace of a Namespace is the one that it
 * is. namespace_name: "" if none is given: it is in the object's own, or belongs to the cluster. */
unsigned confined_judge(const struct record_watch *watch, bool is_patch, const char *key,
                        const char *api_version, const char *kind, const char *namespace_name);

/*
 * Which namespaces a watch follows: names, patterns (`team-*`, `*` any bytes, `?` one), and both with "!"
 * before them, which take out again. Only exclusions: all but those.
 */

/* A single pattern or exclusion makes the watch cluster-wide, filtered here. */
bool namespaces_are_patterns(const struct record_string *pattern, size_t count);
/* No pattern at all matches every name, and "" (what has no namespace). */
bool namespace_match(const struct record_string *pattern, size_t count, const char *name, size_t length);
