/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole content at one moment, to which it can go back: what a client sees when the cluster's database
 * was restored from a backup. Versions of objects are shared, so that a backup costs little.
 */
#include "devserver/cluster/backup.h"

#include <stdlib.h>
#include <string.h>

#include "devserver/read/serve-list.h"
#include "devserver/server.h"
#include "devserver/storage/served-resource.h"
#include "devserver/storage/storage.h"
#include "devserver/storage/version.h"
#include "devserver/stream/serve-watch.h"

struct table {
        struct table *next;
        struct resource *resource;
        struct version **object;
        size_t count;
        bool removed, dead;
};

struct backup {
        struct backup *next;
        uint64_t id, resource_version;
        struct table *table;
};

static void backup_free(struct backup *backup)
{
        while (backup->table) {
                struct table *next = backup->table->next;

                for (size_t i = 0; i < backup->table->count; i++)
                        version_unref(backup->table->object[i]);
                free(backup->table->object);
                free(backup->table);
                backup->table = next;
        }
        free(backup);
}

void backups_free(struct server *server)
{
        while (server->backup) {
                struct backup *next = server->backup->next;

                backup_free(server->backup);
                server->backup = next;
        }
}

static struct table *table_take(struct resource *resource)
{
        struct table *table = calloc(1, sizeof(*table));

        if (!table)
                return NULL;
        table->resource = resource;
        table->removed = resource->removed;
        table->dead = resource->dead;
        table->object = calloc(resource->count + 1, sizeof(struct version *));
        if (!table->object) {
                free(table);
                return NULL;
        }
        for (; table->count < resource->count; table->count++)
                table->object[table->count] = version_ref(resource->object[table->count]);
        return table;
}

uint64_t backup_take(struct server *server)
{
        struct backup *backup = calloc(1, sizeof(*backup));

        if (!backup)
                return 0;
        for (struct resource *resource = server->storage.resource; resource; resource = resource->next) {
                struct table *table = table_take(resource);

                if (!table) {
                        backup_free(backup);
                        return 0;
                }
                table->next = backup->table;
                backup->table = table;
        }
        backup->id = server->backup ? server->backup->id + 1 : 1;
        backup->resource_version = server->storage.resource_version;
        backup->next = server->backup;
        server->backup = backup;
        return backup->id;
}

static const struct table *table_of(const struct backup *backup, const struct resource *resource)
{
        for (const struct table *table = backup->table; table; table = table->next)
                if (table->resource == resource)
                        return table;
        return NULL;
}

/* A kind that there was not yet is not served. */
static bool restore_resource(struct server *server, const struct backup *backup, struct resource *resource)
{
        const struct table *table = table_of(backup, resource);

        resource->removed = !table || table->removed;
        resource->dead = !table || table->dead;
        return storage_replace(&server->storage, resource, table ? table->object : NULL,
                               table ? table->count : 0) >= 0;
}

bool backup_restore(struct server *server, uint64_t id)
{
        const struct backup *backup = server->backup;

        while (backup && backup->id != id)
                backup = backup->next;
        if (!backup)
                return false;
        watches_cut(server, NULL, true);
        snapshots_free(server);
        storage_compact(&server->storage, server->storage.resource_version);
        for (struct resource *resource = server->storage.resource; resource; resource = resource->next)
                if (!restore_resource(server, backup, resource))
                        return false;
        server->storage.resource_version = backup->resource_version;
        server->storage.history_lost = backup->resource_version;
        return true;
}
