/* SPDX-License-Identifier: Apache-2.0 */
/* The status as a person wants to read it. */
#include "ctl/inspect/ctl-status.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/exit-code.h"
#include "base/text.h"
#include "ctl/output/output.h"
#include "json/json.h"

/* Prints how far a list is that takes its time. */
static void print_progress(const cJSON *watch)
{
        uint64_t shown = ctl_number(watch, "listShown"), expected = ctl_number(watch, "listExpected");

        if (expected > 0)
                printf("    its list has shown %" PRIu64 " of about %" PRIu64 " %s (%" PRIu64 " %%)\n",
                       shown, expected, counted(expected, "object", "objects"),
                       shown < expected ? shown * 100 / expected : 100);
        else if (shown > 0)
                printf("    its list has shown %" PRIu64 " %s\n", shown,
                       counted(shown, "object", "objects"));
}

static void print_more(const cJSON *watch)
{
        uint64_t runs = ctl_number(watch, "runs");
        char took[64];

        printf(" %9" PRIu64 " %9" PRIu64 " %9" PRIu64 " %8s %7" PRIu64 " %s.%s", runs,
               ctl_number(watch, "succeeded"), ctl_number(watch, "failed"),
               runs > 0 ? ctl_duration(ctl_number(watch, "runTime") / runs, took, sizeof(took)) : "-",
               ctl_number(watch, "relists"), json_text(watch, "kind"), json_text(watch, "apiVersion"));
}

int ctl_name_width(const cJSON *watches)
{
        size_t width = 20, length;
        const cJSON *watch;

        cJSON_ArrayForEach(watch, watches)
        {
                length = strlen(json_text(watch, "name"));
                width = length > width ? length : width;
        }
        return (int)width;
}

static void print_watch(const cJSON *watch, int width, bool wide)
{
        bool trouble = json_text(watch, "reason")[0] != '\0' || ctl_number(watch, "pausedSince") > 0 ||
                       ctl_is(watch, "otherCluster");
        char buffer[64];

        if (trouble)
                ctl_colour(COLOUR_RED);
        printf("%-*s %-9s %-10s %-16s %8" PRIu64 " %7" PRIu64 " %7" PRIu64 " %7" PRIu64 " %7" PRIu64, width,
               json_text(watch, "name"),
               ctl_number(watch, "pausedSince") > 0 ? "paused" : json_text(watch, "state"),
               ctl_since(watch, json_text(watch, "reason")[0] ? "degradedSince" : "syncedSince", buffer,
                         sizeof(buffer)),
               json_text(watch, "resourceVersion")[0] ? json_text(watch, "resourceVersion") : "-",
               ctl_number(watch, "objects"), ctl_number(watch, "queued"), ctl_number(watch, "running"),
               ctl_number(watch, "waiting"), ctl_number(watch, "failing"));
        if (wide)
                print_more(watch);
        puts("");
        if (json_text(watch, "reason")[0])
                printf("    %s\n", json_text(watch, "reason"));
        if (json_text(watch, "missingNamespaces")[0])
                printf("    these namespaces do not exist: %s\n", json_text(watch, "missingNamespaces"));
        if (json_text(watch, "refusedNamespaces")[0])
                printf("    these namespaces are refused: %s\n", json_text(watch, "refusedNamespaces"));
        if (ctl_is(watch, "otherCluster"))
                puts("    this is another cluster than the one that the state folder belongs to, so objects that "
                     "are missing here are not treated as deleted: point the operator back to its cluster, or "
                     "give it another state folder");
        if (ctl_is(watch, "handlerStale"))
                puts("    " CTL_STALE_HANDLER);
        if (ctl_number(watch, "metricsDropped") > 0)
                printf("    %" PRIu64 " %s of its handler %s dropped (see the log)\n",
                       ctl_number(watch, "metricsDropped"),
                       counted(ctl_number(watch, "metricsDropped"), "metric", "metrics"),
                       counted(ctl_number(watch, "metricsDropped"), "was", "were"));
        if (ctl_number(watch, "contentsDropped") > 0)
                printf("    the last content of %" PRIu64 " deleted %s found no room (see the log)\n",
                       ctl_number(watch, "contentsDropped"),
                       counted(ctl_number(watch, "contentsDropped"), "object", "objects"));
        if (ctl_number(watch, "previousNotKept") > 0)
                printf("    after %" PRIu64 " %s the object was not kept for `previous` (see the log)\n",
                       ctl_number(watch, "previousNotKept"),
                       counted(ctl_number(watch, "previousNotKept"), "run", "runs"));
        if (json_text(watch, "limitsWeakened")[0])
                printf("    limits of its handler: %s\n", json_text(watch, "limitsWeakened"));
        if (json_text(watch, "accessTrouble")[0])
                printf("    its handler's access cannot be renewed: %s\n",
                       json_text(watch, "accessTrouble"));
        if (ctl_is(watch, "accessAwaited"))
                puts("    its runs wait until its handler has its credentials");
        if (ctl_number(watch, "rateWaiting") > 0)
                printf("    %" PRIu64 " " CTL_RATE_WAITS "\n", ctl_number(watch, "rateWaiting"),
                       counted(ctl_number(watch, "rateWaiting"), "waits", "wait"));
        print_progress(watch);
        if (ctl_is(watch, "unsure"))
                printf("    the runs in flight at the last end are unknown: objects whose resourceVersion "
                       "has changed since their last run run once\n");
        if (ctl_number(watch, "behindSince") > 0)
                printf("    behind: for %s it has not shown what the operator wrote itself; those objects wait for "
                       "that\n",
                       ctl_since(watch, "behindSince", buffer, sizeof(buffer)));
        if (json_text(watch, "waitsFor")[0])
                printf("    its runs wait until watch %s is in sync\n", json_text(watch, "waitsFor"));
        if (ctl_is(watch, "startupAwaited"))
                puts("    its runs wait until the handler of `startup` has succeeded");
        if (ctl_number(watch, "pausedSince") > 0)
                printf("    paused for %s (user %" PRIu64
                       ")%s%s; `reconciledctl resume %s` lets it run again\n",
                       ctl_since(watch, "pausedSince", buffer, sizeof(buffer)),
                       ctl_number(watch, "pausedBy"), json_text(watch, "pauseReason")[0] ? ": " : "",
                       json_text(watch, "pauseReason"), json_text(watch, "name"));
        if (trouble)
                ctl_colour(COLOUR_NONE);
}

