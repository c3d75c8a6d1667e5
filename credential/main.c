/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reconciled-credential: the only process that reads kubeconfig, certificates and tokens, and hands them to
 * the others as messages.
 */
#include <errno.h>

#include "base/exit-code.h"
#include "credential/credential.h"

static int on_config(struct child *child, struct message **config)
{
        struct credential *credential = child->userdata;
        int r;

        if ((*config)->type != MESSAGE_CONFIG_CREDENTIAL || credential->config)
                return -EPROTO;
        credential->config = TAKE_PTR(*config);
        r = credential_begin(credential);
        return r < 0 ? r : 1;
}

static int on_message(struct child *child, struct message **message)
{
        struct credential *credential = child->userdata;

        if ((*message)->type != MESSAGE_REFRESH)
                return -EPROTO;
        if ((*message)->refresh.files) {
                (void)credential_reload(credential, false);
                return 0;
        }
        /* An older serial: whoever asked has not yet got the newer one that is on its way. */
        return (*message)->refresh.serial < credential->serial ? 0 : credential_reload(credential, true);
}

static const struct child_operations operations = {
        .role = ROLE_CREDENTIAL,
        .log_role = "credential",
        .parent_death_signal = SIGKILL,
        .on_config = on_config,
        .on_message = on_message,
};

int main(int argc, char **argv)
{
        struct child child;
        struct credential credential = {.child = &child};
        int r = child_init(&child, &operations, argc, argv);

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
