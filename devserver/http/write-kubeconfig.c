/* SPDX-License-Identifier: Apache-2.0 */
#include "devserver/http/write-kubeconfig.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"
#include "devserver/server.h"
#include "os/file.h"

int kubeconfig_write(const struct server *server, struct error *error)
{
        const char *path = server->kubeconfig, *token = server->token;
        _cleanup_text_ struct text text = TEXT_EMPTY;
        _cleanup_free_ char *temporary = NULL;
        int r;

        if (!path)
                return 0;
        text_printf(&text,
                    "apiVersion: v1\nkind: Config\ncurrent-context: devserver\nclusters:\n- name: "
                    "devserver\n  cluster:\n"
                    "    server: %s\n",
                    server->url);
        if (server->authority) {
                text_append_string(&text, "    certificate-authority-data: ");
                text_append_base64(&text, server->authority);
                text_append_string(&text, "\n");
        }
        text_append_string(&text, "contexts:\n- name: devserver\n  context:\n    cluster: devserver\n    "
                                  "user: devserver\n    namespace: "
                                  "default\nusers:\n- name: devserver\n  user:");
        text_append_string(&text, token ? "\n    token: " : " {}");
        if (token)
                text_json_string(&text, token);
        text_append_string(&text, "\n");
        if (text.failed || asprintf(&temporary, "%s.new", path) < 0) {
                temporary = NULL;
                return error_set(error, -ENOMEM, "no memory");
        }
        r = file_replace(path, temporary, text.data, text.size, &(struct file_rules){.mode = 0600});
        return r < 0 ? error_set(error, -EIO, "%s: cannot be written: %s", path, strerror(-r)) : 0;
}
