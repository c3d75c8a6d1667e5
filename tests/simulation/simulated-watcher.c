/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watchers: events and lists into a store, from there what the supervisor is told. As in watcher/apply:
 * an end is a tombstone and a dirty entry until HANDLED comes; an object that is not shown any more is asked
 * for before its end is told (the watches have a selector); a life begins with the tombstones and with all
 * that the store has.
 */
#include <string.h>

#include "tests/simulation/simulation.h"

#define RESTORED_USEC (10 * UINT64_C(1000000))

/* ---- dirty entries: one for the update of a name, one for each end of a UID, in order */

static struct sim_change *dirty_find(struct sim_store *store, enum change_kind kind, unsigned name,
                                     unsigned uid)
{
        for (size_t i = 0; i < store->dirty_count; i++) {
                struct sim_change *dirty = &store->dirty[i];

                if (dirty->name != name || dirty->kind != kind)
                        continue;
                if (kind == CHANGE_UPDATED || dirty->uid == uid)
                        return dirty;
        }
        return NULL;
}

static void dirty_drop(struct sim_store *store, size_t index)
{
        store->dirty_count--;
        memmove(&store->dirty[index], &store->dirty[index + 1],
                (store->dirty_count - index) * sizeof(store->dirty[0]));
}

/* In the place that it has already, or at the end. */
static void dirty_put(struct sim_store *store, const struct sim_change *change)
{
        struct sim_change *dirty = dirty_find(store, change->kind, change->name, change->uid);
        uint64_t sequence = dirty ? dirty->sequence : ++store->sequence;

        if (!dirty && store->dirty_count == PLACES_MAX)
                return;
        if (!dirty)
                dirty = &store->dirty[store->dirty_count++];
        *dirty = *change;
        dirty->sequence = sequence;
}

/* As store_dirty_add(): the end of an object never comes behind the beginning of the next one. */
static void dirty_add(struct sim_store *store, const struct sim_change *change)
{
        struct sim_change *found = dirty_find(store, CHANGE_UPDATED, change->name, 0), update = {0};
        bool is_update = change->kind == CHANGE_UPDATED, same = found && found->uid == change->uid;

        if (found)
                update = *found;
        if (found && !(is_update && same))
                dirty_drop(store, (size_t)(found - store->dirty));
        dirty_put(store, change);
        if (found && !is_update && !same)
                dirty_put(store, &update);
}

/* ---- tombstones and questions */

static bool tombstone_exists(const struct sim_store *store, unsigned name, unsigned uid)
{
        for (size_t i = 0; i < store->tombstone_count; i++)
                if (store->tombstone[i].name == name && store->tombstone[i].uid == uid)
                        return true;
        return false;
}

static void tombstone_remove(struct sim_store *store, unsigned name, unsigned uid)
{
        for (size_t i = 0; i < store->tombstone_count; i++)
                if (store->tombstone[i].name == name && store->tombstone[i].uid == uid)
                        store->tombstone[i--] = store->tombstone[--store->tombstone_count];
}

static void bury(struct sim_store *store, unsigned name, unsigned uid, bool held)
{
        if (!tombstone_exists(store, name, uid) && store->tombstone_count < PLACES_MAX) {
                store->tombstone[store->tombstone_count].name = name;
                store->tombstone[store->tombstone_count].uid = uid;
                store->tombstone[store->tombstone_count++].held = held;
        }
        if (store->stored[name].exists && store->stored[name].object.uid == uid)
                store->stored[name].exists = false;
        dirty_add(store, &(struct sim_change){.kind = CHANGE_DELETED, .name = name, .uid = uid});
}

static void ask(struct sim_store *store, unsigned name, unsigned uid)
{
        for (size_t i = 0; i < store->question_count; i++)
                if (store->question[i].name == name && store->question[i].uid == uid)
                        return;
        if (store->question_count < PLACES_MAX) {
                store->question[store->question_count].name = name;
                store->question[store->question_count++].uid = uid;
        }
}

