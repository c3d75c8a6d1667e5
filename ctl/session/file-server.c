/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/session/file-server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

/* NULL without an error: there is none. */
static int account_of(const struct config_watch *watch, char **ret)
{
        const struct config_handler *handler = &watch->handler;

        if (!handler->kubernetes_account)
                return 0;
        *ret = format_string("%s/%s",
                             handler->kubernetes_namespace ? handler->kubernetes_namespace : "default",
                             handler->kubernetes_account);
        return *ret ? 0 : -ENOMEM;
}

/* The ConfigMap of a schedule or of `startup`, which an operator would make. */
static void write_own_object(FILE *file, const struct config_watch *watch)
{
        fprintf(file, "---\napiVersion: %s\nkind: %s\nmetadata: {name: \"%s\", namespace: \"%s\"}\n",
                watch->api_version, watch->kind, watch->own_name, watch->namespace[0]);
}

/* A file with the namespaces that `children.namespaces` names: real clusters have them. Those of the objects are
 * made by the server. */
static int write_namespaces(const char *path, const struct config_watch *watch)
{
        _cleanup_fclose_ FILE *file = fopen(path, "we");
        bool failed;

        if (!file)
                return -errno;
        for (size_t i = 0; i < watch->child_namespace_count; i++)
                if (!strpbrk(watch->child_namespace[i], "*?!"))
                        fprintf(file, "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: \"%s\"}\n",
                                watch->child_namespace[i]);
        if (watch->own)
                write_own_object(file, watch);
        failed = fflush(file) != 0;
        return failed ? -EIO : 0;
}

int file_server_start(struct try_server *server, const char *folder, const char *const *file,
                      const struct config_watch *watch)
{
        _cleanup_free_ char *account = NULL;
        _cleanup_free_ char *namespaces = format_string("%s/namespaces.yaml", folder);
        _cleanup_free_ const char **argument = NULL;
        size_t count = 3, files = 0;
        int r;

        while (file[files])
                files++;
        argument = calloc(files + count + 3, sizeof(*argument));
        if (!argument || !namespaces || account_of(watch, &account) < 0)
                return -ENOMEM;
        memcpy(argument, (const char *const[]){"--load-as-is", "--load", namespaces},
               count * sizeof(*argument));
        memcpy(argument + count, file, files * sizeof(*argument));
        count += files;
        if (account) {
                argument[count++] = "--service-account";
                argument[count++] = account;
        }
        r = write_namespaces(namespaces, watch);
        return r < 0 ? r : try_server_start(server, folder, argument, NULL);
}
