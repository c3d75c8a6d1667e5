/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a watch's handler: its command, and its credentials. */
#include "config/check/check-handler.h"

#include <errno.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>

#include "config/check/check-program.h"
#include "config/read/expand.h"
#include "config/read/problem.h"
#include "os/file.h"
#include "os/folder.h"

/* Mistakes in handler.credentials and handler.kubernetes. */

#define CREDENTIAL_MAX (1 << 20) /* bytes, as the credential process reads it */

#define SMALL        "abcdefghijklmnopqrstuvwxyz0123456789-"
#define FILE_LETTERS SMALL "ABCDEFGHIJKLMNOPQRSTUVWXYZ._"

/* NULL, or why it cannot be one. */
static const char *file_problem(struct reader *reader, const char *path)
{
        struct stat st;

        if (path[0] != '/')
                return "is not a path: a path begins with / or, relative to this file, with ./";
        if (stat(path, &st) < 0 || (S_ISREG(st.st_mode) && access(path, R_OK) < 0)) {
                note_system_error(reader, -errno);
                return strerror(errno);
        }
        return !S_ISREG(st.st_mode)          ? "is not a regular file"
               : st.st_size > CREDENTIAL_MAX ? "is larger than 1 MiB"
                                             : NULL;
}

/* systemd lets only the main process of a unit at its credentials, and `reconciled --check` of ExecReload=
 * is another one: the operator itself looks again when it is asked to reload. */
static bool is_of_unit(const char *path)
{
        const char *folder = getenv("CREDENTIALS_DIRECTORY");
        size_t length = folder ? strlen(folder) : 0;

        return length > 0 && strncmp(path, folder, length) == 0 && path[length] == '/';
}

/* true: it is there, and can be read. copied: a warning will do if others can spoil it: the watch waits then. */
static bool check_file(struct reader *reader, const yaml_node_t *node, const char *key, char **path,
                       bool copied)
{
        const char *problem;
        bool waits;

        if (!expand_text(reader, node, key, path))
                return false;
        find_beside_file(reader, path);
        if (is_of_unit(*path) && access(*path, R_OK) < 0 && errno == EACCES) {
                problem_add(reader, node, true, key,
                            "%s is a credential of the unit, which only its main process can read", *path);
                return false;
        }
        problem = file_problem(reader, *path);
        waits = problem && copied && (*path)[0] == '/' && file_is_of_others(*path);
        if (problem)
                problem_add(
                        reader, node, waits, key, "%s: %s%s", *path, problem,
                        waits ? "; others than root and the operator can change this path, so the operator "
                                "starts, and this watch waits for the file"
                              : "");
        return !problem;
}

static bool is_file_name(const char *name)
{
        size_t length = strlen(name);

        return length > 0 && length <= 200 && name[0] != '.' && strspn(name, FILE_LETTERS) == length;
}

static void check_credentials(struct reader *reader, yaml_node_t *node, const char *path,
                              struct config_handler *handler)
{
        FOREACH_ARRAY(credential, handler->credentials, handler->credentials_count) {
                yaml_node_t *place;
                char key[320];

                if (!credential->name || !credential->value)
                        continue;
                place = mapping_find(reader, node, credential->name);
                snprintf(key, sizeof(key), "%.200s.credentials.%.90s", path, credential->name);
                if (!is_file_name(credential->name))
                        problem_add(
                                reader, place, false, key,
                                "is not a name of a credential: at most 200 letters, digits, '-', '_' and "
                                "'.', not beginning with a '.'");
                else if (handler->kubernetes && (strcmp(credential->name, "kubeconfig") == 0 ||
                                                 strcmp(credential->name, "token") == 0))
                        problem_add(reader, place, false, key,
                                    "handler.kubernetes makes a file of this name; choose another one");
                (void)check_file(reader, place, key, &credential->value, true);
        }
}

/* A name of an object: labels of small letters, with dots between them where `dots`. */
static bool is_object_name(const char *name, bool dots, size_t max)
{
        size_t length = strlen(name);

        return length > 0 && length <= max && strspn(name, dots ? SMALL "." : SMALL) == length &&
               !strchr("-.", name[0]) && !strchr("-.", name[length - 1]);
}

static void check_kubernetes(struct reader *reader, yaml_node_t *node, const char *path,
                             struct config_handler *handler)
{
        yaml_node_t *place;
        char key[256];

