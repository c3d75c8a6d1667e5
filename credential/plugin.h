/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One run of an exec plugin (client.authentication.k8s.io): a program that prints a credential. It gets a
 * process group of its own, a minute, and no terminal; its stderr goes to the log, its stdout never.
 */
#include <systemd/sd-event.h>

#include "credential/kubeconfig.h"

struct plugin;

/* What it has brought. Owned; "" = not given. */
struct plugin_credential {
        char *token, *client_certificate, *client_key;
        uint64_t expires_realtime; /* usec; 0: until it is refused */
};

void plugin_credential_done(struct plugin_credential *credential); /* wipes */

/* Once. credential: NULL when it failed, and why; may be taken over (zeroed). May free the plugin. */
typedef void (*plugin_done_t)(struct plugin_credential *credential, const char *why, void *userdata);

/* 0; -ENOENT or -EACCES: the command cannot be run, with the hint of the kubeconfig in the error. */
int plugin_start(sd_event *event, const struct kubeconfig *config, plugin_done_t done, void *userdata,
                 struct plugin **ret, struct error *error);
void plugin_free(struct plugin *plugin); /* ends it */

/* Reads what a plugin has printed. -EINVAL with what is wrong; nothing of the output is repeated in it. */
int plugin_read(const char *output, size_t size, const char *api_version, struct plugin_credential *ret,
                struct error *error);