/* ---- from the server to the store */

static enum finalizer_state finalizer_of(const struct simulation *sim, unsigned watch,
                                         const struct sim_object *object)
{
        bool ours = object->finalizers & 1U << watch;

        if (sim->config_watch[watch].finalizer)
                return ours || object->deleting ? FINALIZER_FINE : FINALIZER_MISSING;
        return ours ? FINALIZER_LEFT_OVER : FINALIZER_FINE;
}

static void put(struct simulation *sim, unsigned watch, unsigned name, const struct sim_object *object,
                bool listed)
{
        struct sim_watcher *watcher = &sim->watcher[watch];
        struct sim_stored *stored = &watcher->store.stored[name];
        uint64_t fingerprint = sim_fingerprint(object);
        bool wants = sim->config_watch[watch].finalizer;
        enum finalizer_state finalizer = wants || listed ? finalizer_of(sim, watch, object) : FINALIZER_FINE;
        bool ours = object->finalizers & 1U << watch;
        bool dirty = true, held = wants && object->deleting && ours;

        if (stored->exists && stored->object.uid != object->uid)
                bury(&watcher->store, name, stored->object.uid,
                     stored->held && watcher->restored_boottime == 0);
        if (listed || watcher->restored_boottime > 0)
                tombstone_remove(&watcher->store, name, object->uid);
        else if (tombstone_exists(&watcher->store, name, object->uid))
                return;
        if (stored->exists) {
                if (wants && object->deleting)
                        held = stored->held || (ours && stored->object.version != object->version);
                dirty = stored->fingerprint != fingerprint || finalizer != FINALIZER_FINE || listed;
        }
        *stored = (struct sim_stored){
                .exists = true, .held = held, .object = *object, .fingerprint = fingerprint};
        if (dirty)
                dirty_add(&watcher->store, &(struct sim_change){.kind = CHANGE_UPDATED,
                                                                .name = name,
                                                                .uid = object->uid,
                                                                .fingerprint = fingerprint,
                                                                .version = object->version,
                                                                .first = listed && !watcher->synced,
                                                                .finalizer = finalizer});
}

static void left(struct sim_watcher *watcher, unsigned name, unsigned uid)
{
        if (watcher->store.stored[name].exists && watcher->store.stored[name].object.uid == uid)
                ask(&watcher->store, name, uid);
}

static void list(struct simulation *sim, unsigned watch)
{
        struct sim_watcher *watcher = &sim->watcher[watch];

        for (unsigned name = 0; name < NAMES; name++) {
                const struct sim_object *object = &sim->server.object[name];
                struct sim_stored *stored = &watcher->store.stored[name];

                if (object->exists && (object->selected & 1U << watch))
                        put(sim, watch, name, object, true);
                else if (stored->exists) {
                        stored->held = stored->held && watcher->restored_boottime == 0;
                        ask(&watcher->store, name, stored->object.uid);
                }
        }
        watcher->store.position = sim->server.events;
        watcher->store.server_epoch = sim->server.epoch;
        watcher->store.is_filled = true;
}

static void send(struct sim_inbox *inbox, const struct sim_message *message)
{
        if (inbox->count < INBOX_MAX)
                inbox->message[(inbox->first + inbox->count++) % INBOX_MAX] = *message;
}

/* Before any change of it, and before a run can end that began in another one. */
static void tell_epoch(struct sim_watcher *watcher)
{
        send(&watcher->to_controller, &(struct sim_message){.type = SIM_KEYS,
                                                            .epoch = watcher->store.epoch,
                                                            .restored = watcher->saw_restore});
}

/* The database went back in time: said at once, for runs that began before it may end at any moment. */
static void relist_restored(struct simulation *sim, unsigned watch)
{
        struct sim_watcher *watcher = &sim->watcher[watch];

        watcher->saw_restore = true;
        watcher->restored_boottime = sim->boottime;
        watcher->store.noted_restore = sim->boottime;
        watcher->store.epoch = ++sim->epochs;
        tell_epoch(watcher);
        list(sim, watch);
}

