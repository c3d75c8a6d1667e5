/* SPDX-License-Identifier: Apache-2.0 */
/* The API server: objects, versions, a ring of events, a backup that may be restored. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simulation/simulation.h"
#include "json/json.h"

const char *sim_key(unsigned name)
{
        static const char *const key[NAMES] = {"n/a", "n/b"};

        return key[name];
}

unsigned sim_name_number(const char *key)
{
        return (unsigned)(key[2] - 'a');
}

void sim_uid(unsigned uid, char buffer[16])
{
        snprintf(buffer, 16, "u%u", uid);
}

unsigned sim_uid_number(const char *uid)
{
        return (unsigned)strtoul(uid + 1, NULL, 10);
}

/* What the trigger sees; a status is none of it. */
uint64_t sim_fingerprint(const struct sim_object *object)
{
        return 1 + object->content + 8 * object->selected + 64 * object->deleting;
}

static void event(struct simulation *sim, unsigned name, bool gone)
{
        struct sim_server *server = &sim->server;

        server->event[server->events % EVENTS_MAX] =
                (struct sim_event){.name = name, .gone = gone, .object = server->object[name]};
        server->events++;
}

static void server_changed(struct simulation *sim, unsigned name)
{
        struct sim_object *object = &sim->server.object[name];

        object->version = ++sim->server.version;
        if (object->deleting && object->finalizers == 0) {
                event(sim, name, true);
                sim_tell(sim, "server: %s u%u is gone", sim_key(name), object->uid);
                model_gone(sim, object->uid, object->selected);
                object->exists = false;
                return;
        }
        event(sim, name, false);
}

struct sim_object *server_object(struct simulation *sim, unsigned name, unsigned uid)
{
        struct sim_object *object = &sim->server.object[name];

        return object->exists && object->uid == uid ? object : NULL;
}

/* ---- requests of runs */

