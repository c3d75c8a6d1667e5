/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sweep.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

int sweep_begin(struct sweep *sweep)
{
        sweep_done(sweep);
        sweep->after = strdup("");
        sweep->is_on = sweep->after != NULL;
        return sweep->is_on ? 0 : -ENOMEM;
}

void sweep_done(struct sweep *sweep)
{
        for (size_t i = 0; i < sweep->rest_count; i++)
                free(sweep->rest[i]);
        free(sweep->rest);
        free(sweep->after);
        *sweep = (struct sweep){.is_on = false};
}

/* The size of the key's namespace, with the slash; 0: it belongs to none. */
static size_t namespace_size(const char *key)
{
        const char *slash = strchr(key, '/');

        return slash ? (size_t)(slash - key) + 1 : 0;
}

static bool is_neighbour(const char *key, const char *other)
{
        size_t size = namespace_size(key);

        return size == namespace_size(other) && memcmp(key, other, size) == 0;
}

/* ---- what is left of namespaces */

/* The last one that is not after the key; the count if there is none. */
static size_t find_rest(const struct sweep *sweep, const char *key)
{
        size_t low = 0, high = sweep->rest_count;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (strcmp(sweep->rest[middle], key) <= 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low > 0 ? low - 1 : sweep->rest_count;
}

bool sweep_is_to_come(const struct sweep *sweep, const char *key)
{
        size_t at;

        if (!sweep->is_on)
                return false;
        if (strcmp(key, sweep->after) > 0)
                return !sweep->has_seen_all;
        at = find_rest(sweep, key);
        return at < sweep->rest_count && is_neighbour(sweep->rest[at], key) &&
               strcmp(key, sweep->rest[at]) > 0;
}

static void drop_rest(struct sweep *sweep, size_t at)
{
        assert(at < sweep->rest_count);
        free(sweep->rest[at]);
        sweep->rest_count--;
        memmove(&sweep->rest[at], &sweep->rest[at + 1], (sweep->rest_count - at) * sizeof(sweep->rest[0]));
}

/* The namespace has had its share: it goes on after `after` later, and the walk goes on with the next namespace. */
static int leave_namespace(struct sweep *sweep)
{
        char *behind = strdup(sweep->after);

        if (!behind)
                return -ENOMEM;
        if (sweep->rest_count == sweep->rest_room) {
                size_t room = sweep->rest_room ? sweep->rest_room * 2 : 8;
                char **rest = reallocarray(sweep->rest, room, sizeof(char *));

                if (!rest) {
                        free(behind);
                        return -ENOMEM;
                }
                sweep->rest = rest;
                sweep->rest_room = room;
        }
        behind[namespace_size(behind) - 1] = '/' + 1;
        behind[namespace_size(sweep->after)] = '\0';
        sweep->rest[sweep->rest_count++] = sweep->after;
        sweep->after = behind;
        sweep->in_row = 0;
        return 0;
}

/* ---- a step */

struct step {
        struct sweep *sweep;
        char **place; /* the key of the last object goes there */
        bool in_one;  /* namespace: that of `place` */
        bool over;    /* it has left the namespace */
        bool had_share;
        store_visit_t visit;
        void *userdata;
        int count;
};

#define STEP_ENDS (-ECANCELED)

static int take_swept(const struct store_object *object, void *userdata)
{
        struct step *step = userdata;
        struct sweep *sweep = step->sweep;
        bool same = is_neighbour(object->key, *step->place);
        int r;

        step->over = step->in_one && !same;
        step->had_share = !step->in_one && same && sweep->in_row >= SWEEP_SHARE && strchr(object->key, '/');
        if (step->over || step->had_share)
                return STEP_ENDS;
        r = step->visit(object, step->userdata);
        if (r >= 0)
                r = text_replace(step->place, object->key);
        if (r < 0)
                return r;
        if (!step->in_one)
                sweep->in_row = same ? sweep->in_row + 1 : 1;
        step->count++;
        return 0;
}

static int sweep_walk(struct step *step, struct store *store, size_t max)
{
        _cleanup_free_ char *after = strdup(*step->place); /* which moves on meanwhile */
        int r = after ? store_visit_objects(store, after, max, take_swept, step) : -ENOMEM;

        if (r < 0 && r != STEP_ENDS)
                return r;
        if (r >= 0 && (size_t)r < max)
                step->over = true;
        return 0;
}

/* All namespaces once. Returns how many objects; 0: there are no more of them now. */
static int go_through_all(struct step *step, struct store *store, bool complete, size_t max)
{
        int r;

        *step = (struct step){step->sweep, &step->sweep->after, .visit = step->visit,
                              .userdata = step->userdata};
        r = sweep_walk(step, store, max);
        if (r >= 0 && step->had_share) {
                r = leave_namespace(step->sweep);
                if (r >= 0 && step->count == 0)
                        return go_through_all(step, store, complete, max);
        }
        if (r >= 0 && step->over)
                step->sweep->has_seen_all = complete;
        return r < 0 ? r : step->count;
}

/* The share of one of those that have more. Before the store is complete each of them may get some. */
static int go_on_in_one(struct step *step, struct store *store, bool complete, size_t max)
{
        struct sweep *sweep = step->sweep;

        for (size_t tries = sweep->rest_count; tries > 0; tries--) {
                size_t at = sweep->turn < sweep->rest_count ? sweep->turn : 0;
                int r;

                *step = (struct step){sweep, &sweep->rest[at], .in_one = true, .visit = step->visit,
                                      .userdata = step->userdata};
                r = sweep_walk(step, store, max < SWEEP_SHARE ? max : SWEEP_SHARE);
                if (r < 0)
                        return r;
                sweep->turn = at + 1;
                if (step->over && complete) {
                        drop_rest(sweep, at);
                        sweep->turn = at;
                }
                if (step->count > 0)
                        return step->count;
        }
        return 0;
}

int sweep_go_on(struct sweep *sweep, struct store *store, bool complete, size_t max, size_t again_max,
                store_visit_t visit, void *userdata)
{
        struct step step = {.sweep = sweep, .visit = visit, .userdata = userdata};
        size_t count = 0;

        while (sweep->is_on && count < max) {
                int r = sweep->has_seen_all ? 0 : go_through_all(&step, store, complete, max - count);

                if (r == 0 && count < again_max)
                        r = go_on_in_one(&step, store, complete, again_max - count);
                if (r < 0)
                        return r;
                count += (size_t)r;
                if (r == 0 && sweep->has_seen_all && sweep->rest_count == 0)
                        sweep_done(sweep);
                else if (r == 0)
                        break;
        }
        return (int)count;
}
