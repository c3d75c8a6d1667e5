/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Objects that a watch which wanted our finalizer has seen it on (struct store_object, held). */
struct store;

int store_unhold_object(struct store *store, const char *key); /* takes `held` off it; -ENOENT */
/* Takes `held` off all objects, on disk when it returns. on_progress: now and then. 0 or a negative
 * errno. */
int store_unhold(struct store *store, void (*on_progress)(void *userdata), void *userdata);
