/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A walk over all objects of a store, as far as its caller has room each time, while the store is written to.
 * Namespaces take turns: in each it goes on by SWEEP_SHARE objects, and comes back when it has been in all of
 * them. It remembers a place for each namespace that has more; so 10,000 objects of one namespace do not
 * hold up one object of another.
 */
#include "store/writer.h"

#define SWEEP_SHARE 8

struct sweep {
        bool is_on;
        bool has_seen_all; /* namespaces; what is left is in `rest` */
        char *after;       /* up to this key it has been everywhere, but for `rest` */
        size_t in_row;     /* objects before `after` in its namespace that were visited in a row */
        char **rest;       /* in the order of keys: where it goes on in these namespaces */
        size_t rest_count, rest_room, turn;
};

int sweep_begin(struct sweep *sweep); /* also again; -ENOMEM */
void sweep_done(struct sweep *sweep);
/* Whether the walk has yet to reach this key. */
bool sweep_is_to_come(const struct sweep *sweep, const char *key);
/* Visits up to `max` objects, of those `again_max` in namespaces where it has been before; returns how many,
 * or a negative errno. complete: an object that is put into the store from now on is announced otherwise, so
 * the walk ends when nothing is left. */
int sweep_go_on(struct sweep *sweep, struct store *store, bool complete, size_t max, size_t again_max,
                store_visit_t visit, void *userdata);
