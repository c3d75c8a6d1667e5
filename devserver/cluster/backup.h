/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "devserver/server.h"

/* Remembers the whole content. Returns its id; 0 without memory. */
uint64_t backup_take(struct server *server);
/* Goes back to it: watches break, pages of lists are gone. false: there is no such backup, or no memory. */
bool backup_restore(struct server *server, uint64_t id);
void backups_free(struct server *server);
