/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The fields that a field manager has applied, by the object's managedFields. */
#include "base/text.h"

/* Makes a body that applies again what the manager has applied, as JSON; the caller's. -E2BIG: one of the
 * lists of which the manager has elements is longer than MANAGED_LIST_MAX, or finding them all would take
 * long; -EBADMSG: the object cannot be read; -ENOMEM. A user who may create the object wrote both. */
int managed_fields_body(const char *object, const char *manager, char **ret);

#define MANAGED_LIST_MAX 1000

/* Appends the member managedFields of a merge patch, in which all entries of the managers `from` (with commas
 * between them) have the manager `to`. apply: entries of the object itself then count as made by an apply. 1 if
 * it has appended it; 0 if there are no such entries; or a negative errno. */
int managed_fields_rename(const char *object, const char *from, const char *to, bool apply,
                          struct text *out);
