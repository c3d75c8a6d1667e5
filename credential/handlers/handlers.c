/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What handlers are given for themselves: copies of files (handler.credentials), and access to the API
 * server (handler.kubernetes). Files are looked at when the operator's own are: every minute, and when the
 * operator is asked to reload.
 */
#include "credential/handlers/handlers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit-code.h"
#include "credential/handlers/account.h"
#include "credential/handlers/files.h"

static void refresh(struct access *access)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        bool was_well = !access->files_trouble;
        int r = handler_files_copy(access, &error);

        if (r >= 0 && was_well)
                return;
        free(access->files_trouble);
        access->files_trouble = r < 0 ? strdup(error_message(&error)) : NULL;
        if ((r < 0) == was_well)
                access_tell(access);
}

void handlers_refresh(struct credential *credential)
{
        for (size_t i = 0; i < credential->access_count; i++)
                refresh(&credential->access[i]);
}

int handlers_begin(struct credential *credential, void (*on_refused)(struct credential *credential))
{
        const struct message_config_credential *config = &credential->config->config_credential;

        if (config->access_count == 0)
                return 0;
        credential->access = calloc(config->access_count, sizeof(*credential->access));
        if (!credential->access)
                return -ENOMEM;
        for (size_t i = 0; i < config->access_count; i++) {
                struct access *access = &credential->access[credential->access_count++];
                _cleanup_error_ struct error error = ERROR_NONE;
                int r;

                access->credential = credential;
                access->config = &config->access[i];
                r = handler_files_copy(access, &error);
                if (r < 0)
                        return child_fatal(credential->child, exit_code_for(r, EXIT_CODE_CONFIGURATION),
                                           NULL, NULL, "%s: %s", access->config->key, error_message(&error));
        }
        return account_begin(credential, on_refused);
}

void handlers_done(struct credential *credential)
{
        for (size_t i = 0; i < credential->access_count; i++) {
                account_done(&credential->access[i]);
                free(credential->access[i].files_trouble);
        }
        free(credential->access);
        credential->access = NULL;
        credential->access_count = 0;
        kube_client_free(TAKE_PTR(credential->client));
}
