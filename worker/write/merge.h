/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * JSON merge patches (RFC 7386): whether one would change an object, and the body that carries it. The
 * handler's own text is sent, never a tree printed again: a tree keeps numbers as doubles, and would change
 * a large one on the way.
 */
#include <cjson/cJSON.h>

#include "base/text.h"
#include "object/scan.h"

enum merge_effect {
        MERGE_SAME,    /* nothing would change */
        MERGE_UNSURE,  /* numbers that a double does not hold, or more members than may be compared */
        MERGE_CHANGES, /* something would */
};

/* `target` may be NULL if there is none. */
enum merge_effect merge_effect(const cJSON *target, const cJSON *patch);
/* The effect of `patch` on the object in `json`, or on this member of it; member NULL: on all of it. MERGE_UNSURE also if one of
 * them has too many values for a tree (JSON_BOUNDED_MAX, and
 * JSON_SERVED_MAX for the object). */
enum merge_effect merge_effect_on(const char *json, const char *member, struct span patch);

/* The body: `patch` as `member` of an object (NULL: as it is), with the metadata.uid and resourceVersion
 * that it is meant for. The patch itself has none. 0, -EBADMSG, -ENOMEM. */
int merge_body(const char *member, struct span patch, const char *uid, const char *version,
               struct text *out);
