/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the first death on, the next watcher gets past such an object: a jq program that never ends or crashes
 * is not run on it for the time of the quarantine (it counts as selected, and its content without status
 * stands in for what the trigger yields), so that it is served like all others; where our own code died,
 * nothing of it is read. Each time that it happens again that time is doubled.
 */
#include "controller/due/doubt.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "controller/effects.h"
#include "ipc/message-id.h"

#define DAY_USEC (24 * USEC_PER_HOUR)

static uint64_t doubt_duration(const struct config_watch *config, uint64_t crashes)
{
        uint64_t duration = config->quarantine_usec;

        for (uint64_t i = 1; i < crashes && duration < DAY_USEC; i++)
                duration *= 2;
        return duration;
}

static void tell_doubt(struct controller *controller, const struct ledger_doubt *doubt,
                       uint64_t duration_usec)
{
        char duration[64], crashes[24];

        snprintf(crashes, sizeof(crashes), "%" PRIu64, doubt->crashes);
        controller_log(
                controller, LOG_ERR, MESSAGE_ID_DOUBTFUL,
                LOG_FIELDS({"RECONCILED_WATCH", doubt->watch}, {"RECONCILED_KEY", doubt->key},
                           {"RECONCILED_UID", doubt->uid}, {"RECONCILED_CRASHES", crashes}),
                "%s of watch %s is doubtful: its watcher died or hung while %s (crash %s over it); %s, for "
                "%s or until `reconciledctl release %s %s`; all other objects are handled as usual",
                doubt->key, doubt->watch,
                doubt->unread ? "it read the object" : "a jq program of the watch ran on it", crashes,
                doubt->unread ? "it is left out"
                              : "the programs are not run on it (it counts as selected, and its essence "
                                "triggers runs)",
                duration_format(duration_usec, duration, sizeof(duration)), doubt->watch, doubt->key);
}

void doubt_blame(struct watch *watch, const char *key, const char *uid, bool unread, const char *cause)
{
        struct controller *controller = watch->controller;
        int64_t before = ledger_doubt_crashes(controller->ledger, watch->config->name, key, uid);
        uint64_t crashes = before > 0 ? (uint64_t)before + 1 : 1, now = ledger_time(controller),
                 duration = doubt_duration(watch->config, crashes);
        struct ledger_doubt doubt = {
                .watch = watch->config->name,
                .key = key,
                .uid = uid,
                .unread = unread,
                .crashes = crashes,
                .crashed_realtime = now,
                .until_realtime = now + duration,
                .error = cause,
        };
        int r = ledger_doubt_put(controller->ledger, &doubt);

        if (r >= 0)
                r = ledger_commit(controller->ledger);
        if (r < 0)
                controller_log(controller, LOG_ERR, NULL, NULL,
                               "a crash over %s could not be recorded in the ledger: %s", key, strerror(-r));
        else
                tell_doubt(controller, &doubt, duration);
}

struct question {
        const char *key, *uid;
        bool found;
};

static int match_doubt(const struct ledger_doubt *doubt, void *userdata)
{
        struct question *question = userdata;

        question->found = question->found ||
                          (strcmp(doubt->key, question->key) == 0 && strcmp(doubt->uid, question->uid) == 0);
        return 0;
}

bool doubt_is(const struct watch *watch, const char *key, const char *uid)
{
        struct question question = {key, uid, false};

        if (watch->doubt_count == 0)
                return false;
        return ledger_visit_doubts(watch->controller->ledger, watch->config->name,
                                   ledger_time(watch->controller), DOUBTS_MAX, match_doubt,
                                   &question) >= 0 &&
               question.found;
}
