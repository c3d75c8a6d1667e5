/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `reconciledctl explain`: why an object did or did not run. The operator says what it owes the object, the
 * watch's store says which version is known; here the conclusion is drawn, the first rule that holds.
 */
#include "ctl/inspect/ctl-explain.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/duration.h"
#include "base/error.h"
#include "base/exit-code.h"
#include "base/text.h"
#include "ctl/ctl-answer.h"
#include "ctl/inspect/ctl-history.h"
#include "ctl/inspect/ctl-status.h"
#include "ctl/output/output.h"
#include "store/record.h"
#include "json/json.h"

struct facts {
        const cJSON *answer, *watch, *queue;
        const cJSON *row; /* of the object that exists, else the first one; NULL if there is none */
        struct store_object stored;
        int stored_status; /* 0; -ENOENT: the store does not know it; else it cannot be read */
};

static void say_fingerprint(uint64_t fingerprint, char buffer[17])
{
        snprintf(buffer, 17, "%016" PRIx64, fingerprint);
}

/* ---- the conclusion: each says whether it holds, and if so, why */

static bool say_uninstalling(const struct facts *facts, struct text *text)
{
        if (!ctl_is(facts->answer, "uninstalling"))
                return false;
        text_append_string(text, "the operator is being uninstalled: it only takes our finalizers off");
        return true;
}

static bool say_running(const struct facts *facts, struct text *text)
{
        const cJSON *worker = json_member(facts->answer, "worker");
        char buffer[64];

        if (!worker)
                return false;
        text_printf(text, "it %s (%s), for %s, in worker %" PRIu64 " (pid %" PRIu64 ")",
                    strcmp(json_text(worker, "state"), "writing") == 0
                            ? "is being written: its handler has answered, and the API server has not yet"
                            : "runs now",
                    json_text(facts->queue, "reason"),
                    ctl_duration(ctl_number(worker, "runningFor"), buffer, sizeof(buffer)),
                    ctl_number(worker, "index"), ctl_number(worker, "pid"));
        if (strcmp(json_text(facts->queue, "state"), "running-dirty") == 0)
                text_append_string(text, "; another change came meanwhile, so it runs once more");
        return true;
}

static bool say_paused(const struct facts *facts, struct text *text)
{
        const char *why = json_text(facts->watch, "pauseReason");
        char buffer[64];

        if (ctl_number(facts->watch, "pausedSince") == 0)
                return false;
        text_printf(text,
                    "the watch is paused, for %s%s%s: until `reconciledctl resume %s`, only `reconciledctl "
                    "retry` runs its objects",
                    ctl_since(facts->watch, "pausedSince", buffer, sizeof(buffer)), why[0] ? ": " : "", why,
                    json_text(facts->watch, "name"));
        return true;
}

static bool say_awaits(const struct facts *facts, struct text *text)
{
        const char *other = json_text(facts->watch, "waitsFor");

        if (!other[0] && ctl_is(facts->watch, "startupAwaited")) {
                text_append_string(
                        text,
                        "all watches wait until the handler of `startup` has succeeded; `reconciledctl status` "
                        "shows whether it fails");
                return true;
        }
        if (!other[0])
                return false;
        text_printf(
                text,
                "the watch waits until watch %s is in sync: its handler would mistake objects that are not "
                "known yet for deleted ones",
                other);
        return true;
}

static void say_turn(const struct facts *facts, struct text *text)
{
        uint64_t ahead = ctl_number(facts->queue, "ahead"), sharing = ctl_number(facts->queue, "namespaces");

        if (ahead > 0)
                text_printf(text, "; %" PRIu64 " of its namespace %s before it", ahead,
                            counted(ahead, "goes", "go"));
        if (sharing > 1)
                text_printf(text, "; %" PRIu64 " namespaces take turns", sharing);
}

static bool waits_for_rate(const struct facts *facts)
{
        return ctl_number(facts->queue, "rateIn") > 0;
}

