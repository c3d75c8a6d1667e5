/* SPDX-License-Identifier: Apache-2.0 */
/* Mistakes in handler.credentials and handler.kubernetes. */
#include "config/check/check-access.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "config/check/check-program.h"
#include "config/read/expand.h"
#include "config/read/node.h"
#include "config/read/problem.h"

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

/* true: it is there, and can be read. */
static bool check_file(struct reader *reader, const yaml_node_t *node, const char *key, char **path)
{
        const char *problem;

        if (!expand_text(reader, node, key, path))
                return false;
        find_beside_file(reader, path);
        if (is_of_unit(*path) && access(*path, R_OK) < 0 && errno == EACCES) {
                problem_add(reader, node, true, key,
                            "%s is a credential of the unit, which only its main process can read", *path);
                return false;
        }
        problem = file_problem(reader, *path);
        if (problem)
                problem_add(reader, node, false, key, "%s: %s", *path, problem);
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
        for (size_t i = 0; i < handler->credentials_count; i++) {
                struct config_pair *credential = &handler->credentials[i];
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
                (void)check_file(reader, place, key, &credential->value);
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
                if (check_file(reader, place, key, &handler->kubernetes_file))
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

void check_access(struct reader *reader, yaml_node_t *handler_node, const char *path,
                  struct config_handler *handler)
{
        check_credentials(reader, mapping_find(reader, handler_node, "credentials"), path, handler);
        if (handler->kubernetes)
                check_kubernetes(reader, mapping_find(reader, handler_node, "kubernetes"), path, handler);
}
