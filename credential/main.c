/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reconciled-credential: the only process that reads kubeconfig, certificates and tokens, and hands them to
 * the others as messages. Or, for a check of a configuration: whether a kubeconfig can be used.
 */
#include <errno.h>
#include <string.h>

#include "base/exit-code.h"
#include "credential/credential.h"
#include "credential/handlers/files.h"
#include "credential/separate.h"
#include "kubeconfig/kubeconfig.h"
#include "os/file.h"

static int on_credential_config(struct child *child, struct message **config)
{
        struct credential *credential = child->userdata;
        int r;

        if ((*config)->type != MESSAGE_CONFIG_CREDENTIAL || credential->config)
                return -EPROTO;
        credential->config = TAKE_PTR(*config);
        r = credential_begin(credential);
        return r < 0 ? r : 1;
}

static int on_credential_message(struct child *child, struct message **message)
{
        struct credential *credential = child->userdata;

        if ((*message)->type != MESSAGE_REFRESH)
                return -EPROTO;
        if ((*message)->refresh.files) {
                (void)credential_reload(credential, false);
                return 0;
        }
        /* An older serial: the process that asked has not yet got the newer one that is on its way. */
        return (*message)->refresh.serial < credential->serial ? 0 : credential_reload(credential, true);
}

static const struct child_operations operations = {
        .role = ROLE_CREDENTIAL,
        .log_role = "credential",
        .parent_death_signal = SIGKILL,
        .on_config = on_credential_config,
        .on_message = on_credential_message,
};

/* context: of the operator's own; NULL: it is for a handler. */
static int try_kubeconfig(const char *path, const char *context)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        struct kubeconfig config;
        int r = context ? kubeconfig_load(&(struct kubeconfig_options){path, context}, &config, &error)
                        : handler_files_load_kubeconfig(path, false, &config, &error);

        if (r < 0) {
                fprintf(stderr, "%s\n", error_message(&error));
                return exit_code_for(r, EXIT_CODE_CONFIGURATION);
        }
        kubeconfig_done(&config);
        return EXIT_CODE_OK;
}

static const char ACCOUNT[] = "--check-account", SEPARATE[] = "--check-separate";

/* What a handler is to have beside the operator's own: `what` is a file or NAMESPACE/ACCOUNT. If the
 * operator's own, or the other one, cannot be read, others report that. */
static int try_separate(const char *mode, const char *what, const char *path, const char *context)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        _cleanup_free_ char *bytes = NULL;
        struct kubeconfig own;
        size_t size;
        int r = 0;

        if (kubeconfig_load(&(struct kubeconfig_options){path, context}, &own, NULL) < 0)
                return EXIT_CODE_OK;
        if (strcmp(mode, ACCOUNT) == 0) {
                const char *slash = strchr(what, '/');
                char place[64];

                snprintf(place, sizeof(place), "%.*s", (int)(slash - what), what);
                r = separate_check_account(&own, place, slash + 1, &error);
        } else if (file_read(what, HANDLER_FILE_MAX, &bytes, &size) >= 0) {
                r = separate_check_file(&own, what, bytes, size, &error);
                explicit_bzero(bytes, size);
        }
        kubeconfig_done(&own);
        if (r < 0)
                fprintf(stderr, "%s\n", error_message(&error));
        return r < 0 ? EXIT_CODE_CONFIGURATION : EXIT_CODE_OK;
}

int main(int argc, char **argv)
{
        struct child child;
        struct credential credential = {.child = &child};
        int r;

        if ((argc == 3 || argc == 4) && strcmp(argv[1], "--check-kubeconfig") == 0)
                return try_kubeconfig(argv[2], argc == 4 ? argv[3] : NULL);
        if (argc == 5 &&
            (strcmp(argv[1], SEPARATE) == 0 || (strcmp(argv[1], ACCOUNT) == 0 && strchr(argv[2], '/'))))
                return try_separate(argv[1], argv[2], argv[3], argv[4]);
        r = child_init(&child, &operations, argc, argv);

        if (r < 0) {
                child_done(&child);
                return child_init_exit_code(r);
        }
        child.userdata = &credential;
        r = child_run(&child);
        credential_done(&credential);
        child_done(&child);
        return r;
}
