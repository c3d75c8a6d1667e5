/* SPDX-License-Identifier: Apache-2.0 */
/* See lease.h. The process: its configuration, and its side of the channel. */
#include "lease/lease.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/exit-code.h"
#include "ipc/close-in.h"
#include "lease/elect.h"

static void on_warning(const char *text, const struct fiber *asker _unused_, void *userdata _unused_)
{
        log_warning("leases: the API server warns: %s", text);
}

static void on_unusable(const char *reason, void *userdata)
{
        const struct lease *lease = userdata;

        child_fatal(lease->child, EXIT_CODE_SOFTWARE, "no request can be sent to the API server: %s",
                    reason);
}

static int on_lease_config(struct child *child, struct message **config)
{
        struct lease *lease = child->userdata;
        char user_agent[128];
        int r;

        if ((*config)->type != MESSAGE_CONFIG_LEASE || lease->config)
                return -EPROTO;
        lease->config_message = TAKE_PTR(*config);
        lease->config = &lease->config_message->config_lease;
        if (!leader_name_fits(lease->config->member) || !leader_name_fits(lease->config->operator_name) ||
            lease->config->duration_usec < LEADER_DURATION_MIN ||
            lease->config->duration_usec > LEADER_DURATION_MAX)
                return -EPROTO;
        lease->names = (struct lease_names){
                .operator_name = lease->config->operator_name,
                .namespace_name = lease->config->namespace_name,
                .record = lease->config->record,
                .who = lease->config->who,
                .is_shared = lease->config->compatible,
                .duration_usec = lease->config->duration_usec,
                .cluster = lease->cluster,
        };
        snprintf(user_agent, sizeof(user_agent), "reconciled/" RECONCILED_VERSION " (lease; %.60s)",
                 lease->config->operator_name);
        r = kube_client_new(child->event, user_agent, &lease->client);
        if (r < 0)
                return child_fatal(child, EXIT_CODE_SOFTWARE, "cannot start: %s", strerror(-r));
        kube_client_on_unusable(lease->client, on_unusable, lease);
        kube_client_on_warning(lease->client, on_warning, lease);
        r = close_in_client("the lease process", NULL);
        if (r < 0)
                return child_fatal(child, EXIT_CODE_SOFTWARE, "it cannot drop its privileges: %s",
                                   strerror(-r));
        return 1;
}

static int on_credential(struct lease *lease, const struct message_credential *credential)
{
        bool is_first = !kube_client_has_credential(lease->client);
        int r = kube_client_set_credential(lease->client, credential);

        if (r >= 0 && is_first)
                elect_begin(lease);
        return r;
}

static int on_lease_message(struct child *child, struct message **message)
{
        struct lease *lease = child->userdata;

        switch ((*message)->type) {
        case MESSAGE_CREDENTIAL:
                return on_credential(lease, &(*message)->credential);
        case MESSAGE_LEAD:
                lease->heard_until = (*message)->lead.stop_boottime;
                return 0;
        case MESSAGE_LASTING:
                return elect_keep(lease, &(*message)->lasting);
        case MESSAGE_RELEASE:
                if ((*message)->release.successor[0] && !leader_name_fits((*message)->release.successor))
                        return -EPROTO;
                elect_release(lease, (*message)->release.successor, (*message)->release.late);
                return 0;
        default:
                return -EPROTO;
        }
}

static size_t count_lease(struct child *child, struct record_counter *counter, size_t max)
{
        const struct lease *lease = child->userdata;

        if (max < 1)
                return 0;
        counter[0] = (struct record_counter){"log_dropped", log_dropped()};
        return 1 + kube_client_count(lease->client, counter + 1, max - 1);
}

const struct child_operations lease_operations = {
        .role = ROLE_LEASE,
        .log_role = "lease",
        .parent_death_signal = SIGKILL,
        .on_config = on_lease_config,
        .on_message = on_lease_message,
        .count = count_lease,
};

void lease_done(struct lease *lease)
{
        elect_done(lease);
        kube_client_free(lease->client);
        message_free(lease->config_message);
}
