/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/intervene.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/duration.h"
#include "base/error.h"
#include "base/exit-code.h"
#include "base/text.h"
#include "ctl/ctl-answer.h"
#include "ctl/output/output.h"
#include "store/record.h"
#include "json/json.h"

static int ask_operator(const char *runtime_directory, const char *command, const char *watch,
                        const char *why, cJSON **ret)
{
        char *argument[] = {(char *)(uintptr_t)watch, (char *)(uintptr_t)why, NULL};
        _cleanup_error_ struct error error = ERROR_NONE;
        int r = ctl_query(runtime_directory, command, argument, ret, &error);

        return r < 0 ? ctl_failed(r, &error) : EXIT_CODE_OK;
}

/* ---- taking our finalizers off: of one object, or of everything */

static bool is_confirmed(const struct consent *consent)
{
        char answer[8] = "";

        if (consent->yes)
                return true;
        if (!consent->json && isatty(STDIN_FILENO)) {
                fputs("Type yes to go on: ", stdout);
                fflush(stdout);
                if (fgets(answer, sizeof(answer), stdin) && strcmp(answer, "yes\n") == 0)
                        return true;
        }
        fputs("reconciledctl: nothing was done; repeat with --yes\n", stderr);
        return false;
}

/* Whether the watch's store has the object, and it is not being deleted; else the operator finds out. */
static bool is_alive(const char *runtime_directory, char **argument)
{
        _cleanup_error_ struct error unused = ERROR_NONE;
        struct store_object object = {0};
        _cleanup_json_ cJSON *answer = NULL, *tree = NULL;
        bool wanted;

        if (ctl_query(runtime_directory, "explain", argument, &answer, &unused) < 0)
                return false;
        /* A finalizer that no watch wants is taken off in any case. */
        wanted = cJSON_HasObjectItem(json_member(answer, "watch"), "held");
        if (wanted && ctl_read_store(answer, argument[1], &object) >= 0)
                tree = json_parse(object.json, object.json_size);
        store_object_done(&object);
        return tree && !json_text(json_member(tree, "metadata"), "deletionTimestamp")[0];
}

int ctl_release_finalizer(const char *runtime_directory, char **argument, const char *why,
                          const struct consent *consent)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        char *arguments[] = {argument[0], argument[1], (char *)(uintptr_t)why, NULL};
        char *object[] = {argument[0], argument[1], NULL};
        int r;

        if (is_alive(runtime_directory, object)) {
                fprintf(stderr,
                        "reconciledctl: %s of watch %s is not being deleted: our finalizer stays on it; "
                        "delete it first\n",
                        argument[1], argument[0]);
                return EXIT_CODE_SOFTWARE;
        }

        if (!consent->json)
                printf("Our finalizer will be taken off %s (watch %s) without its cleanup: what its handler "
                       "created stays.\n",
                       argument[1], argument[0]);
        if (!is_confirmed(consent))
                return EXIT_CODE_USAGE;
        r = ctl_command(runtime_directory, "release-finalizer", arguments, &error);
        return r < 0 ? ctl_failed(r, &error)
                     : ctl_done(consent->json, NULL,
                                "our finalizer is taken off %s of watch %s, if it is being deleted",
                                argument[1], argument[0]);
}

/* Objects that may carry our finalizer: a list of watches that have some; and the whole. */
static cJSON *list_held(const cJSON *status, uint64_t *ret_sum)
{
        cJSON *list = cJSON_CreateArray();
        const cJSON *watch;

        *ret_sum = 0;
        cJSON_ArrayForEach(watch, json_member(status, "watches"))
        {
                cJSON *item;

                if (!cJSON_HasObjectItem(watch, "held"))
                        continue;
                item = cJSON_CreateObject();
                cJSON_AddStringToObject(item, "name", json_text(watch, "name"));
                cJSON_AddNumberToObject(item, "objects", (double)ctl_number(watch, "held"));
                cJSON_AddItemToArray(list, item);
                *ret_sum += ctl_number(watch, "held");
        }
        return list;
}

static void print_plan(const cJSON *list)
{
        const cJSON *watch;

        puts("The operator's finalizers will be taken off, without any cleanup, and it will run nothing "
             "else:");
        cJSON_ArrayForEach(watch, list)
        {
                printf("watch %s: %" PRIu64 " %s\n", json_text(watch, "name"), ctl_number(watch, "objects"),
                       counted(ctl_number(watch, "objects"), "object", "objects"));
        }
}

/* How far it is. */
static void tell_released(const struct consent *consent, const cJSON *list, uint64_t left, bool done,
                          const char *message)
{
        _cleanup_json_ cJSON *answer = cJSON_CreateObject();

        if (!consent->json) {
                puts(message);
                return;
        }
        cJSON_AddBoolToObject(answer, "done", done);
        cJSON_AddStringToObject(answer, "message", message);
        cJSON_AddNumberToObject(answer, "left", (double)left);
        cJSON_AddItemToObject(answer, "watches", cJSON_Duplicate(list, true));
        (void)ctl_print_json(answer);
}

