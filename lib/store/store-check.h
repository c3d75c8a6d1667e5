/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Whether damage has hidden or brought back anything. */
struct store;

/* For the writer, once it is open: whether each table holds exactly what was written. -EBADMSG: it does not,
 * and nothing in it is to be believed. Reads everything; `progress` (may be NULL) is called now and then.
 * Another negative errno: it could not be read. */
int store_verify(struct store *store, void (*progress)(void *userdata), void *userdata);
