/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The fields that a field manager has applied, by the object's managedFields. */

/* A body that applies it again, as JSON. Owned by the caller; NULL: no memory, or the object cannot be
 * read. */
char *managed_fields_body(const char *object, const char *manager);