        snprintf(key, sizeof(key), "%.200s.kubernetes", path);
        if (!handler->kubernetes_file == !handler->kubernetes_account)
                problem_add(reader, node, false, key, "needs one of kubeconfig and serviceAccount");
        if (handler->kubernetes_file && handler->kubernetes_namespace)
                problem_add(reader, node, false, key,
                            "namespace is for serviceAccount: a kubeconfig has its own");
        if (handler->kubernetes_file) {
                snprintf(key, sizeof(key), "%.200s.kubernetes.kubeconfig", path);
                place = mapping_find(reader, node, "kubeconfig");
                if (check_file(reader, place, key, &handler->kubernetes_file, false))
                        check_kubeconfig(reader, place, key, handler->kubernetes_file);
        }
        if (handler->kubernetes_account && !is_object_name(handler->kubernetes_account, true, 253)) {
                snprintf(key, sizeof(key), "%.200s.kubernetes.serviceAccount", path);
                problem_add(reader, mapping_find(reader, node, "serviceAccount"), false, key,
                            "\"%s\" is not a name of a service account", handler->kubernetes_account);
        }
        if (handler->kubernetes_namespace && !is_object_name(handler->kubernetes_namespace, false, 63)) {
                snprintf(key, sizeof(key), "%.200s.kubernetes.namespace", path);
                problem_add(reader, mapping_find(reader, node, "namespace"), false, key,
                            "\"%s\" is not a name of a namespace", handler->kubernetes_namespace);
        }
}

/* Checks the handler's own credentials. path: of the handler. */
static void check_access(struct reader *reader, yaml_node_t *handler_node, const char *path,
                         struct config_handler *handler)
{
        check_credentials(reader, mapping_find(reader, handler_node, "credentials"), path, handler);
        if (handler->kubernetes)
                check_kubernetes(reader, mapping_find(reader, handler_node, "kubernetes"), path, handler);
}

/* ---- handler.user: looks the user up. Whether the operator may become that user is checked at its start
 * (separation.c). */

/* "1000:1000", for images without /etc/passwd. */
static bool parse_numbers(const char *text, unsigned *ret_uid, unsigned *ret_gid)
{
        char rest;

        return strspn(text, "0123456789:") == strlen(text) &&
               sscanf(text, "%10u:%10u%c", ret_uid, ret_gid, &rest) == 2;
}

static const struct passwd *find_user(const char *text)
{
        char *end;
        unsigned long uid = strtoul(text, &end, 10);

        return *end == '\0' && text[0] >= '0' && text[0] <= '9' ? getpwuid((uid_t)uid) : getpwnam(text);
}

/* Fills in user, home, uid and gid, if it names one. */
static void check_unix_user(struct reader *reader, yaml_node_t *node, const char *key,
                            struct config_handler *handler)
{
        const struct passwd *entry;