static void print_worker(const cJSON *worker)
{
        char buffer[64];

        printf("%-8" PRIu64 " %-8" PRIu64 " ", ctl_number(worker, "index"), ctl_number(worker, "pid"));
        if (strcmp(json_text(worker, "state"), "running") == 0)
                printf("%s of watch %s, for %s", json_text(worker, "key"), json_text(worker, "watch"),
                       ctl_duration(ctl_number(worker, "runningFor"), buffer, sizeof(buffer)));
        else
                printf("%s", ctl_number(worker, "writing") > 0 ? "no handler" : "idle");
        if (ctl_number(worker, "together") > 0)
                printf("; %" PRIu64 " in handlers for several", ctl_number(worker, "together"));
        if (ctl_number(worker, "writing") > 0)
                printf("; %" PRIu64 " being written", ctl_number(worker, "writing"));
        printf("\n");
}

static void print_quarantine(const cJSON *list)
{
        char buffer[64];
        const cJSON *item;

        cJSON_ArrayForEach(item, list)
                printf("%s%s of watch %s is in quarantine: %" PRIu64 " %s, the last one %s ago: %s\n",
                       item == list->child ? "\n" : "", json_text(item, "key"), json_text(item, "watch"),
                       ctl_number(item, "crashes"), counted(ctl_number(item, "crashes"), "crash", "crashes"),
                       ctl_since(item, "lastCrash", buffer, sizeof(buffer)), json_text(item, "error"));
}

