/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The access that handlers have of their own, as the credential process has last said. */
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "controller/controller-watch.h"

struct supervisor;

struct access_state {
        char *watch;
        bool usable, failing;         /* failing: it is usable, and cannot be renewed */
        struct watch_trouble trouble; /* while it is not usable; its reason also while it fails */
        uint64_t expires_realtime;    /* of the handler's token; 0: it has none */
};

/* Finds the access of a watch by its name; NULL: nothing was reported yet. */
struct access_state *access_find(const struct supervisor *supervisor, const char *watch);
const struct access_state *access_of(const struct watch *watch); /* NULL: nothing is known, or all is well */
/* Whether the watch has to wait: nothing of it runs before its handler has its credentials. */
bool access_awaited(const struct watch *watch);
struct access_state *access_add(struct supervisor *supervisor, const char *watch); /* NULL: no memory */
void access_free(struct supervisor *supervisor);

/*
 * The folder for access that handlers have of their own (handler.credentials, handler.kubernetes): made
 * here, in memory, with a folder for each watch that its handler's user may read. The credential process
 * fills them.
 */

int access_folder_begin(struct supervisor *supervisor, struct error *error); /* negative errno */
void access_folder_end(struct supervisor *supervisor);
/* Called once the spawner is there: warns of access that is not separated. -EACCES: a handler could not read
 * its own; -ENOMEM. */
int access_folder_check(const struct supervisor *supervisor, struct error *error);