static bool say_queued(const struct facts *facts, struct text *text)
{
        const char *state = json_text(facts->queue, "state");
        char buffer[64];

        if (strcmp(state, "suspect") == 0) {
                text_printf(text, "it waits (%s) to run alone, when nothing else runs, because ",
                            json_text(facts->queue, "reason"));
                if (ctl_number(facts->row, "crashes") == 0)
                        text_append_string(text, "it was one of those that ran when the operator died");
                else
                        text_printf(text, "the operator crashed over it %" PRIu64 " %s",
                                    ctl_number(facts->row, "crashes"),
                                    counted(ctl_number(facts->row, "crashes"), "time", "times"));
                return true;
        }
        if (strcmp(state, "queued") != 0)
                return false;
        text_printf(text, "it waits for %s (%s), for %s",
                    waits_for_rate(facts) ? "the rate of its handler (handler.rate)" : "a worker",
                    json_text(facts->queue, "reason"),
                    ctl_duration(ctl_number(facts->queue, "waitingFor"), buffer, sizeof(buffer)));
        if (waits_for_rate(facts))
                text_printf(text, ", and the next one may run in %s",
                            ctl_duration(ctl_number(facts->queue, "rateIn"), buffer, sizeof(buffer)));
        text_printf(text, "; %" PRIu64 " of this watch wait, %" PRIu64 " run",
                    ctl_number(facts->watch, "queued"), ctl_number(facts->watch, "running"));
        say_turn(facts, text);
        return true;
}

static bool say_left_out(const struct facts *facts, struct text *text)
{
        const cJSON *doubt;

        cJSON_ArrayForEach(doubt, json_member(facts->answer, "doubtful")) if (ctl_is(doubt, "unread"))
        {
                text_append_string(text, "it is left out, because a watcher died while it read the object");
                return true;
        }
        return false;
}

static bool say_not_synced(const struct facts *facts, struct text *text)
{
        const char *reason = json_text(facts->watch, "reason");

        if (ctl_number(facts->watch, "syncedSince") > 0 || facts->row || facts->stored_status >= 0)
                return false;
        text_printf(text,
                    "the watch has not been in sync since the start, so the object may not be known yet%s%s",
                    reason[0] ? ": " : "", reason);
        return true;
}

/* Adds that the API server refuses the key's namespace, if the watch has several. Returns whether it does. */
static bool add_refused(const struct facts *facts, struct text *text)
{
        const char *key = json_text(facts->answer, "key"), *slash = strchr(key, '/'),
                   *name = json_text(facts->watch, "refusedNamespaces");
        size_t size = slash ? (size_t)(slash - key) : 0;

        for (; size > 0 && name[0]; name += strspn(name, ", ")) {
                size_t length = strcspn(name, ", ");

                if (length == size && memcmp(name, key, size) == 0) {
                        text_printf(
                                text,
                                "its namespace %.*s is refused (403): changes there are not seen until the "
                                "right is granted",
                                (int)size, key);
                        return true;
                }
                name += length;
        }
        return false;
}

static bool say_unknown(const struct facts *facts, struct text *text)
{
        if (facts->row || facts->stored_status != -ENOENT)
                return false;
        if (add_refused(facts, text)) {
                text_append_string(text, "; the watch does not know the object");
                return true;
        }
        text_printf(text,
                    "the watch does not know it: there is no such object, or the watch's namespaces, "
                    "selectors or filter leave it out%s",
                    strchr(json_text(facts->answer, "key"), '/') ? "" : "; " CTL_KEY_HINT);
        return true;
}

static bool say_deleting(const struct facts *facts, struct text *text)
{
        char buffer[64];

        if (!ctl_is(facts->row, "deleting"))
                return false;
        text_append_string(text, "it is gone, and its deletion is not handled yet");
        if (ctl_failures(facts->row) > 0)
                text_printf(text, ": that has failed, and is tried again in %s",
                            ctl_until(facts->row, "next", buffer, sizeof(buffer)));
        return true;
}

