/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The fields that a field manager has applied, by the object's managedFields. */

/* A body that applies it again, as JSON; the caller's. -E2BIG: one of the lists of which it has elements is longer than
 * MANAGED_LIST_MAX; -EBADMSG: the object cannot be read; -ENOMEM. Whoever may create the object wrote both. */
int managed_fields_body(const char *object, const char *manager, char **ret);

#define MANAGED_LIST_MAX 1000
