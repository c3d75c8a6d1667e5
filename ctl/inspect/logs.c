/* SPDX-License-Identifier: Apache-2.0 */
/* `reconciledctl logs`: journalctl, with the fields that everything about a watch or an object carries. */
#include "ctl/inspect/logs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-login.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/exit-code.h"
#include "base/text.h"
#include "ctl/ctl-answer.h"
#include "ctl/output/output.h"
#include "json/json.h"

#define WORDS_MAX 64

struct command {
        char *word[WORDS_MAX + 1]; /* owned; NULL-terminated */
        size_t count;
};

static int add_argument(struct command *command, const char *name, const char *value)
{
        if (command->count == WORDS_MAX)
                return -E2BIG;
        command->word[command->count] = format_string("%s%s", name, value);
        if (!command->word[command->count])
                return -ENOMEM;
        command->count++;
        return 0;
}

static void command_done(struct command *command)
{
        for (size_t i = 0; i < command->count; i++)
                free(command->word[i]);
}

/* /var/lib/NAME beside /run/NAME. The first stays when the operator ends, the second goes with its unit. */
static char *state_beside(const char *runtime_directory)
{
        const char *given = getenv("STATE_DIRECTORY"), *name = strrchr(runtime_directory, '/');

        if (given && given[0])
                return strdup(given);
        return format_string("%.*s/%s", (int)(strrchr(RECONCILED_STATEDIR, '/') - RECONCILED_STATEDIR),
                             RECONCILED_STATEDIR, name ? name + 1 : runtime_directory);
}

/* The owner of a folder that a group may write need not be the operator's user. */
static bool find_owner(const char *folder, uid_t *ret)
{
        struct stat st;
        bool is_known = stat(folder, &st) == 0 && !(st.st_mode & S_IWGRP);

        if (is_known)
                *ret = st.st_uid;
        return is_known;
}

/* Any user may write lines with our fields, but none with the _UID of another user. */
static int add_owner(struct command *command, const char *runtime_directory)
{
        _cleanup_free_ char *runtime = strdup(runtime_directory), *state = NULL;
        char number[24];
        uid_t owner;

        for (size_t i = runtime ? strlen(runtime) : 0; i > 1 && runtime[i - 1] == '/'; i--)
                runtime[i - 1] = '\0';
        state = runtime ? state_beside(runtime) : NULL;
        if (!state)
                return -ENOMEM;
        if (!find_owner(runtime, &owner) && !find_owner(state, &owner)) {
                fprintf(stderr,
                        "reconciledctl: neither %s nor %s shows who the operator's user is: any user may have "
                        "written what follows\n",
                        runtime, state);
                return 0;
        }
        snprintf(number, sizeof(number), "%u", (unsigned)owner);
        return add_argument(command, "_UID=", number);
}

/* Several operators of a machine may have watches of one name. */
static int add_unit(struct command *command, pid_t pid)
{
        _cleanup_free_ char *unit = NULL;

        if (sd_pid_get_user_unit(pid, &unit) >= 0)
                return add_argument(command, "_SYSTEMD_USER_UNIT=", unit);
        if (sd_pid_get_unit(pid, &unit) >= 0 && strstr(unit, ".service"))
                return add_argument(command, "_SYSTEMD_UNIT=", unit);
        return 0;
}

/* Adds what the running operator's status says; an operator that is down may have logged enough before. */
static int add_operator(struct command *command, const char *runtime_directory, struct error *error)
{
        _cleanup_error_ struct error unused = ERROR_NONE;
        _cleanup_json_ cJSON *status = NULL;
        const char *log;
        int r = ctl_query(runtime_directory, "status", NULL, &status, &unused);

        if (r < 0)
                return add_owner(command, runtime_directory);
        log = json_text(status, "log");
        if (strcmp(log, "journal") == 0) {
                r = add_owner(command, runtime_directory); /* handlers are processes of the unit as well */
                return r < 0 ? r : add_unit(command, (pid_t)ctl_number(status, "pid"));
        }
        return error_set(error, -ENOENT, "the operator does not log to the journal but as %s",
                         strcmp(log, "json") == 0
                                 ? "JSON lines on its standard error; in a container look for \"watch\" and "
                                   "\"key\" there: kubectl logs POD | jq -r 'select(.key == "
                                   "\"NAMESPACE/NAME\") | .message'"
                                 : "text on its standard error; in a container look for the key there: "
                                   "kubectl logs POD | grep -F NAMESPACE/NAME (--log json makes lines that "
                                   "can be selected by fields)");
}

/* Arguments: the watch, perhaps a key, and from the first one with a dash on what journalctl is to get. */
static int compose(struct command *command, int count, char **argument, bool follow, bool json)
{
        int i = 1, r = add_argument(command, "RECONCILED_WATCH=", argument[0]);

        if (r >= 0 && i < count && argument[i][0] != '-')
                r = add_argument(command, "RECONCILED_KEY=", argument[i++]);
        if (r >= 0 && i < count && argument[i][0] != '-')
                return -EINVAL;
        if (r >= 0 && follow)
                r = add_argument(command, "--follow", "");
        if (r >= 0 && json)
                r = add_argument(command, "--output=json", "");
        for (; r >= 0 && i < count; i++)
                r = add_argument(command, argument[i], "");
        return r;
}

static int run_journalctl(struct command *command, const char *runtime_directory,
                          const struct logs_options *options, struct error *error)
{
        int r = add_argument(command, "journalctl", "");

        if (r >= 0)
                r = add_operator(command, runtime_directory, error);
        if (r >= 0)
                r = compose(command, options->count, options->argument, options->follow, options->json);
        if (r == -EINVAL)
                return error_set(error, r, "logs takes a watch and a key; options of journalctl follow --");
        if (r < 0)
                return error_set(error, r, "%s", strerror(-r));
        execvp(command->word[0], command->word);
        return error_set(error, -errno, "journalctl cannot be started: %s", strerror(errno));
}

int ctl_logs(const char *runtime_directory, const struct logs_options *options)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        struct command command = {0};
        int r = run_journalctl(&command, runtime_directory, options, &error);

        command_done(&command);
        if (r != -EINVAL)
                return ctl_failed(r, &error);
        fprintf(stderr, "reconciledctl: %s\n", error_message(&error));
        return EXIT_CODE_USAGE;
}