static bool say_quarantined(const struct facts *facts, struct text *text)
{
        char buffer[64];

        if (ctl_number(facts->row, "quarantinedUntil") == 0)
                return false;
        text_printf(text,
                    "it is in quarantine, because the operator crashed over it %" PRIu64
                    " %s: it runs again in %s, when it changes, or after `reconciledctl release`",
                    ctl_number(facts->row, "crashes"),
                    counted(ctl_number(facts->row, "crashes"), "time", "times"),
                    ctl_until(facts->row, "quarantinedUntil", buffer, sizeof(buffer)));
        return true;
}

static bool say_permanent(const struct facts *facts, struct text *text)
{
        if (!ctl_is(facts->row, "permanent"))
                return false;
        text_append_string(text, "it has failed for good: it is not tried again before it or its handler "
                                 "changes, the operator is reloaded, or `reconciledctl retry` asks for it");
        return true;
}

static bool say_settling(const struct facts *facts, struct text *text)
{
        const char *why = json_text(facts->row, "settlingText"),
                   *children = json_text(facts->row, "waitsFor");
        char buffer[64];

        if (!ctl_is(facts->row, "settling"))
                return false;
        if (cJSON_HasObjectItem(facts->row, "waitsUntil"))
                text_printf(text,
                            "it waits for its children (%s), for at most %s more, and holds no worker "
                            "meanwhile%s%s",
                            strstr(children, "does not serve its kind") ? "children.settle"
                                                                        : "children.wait",
                            ctl_until(facts->row, "waitsUntil", buffer, sizeof(buffer)),
                            children[0] ? "; when that began, it was for " : "", children);
        else if (why[0])
                text_printf(
                        text,
                        "its handler has finalized it, and it is released when its children are gone: %s",
                        why);
        else
                text_append_string(
                        text, ctl_is(facts->row, "unselected")
                                      ? "it has left this watch; another watch of its kind selects it, and "
                                        "has not run yet"
                                      : "its run is not over: it waits for the API server, and holds no "
                                        "worker meanwhile");
        return true;
}

/* Its run began, and ended without its handler. */
static bool say_behind(const struct facts *facts, struct text *text)
{
        if (!ctl_is(facts->queue, "behind"))
                return false;
        text_printf(
                text,
                "it waits until watch %s shows what the operator wrote to it: its handler would be shown "
                "an older object otherwise; `reconciledctl status` says since when the watch is behind",
                json_text(facts->watch, "name"));
        return true;
}

static bool say_waits(const struct facts *facts, struct text *text)
{
        char buffer[64], attempts[96];

        if (ctl_failures(facts->row) == 0)
                return false;
        if (strcmp(json_text(facts->row, "nextReason"), "handlerChanged") == 0) {
                text_printf(text,
                            "it was given up, and gets one more attempt in %s: its handler has changed "
                            "since, or the operator was reloaded",
                            ctl_until(facts->row, "next", buffer, sizeof(buffer)));
                return true;
        }
        text_printf(text, "%s (%s), and it is tried again in %s",
                    strcmp(json_text(facts->row, "nextReason"), "throttled") == 0
                            ? "the API server refuses what is written to it"
                            : "it has failed",
                    ctl_attempts(facts->row, attempts, sizeof(attempts)),
                    ctl_until(facts->row, "next", buffer, sizeof(buffer)));
        return true;
}

static bool is_handled_as_stored(const struct facts *facts)
{
        char fingerprint[17];

        say_fingerprint(facts->stored.fingerprint, fingerprint);
        return strcmp(fingerprint, json_text(facts->row, "handledFingerprint")) == 0;
}

static bool say_gone(const struct facts *facts, struct text *text)
{
        if (facts->stored_status != -ENOENT)
                return false;
        if (!ctl_is(facts->watch, "otherCluster") && add_refused(facts, text)) {
                text_append_string(text, "; it was handled, and the watch does not know it any more");
                return true;
        }
        text_append_string(
                text,
                ctl_is(facts->watch, "otherCluster")
                        ? "it was handled in another cluster than this one: the state folder belongs to that "
                          "one, and the operator does not know whether the object still exists there"
                        : "it was handled, and the watch does not know it any more: the watch is checking "
                          "whether it was deleted or left the selection");
        return true;
}