/* Watches whose objects are not all known, and why: as long as there is one, nothing is said to be done.
 * Also finalizers of former configurations, which no watch takes off. */
static void list_unknown(const cJSON *status, struct text *text)
{
        const cJSON *watch, *left;

        cJSON_ArrayForEach(watch, json_member(status, "watches"))
        {
                const char *reason = json_text(watch, "reason");

                if (!cJSON_HasObjectItem(watch, "searched"))
                        continue;
                if (strcmp(json_text(watch, "state"), "absent") == 0)
                        text_printf(
                                text,
                                "; the API server does not serve the kind of watch %s: it has no objects",
                                json_text(watch, "name"));
                else if (ctl_is(watch, "searched"))
                        continue;
                else if (json_text(watch, "unseen")[0])
                        text_printf(text,
                                    "; objects that watch %s has not seen may carry its finalizer, and "
                                    "cannot be looked at: %s",
                                    json_text(watch, "name"), json_text(watch, "unseen"));
                else if (strcmp(json_text(watch, "state"), "in-sync") == 0)
                        text_printf(text, "; not all objects of watch %s were looked at yet",
                                    json_text(watch, "name"));
                else
                        text_printf(text,
                                    "; watch %s is not in sync%s%s: more objects may carry its finalizer",
                                    json_text(watch, "name"), reason[0] ? ": " : "", reason);
        }
        cJSON_ArrayForEach(left, json_member(status, "finalizersLeft"))
        {
                text_printf(text, "; objects of kind %s may carry %s, which no watch takes off (see status)",
                            json_text(left, "kind"), json_text(left, "finalizer"));
        }
}

#define LOOK_AGAIN_MSEC 200

static int print_outcome(const struct consent *consent, const cJSON *status, const cJSON *list,
                         uint64_t left)
{
        _cleanup_text_ struct text unknown = TEXT_EMPTY, message = TEXT_EMPTY;
        bool done = ctl_is(status, "uninstalled");

        list_unknown(status, &unknown);
        if (done)
                text_printf(&message, "done: no object in the namespaces of the watches carries our "
                                      "finalizer; stop and remove the "
                                      "operator now");
        else
                text_printf(&message, "%" PRIu64 " %s left; the operator's log says why", left,
                            counted(left, "object is", "objects are"));
        text_printf(&message, "%s", unknown.data ? unknown.data : "");
        tell_released(consent, list, left, done, message.data ? message.data : "no memory");
        return done ? EXIT_CODE_OK : EXIT_CODE_SOFTWARE;
}

/* Waits until none is left, or nothing has moved for this long. */
static int wait_for_end(const char *runtime_directory, uint64_t timeout_usec, const struct consent *consent)
{
        uint64_t left = UINT64_MAX, moved = clock_boottime_usec();

        for (;;) {
                _cleanup_json_ cJSON *status = NULL, *list = NULL;
                uint64_t before = left, now = clock_boottime_usec();
                int r = ask_operator(runtime_directory, "status", NULL, NULL, &status);

                if (r != EXIT_CODE_OK)
                        return r;
                list = list_held(status, &left);
                moved = left < before ? now : moved;
                if (ctl_is(status, "uninstalled") || now - moved >= timeout_usec)
                        return print_outcome(consent, status, list, left);
                (void)poll(NULL, 0, LOOK_AGAIN_MSEC);
        }
}

int ctl_uninstall_cancel(const char *runtime_directory, const struct consent *consent)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        int r;

        if (!consent->json)
                puts("The operator starts again, puts its finalizers on again, and reconciles the objects "
                     "that have lost them.");
        if (!is_confirmed(consent))
                return EXIT_CODE_USAGE;
        r = ctl_command(runtime_directory, "uninstall-cancel", NULL, &error);
        return r < 0 ? ctl_failed(r, &error)
                     : ctl_done(consent->json, NULL,
                                "the uninstallation was cancelled; the operator starts again");
}

int ctl_uninstall(const char *runtime_directory, uint64_t timeout_usec, const struct consent *consent)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        _cleanup_json_ cJSON *status = NULL, *list = NULL;
        uint64_t left;
        int r = ask_operator(runtime_directory, "status", NULL, NULL, &status);

        if (r != EXIT_CODE_OK)
                return r;
        list = list_held(status, &left);
        if (!consent->json)
                print_plan(list);
        else if (!consent->yes)
                tell_released(consent, list, left, false, "nothing has been done");
        if (!is_confirmed(consent))
                return EXIT_CODE_USAGE;
        r = ctl_command(runtime_directory, "uninstall", NULL, &error);
        return r < 0 ? ctl_failed(r, &error) : wait_for_end(runtime_directory, timeout_usec, consent);
}

/* ---- reload */

