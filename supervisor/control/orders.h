/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Orders of reconciledctl. With several replicas, one that must outlive the leader is confirmed once the leader record has it
 * (supervisor/lead-lasting.h).
 */
#include "controller/controller-watch.h"
#include "supervisor/control/peer.h"

int order_by_hand(struct control_peer *peer, const struct message_query *query, struct watch *watch);
int order_retry_many(struct control_peer *peer, const struct message_query *query, struct watch *watch);
int order_pause(struct control_peer *peer, const struct message_query *query, struct watch *watch);
int order_resume(struct control_peer *peer, const struct message_query *query, struct watch *watch);
int order_release_finalizer(struct control_peer *peer, const struct message_query *query,
                            struct watch *watch);
int order_uninstall(struct control_peer *peer, const struct message_query *query, struct watch *watch);
int order_uninstall_cancel(struct control_peer *peer, const struct message_query *query,
                           struct watch *watch);