static bool say_unreadable(const struct facts *facts, struct text *text)
{
        if (facts->stored_status >= 0)
                return false;
        text_printf(
                text,
                "no run is owed to it; whether it has changed is unknown, because the watch's store cannot "
                "be read: %s",
                strerror(-facts->stored_status));
        return true;
}

/* These two apply whether or not something has changed. */
static bool comes_anyway(const char *reason)
{
        return reason[0] == '\0' || strcmp(reason, "requeueAfter") == 0 || strcmp(reason, "resync") == 0;
}

/* After a success, or after a conflict, which is no failure and is only in the queue. */
static bool say_due(const struct facts *facts, struct text *text)
{
        bool delayed = strcmp(json_text(facts->queue, "state"), "delayed") == 0;
        const char *reason =
                delayed ? json_text(facts->queue, "reason") : json_text(facts->row, "nextReason");
        char buffer[64];

        if (comes_anyway(reason))
                return false;
        text_printf(text, "%sit runs again in %s (%s)",
                    strcmp(reason, "conflict") == 0
                            ? "others changed it while its handler ran, so our write was dropped: "
                            : "",
                    delayed ? ctl_duration(ctl_number(facts->queue, "dueIn"), buffer, sizeof(buffer))
                            : ctl_until(facts->row, "next", buffer, sizeof(buffer)),
                    reason);
        return true;
}

static bool say_changed(const struct facts *facts, struct text *text)
{
        uint64_t unannounced = ctl_number(facts->watch, "unannounced");

        if (is_handled_as_stored(facts))
                return false;
        text_printf(text, "%s: the watcher is about to announce it",
                    facts->row ? "it has changed since its last success" : "it is new");
        if (unannounced > 0) /* the last that the watcher has said */
                text_printf(text, " (%" PRIu64 " %s of the watch not announced yet)", unannounced,
                            counted(unannounced, "key is", "keys are"));
        return true;
}

static bool say_at_rest(const struct facts *facts, struct text *text)
{
        char buffer[64];
        bool refused = add_refused(facts, text);

        if (!refused)
                text_append_string(
                        text,
                        "it is at rest: nothing that triggers a run has changed since its last success");
        if (ctl_number(facts->row, "next") > 0)
                text_printf(text, "; it runs next in %s (%s)%s",
                            ctl_until(facts->row, "next", buffer, sizeof(buffer)),
                            json_text(facts->row, "nextReason"), refused ? "" : ", or when it changes");
        return true;
}

/* Whether the watch knows the object. */
static bool explain_state(const struct facts *facts, struct text *text)
{
        static bool (*const rule[])(const struct facts *, struct text *) = {
                say_uninstalling, say_running,   say_left_out, say_not_synced, say_unknown,
                say_paused,       say_awaits,    say_behind,   say_queued,     say_deleting,
                say_quarantined,  say_permanent, say_settling, say_waits,      say_gone,
                say_unreadable,   say_due,       say_changed,  say_at_rest,
        };

        for (size_t i = 0; i < ELEMENTS(rule); i++)
                if (rule[i](facts, text))
                        return rule[i] != say_unknown;
        return true;
}

/* ---- gathering */

static const cJSON *choose_row(const struct facts *facts)
{
        const cJSON *rows = json_member(facts->answer, "objects"), *row;

        cJSON_ArrayForEach(row, rows) if (facts->stored_status >= 0 &&
                                          strcmp(json_text(row, "uid"), facts->stored.uid) == 0) return row;
        /* A former object of the same name says nothing about the present one. */
        return facts->stored_status >= 0 ? NULL : rows->child;
}

