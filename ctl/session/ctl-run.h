/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One handler without its operator: run for an object, or replayed from what was recorded. */
#include <stdbool.h>

#define EXIT_CODE_FAILED 1 /* the handler has failed; answers differ */

struct ctl_run_options {
        const char *config, *watch; /* NULL: the default place; the only watch */
        const char *runtime_directory;
        const char *object; /* a file or a key; of replay: the folder */
        bool apply, json;
        bool tty;             /* the handler gets the terminal, */
        char *const *command; /* or this in its place; NULL */
};

struct config;
struct config_watch;

/* The watch of this name (NULL: the only one), without those of dependents; NULL if there is none, which was
 * reported. */
const struct config_watch *ctl_find_watch(const struct config *config, const char *name);
struct unit_credential;
struct error;

/* The cluster of the unit that runs this configuration, where the configuration names none. status, error: of
 * unit_credential_find(). 0, or an exit code whose reason was printed. */
int ctl_use_unit(struct config *config, const struct unit_credential *unit, int status,
                 const struct error *error);
/* Whether its handler may run many times, for a trial: it has promised to do nothing else, or the user says
 * so. false: it has not, which was reported. */
bool ctl_may_try(const struct config_watch *watch, bool run_anyway);
/* In a trial this is a handler's $HOME, so that no library finds credentials of the user; $KUBECONFIG names a file there. */
#define NO_HOME "/nonexistent"

/* Runs the handler of one watch for options->object and shows what its answer would change; returns the exit
 * code. */
int ctl_run(const struct ctl_run_options *options);
