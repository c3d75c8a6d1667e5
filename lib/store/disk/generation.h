/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Generations on disk, and the LMDB environment of one of them. Private to store/. 0 or a negative errno. */
#include "store/internal.h"

int store_errno(int code); /* negative errno for an LMDB code */

/* Opens every table of this generation of the store, as its writer or for reading. */
int environment_open(struct store *store, uint64_t generation);
void environment_close(struct store *store);
/* Begins the writer's transaction, unless one is open. -ENOSPC: after store_stop(). */
int store_begin(struct store *store);
/* How many bytes the store may still come to hold: of its bound, or of the disk and of what is free in the file. Within the
 * writer's transaction. */
int environment_room(struct store *store, uint64_t *ret);
/* Whether the disk of this file has so many bytes beside the part of it that is left to others. */
bool disk_has_room(int fd, uint64_t size);
int environment_commit(struct store *store, MDB_txn *transaction); /* the transaction is over */

/* The file CURRENT: the generation (0 when there is none yet) and how far its content is to be trusted:
 * CURRENT_CLEAN, or the boot in which it is being written. It is read before LMDB opens anything, because
 * LMDB must not walk through what a power loss leaves. current_write waits for the disk. */
#define CURRENT_STATE_SIZE 40
#define CURRENT_CLEAN      "clean"
int current_read(const char *folder, uint64_t *ret_generation, char ret_state[CURRENT_STATE_SIZE]);
int current_write(const char *folder, uint64_t generation, const char *state);