static int gather_facts(struct facts *facts, const cJSON *answer, const char *key)
{
        if (!cJSON_IsArray(json_member(answer, "objects")))
                return -EPROTO;
        facts->answer = answer;
        facts->watch = json_member(answer, "watch");
        facts->queue = json_member(answer, "queue");
        facts->stored_status = ctl_read_store(answer, key, &facts->stored);
        facts->row = choose_row(facts);
        return 0;
}

/* ---- for people */

static void print_stored(const struct facts *facts)
{
        char fingerprint[17];

        if (facts->stored_status == -ENOENT) {
                puts("stored      no");
                return;
        }
        if (facts->stored_status < 0) {
                printf("stored      the store cannot be read: %s\n", strerror(-facts->stored_status));
                return;
        }
        say_fingerprint(facts->stored.fingerprint, fingerprint);
        printf("stored      resourceVersion %s, uid %s, fingerprint %s\n", facts->stored.resource_version,
               facts->stored.uid, fingerprint);
}

#define INDENT 12 /* of the facts */

static void explain_run(const cJSON *run)
{
        char ago[64], took[64];

        if (!run)
                return;
        printf("last run    %s ago: %s (%s) of resourceVersion %s, took %s: %s\n",
               ctl_since(run, "endedAt", ago, sizeof(ago)), json_text(run, "action"),
               json_text(run, "reason"),
               json_text(run, "resourceVersion")[0] ? json_text(run, "resourceVersion") : "-",
               ctl_duration(ctl_number(run, "took"), took, sizeof(took)), json_text(run, "result"));
        ctl_print_writes(run, INDENT);
}

static void print_failures(const cJSON *row)
{
        const char *first = json_text(row, "firstError"), *last = json_text(row, "lastError");
        char attempts[96];

        if (ctl_failures(row) > 0)
                printf("failures    %" PRIu64 " since the last success (%s)\n", ctl_failures(row),
                       ctl_attempts(row, attempts, sizeof(attempts)));
        if (first[0])
                printf("first error %s\n", first);
        if (last[0] && strcmp(first, last) != 0)
                printf("last error  %s\n", last);
}

/* A conflict has its time in the queue alone. What is queued comes before the time of its row. */
static void print_next(const struct facts *facts, const cJSON *row)
{
        const char *state = row == facts->row ? json_text(facts->queue, "state") : "";
        bool delayed = strcmp(state, "delayed") == 0, queued = strcmp(state, "queued") == 0;
        bool paused = ctl_number(facts->watch, "pausedSince") > 0;
        uint64_t next = ctl_number(row, "next"), due_in = ctl_number(facts->queue, "dueIn");
        char buffer[64];

        if (delayed && (next == 0 || next > clock_realtime_usec() + due_in)) {
                printf("next try    in %s (%s)\n", ctl_duration(due_in, buffer, sizeof(buffer)),
                       json_text(facts->queue, "reason"));
                return;
        }
        if (next == 0 && !queued)
                return;
        if (paused && (queued || next < clock_realtime_usec()))
                printf("next try    when the watch is resumed (%s)\n",
                       queued ? json_text(facts->queue, "reason") : json_text(row, "nextReason"));
        else if (queued && waits_for_rate(facts))
                printf("next try    when its handler may run, the next one in %s (%s)\n",
                       ctl_duration(ctl_number(facts->queue, "rateIn"), buffer, sizeof(buffer)),
                       json_text(facts->queue, "reason"));
        else if (queued)
                printf("next try    when a worker is free (%s)\n", json_text(facts->queue, "reason"));
        else
                printf("next try    in %s (%s)\n", ctl_until(row, "next", buffer, sizeof(buffer)),
                       json_text(row, "nextReason"));
}

