/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The hash of a handler: whether it is another one than before. These count: the kind of handler, its
 * arguments, its environment, its user, how large its requests may be, which credentials it has,
 * `handler.version`, and the contents of those arguments that are files (the program first). Times and
 * owners of files do not, and what a program loads by itself is not known here.
 *
 * Files are read step by step, so that a large one does not hold up the loop; each of them once, however
 * many handlers name it. The hash is keyed (HMAC-SHA-256), since arguments and environment may hold secrets,
 * which must not be guessed from it.
 */
#include "base/error.h"
#include "config/config.h"

#define HANDLER_KEY_SIZE  32 /* bytes */
#define HANDLER_HASH_SIZE 33 /* characters, with the NUL */
#define HANDLER_FILE_MAX                                                                                    \
        (UINT64_C(1) << 30) /* bytes of a file that are read; of all others its size counts */

struct handler_hash;

int handler_hash_new(const uint8_t key[HANDLER_KEY_SIZE], struct handler_hash **ret);
void handler_hash_free(struct handler_hash *hash);
/* Its files will be read. */
int handler_hash_add(struct handler_hash *hash, const struct config_handler *handler);
/* Opens or reads a bit of the next file: 1 = there is more to do, 0 = all is read. */
int handler_hash_step(struct handler_hash *hash);
/* After that, of a handler that was added; in hexadecimal digits. `unread` gets why files could not be read,
 * if any. Without the right to read a file the rest counts; with another error nothing is known: -EIO. */
int handler_hash_get(const struct handler_hash *hash, const struct config_handler *handler,
                     char ret[HANDLER_HASH_SIZE], struct text *unread);
/* Which version of its files was read (lib/os/file-stamp.h). No part of the hash. */
uint64_t handler_hash_stamp(const struct handler_hash *hash, const struct config_handler *handler);
/* Which version of its files lies there now: a run that has died is not there to tell. 0: not known. */
uint64_t handler_stamp_now(const struct config_handler *handler);
/* Says which key was used: another one makes other hashes of the same handlers. */
void handler_key_name(const uint8_t key[HANDLER_KEY_SIZE], char ret[HANDLER_HASH_SIZE]);
DEFINE_CLEANUP(struct handler_hash *, handler_hash_free);
