/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/kinds.h"

#include <errno.h>
#include <string.h>

#include "base/duration.h"

#define KINDS_MAX 256

#define ABSENT_USEC USEC_PER_MINUTE

struct kind {
        struct kind *next;
        uint64_t absent_until; /* CLOCK_BOOTTIME; 0: it is served */
        char *api_version;
        struct kube_resource resource;
};

static void kind_free(struct kind *kind)
{
        free(kind->api_version);
        kube_resource_done(&kind->resource);
        free(kind);
}

void kinds_free(struct worker *worker)
{
        while (worker->kinds.first) {
                struct kind *next = worker->kinds.first->next;

                kind_free(worker->kinds.first);
                worker->kinds.first = next;
        }
        worker->kinds.count = 0;
}

static struct kind **find_kind(struct worker *worker, const char *api_version, const char *name)
{
        struct kind **place = &worker->kinds.first;

        while (*place && (strcmp((*place)->api_version, api_version) != 0 ||
                          strcmp((*place)->resource.kind, name) != 0))
                place = &(*place)->next;
        return place;
}

void kinds_forget(struct worker *worker, const char *api_version, const char *name)
{
        struct kind **place = find_kind(worker, api_version, name), *kind = *place;

        if (!kind)
                return;
        *place = kind->next;
        worker->kinds.count--;
        kind_free(kind);
}

static int add_kind(struct worker *worker, const char *api_version, const struct kube_resource *resource,
                    uint64_t absent_until)
{
        struct kind *kind = calloc(1, sizeof(*kind));

        kinds_forget(worker, api_version, resource->kind);
        if (worker->kinds.count >= KINDS_MAX)
                kinds_free(worker);
        if (kind)
                kind->api_version = strdup(api_version);
        if (!kind || !kind->api_version) {
                free(kind);
                return -ENOMEM;
        }
        kind->resource = *resource;
        kind->absent_until = absent_until;
        kind->next = worker->kinds.first;
        worker->kinds.first = kind;
        worker->kinds.count++;
        return 0;
}

int kinds_keep(struct worker *worker, const char *api_version, struct kube_resource *resource)
{
        int r = add_kind(worker, api_version, resource, 0);

        if (r < 0)
                kube_resource_done(resource);
        return r;
}

void kinds_keep_absent(struct worker *worker, const char *api_version, const char *name)
{
        struct kube_resource resource = {.kind = strdup(name)};

        /* Without memory it is looked up again. */
        if (resource.kind &&
            add_kind(worker, api_version, &resource, clock_boottime_usec() + ABSENT_USEC) < 0)
                kube_resource_done(&resource);
}

bool kinds_are_absent(struct worker *worker, const char *api_version, const char *name)
{
        const struct kind *kind = *find_kind(worker, api_version, name);

        return kind && kind->absent_until > clock_boottime_usec();
}

int kinds_copy(const struct kube_resource *from, struct kube_resource *ret)
{
        struct kube_resource copy = *from;

        copy.group = strdup(from->group);
        copy.version = strdup(from->version);
        copy.kind = strdup(from->kind);
        copy.plural = strdup(from->plural);
        if (!copy.group || !copy.version || !copy.kind || !copy.plural) {
                kube_resource_done(&copy);
                return -ENOMEM;
        }
        *ret = copy;
        return 0;
}

int kinds_get(struct worker *worker, const char *api_version, const char *name, struct kube_resource *ret)
{
        const struct kind *kind = *find_kind(worker, api_version, name);

        return kind && !kind->absent_until ? kinds_copy(&kind->resource, ret) : -ENOENT;
}