void server_print(const struct simulation *sim, unsigned name, const struct sim_object *object,
                  char buffer[SIM_JSON_MAX])
{
        const char *separator = "";
        size_t size;

        size = (size_t)snprintf(
                buffer, SIM_JSON_MAX,
                "{\"apiVersion\":\"v1\",\"kind\":\"%s\",\"metadata\":{\"namespace\":\"n\",\"name\":\"%s\","
                "\"uid\":\"u%u\",\"resourceVersion\":\"%llu\",\"annotations\":{\"note\":\"%u\"},"
                "\"labels\":{\"first\":\"%u\",\"second\":\"%u\"},%s\"finalizers\":[",
                sim->config_watch[0].kind, sim_key(name) + 2, object->uid,
                (unsigned long long)object->version, object->note, object->selected & 1,
                object->selected >> 1 & 1,
                object->deleting ? "\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"," : "");
        for (unsigned i = 0; i < WATCHES; i++) {
                if (!(object->finalizers & 1U << i))
                        continue;
                size += (size_t)snprintf(buffer + size, SIM_JSON_MAX - size, "%s\"%s\"", separator,
                                         sim->config_watch[i].finalizer_key);
                separator = ",";
        }
        snprintf(buffer + size, SIM_JSON_MAX - size, "]},\"spec\":{\"content\":%u},\"status\":{\"n\":%u}}",
                 object->content, object->status);
}

static unsigned number_behind(const char *json, const char *words)
{
        const char *at = strstr(json, words);

        return at ? (unsigned)strtoul(at + strlen(words), NULL, 10) : 0;
}

/* What its trigger sees, its UID and its version. */
struct sim_object server_parse(const char *json)
{
        return (struct sim_object){
                .exists = true,
                .uid = number_behind(json, "\"uid\":\"u"),
                .deleting = strstr(json, "\"deletionTimestamp\""),
                .version = number_behind(json, "\"resourceVersion\":\""),
                .content = number_behind(json, "\"content\":"),
                .selected = number_behind(json, "\"first\":\"") | number_behind(json, "\"second\":\"") << 1,
        };
}

/* -1: the patch leaves them alone. */
static int finalizers_in(const struct simulation *sim, const cJSON *metadata)
{
        const cJSON *list = json_member(metadata, "finalizers"), *item;
        unsigned finalizers = 0;

        cJSON_ArrayForEach(item, list) for (unsigned i = 0; i < WATCHES;
                                            i++) if (strcmp(cJSON_GetStringValue(item),
                                                            sim->config_watch[i].finalizer_key) == 0)
                finalizers |= 1U << i;
        return list ? (int)finalizers : -1;
}

static void apply_patch(struct simulation *sim, unsigned name, const cJSON *patch)
{
        struct sim_object *object = &sim->server.object[name];
        const struct sim_object before = *object;
        const cJSON *metadata = json_member(patch, "metadata"), *status = json_member(patch, "status");
        const char *note = json_text_of(json_member(metadata, "annotations"), "note");
        int finalizers = finalizers_in(sim, metadata);

        if (status)
                object->status = (unsigned)cJSON_GetNumberValue(json_member(status, "n"));
        if (note)
                object->note = (unsigned)strtoul(note, NULL, 10);
        if (finalizers >= 0)
                object->finalizers = (unsigned)finalizers;
        if (object->deleting && (object->finalizers & ~before.finalizers))
                model_broken(sim, "%s u%u is being deleted, and gets a finalizer", sim_key(name),
                             object->uid);
        if (object->status != before.status || object->note != before.note ||
            object->finalizers != before.finalizers)
                server_changed(sim, name);
}

void server_answer(struct simulation *sim, unsigned name, const char *method, const char *body,
                   struct sim_reply *ret)
{
        const struct sim_object *object = &sim->server.object[name];
        bool is_read = strcmp(method, "GET") == 0;
        _cleanup_json_ cJSON *patch = is_read ? NULL : cJSON_Parse(body);
        const cJSON *metadata = json_member(patch, "metadata");
        const char *uid = json_text_of(metadata, "uid"),
                   *version = json_text_of(metadata, "resourceVersion");

        ret->http_status = object->exists ? 200 : 404;
        ret->other_uid = object->exists && !is_read && (!uid || sim_uid_number(uid) != object->uid);
        if (ret->other_uid ||
            (object->exists && !is_read && (!version || strtoull(version, NULL, 10) != object->version)))
                ret->http_status = 409;
        if (ret->http_status != 200)
                return;
        if (patch)
                apply_patch(sim, name, patch);
        server_print(sim, name, object, ret->json);
}

/* ---- users */

static bool create(struct simulation *sim, unsigned name, unsigned argument)
{
        struct sim_object *object = &sim->server.object[name];

        if (object->exists || sim->server.last_uid + 1 >= MODEL_UIDS)
                return false;
        *object = (struct sim_object){
                .exists = true,
                .uid = ++sim->server.last_uid,
                .content = argument % CONTENTS,
                .selected = (1 + argument / CONTENTS % 3) & sim->server.selectable,
        };
        sim_tell(sim, "user: creates %s u%u, content %u, selected by %u", sim_key(name), object->uid,
                 object->content, object->selected);
        server_changed(sim, name);
        return true;
}

static bool change(struct simulation *sim, unsigned name)
{
        struct sim_object *object = &sim->server.object[name];

        if (!object->exists)
                return false;
        object->content = (object->content + 1) % CONTENTS;
        sim_tell(sim, "user: changes %s u%u to content %u", sim_key(name), object->uid, object->content);
        server_changed(sim, name);
        return true;
}

/* The watches that select it no more owe it no end, unless it moves to another one that has not seen it. */
static void left(struct simulation *sim, unsigned name, unsigned selected)
{
        const struct sim_object *object = &sim->server.object[name];

        for (unsigned i = 0; i < WATCHES; i++)
                if (!(selected & 1U << i))
                        model_left(sim, i, object->uid, selected);
}

static bool relabel(struct simulation *sim, unsigned name, unsigned argument)
{
        struct sim_object *object = &sim->server.object[name];

        if (!object->exists)
                return false;
        left(sim, name, argument & sim->server.selectable);
        object->selected = argument & sim->server.selectable;
        sim_tell(sim, "user: relabels %s u%u, selected by %u", sim_key(name), object->uid, object->selected);
        server_changed(sim, name);
        return true;
}

static bool delete (struct simulation *sim, unsigned name)
{
        struct sim_object *object = &sim->server.object[name];

        if (!object->exists || object->deleting)
                return false;
        object->deleting = true;
        sim_tell(sim, "user: deletes %s u%u", sim_key(name), object->uid);
        server_changed(sim, name);
        return true;
}

static bool strip(struct simulation *sim, unsigned name)
{
        struct sim_object *object = &sim->server.object[name];

        if (!object->exists || object->finalizers == 0)
                return false;
        sim_tell(sim, "user: strips the finalizers %u of %s u%u", object->finalizers, sim_key(name),
                 object->uid);
        for (unsigned i = 0; i < WATCHES; i++)
                if (object->deleting && (object->finalizers & 1U << i))
                        model_released(sim, i, object->uid);
        object->finalizers = 0;
        server_changed(sim, name);
        return true;
}

static bool restore(struct simulation *sim)
{
        struct sim_server *server = &sim->server;

        if (!server->has_backup)
                return false;
        /* Who has no store cannot see that a database went back: for some seconds a lower version passes for an
         * echo of our own write. Both at once within these seconds are not tried. */
        for (unsigned i = 0; i < WATCHES; i++)
                if (!sim->watcher[i].store.is_filled)
                        return false;
        for (unsigned name = 0; name < NAMES; name++) {
                const struct sim_object *object = &server->object[name], *backup = &server->backup[name];

                if (object->exists && (!backup->exists || backup->uid != object->uid))
                        model_gone(sim, object->uid, object->selected);
                else if (object->exists)
                        left(sim, name, backup->selected);
                for (unsigned i = 0; i < WATCHES; i++)
                        sim->model.seen[i][backup->uid].may_hold = true;
                if (backup->exists && (!object->exists || object->uid != backup->uid))
                        for (unsigned i = 0; i < WATCHES; i++)
                                model_revived(sim, i, backup->uid);
        }
        /* An object that lives again is selected. If it were not, its tombstone would hide what becomes of it after
         * the next start (docs/reliability.md, Known limits). */
        for (unsigned name = 0; name < NAMES; name++) {
                struct sim_object *backup = &server->backup[name];

                if (!backup->exists || server_object(sim, name, backup->uid))
                        continue;
                for (unsigned i = 0; i < WATCHES; i++)
                        if (!(backup->selected & 1U << i))
                                model_released(sim, i, backup->uid); /* until it is shown again */
                backup->selected = sim->server.selectable;
        }
        memcpy(server->object, server->backup, sizeof(server->object));
        server->version = server->backup_version;
        server->epoch++;
        server->restored_boottime = sim->boottime;
        server->has_backup = false;
        sim_tell(sim, "server: its database is restored, version %llu", (unsigned long long)server->version);
        for (unsigned uid = 0; uid <= server->last_uid; uid++)
                for (unsigned i = 0; i < WATCHES; i++)
                        model_wrote(sim, i, uid, 0);
        model_forgives_all(sim);
        model_unsettle(sim);
        return true;
}

bool server_act(struct simulation *sim, unsigned action, unsigned argument)
{
        unsigned name = argument % NAMES;

        argument /= NAMES;
        if (sim->server.object[name].exists)
                model_touched(sim, sim->server.object[name].uid);
        switch (action) {
        case SERVER_CREATE:
                return create(sim, name, argument);
        case SERVER_CHANGE:
                return change(sim, name);
        case SERVER_RELABEL:
                return relabel(sim, name, argument);
        case SERVER_DELETE:
                return delete (sim, name);
        case SERVER_STRIP:
                return strip(sim, name);
        case SERVER_BACKUP:
                memcpy(sim->server.backup, sim->server.object, sizeof(sim->server.backup));
                sim->server.backup_version = sim->server.version;
                sim->server.has_backup = true;
                sim_tell(sim, "server: a backup is made, version %llu",
                         (unsigned long long)sim->server.version);
                return true;
        default:
                return restore(sim);
        }
}
