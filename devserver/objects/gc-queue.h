/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the garbage collector has to look at when the request has its answer, and the owners of objects. */
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

struct resource;
struct server;

struct gc_entry {
        struct resource *resource;
        char *key;
};

struct gc_queue {
        struct gc_entry *entry;
        size_t count, allocated;
};

void gc_look_later(struct server *server, struct resource *resource, const char *key);
void gc_look_at_dependents(struct server *server, const char *uid);
void gc_look_at_owners(struct server *server, const cJSON *object);
/* Whether a dependent holds the owner by a reference with blockOwnerDeletion. */
bool gc_is_blocked(const struct server *server, const char *uid);
void gc_orphan(struct server *server, const char *uid); /* its dependents forget it */
void gc_done(struct server *server);
