/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The configuration messages of the children; texts are borrowed from the configuration. */
#include "config/config.h"

/* The list is the caller's (free); NULL on lack of memory. */
struct record_string *config_strings(char *const *text, size_t count);
/* The lists of namespaces, the folder, and what the ledger knows, are left to the caller. */
void config_watcher_message(const struct config *config, const struct config_watch *watch,
                            const struct config_watch *owner, struct message_config_watcher *ret);
/* 0 or -ENOMEM; its lists are freed by config_worker_watch_done(). */
int config_worker_watch(const struct config *whole, const struct config_watch *config,
                        const char *store_folder, const char *access_folder, struct record_watch *ret);
void config_worker_watch_done(struct record_watch *watch);
bool config_needs_memory(const struct config *config); /* whether something in it may hold Secrets */
