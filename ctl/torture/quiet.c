/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/torture/quiet.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "ctl/ctl-answer.h"
#include "ctl/torture/trial.h"
#include "json/json.h"

static const char *const at_work[] = {"queued", "running", "writing", "settling"};

uint64_t quiet_mark(const cJSON *status)
{
        uint64_t mark = ctl_number(status, "startedAt");
        const cJSON *watch;

        cJSON_ArrayForEach(watch, json_member(status, "watches"))
        {
                mark += 1000003 * (ctl_number(watch, "runs") + ctl_number(watch, "events") + 1);
                mark += 31 * ctl_number(watch, "objects") + strlen(json_text(watch, "state"));
        }
        return mark;
}

static bool is_in_sync(const cJSON *watch)
{
        const char *state = json_text(watch, "state");

        return strcmp(state, "in-sync") == 0 || strcmp(state, "absent") == 0;
}

bool quiet_is_given_up(const cJSON *object)
{
        return ctl_is(object, "permanent") || ctl_number(object, "attempts") >= TRIAL_ATTEMPTS;
}

/* Deletions are never given up by the operator, so they are counted here. */
static size_t count_hopeless(const cJSON *status, const char *watch)
{
        const cJSON *each;
        size_t count = 0;

        cJSON_ArrayForEach(each, quiet_failing(status)) count +=
                strcmp(json_text(each, "watch"), watch) == 0 && !ctl_is(each, "permanent") &&
                quiet_is_given_up(each);
        return count;
}

static bool watch_is_busy(const cJSON *status, const cJSON *watch)
{
        uint64_t over = ctl_number(watch, "permanent") + count_hopeless(status, json_text(watch, "name"));
        bool busy = !is_in_sync(watch) || ctl_number(watch, "failing") > over;

        for (size_t i = 0; i < ELEMENTS(at_work); i++)
                busy = busy || ctl_number(watch, at_work[i]) > 0;
        return busy;
}

bool quiet_is_busy(const cJSON *status)
{
        const cJSON *watch;

        if (strcmp(json_text(status, "phase"), "running") != 0)
                return true;
        cJSON_ArrayForEach(watch,
                           json_member(status, "watches")) if (watch_is_busy(status, watch)) return true;
        return false;
}

uint64_t quiet_waiting(const cJSON *status)
{
        const cJSON *watch;
        uint64_t count = 0;

        cJSON_ArrayForEach(watch, json_member(status, "watches")) count += ctl_number(watch, "waiting");
        return count;
}

uint64_t quiet_runs(const cJSON *status)
{
        const cJSON *watch;
        uint64_t count = 0;

        cJSON_ArrayForEach(watch, json_member(status, "watches")) count += ctl_number(watch, "runs");
        return count;
}

static bool is_wished(const cJSON *object)
{
        static const char *const wished[] = {"requeueAfter", "resync", "scheduled"};

        for (size_t i = 0; i < ELEMENTS(wished); i++)
                if (strcmp(json_text(object, "nextReason"), wished[i]) == 0)
                        return true;
        return false;
}

bool quiet_owes(const cJSON *status, const cJSON *waiting)
{
        const cJSON *list = json_member(waiting, "objects"), *each;
        uint64_t wished = 0;

        cJSON_ArrayForEach(each, list)
        {
                if (!is_wished(each) && !quiet_is_given_up(each))
                        return true;
                wished++;
        }
        return quiet_waiting(status) > wished;
}

bool quiet_is_behind(const cJSON *status, const cJSON *objects)
{
        const cJSON *watch, *each;

        cJSON_ArrayForEach(watch, json_member(status, "watches"))
        {
                uint64_t seen = strtoull(json_text(watch, "resourceVersion"), NULL, 10), count = 0,
                         newest = 0;

                cJSON_ArrayForEach(each, objects)
                {
                        const cJSON *object = json_member(each, "object");
                        uint64_t version = strtoull(
                                json_text(json_member(object, "metadata"), "resourceVersion"), NULL, 10);

                        if (strcmp(json_text(object, "kind"), json_text(watch, "kind")) != 0 ||
                            strcmp(json_text(object, "apiVersion"), json_text(watch, "apiVersion")) != 0)
                                continue;
                        count++;
                        newest = version > newest ? version : newest;
                }
                if (newest > seen || count != ctl_number(watch, "objects"))
                        return true;
        }
        return false;
}

char *quiet_obstacle(const cJSON *status)
{
        const cJSON *watch, *first = quiet_failing(status)->child;

        if (first)
                return format_string("%s is tried again and again: %s", json_text(first, "key"),
                                     json_text(first, "lastError"));
        cJSON_ArrayForEach(watch, json_member(status, "watches"))
        {
                if (!is_in_sync(watch))
                        return format_string("watch %s is %s: %s", json_text(watch, "name"),
                                             json_text(watch, "state"), json_text(watch, "reason"));
                for (size_t i = 0; i < ELEMENTS(at_work); i++)
                        if (ctl_number(watch, at_work[i]) > 0)
                                return format_string("objects of watch %s are %s", json_text(watch, "name"),
                                                     at_work[i]);
        }
        return strdup("the operator does not answer, or objects wait for another attempt");
}

const cJSON *quiet_failing(const cJSON *status)
{
        static const cJSON none = {.type = cJSON_Array};
        const cJSON *list = json_member(status, "failing");

        return list ? list : &none;
}