void ctl_print_doubtful(const cJSON *list)
{
        char buffer[64];
        const cJSON *item;

        cJSON_ArrayForEach(item, list)
                printf("%s%s of watch %s is doubtful: its watcher has failed over it %" PRIu64
                       " %s, the last time %s ago; %s: %s\n",
                       item == list->child ? "\n" : "", json_text(item, "key"), json_text(item, "watch"),
                       ctl_number(item, "crashes"), counted(ctl_number(item, "crashes"), "time", "times"),
                       ctl_since(item, "lastCrash", buffer, sizeof(buffer)),
                       ctl_is(item, "unread") ? "it is left out" : "jq programs are not run on it",
                       json_text(item, "error"));
}

uint64_t ctl_failures(const cJSON *row)
{
        return ctl_number(row, "attempts") + ctl_number(row, "refused");
}

const char *ctl_attempts(const cJSON *row, char *buffer, size_t size)
{
        uint64_t attempts = ctl_number(row, "attempts"), refused = ctl_number(row, "refused");
        const char *failures = counted(refused, "failure that counts", "failures that count");

        if (refused == 0)
                snprintf(buffer, size, "attempt %" PRIu64, attempts);
        else if (attempts == 0)
                snprintf(buffer, size, "%" PRIu64 " %s as no attempt", refused, failures);
        else
                snprintf(buffer, size, "attempt %" PRIu64 ", and %" PRIu64 " %s as none", attempts, refused,
                         failures);
        return buffer;
}

#define FAILING_MAX 10 /* are listed */

static void print_failing(const cJSON *item)
{
        char until[64], attempts[96];

        printf("%s of watch %s ", json_text(item, "key"), json_text(item, "watch"));
        if (ctl_is(item, "permanent"))
                printf("has failed for good and waits for a change");
        else if (ctl_number(item, "throttled") > 0)
                printf("is throttled, what is written to it is refused; next try in %s",
                       ctl_until(item, "next", until, sizeof(until)));
        else
                printf("has failed (%s); next try in %s", ctl_attempts(item, attempts, sizeof(attempts)),
                       ctl_until(item, "next", until, sizeof(until)));
        printf(": %s\n", json_text(item, "lastError"));
}

/* The worst come first: those that no backoff will help. What is in quarantine is listed already. */
static void print_all_failing(const cJSON *status)
{
        uint64_t all = 0, listed = 0;
        const cJSON *item;

        cJSON_ArrayForEach(item, json_member(status, "watches")) all += ctl_number(item, "failing");
        cJSON_ArrayForEach(item, json_member(status, "failing"))
        {
                if (ctl_number(item, "quarantinedUntil") > 0) {
                        all--;
                        continue;
                }
                if (listed == FAILING_MAX)
                        break;
                if (listed++ == 0)
                        puts("");
                print_failing(item);
        }
        if (all > listed)
                printf("... and %" PRIu64 " more: reconciledctl get failing\n", all - listed);
}

static void print_removed(const cJSON *removed)
{
        printf("kept      of watch %s, which is not configured any more: %" PRIu64 " %s (%" PRIu64
               " had failed), in case a watch of this name comes back\n",
               json_text(removed, "watch"), ctl_number(removed, "objects"),
               counted(ctl_number(removed, "objects"), "object", "objects"), ctl_number(removed, "failing"));
}

static void print_held_back(const cJSON *wish)
{
        const char *resource = json_text(wish, "resource");
        char buffer[64];

        printf("held back requests%s%s wait for %s, as the API server asks (Retry-After)\n",
               resource[0] ? " for " : "", resource + (resource[0] == '/'),
               ctl_until(wish, "until", buffer, sizeof(buffer)));
}

static void print_milliseconds(const cJSON *turn, const char *name)
{
        uint64_t usec = ctl_number(turn, name);

        printf("%" PRIu64 ".%" PRIu64 " ms", usec / 1000, usec % 1000 / 100);
}

/* While a turn of the supervisor's loop lasts, nobody else is heard. */
static void print_turns(const cJSON *turns)
{
        const cJSON *longest = json_member(turns, "longest");
        const cJSON *processor = json_member(turns, "longestProcessor");

        printf("loop      longest turn ");
        print_milliseconds(longest, "took");
        printf(" (%s), of processor time ", json_text(longest, "what"));
        print_milliseconds(processor, "processor");
        printf(" (%s); %" PRIu64 " of %" PRIu64 " took more than 10 ms\n", json_text(processor, "what"),
               ctl_number(turns, "slow"), ctl_number(turns, "count"));
}