static void tell_synced(struct simulation *sim, unsigned watch)
{
        struct sim_watcher *watcher = &sim->watcher[watch];

        watcher->synced = true;
        send(&watcher->to_controller,
             &(struct sim_message){.type = SIM_SYNCED, .restored = watcher->saw_restore});
        sim_tell(sim, "watcher %u: in sync", watch);
}

bool watcher_read(struct simulation *sim, unsigned watch)
{
        struct sim_watcher *watcher = &sim->watcher[watch];
        struct sim_store *store = &watcher->store;
        const struct sim_event *event;

        if (store->is_filled && store->server_epoch != sim->server.epoch) {
                relist_restored(sim, watch);
                return true;
        }
        if (!store->is_filled || sim->server.events - store->position > EVENTS_MAX - 1) {
                list(sim, watch);
                return true;
        }
        if (store->position == sim->server.events) {
                if (watcher->synced)
                        return false;
                tell_synced(sim, watch);
                return true;
        }
        event = &sim->server.event[store->position++ % EVENTS_MAX];
        if (!event->gone && (event->object.selected & 1U << watch))
                put(sim, watch, event->name, &event->object, false);
        else
                left(watcher, event->name, event->object.uid);
        return true;
}

/* The answer to a GET: it is as new as it can be, and newer than what was read. */
bool watcher_verify(struct simulation *sim, unsigned watch)
{
        struct sim_store *store = &sim->watcher[watch].store;
        unsigned name, uid;
        const struct sim_object *object;

        if (store->question_count == 0)
                return false;
        name = store->question[0].name;
        uid = store->question[0].uid;
        store->question_count--;
        memmove(&store->question[0], &store->question[1],
                store->question_count * sizeof(store->question[0]));
        object = server_object(sim, name, uid);
        if (!object) {
                bury(store, name, uid,
                     store->stored[name].exists && store->stored[name].object.uid == uid &&
                             store->stored[name].held && sim->watcher[watch].restored_boottime == 0);
        } else if (!(object->selected & 1U << watch) || !store->stored[name].exists ||
                   store->stored[name].object.uid != uid) {
                if (store->stored[name].exists && store->stored[name].object.uid == uid)
                        store->stored[name].exists = false;
                dirty_add(store, &(struct sim_change){.kind = CHANGE_UNSELECTED, .name = name, .uid = uid});
        }
        return true;
}

/* ---- from the store to the supervisor */

static void sweep(struct simulation *sim, unsigned watch, struct sim_message *keys, size_t limit)
{
        struct sim_watcher *watcher = &sim->watcher[watch];

        while (watcher->synced && watcher->sweep_next < NAMES && keys->count < limit) {
                unsigned name = watcher->sweep_next++;
                const struct sim_stored *stored = &watcher->store.stored[name];

                if (stored->exists)
                        keys->change[keys->count++] =
                                (struct sim_change){.kind = CHANGE_UPDATED,
                                                    .name = name,
                                                    .uid = stored->object.uid,
                                                    .fingerprint = stored->fingerprint,
                                                    .version = stored->object.version,
                                                    .first = true,
                                                    .finalizer = finalizer_of(sim, watch, &stored->object)};
        }
}

