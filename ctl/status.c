/* SPDX-License-Identifier: Apache-2.0 */
/* The status as a person wants to read it. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/duration.h"
#include "ctl/ctl.h"

static const char *text(const cJSON *object, const char *name)
{
        const char *value = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));

        return value ? value : "";
}

static uint64_t number(const cJSON *object, const char *name)
{
        const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, name);

        return cJSON_IsNumber(value) && value->valuedouble > 0 ? (uint64_t)value->valuedouble : 0;
}

/* "3m12s", to the second above a minute. */
static const char *age(uint64_t usec, char *buffer, size_t size)
{
        return duration_format(usec < USEC_PER_MINUTE ? usec / 1000 * 1000
                                                      : usec / USEC_PER_SEC * USEC_PER_SEC,
                               buffer, size);
}

static const char *since(const cJSON *object, const char *name, char *buffer, size_t size)
{
        uint64_t then = number(object, name), now = clock_realtime_usec();

        if (then == 0 || then > now)
                return "-";
        return age(now - then, buffer, size);
}

static void print_watch(const cJSON *watch)
{
        char buffer[64];

        printf("%-20s %-9s %-10s %-16s %8" PRIu64 " %7" PRIu64 " %7" PRIu64 " %7" PRIu64 "\n",
               text(watch, "name"), text(watch, "state"),
               since(watch, text(watch, "reason")[0] ? "degradedSince" : "syncedSince", buffer,
                     sizeof(buffer)),
               text(watch, "resourceVersion")[0] ? text(watch, "resourceVersion") : "-",
               number(watch, "objects"), number(watch, "queued"), number(watch, "running"),
               number(watch, "waiting"));
        if (text(watch, "reason")[0])
                printf("    %s\n", text(watch, "reason"));
}

static void print_worker(const cJSON *worker)
{
        char buffer[64];

        if (strcmp(text(worker, "state"), "running") != 0)
                printf("%-8" PRIu64 " %-8" PRIu64 " idle\n", number(worker, "index"), number(worker, "pid"));
        else
                printf("%-8" PRIu64 " %-8" PRIu64 " %s of watch %s, for %s\n", number(worker, "index"),
                       number(worker, "pid"), text(worker, "key"), text(worker, "watch"),
                       age(number(worker, "runningFor"), buffer, sizeof(buffer)));
}

static void print_quarantine(const cJSON *list)
{
        char buffer[64];
        const cJSON *item;

        cJSON_ArrayForEach(item, list)
                printf("%s%s of watch %s is in quarantine: %" PRIu64 " crashes, the last one %s ago: %s\n",
                       item == list->child ? "\n" : "", text(item, "key"), text(item, "watch"),
                       number(item, "crashes"), since(item, "lastCrash", buffer, sizeof(buffer)),
                       text(item, "error"));
}

static void print_doubtful(const cJSON *list)
{
        char buffer[64];
        const cJSON *item;

        cJSON_ArrayForEach(item, list)
                printf("%s%s of watch %s is doubtful: its watcher has failed over it %" PRIu64
                       " times, the last time %s ago; %s: %s\n",
                       item == list->child ? "\n" : "", text(item, "key"), text(item, "watch"),
                       number(item, "crashes"), since(item, "lastCrash", buffer, sizeof(buffer)),
                       cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(item, "unread"))
                               ? "it is left out"
                               : "jq programs are not run on it",
                       text(item, "error"));
}

void ctl_print_status(const cJSON *status)
{
        const cJSON *item, *events;
        char buffer[64];

        printf("operator  %s (reconciled %s, pid %" PRIu64 "), %s, up %s, %" PRIu64 " restarts\n",
               text(status, "operator"), text(status, "version"), number(status, "pid"),
               text(status, "phase"), since(status, "startedAt", buffer, sizeof(buffer)),
               number(status, "restarts"));
        printf("server    %s\nidentity  %s\n",
               text(status, "server")[0] ? text(status, "server") : "(not known yet)",
               text(status, "identity")[0] ? text(status, "identity") : "(not known yet)");
        if (number(status, "logLinesDropped") > 0)
                printf("logs      %" PRIu64 " lines were dropped\n", number(status, "logLinesDropped"));
        events = cJSON_GetObjectItemCaseSensitive(status, "events");
        if (number(events, "dropped") > 0)
                printf("events    %" PRIu64 " were left out (the spam guard, or no right to write them)\n",
                       number(events, "dropped"));
        print_quarantine(cJSON_GetObjectItemCaseSensitive(status, "quarantine"));
        print_doubtful(cJSON_GetObjectItemCaseSensitive(status, "doubtful"));
        printf("\n%-20s %-9s %-10s %-16s %8s %7s %7s %7s\n", "WATCH", "STATE", "SINCE", "RESOURCEVERSION",
               "OBJECTS", "QUEUED", "RUNNING", "WAITING");
        cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(status, "watches")) print_watch(item);
        printf("\n%-8s %-8s %s\n", "WORKER", "PID", "RUNS");
        cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(status, "workers")) print_worker(item);
}
