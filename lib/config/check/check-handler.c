/* SPDX-License-Identifier: Apache-2.0 */
/* A watch's handler: its command, and what it is given. */
#include "config/check/check-handler.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "config/check/check-access.h"
#include "config/check/check-user.h"
#include "config/read/expand.h"
#include "config/read/node.h"
#include "config/read/problem.h"

static void pairs_done(struct config_pair *pair, size_t count)
{
        for (size_t i = 0; i < count; i++) {
                free(pair[i].name);
                if (pair[i].value)
                        explicit_bzero(pair[i].value, strlen(pair[i].value));
                free(pair[i].value);
        }
        free(pair);
}

static void texts_done(char **text, size_t count)
{
        for (size_t i = 0; i < count; i++)
                free(text[i]);
        free((void *)text);
}

void handler_done(struct config_handler *handler)
{
        texts_done(handler->exec, handler->exec_count);
        texts_done(handler->serve, handler->serve_count);
        pairs_done(handler->environment, handler->environment_count);
        pairs_done(handler->credentials, handler->credentials_count);
        free(handler->kubernetes_file);
        free(handler->kubernetes_account);
        free(handler->kubernetes_namespace);
        free(handler->plugin);
        free(handler->version);
        free(handler->user);
        free(handler->home);
}

/* ---- the program */

static const char *const handler_key[HANDLER_KIND_COUNT] = {"exec", "serve", "plugin"};

static void check_handler_choice(struct reader *reader, yaml_node_t *node, const char *path,
                                 const struct config_handler *handler)
{
        yaml_node_t *place = mapping_find(reader, node, "handler");
        unsigned count = 0;
        char key[256];

        snprintf(key, sizeof(key), "%.200s.handler", path);
        for (size_t i = 0; i < ELEMENTS(handler_key); i++)
                count += place && mapping_find(reader, place, handler_key[i]) != NULL;
        if (place && count == 0)
                problem_add(reader, place, false, key, "needs one of exec, serve and plugin");
        if (count > 1)
                problem_add(reader, place, false, key,
                            "has more than one of exec, serve and plugin; keep one");
        if ((handler->recycle_runs > 0 || handler->recycle_memory > 0) && !handler->serve &&
            !handler->plugin)
                problem_add(reader, place, false, key,
                            "recycle is for serve and plugin: each run of exec is a new process");
}

/* One kind of handler, whose command is in `exec` from here on. */
static void choose_handler(struct reader *reader, struct config_handler *handler)
{
        if (handler->exec)
                return;
        if (handler->serve) {
                handler->kind = HANDLER_SERVE;
                handler->exec = TAKE_PTR(handler->serve);
                handler->exec_count = handler->serve_count;
                handler->serve_count = 0;
        } else if (handler->plugin) {
                handler->exec = calloc(2, sizeof(char *));
                if (!handler->exec) {
                        reader->out_of_memory = true;
                        return;
                }
                handler->kind = HANDLER_PLUGIN;
                handler->exec[0] = TAKE_PTR(handler->plugin);
                handler->exec_count = 1;
        }
}

/* NULL, or why it cannot be a handler. */
static const char *program_problem(struct reader *reader, const char *program, enum handler_kind kind)
{
        struct stat st;

        if (stat(program, &st) < 0) {
                note_system_error(reader, -errno);
                return strerror(errno);
        }
        if (S_ISREG(st.st_mode)) {
                if (access(program, kind == HANDLER_PLUGIN ? R_OK : X_OK) == 0)
                        return NULL;
                note_system_error(reader, -errno);
        }
        return kind == HANDLER_PLUGIN ? "no readable file" : "no executable file (is chmod +x missing?)";
}

static void check_command(struct reader *reader, yaml_node_t *node, const char *path,
                          const struct config_watch *watch)
{
        enum handler_kind kind = watch->handler.kind;
        yaml_node_t *place = mapping_find(reader, mapping_find(reader, node, "handler"), handler_key[kind]);
        const char *program = watch->handler.exec_count > 0 ? watch->handler.exec[0] : NULL, *problem;
        char key[256];

        snprintf(key, sizeof(key), "%.200s.handler.%s", path, handler_key[kind]);
        if (!program)
                return;
        if (program[0] != '/')
                problem_add(reader, place, false, key,
                            "\"%s\" is not a path: a path begins with / or, relative to this file, with ./",
                            program);
        else if ((problem = program_problem(reader, program, kind)))
                problem_add(reader, place, false, key, "%s: %s", program, problem);
}

/* ---- what it is given */

#define OUR_PREFIX "RECONCILED_"

static bool is_variable(const char *name)
{
        return name[0] && !(name[0] >= '0' && name[0] <= '9') && name[strspn(name, NAME_CHARACTERS)] == '\0';
}

static void check_environment(struct reader *reader, yaml_node_t *handler_node, const char *path,
                              struct config_handler *handler)
{
        yaml_node_t *node = mapping_find(reader, handler_node, "environment");

        for (size_t i = 0; i < handler->environment_count; i++) {
                struct config_pair *variable = &handler->environment[i];
                yaml_node_t *place;
                char key[320];

                if (!variable->name || !variable->value)
                        continue;
                place = mapping_find(reader, node, variable->name);
                snprintf(key, sizeof(key), "%.200s.environment.%.90s", path, variable->name);
                if (!is_variable(variable->name))
                        problem_add(
                                reader, place, false, key,
                                "is not a name of a variable: letters, digits and '_', not beginning with a "
                                "digit");
                else if (strncmp(variable->name, OUR_PREFIX, strlen(OUR_PREFIX)) == 0)
                        problem_add(reader, place, false, key,
                                    "names that begin with " OUR_PREFIX " are set by reconciled");
                else if (handler->kubernetes && strcmp(variable->name, "KUBECONFIG") == 0)
                        problem_add(reader, place, false, key,
                                    "is set by handler.kubernetes; keep one of the two");
                (void)expand_text(reader, place, key, &variable->value);
        }
}

void check_handler(struct reader *reader, yaml_node_t *node, const char *path, struct config_watch *watch)
{
        yaml_node_t *place = mapping_find(reader, node, "handler");
        char key[256];

        check_handler_choice(reader, node, path, &watch->handler);
        choose_handler(reader, &watch->handler);
        if (watch->handler.exec_count > 0 && watch->handler.exec[0])
                find_beside_file(reader, &watch->handler.exec[0]);
        check_command(reader, node, path, watch);
        snprintf(key, sizeof(key), "%.200s.handler.user", path);
        check_user(reader, mapping_find(reader, place, "user"), key, &watch->handler);
        snprintf(key, sizeof(key), "%.200s.handler.version", path);
        if (watch->handler.version)
                (void)expand_text(reader, mapping_find(reader, place, "version"), key,
                                  &watch->handler.version);
        snprintf(key, sizeof(key), "%.200s.handler", path);
        check_environment(reader, place, key, &watch->handler);
        check_access(reader, place, key, &watch->handler);
}
