/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a watch remembers of single objects while the operator lives. There may be as many marks as objects, so
 * they are a tree of tsearch(), ordered by a hash that stands for key and UID. NULL is a set without marks.
 */
#include <stdint.h>

struct mark {
        uint64_t hash;
        uint64_t count, not_before; /* the caller's; 0 at first */
};

struct mark *mark_find(void *const *marks, const char *key, const char *uid); /* NULL if there is none */
struct mark *mark_add(void **marks, const char *key, const char *uid); /* or finds it; NULL: no memory */
void mark_drop(void **marks, const char *key, const char *uid);
void marks_forget(void **marks);
