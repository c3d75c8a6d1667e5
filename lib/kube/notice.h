/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a process learns from the API server's answers and must pass on, because it concerns all processes of
 * the operator. The supervisor hears it and tells the others.
 *
 *   401                          REFRESH: the credential is renewed. Once for each credential: one that was
 *                                refused stays refused
 *   429 and 5xx with Retry-After THROTTLE: no process asks until then, about this resource or at all
 *
 * The credential process asks with the newest credential itself, and takes a 401 as an order to renew it
 * (credential/handlers/account.c). A certificate that is not trusted is reported by watchers alone.
 */
#include "ipc/child.h"
#include "kube/client.h"

/* serial: of the credential that the request was made with; 0 = none. *asked: of the one that was asked for
 * last; it belongs to the process. */
void notice_refused_credential(struct child *child, const struct kube_error *error, uint64_t serial,
                               uint64_t *asked);
/* The client itself is held back as well. Returns until when (CLOCK_BOOTTIME, microseconds); 0 if the answer
 * does not ask for that. */
uint64_t notice_throttle(struct child *child, struct kube_client *client, const struct kube_error *error);
