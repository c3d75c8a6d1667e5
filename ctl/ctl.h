/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* reconciledctl: asks a running operator over its control socket, and checks configurations. */
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "config/config.h"
#include "store/store.h"

#define EXIT_CODE_FAILED 1 /* the handler has failed; answers differ */

/* Asks `command` and returns the answer as a tree that the caller owns. -ENOENT: no operator runs there;
 * -EACCES: it refuses us; -EPROTO and others with a text. */
int ctl_query(const char *runtime_directory, const char *command, cJSON **ret, struct error *error);
int ctl_query_about(const char *runtime_directory, const char *command, char **argument, cJSON **ret,
                    struct error *error);
/* With arguments, NULL-terminated; the answer is not looked at. */
int ctl_command(const char *runtime_directory, const char *command, char **argument, struct error *error);

/* print.c. Members of an answer: "", 0 and false where there is none. */
const char *ctl_text(const cJSON *object, const char *name);
uint64_t ctl_number(const cJSON *object, const char *name);
bool ctl_is(const cJSON *object, const char *name);
/* "3m12s", not finer than anybody wants to know it; since a time of the wall clock, "-" when there is none.
 */
const char *ctl_duration(uint64_t usec, char *buffer, size_t size);
const char *ctl_since(const cJSON *object, const char *name, char *buffer, size_t size);
const char *ctl_until(const cJSON *object, const char *name, char *buffer, size_t size);
/* What is printed from now on looks so, where colours are wanted. */
enum colour { COLOUR_NONE, COLOUR_BOLD, COLOUR_RED };
void ctl_colour(enum colour colour);
bool ctl_wants_colour(void); /* a terminal that can, and nobody minds (NO_COLOR) */
int ctl_print_json(const cJSON *answer);
void ctl_print_yaml(const cJSON *answer);
enum form { FORM_PEOPLE, FORM_JSON, FORM_YAML };
/* Asks, and writes the answer in that form; for people `print` does. argument: NULL-terminated, or NULL.
 * Returns the exit code. */
int ctl_show(const char *runtime_directory, const char *command, const char *const *argument, enum form form,
             void (*print)(const cJSON *answer, const void *userdata), const void *userdata);
/* What was done: a line, or for programs the answer (which is taken; NULL: nothing more) with the members
 * done and message. Returns the exit code. */
int ctl_done(bool json, cJSON *answer, const char *format, ...) _printf_(3, 4);

/* Says what failed; returns the exit code. */
int ctl_failed(int status, const struct error *error);

/* argument: a watch, or nothing: all; returns the exit code. */
int ctl_retry_all(const char *runtime_directory, char **argument, bool json);

/* Return exit codes. */
int ctl_pause(const char *runtime_directory, const char *watch, const char *why, bool json);
int ctl_resume(const char *runtime_directory, const char *watch, bool json);

struct consent {
        bool yes;  /* it was said that this is meant */
        bool json; /* a program: it is not asked */
};

/* argument: watch, key. timeout_usec: while nothing moves. Return exit codes. */
int ctl_release_finalizer(const char *runtime_directory, char **argument, const char *why,
                          const struct consent *consent);
int ctl_uninstall_cancel(const char *runtime_directory, const struct consent *consent);
int ctl_uninstall(const char *runtime_directory, uint64_t timeout_usec, const struct consent *consent);

/* Writes the status for people. */
void ctl_print_status(const cJSON *status, bool wide);
void ctl_print_doubtful(const cJSON *list); /* with an empty line before them */

struct get_options {
        const char *state;             /* "failing", "waiting", "quarantined" */
        const char *watch, *namespace; /* "": all */
        enum form form;
};

/* Lists objects in trouble; returns the exit code. */
int ctl_get(const char *runtime_directory, const struct get_options *options);

struct logs_options {
        int count; /* arguments: watch, perhaps a key, options of journalctl */
        char **argument;
        bool follow, json;
};

/* Becomes journalctl; returns an exit code only when that fails. */
int ctl_logs(const char *runtime_directory, const struct logs_options *options);

/* Returns the exit code. */
int ctl_top(const char *runtime_directory, uint64_t interval_usec);

/* Reads from the watch's store the object that an answer to "explain" is about; -ENOENT: it is not there. */
int ctl_read_store(const cJSON *answer, const char *key, struct store_object *ret);

/* argument: watch, key. Why the object did or did not run; returns the exit code. */
int ctl_explain(const char *runtime_directory, char **argument, bool json);

/* Checks a configuration file and says every problem; returns the exit code. */
int ctl_check(const char *path, bool json);

/* The configuration (NULL: of the default place), or NULL with every mistake said. */
struct config *ctl_load_config(const char *path);

struct ctl_run_options {
        const char *config, *watch; /* NULL: the default place; the only watch */
        const char *object;         /* a file or a key; of replay: the folder */
        bool apply, json;
};

int ctl_run(const struct ctl_run_options *options);
int ctl_replay(const struct ctl_run_options *options);

/* Whether the operator is healthy, or ready; says why not; returns the exit code. */
int ctl_health(const char *runtime_directory, bool ready, bool json);

#define RBAC_PLURALS_MAX 64

struct rbac_options {
        const char *namespace, *service_account; /* where the operator runs, as whom */
        const char *plural[RBAC_PLURALS_MAX];    /* "Kind=plural" */
        size_t plural_count;
};

/* Writes the roles that a configuration needs, as YAML or one List in JSON; returns the exit code. */
int ctl_rbac(const char *path, const struct rbac_options *options, bool json);
