/* SPDX-License-Identifier: Apache-2.0 */
/* Taking our finalizers off: of one object, or of everything. Nothing is done before somebody said yes. */
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/exit-code.h"
#include "base/text.h"
#include "ctl/ctl.h"

static bool is_confirmed(bool yes)
{
        char answer[8] = "";

        if (yes)
                return true;
        if (!isatty(STDIN_FILENO)) {
                fputs("reconciledctl: --yes says that this is meant\n", stderr);
                return false;
        }
        fputs("Type yes to go on: ", stdout);
        fflush(stdout);
        return fgets(answer, sizeof(answer), stdin) && strcmp(answer, "yes\n") == 0;
}

int ctl_release_finalizer(const char *runtime_directory, char **argument, const char *why, bool yes)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        char *arguments[] = {argument[0], argument[1], (char *)(uintptr_t)why, NULL};
        int r;

        printf("Our finalizer will be taken off %s (watch %s) without its cleanup: what its handler has "
               "made "
               "stays.\n",
               argument[1], argument[0]);
        if (!is_confirmed(yes))
                return EXIT_CODE_USAGE;
        r = ctl_command(runtime_directory, "release-finalizer", arguments, &error);
        return r < 0 ? ctl_failed(r, &error) : EXIT_CODE_OK;
}

/* Objects that may carry our finalizer, by watch; the whole. */
static uint64_t print_plan(const cJSON *status, bool quiet)
{
        uint64_t sum = 0;
        const cJSON *watch;

        cJSON_ArrayForEach(watch, cJSON_GetObjectItemCaseSensitive(status, "watches"))
        {
                const cJSON *held = cJSON_GetObjectItemCaseSensitive(watch, "held");

                if (!held)
                        continue;
                sum += (uint64_t)held->valuedouble;
                if (!quiet)
                        printf("watch %s: %.0f objects\n",
                               cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(watch, "name")),
                               held->valuedouble);
        }
        return sum;
}

static int get_status(const char *runtime_directory, cJSON **ret)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        int r = ctl_query(runtime_directory, "status", ret, &error);

        return r < 0 ? ctl_failed(r, &error) : EXIT_CODE_OK;
}

#define LOOK_AGAIN_MSEC 200
#define PATIENCE        150 /* looks without progress */

/* Until none is left, or nothing moves any more. */
static int wait_for_end(const char *runtime_directory)
{
        uint64_t left = UINT64_MAX, before;
        unsigned stuck = 0;

        while (left > 0 && stuck < PATIENCE) {
                cJSON *status = NULL;
                int r = get_status(runtime_directory, &status);

                if (r != EXIT_CODE_OK)
                        return r;
                before = left;
                left = print_plan(status, true);
                stuck = left < before ? 0 : stuck + 1;
                cJSON_Delete(status);
                if (left > 0)
                        (void)poll(NULL, 0, LOOK_AGAIN_MSEC);
        }
        if (left > 0) {
                printf("%" PRIu64 " objects are left; the operator's log says why\n", left);
                return EXIT_CODE_SOFTWARE;
        }
        puts("done: nothing carries our finalizer; stop and remove the operator now");
        return EXIT_CODE_OK;
}

int ctl_uninstall(const char *runtime_directory, bool yes)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        char *none[] = {NULL};
        cJSON *status = NULL;
        int r = get_status(runtime_directory, &status);

        if (r != EXIT_CODE_OK)
                return r;
        puts("The operator's finalizers will be taken off, without any cleanup, and it runs nothing any "
             "more:");
        print_plan(status, false);
        cJSON_Delete(status);
        if (!is_confirmed(yes))
                return EXIT_CODE_USAGE;
        r = ctl_command(runtime_directory, "uninstall", none, &error);
        return r < 0 ? ctl_failed(r, &error) : wait_for_end(runtime_directory);
}
