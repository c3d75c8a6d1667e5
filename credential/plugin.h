/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One run of an exec plugin (client.authentication.k8s.io): a program that prints a credential. It gets a
 * process group of its own, a minute, and no terminal; its stderr goes to the log, its stdout never.
 */
#include <systemd/sd-event.h>

#include "credential/plugin-read.h"
#include "kubeconfig/value.h"

struct plugin;

/* Once. credential: NULL when it failed, and why; may be taken over (zeroed). May free the plugin. */
typedef void (*plugin_done_t)(struct plugin_credential *credential, const char *why, void *userdata);

/* 0; -ENOENT or -EACCES: the command cannot be run, with the hint of the kubeconfig in the error. */
int plugin_start(sd_event *event, const struct kubeconfig *config, plugin_done_t done, void *userdata,
                 struct plugin **ret, struct error *error);
void plugin_free(struct plugin *plugin); /* ends it */