bool watcher_announce(struct simulation *sim, unsigned watch, unsigned limit)
{
        struct sim_watcher *watcher = &sim->watcher[watch];
        struct sim_message keys = {
                .type = SIM_KEYS, .epoch = watcher->store.epoch, .restored = watcher->saw_restore};
        size_t max = watcher->credit < limit ? (size_t)watcher->credit : limit;

        if (watcher->synced && !watcher->swept && watcher->sweep_next == NAMES &&
            watcher->store.dirty_count == 0) {
                watcher->swept = true;
                send(&watcher->to_controller, &(struct sim_message){.type = SIM_SWEPT});
                return true;
        }
        if (watcher->synced && watcher->owed_complete && !watcher->checked &&
            watcher->store.question_count == 0) {
                watcher->checked = true;
                send(&watcher->to_controller, &(struct sim_message){.type = SIM_CHECKED});
                return true;
        }
        while (keys.count < max && watcher->store.dirty_count > 0) {
                keys.change[keys.count++] = watcher->store.dirty[0];
                dirty_drop(&watcher->store, 0);
        }
        sweep(sim, watch, &keys, max);
        if (keys.count == 0)
                return false;
        for (size_t i = 0; i < keys.count; i++)
                sim_tell(sim, "watcher %u: announces %s of %s u%u, fingerprint %llu", watch,
                         change_kind_name(keys.change[i].kind), sim_key(keys.change[i].name),
                         keys.change[i].uid, (unsigned long long)keys.change[i].fingerprint);
        watcher->credit -= keys.count;
        send(&watcher->to_controller, &keys);
        return true;
}

/* ---- from the supervisor */

static void check(struct sim_store *store, unsigned name, unsigned uid)
{
        if (store->stored[name].exists && store->stored[name].object.uid == uid)
                return;
        if (!tombstone_exists(store, name, uid))
                ask(store, name, uid);
}

bool watcher_listen(struct simulation *sim, unsigned watch)
{
        struct sim_watcher *watcher = &sim->watcher[watch];
        struct sim_inbox *inbox = &watcher->to_watcher;
        const struct sim_message *message = &inbox->message[inbox->first];

        if (inbox->count == 0)
                return false;
        inbox->first = (inbox->first + 1) % INBOX_MAX;
        inbox->count--;
        watcher->credit += message->type == SIM_CREDIT ? message->amount : 0;
        for (size_t i = 0; i < message->count; i++) {
                if (message->type == SIM_HANDLED)
                        tombstone_remove(&watcher->store, message->change[i].name, message->change[i].uid);
                else
                        check(&watcher->store, message->change[i].name, message->change[i].uid);
        }
        if (message->type == SIM_OWED && message->last)
                watcher->owed_complete = true;
        return true;
}

void watcher_lose_store(struct simulation *sim, unsigned watch)
{
        sim->watcher[watch].store = (struct sim_store){.sequence = sim->watcher[watch].store.sequence};
}

/* A new process, with the store of the last one. */
void watcher_start(struct simulation *sim, unsigned watch)
{
        struct sim_watcher *watcher = &sim->watcher[watch];
        struct sim_store *store = &watcher->store;
        bool restored = store->noted_restore > 0 && (store->noted_restore > sim->boottime ||
                                                     sim->boottime - store->noted_restore < RESTORED_USEC);

        watcher->credit = 0;
        watcher->restored_boottime = restored ? sim->boottime : 0;
        if (!store->is_filled)
                store->epoch = ++sim->epochs;
        watcher->synced = watcher->swept = watcher->owed_complete = watcher->checked = false;
        watcher->saw_restore = false;
        watcher->sweep_next = 0;
        watcher->to_controller.count = watcher->to_watcher.count = 0;
        tell_epoch(watcher);
        /* A watch that does not want our finalizer takes it off: its absence is nobody else's will. */
        for (unsigned name = 0; name < NAMES && !sim->config_watch[watch].finalizer; name++)
                store->stored[name].held = false;
        for (size_t i = 0; i < store->tombstone_count; i++)
                dirty_add(store, &(struct sim_change){.kind = CHANGE_DELETED,
                                                      .name = store->tombstone[i].name,
                                                      .uid = store->tombstone[i].uid});
}

bool watcher_is_at_rest(const struct simulation *sim, unsigned watch)
{
        const struct sim_watcher *watcher = &sim->watcher[watch];

        return watcher->synced && watcher->swept && watcher->checked && watcher->store.dirty_count == 0 &&
               watcher->store.question_count == 0 && watcher->to_controller.count == 0 &&
               watcher->to_watcher.count == 0 && watcher->store.position == sim->server.events &&
               watcher->store.server_epoch == sim->server.epoch;
}