static void print_replica(const cJSON *replica)
{
        const char *leader = json_text(replica, "leader"), *state = json_text(replica, "state");
        char buffer[64];

        if (strcmp(state, "leading") == 0)
                printf("replica   %s leads, epoch %" PRIu64 ", for %s without a renewal\n",
                       json_text(replica, "member"), ctl_number(replica, "epoch"),
                       ctl_duration(ctl_number(replica, "left"), buffer, sizeof(buffer)));
        else if (leader[0])
                printf("replica   %s follows, %s leads, epoch %" PRIu64 "\n", json_text(replica, "member"),
                       leader, ctl_number(replica, "epoch"));
        else
                printf("replica   %s follows, and no replica is known to lead\n",
                       json_text(replica, "member"));
        if (json_text(replica, "trouble")[0])
                printf("    its Leases: %s\n", json_text(replica, "trouble"));
}

void ctl_print_status(const cJSON *status, bool wide)
{
        const cJSON *item, *events, *left, *watches = json_member(status, "watches");
        int width = ctl_name_width(watches);
        char buffer[64];

        ctl_colour(COLOUR_BOLD);
        printf("operator  %s (reconciled %s, pid %" PRIu64 "), %s, up %s, %" PRIu64 " %s\n",
               json_text(status, "operator"), json_text(status, "version"), ctl_number(status, "pid"),
               json_text(status, "phase"), ctl_since(status, "startedAt", buffer, sizeof(buffer)),
               ctl_number(status, "restarts"),
               counted(ctl_number(status, "restarts"), "restart", "restarts"));
        ctl_colour(COLOUR_NONE);
        printf("server    %s\nidentity  %s\n",
               json_text(status, "server")[0] ? json_text(status, "server") : "(not known yet)",
               json_text(status, "identity")[0] ? json_text(status, "identity") : "(not known yet)");
        if (json_member(status, "replica"))
                print_replica(json_member(status, "replica"));
        if (wide)
                print_turns(json_member(status, "turns"));
        if (ctl_number(status, "uninstallingSince") > 0)
                printf("%s (user %" PRIu64 "); nothing else runs until: reconciledctl uninstall --cancel\n",
                       ctl_is(status, "uninstalled")
                               ? "UNINSTALLED: no object of its watches carries a finalizer of the operator"
                               : "BEING UNINSTALLED: finalizers are taken off all objects",
                       ctl_number(status, "uninstallingBy"));
        if (ctl_is(status, "startupAwaited"))
                printf("startup   its handler has not succeeded, and all others wait for it%s%s\n",
                       json_text(status, "startupError")[0] ? ": " : "", json_text(status, "startupError"));
        if (json_text(status, "notReloaded")[0])
                printf("reload    refused, the old configuration is in force: %s\n",
                       json_text(status, "notReloaded"));
        cJSON_ArrayForEach(left, json_member(status, "finalizersLeft"))
                printf("left      %s on objects of kind %s, by watch %s (%" PRIu64
                       "): no watch takes it off, see the log\n",
                       json_text(left, "finalizer"), json_text(left, "kind"), json_text(left, "watch"),
                       ctl_number(left, "objects"));
        if (wide)
                cJSON_ArrayForEach(left, json_member(status, "removedWatches")) print_removed(left);
        cJSON_ArrayForEach(left, json_member(status, "heldBack")) print_held_back(left);
        if (ctl_number(status, "logLinesDropped") > 0)
                printf("logs      %" PRIu64 " %s dropped\n", ctl_number(status, "logLinesDropped"),
                       counted(ctl_number(status, "logLinesDropped"), "line was", "lines were"));
        events = json_member(status, "events");
        if (ctl_number(events, "dropped") > 0)
                printf("events    %" PRIu64 " %s left out (the spam guard, or no right to write them)\n",
                       ctl_number(events, "dropped"), counted(ctl_number(events, "dropped"), "was", "were"));
        ctl_colour(COLOUR_RED);
        if (ctl_is(json_member(status, "secrets"), "onDisk"))
                puts("secrets   may reach a disk: there is no memory (tmpfs) for them (see the journal)");
        if (ctl_is(json_member(status, "gateway"), "certificateExpired"))
                puts("gateway   its certificate is not valid at this time, clients refuse it (see the "
                     "journal)");
        if (ctl_is(json_member(status, "gateway"), "certificateStale"))
                puts("gateway   its new certificate cannot be used, the former one stays (see the journal)");
        print_quarantine(json_member(status, "quarantine"));
        ctl_print_doubtful(json_member(status, "doubtful"));
        print_all_failing(status);
        ctl_colour(COLOUR_BOLD);
        printf("\n%-*s %-9s %-10s %-16s %8s %7s %7s %7s %7s", width, "WATCH", "STATE", "SINCE",
               "RESOURCEVERSION", "OBJECTS", "QUEUED", "RUNNING", "WAITING", "FAILING");
        if (wide)
                printf(" %9s %9s %9s %8s %7s %s", "RUNS", "SUCCEEDED", "FAILED", "AVERAGE", "RELISTS",
                       "KIND");
        puts("");
        ctl_colour(COLOUR_NONE);
        cJSON_ArrayForEach(item, watches) print_watch(item, width, wide);
        ctl_colour(COLOUR_BOLD);
        printf("\n%-8s %-8s %s\n", "WORKER", "PID", "RUNS");
        ctl_colour(COLOUR_NONE);
        cJSON_ArrayForEach(item, json_member(status, "workers")) print_worker(item);
}

