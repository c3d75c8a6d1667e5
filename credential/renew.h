/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* When the exec plugin of the kubeconfig runs. Each: 0, or negative after child_fatal(). */
#include "credential/state.h"

/* Runs it, unless it runs or waits for its next attempt: that one will do. */
int renew_run(struct credential *credential);
/* The server has answered 401 to what it has brought. */
int renew_refused(struct credential *credential);
/* The kubeconfig names another plugin. What the old one has brought stays in use until this one has brought
 * something. */
int renew_run_anew(struct credential *credential);
/* No plugin any more: ends it, and forgets (wipes) what it has brought. */
void renew_stop(struct credential *credential);

/* The credential that is in use now, and who is told of it. */

/* Puts files and plugin together under a new serial, hands that to the supervisor, and asks for handlers'
 * tokens with it. 0, or negative, perhaps after child_fatal(). */
int credential_publish(struct credential *credential);
/* Hands out again what is in use. 0 or a negative errno. */
int credential_send(struct credential *credential);