static void print_row(const struct facts *facts, const cJSON *row)
{
        char buffer[64];

        printf("\nobject      uid %s%s%s\n", json_text(row, "uid"),
               ctl_is(row, "deleting") ? ", deleted" : "",
               ctl_is(row, "unselected") ? ", not selected any more" : "");
        explain_run(json_member(row, "lastRun"));
        if (ctl_number(row, "handledAt") > 0)
                printf("succeeded   %s ago, %s%s\n", ctl_since(row, "handledAt", buffer, sizeof(buffer)),
                       json_text(row, "handledFingerprint")[0] ? "fingerprint "
                                                               : "and a handler has begun since",
                       json_text(row, "handledFingerprint"));
        print_failures(row);
        print_next(facts, row);
        if (ctl_number(row, "crashes") > 0)
                printf("crashes     %" PRIu64 " of the operator %s blamed on it, the last one %s ago\n",
                       ctl_number(row, "crashes"), counted(ctl_number(row, "crashes"), "is", "are"),
                       ctl_since(row, "lastCrash", buffer, sizeof(buffer)));
}

static void print_facts(const struct facts *facts, const char *conclusion)
{
        const cJSON *item;

        printf("%s of watch %s (%s, %s): %s\n\n", json_text(facts->answer, "key"),
               json_text(facts->watch, "name"), json_text(facts->watch, "kind"),
               json_text(facts->watch, "state"), conclusion);
        if (json_text(facts->watch, "reason")[0])
                printf("watch       %s\n", json_text(facts->watch, "reason"));
        if (ctl_is(facts->watch, "handlerStale"))
                puts("handler     " CTL_STALE_HANDLER);
        print_stored(facts);
        cJSON_ArrayForEach(item, json_member(facts->answer, "objects")) print_row(facts, item);
        ctl_print_doubtful(json_member(facts->answer, "doubtful"));
}

/* ---- for programs */

static void add_conclusion(cJSON *answer, const struct facts *facts, const char *conclusion)
{
        cJSON *stored = NULL;
        char fingerprint[17];

        cJSON_DeleteItemFromObjectCaseSensitive(answer, "store");
        cJSON_AddStringToObject(answer, "conclusion", conclusion);
        if (facts->stored_status < 0) {
                cJSON_AddNullToObject(answer, "stored");
                return;
        }
        say_fingerprint(facts->stored.fingerprint, fingerprint);
        stored = cJSON_AddObjectToObject(answer, "stored");
        cJSON_AddStringToObject(stored, "uid", facts->stored.uid);
        cJSON_AddStringToObject(stored, "resourceVersion", facts->stored.resource_version);
        cJSON_AddStringToObject(stored, "fingerprint", fingerprint);
}

/* Returns the exit code, or a negative errno. */
static int explain_key(cJSON *answer, const char *key, bool json)
{
        _cleanup_text_ struct text conclusion = TEXT_EMPTY;
        struct facts facts = {0};
        int r = gather_facts(&facts, answer, key);
        bool known;

        if (r < 0)
                return r;
        known = explain_state(&facts, &conclusion);
        if (json) {
                add_conclusion(answer, &facts, conclusion.data ? conclusion.data : "");
                r = ctl_print_json(answer);
        } else {
                print_facts(&facts, conclusion.data ? conclusion.data : "");
        }
        store_object_done(&facts.stored);
        return conclusion.failed ? -ENOMEM : r < 0 ? r : known ? EXIT_CODE_OK : EXIT_CODE_SOFTWARE;
}

int ctl_explain(const char *runtime_directory, char **argument, bool json)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        _cleanup_json_ cJSON *answer = NULL, *status = NULL;
        int r;

        /* The operator asks the watchers which namespaces are refused only for a status. */
        r = ctl_query(runtime_directory, "status", NULL, &status, &error);
        if (r >= 0)
                r = ctl_query(runtime_directory, "explain", argument, &answer, &error);
        if (r >= 0 && !json)
                ctl_clean_texts(answer);
        if (r >= 0)
                r = explain_key(answer, argument[1], json);
        if (r < 0)
                error_set(&error, r, "the operator's answer cannot be shown: %s", strerror(-r));
        return r < 0 ? ctl_failed(r, &error) : r;
}