/* `reconciledctl health`: a probe. Silent when all is well, one line when not. */

int ctl_health(const char *runtime_directory, bool ready, bool json)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        _cleanup_json_ cJSON *answer = NULL;
        int r = ctl_query(runtime_directory, "health", NULL, &answer, &error);

        if (r < 0)
                return ctl_failed(r, &error);
        r = ctl_is(answer, ready ? "ready" : "live") ? EXIT_CODE_OK : EXIT_CODE_SOFTWARE;
        if (json)
                (void)ctl_print_json(answer);
        else if (r != EXIT_CODE_OK)
                printf("not %s: %s\n", ready ? "ready" : "healthy", json_text(answer, "reason"));
        return r;
}

/* `reconciledctl get`: the objects that are in trouble, one a line. */

static void print_line(const cJSON *item, const char *state)
{
        bool quarantined = strcmp(state, "quarantined") == 0;
        const char *error = json_text(item, json_text(item, "waitsFor")[0] ? "waitsFor" : "lastError");
        const char *then = quarantined ? "quarantinedUntil" : "next";
        char buffer[64];

        printf("%-20s %-32s %8" PRIu64 " %-10s %-12s %s\n", json_text(item, "watch"), json_text(item, "key"),
               ctl_number(item, quarantined ? "crashes" : "attempts"),
               ctl_is(item, "permanent")     ? "a change"
               : ctl_number(item, then) == 0 ? "-"
                                             : ctl_until(item, then, buffer, sizeof(buffer)),
               json_text(item, "nextReason")[0] ? json_text(item, "nextReason") : "-",
               error[0] ? error : "-");
}

static void print(const cJSON *answer, const void *userdata)
{
        const char *state = userdata;
        const cJSON *item, *objects = json_member(answer, "objects");

        if (!objects || !objects->child) {
                printf("no object is %s\n", state);
                return;
        }
        ctl_colour(COLOUR_BOLD);
        printf("%-20s %-32s %8s %-10s %-12s %s\n", "WATCH", "KEY",
               strcmp(state, "quarantined") == 0 ? "CRASHES" : "ATTEMPTS", "NEXT IN", "WHY", "LAST ERROR");
        ctl_colour(COLOUR_NONE);
        cJSON_ArrayForEach(item, objects) print_line(item, state);
        if (ctl_is(answer, "more"))
                puts("... and more; a watch, or -n NAMESPACE, narrows it down");
}

int ctl_get(const char *runtime_directory, const struct get_options *options)
{
        const char *const argument[] = {options->state, options->watch, options->namespace, NULL};

        return ctl_show(runtime_directory, "list", argument, options->form, print, options->state);
}
