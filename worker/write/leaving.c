/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/write/leaving.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "object/confined.h"
#include "object/identity.h"
#include "selector/requirement.h"
#include "worker/dependents/notes.h"
#include "worker/dependents/parked/park.h"
#include "worker/write/object.h"

#define TOLD "left:" /* what the ledger keeps for the run: since when it waits */

/* The supervisor lets the run look at once when another watch has news of the object or has run for it. These
 * times are for changes that nobody reports. */
#define SOON_USEC   (10 * USEC_PER_SEC)
#define SELDOM_USEC USEC_PER_MINUTE
#define FIELD_USEC  USEC_PER_MINUTE /* a fieldSelector counts as a match for so long */

/* ---- the other watches of the kind */

static bool is_other(const struct record_watch *a, const struct record_watch *b)
{
        return a != b && !b->owner[0] && strcmp(a->kind, b->kind) == 0 &&
               is_same_api_group(a->api_version, b->api_version);
}

static bool labels_match(const struct run *run, const char *selector)
{
        _cleanup_(requirements_free_pointer) struct requirement *list = NULL;
        bool match = true;

        if (label_selector_parse(selector, &list, NULL) < 0)
                return true; /* no memory: as a filter that cannot be run */
        for (const struct requirement *each = list; each && match; each = each->next) {
                _cleanup_free_ char *value = notes_find(object_json(run), true, each->key);

                match = requirement_matches(each, value);
        }
        return match;
}

static bool filter_holds(const struct run *run, const char *filter)
{
        _cleanup_(jq_program_free_pointer) struct jq_program *program = NULL;
        const char *json = object_json(run);
        bool holds = true; /* if the filter cannot be run, nothing is taken off */

        /* No filter is run on an object over which a watcher has died, whichever filter that was. */
        if (filter[0] && !run->order->doubtful && !run->order->twin_doubtful &&
            jq_program_new(filter, &program, NULL) >= 0)
                (void)jq_program_test(program, json, strlen(json), run->watch->config->metadata_only, &holds,
                                      NULL);
        return holds;
}

/* All but its fieldSelector. */
static bool selects(const struct run *run, const struct record_watch *other)
{
        const char *key = run->order->key, *slash = strchr(key, '/');

        return namespace_match(other->namespace, other->namespace_count, key,
                               slash ? (size_t)(slash - key) : 0) &&
               labels_match(run, other->label_selector) && filter_holds(run, other->filter);
}

const struct record_watch *leaving_find(const struct run *run, const char *id)
{
        for (size_t i = 0; i < run->worker->watch_count; i++) {
                const struct record_watch *other = run->worker->watch[i].config;

                if (is_other(run->watch->config, other) && strcmp(other->id, id) == 0)
                        return selects(run, other) ? other : NULL;
        }
        return NULL;
}

/* ---- waiting for one of them */

/* Since when the run waits, by the ledger's clock; 0: it has not waited yet. */
static uint64_t waits_since(const struct run *run)
{
        const char *kept = run->order->settling;

        return strncmp(kept, TOLD, strlen(TOLD)) == 0 ? strtoull(kept + strlen(TOLD), NULL, 10) : 0;
}

bool leaving_is_told(const struct run *run)
{
        return waits_since(run) > 0;
}

static bool may_select(const struct run *run, const struct record_watch *other)
{
        uint64_t since = waits_since(run);

        return (!other->field_selector[0] || since == 0 || park_now(run) < since + FIELD_USEC) &&
               selects(run, other);
}

static bool is_on(const struct run *run, const char *finalizers)
{
        struct finalizer_view view = {0};
        const char *json = object_json(run);

        return finalizer_look(json, strlen(json), finalizers, &view) >= 0 && view.ours;
}

/* Whether another watch of the kind holds the object. */
static bool is_held_by_other(const struct run *run)
{
        for (size_t i = 0; i < run->worker->watch_count; i++) {
                const struct record_watch *other = run->worker->watch[i].config;

                if (is_other(run->watch->config, other) && other->finalizer && is_on(run, other->finalizers))
                        return true;
        }
        return false;
}

bool leaving_waits(const struct run *run)
{
        const struct record_watch *ours = run->watch->config;
        bool has_others = false, is_selected = false, is_to_be_held = false;

        if (run->action != ACTION_UNSELECTED || !run->object.json ||
            (ours->finalizer && object_is_deleting(run)))
                return false;
        /* A watch that owes the end will handle it. But an object that was held before stays held in between. */
        if (run->order->taken && (!is_on(run, ours->finalizers) || is_held_by_other(run)))
                return false;
        /* Our own watch as well: the object may be back, and its watcher has not said so yet. */
        for (size_t i = 0; i < run->worker->watch_count; i++) {
                const struct record_watch *watch = run->worker->watch[i].config;

                if (watch != ours && !is_other(ours, watch))
                        continue;
                has_others = has_others || watch != ours;
                if (!may_select(run, watch))
                        continue;
                is_selected = true;
                is_to_be_held = is_to_be_held || watch->finalizer;
        }
        return has_others && is_selected && (!run->order->taken || is_to_be_held);
}

int leaving_park(struct run *run)
{
        uint64_t now = park_now(run), since = waits_since(run), after;

        if (since == 0 || since > now)
                since = now;
        after = now - since;
        after = after < SOON_USEC ? SOON_USEC : after > SELDOM_USEC ? SELDOM_USEC : after;
        if (asprintf(&run->parked.plan, TOLD "%" PRIu64, since) < 0)
                run->parked.plan = NULL;
        run->parked.after_usec = after;
        if (run->parked.plan)
                return run_finish(run, RESULT_SETTLING,
                                  "another watch of its kind selects it, and has not run yet");
        return run_finish(run, RESULT_RETRY, "no memory to wait for another watch of its kind");
}
