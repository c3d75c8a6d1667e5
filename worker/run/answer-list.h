/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Lists in a handler's answer: each item is an object, and each member of it is checked by itself. */
#include <cjson/cJSON.h>

#include "base/error.h"

struct answer_list {
        const char *name; /* the answer's key */
        /* 0, or what answer_list_wrong() has returned. */
        int (*check_member)(const cJSON *member, int index, struct error *error);
        const char *required[3]; /* members, up to a NULL */
};

/* -EINVAL, with the place and what is wrong there. key: "" for the item itself. */
int answer_list_wrong(const struct answer_list *list, int index, const char *key, const char *text,
                      struct error *error);
int answer_list_check_item(const struct answer_list *list, const cJSON *item, int index,
                           struct error *error);

/* The answer's `events`, by the rules of events.k8s.io/v1. 0, or -EINVAL with the place of what is wrong. */
int events_check(const cJSON *list, struct error *error);
/* The answer's `children` or `patches` as a tree: 0, or -EINVAL with the place of what is wrong. An item is an object; in
 * `children` also {"manifest": OBJECT, "adopt": true} or {"manifest": OBJECT, "release": true}. */
int objects_check(const char *list, const cJSON *array, struct error *error);