        if (!handler->user)
                return;
        errno = 0;
        entry = find_user(handler->user);
        if (entry) {
                handler->uid = entry->pw_uid;
                handler->gid = entry->pw_gid;
                (void)keep_text(reader, &handler->home, entry->pw_dir);
                (void)keep_text(reader, &handler->user,
                                entry->pw_name); /* last: it may be what was looked up */
        } else if (parse_numbers(handler->user, &handler->uid, &handler->gid)) {
                (void)keep_text(reader, &handler->home, "/");
        } else {
                problem_add(reader, node, false, key,
                            "there is no user \"%s\"; a number that has no name needs its group: UID:GID",
                            handler->user);
                return;
        }
        if (handler->uid == 0)
                problem_add(
                        reader, node, false, key,
                        "the user root does not separate handlers from the operator; name another user, or "
                        "leave it out");
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

/* `parallel` or `batch`: what takes several requests at a time. */
static void check_several(struct reader *reader, yaml_node_t *node, const char *path,
                          const struct config_watch *watch, const char *name, enum handler_kind kind)
{
        yaml_node_t *place = mapping_find(reader, mapping_find(reader, node, "handler"), name);
        char key[256];

        snprintf(key, sizeof(key), "%.200s.handler.%s", path, name);
        if (watch->handler.kind != kind)
                problem_add(reader, place, false, key,
                            kind == HANDLER_EXEC
                                    ? "is for exec: serve gets several requests at a time with `parallel`"
                                    : "is for serve: exec gets several requests in one call with `batch`");
        else if (watch->concurrency == 1)
                problem_add(reader, place, false, key,
                            "contradicts `concurrency: 1`, with which no two objects are handled at a time; "
                            "keep one of them");
}

/* Exactly one kind of handler must be set; its command is in `exec` from here on. */
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

#define FIRST_LINE_MAX 256 /* as much as the kernel reads */

/* Whether env(1) finds the program that follows it. A handler has its PATH from the operator, or its own. */
static bool is_found(const struct config_handler *handler, const char *name)
{
        _cleanup_free_ char *path = file_in_path(name);

        for (size_t i = 0; i < handler->environment_count; i++)
                if (handler->environment[i].name && strcmp(handler->environment[i].name, "PATH") == 0)
                        return true; /* who knows */
        return path || errno != ENOENT;
}

/* Finds out what is wrong with a script's first line. The kernel only says "no such file", as if the script
 * were missing. */
static void check_first_line(struct reader *reader, const yaml_node_t *node, const char *key,
                             const struct config_handler *handler)
{
        const char *program = handler->exec[0], *interpreter, *name;
        _cleanup_fclose_ FILE *file = fopen(program, "re");
        char line[FIRST_LINE_MAX] = "", *rest;

        if (!file || !fgets(line, sizeof(line), file) || strncmp(line, "#!", 2) != 0)
                return;
        line[strcspn(line, "\n")] = '\0';
        if (line[0] && line[strlen(line) - 1] == '\r') {
                problem_add(
                        reader, node, false, key,
                        "%s: its first line ends with a carriage return, as on Windows, which would be a part "
                        "of the interpreter's name; end its lines with a newline alone",
                        program);
                return;
        }
        rest = line + 2;
        rest += strspn(rest, " \t");
        interpreter = strsep(&rest, " \t");
        if (interpreter[0] == '/' && access(interpreter, X_OK) < 0)
                problem_add(reader, node, false, key, "%s: its interpreter %s: %s", program, interpreter,
                            strerror(errno));
        if (!rest || strcmp(interpreter, "/usr/bin/env") != 0)
                return;
        rest += strspn(rest, " \t");
        name = strsep(&rest, " \t");
        if (name[0] && !strpbrk(name, "-=/") && !is_found(handler, name))
                problem_add(reader, node, true, key, "%s: its interpreter %s is not in the PATH here",
                            program, name);
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
        else if (kind != HANDLER_PLUGIN)
                check_first_line(reader, place, key, &watch->handler);
}

/* A handler starts in /, where an argument like ./handler.py names nothing: the path of the program alone is
 * relative to the file. */
static void check_arguments(struct reader *reader, yaml_node_t *node, const char *path,
                            const struct config_handler *handler)
{
        const char *name = handler_key[handler->kind];
        yaml_node_t *list = mapping_find(reader, mapping_find(reader, node, "handler"), name);
        char key[256];

        for (size_t i = 1; i < handler->exec_count; i++) {
                const char *argument = handler->exec[i];
                _cleanup_free_ char *beside =
                        argument ? format_string("%s%s", argument[0] == '.' ? "" : "./", argument) : NULL;
                struct stat st;

                if (!argument || !argument[0] || argument[0] == '/')
                        continue;
                if (!beside) {
                        reader->out_of_memory = true;
                        return;
                }
                find_beside_file(reader, &beside);
                if (stat(beside, &st) < 0 || !S_ISREG(st.st_mode))
                        continue;
                snprintf(key, sizeof(key), "%.200s.handler.%s[%zu]", path, name, i);
                problem_add(reader, sequence_item(reader, list, i), true, key,
                            "the handler starts in /, where \"%s\" names no file beside this one; if it is "
                            "meant, write %s",
                            argument, beside);
        }
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

        FOREACH_ARRAY(variable, handler->environment, handler->environment_count) {
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
        if (watch->handler.parallel > 1)
                check_several(reader, node, path, watch, "parallel", HANDLER_SERVE);
        if (watch->handler.batch_max > 0)
                check_several(reader, node, path, watch, "batch", HANDLER_EXEC);
        if (watch->handler.exec_count > 0 && watch->handler.exec[0])
                find_beside_file(reader, &watch->handler.exec[0]);
        check_command(reader, node, path, watch);
        check_arguments(reader, node, path, &watch->handler);
        snprintf(key, sizeof(key), "%.200s.handler.user", path);
        check_unix_user(reader, mapping_find(reader, place, "user"), key, &watch->handler);
        snprintf(key, sizeof(key), "%.200s.handler.version", path);
        if (watch->handler.version)
                (void)expand_text(reader, mapping_find(reader, place, "version"), key,
                                  &watch->handler.version);
        snprintf(key, sizeof(key), "%.200s.handler", path);
        check_environment(reader, place, key, &watch->handler);
        check_access(reader, place, key, &watch->handler);
}