/* The operator that restarts in place hears nobody for a moment. */
static int wait_for_restart(const char *runtime_directory, uint64_t timeout_usec, cJSON **ret)
{
        uint64_t heard = clock_boottime_usec();

        for (;;) {
                _cleanup_error_ struct error error = ERROR_NONE;
                int r = ctl_query(runtime_directory, "status", NULL, ret, &error);

                if (r >= 0 && (strcmp(json_text(*ret, "phase"), "running") == 0 ||
                               strcmp(json_text(*ret, "phase"), "following") == 0))
                        return EXIT_CODE_OK;
                if (r >= 0) {
                        heard = clock_boottime_usec();
                        cJSON_Delete(TAKE_PTR(*ret));
                } else if (clock_boottime_usec() - heard >= timeout_usec) {
                        return ctl_failed(r, &error);
                }
                (void)poll(NULL, 0, LOOK_AGAIN_MSEC);
        }
}

#define RESTARTS_USEC (3 * USEC_PER_SEC)

/* An operator that restarts in place just now closes the connection, or its socket is not there yet. One that refuses us, or
 * does not run, is asked in vain for a moment. */
static int ask_for_reload(const char *runtime_directory, cJSON **ret)
{
        uint64_t until = clock_boottime_usec() + RESTARTS_USEC;

        for (;;) {
                _cleanup_error_ struct error error = ERROR_NONE;
                int r = ctl_query(runtime_directory, "reload", NULL, ret, &error);

                if (r >= 0)
                        return EXIT_CODE_OK;
                if ((r != -EACCES && r != -ENOENT) || clock_boottime_usec() >= until)
                        return ctl_failed(r, &error);
                (void)poll(NULL, 0, LOOK_AGAIN_MSEC);
        }
}

static int failed_reload(const char *why)
{
        fprintf(stderr, "reconciledctl: %s\n", why);
        return EXIT_CODE_SOFTWARE;
}

int ctl_reload(const char *runtime_directory, uint64_t timeout_usec, bool json)
{
        _cleanup_json_ cJSON *answer = NULL, *status = NULL;
        char buffer[64];
        int r = ask_for_reload(runtime_directory, &answer);

        if (r != EXIT_CODE_OK)
                return r;
        if (!ctl_is(answer, "restarted"))
                return ctl_done(json, answer,
                                "the configuration has not changed; files and credentials are read again");
        r = wait_for_restart(runtime_directory, timeout_usec, &status);
        if (r != EXIT_CODE_OK)
                return r;
        if (json_text(status, "notReloaded")[0])
                return failed_reload(json_text(status, "notReloaded"));
        if (ctl_number(status, "reloadPause") == 0)
                return failed_reload(
                        "the operator has ended during the reload, and was started again; its log says why");
        return ctl_done(json, answer, "the operator has restarted in place with %s; no run began for %s",
                        ctl_is(answer, "programOnly") ? "new programs of handlers" : "its new configuration",
                        ctl_duration(ctl_number(status, "reloadPause"), buffer, sizeof(buffer)));
}

int ctl_step_down(const char *runtime_directory, const char *successor, bool json)
{
        _cleanup_json_ cJSON *answer = NULL;
        int r = ask_operator(runtime_directory, "step-down", successor, NULL, &answer);

        if (r != EXIT_CODE_OK)
                return r;
        return ctl_done(
                json, answer,
                "the replica restarts in place and follows: running handlers may finish, then %s leads",
                successor[0] ? successor : "another one");
}

/* ---- pause, resume, retry */

int ctl_pause(const char *runtime_directory, const char *watch, const char *why, bool json)
{
        _cleanup_json_ cJSON *answer = NULL;
        int r = ask_operator(runtime_directory, "pause", watch, why, &answer);

        if (r != EXIT_CODE_OK)
                return r;
        if (!ctl_is(answer, "changed"))
                return ctl_done(json, answer, "watch %s is paused already", watch);
        if (ctl_number(answer, "running") > 0)
                return ctl_done(json, answer, "watch %s is paused; %" PRIu64 " running will finish", watch,
                                ctl_number(answer, "running"));
        return ctl_done(json, answer, "watch %s is paused; none of its objects run", watch);
}

int ctl_resume(const char *runtime_directory, const char *watch, bool json)
{
        _cleanup_json_ cJSON *answer = NULL;
        int r = ask_operator(runtime_directory, "resume", watch, NULL, &answer);

        return r != EXIT_CODE_OK ? r
                                 : ctl_done(json, answer, "watch %s %s", watch,
                                            ctl_is(answer, "changed") ? "is resumed" : "was not paused");
}

int ctl_retry_many(const char *runtime_directory, bool all, char **argument, bool json)
{
        _cleanup_json_ cJSON *answer = NULL;
        int r = ask_operator(runtime_directory, all ? "retry-all" : "retry-failed", argument[0], NULL,
                             &answer);
        uint64_t count;

        if (r != EXIT_CODE_OK)
                return r;
        count = ctl_number(answer, "objects");
        if (count == 0)
                return ctl_done(json, answer,
                                all ? "no object has ever run, but for those in quarantine"
                                    : "no object has failed, but for those in quarantine");
        return ctl_done(json, answer,
                        "%" PRIu64 " %s due now; those in quarantine wait for `reconciledctl release`",
                        count, counted(count, "object is", "objects are"));
}
