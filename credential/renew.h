/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* When the exec plugin of the kubeconfig runs. Each: 0, or negative after child_fatal(). */
#include "credential/state.h"

/* Runs the plugin, unless it runs already or waits for its next attempt. */
int renew_run(struct credential *credential);
/* The server has answered 401 to the plugin's credential. */
int renew_refused(struct credential *credential);
/* The kubeconfig names another plugin. What the old one has brought stays in use until this one has brought
 * something. */
int renew_run_anew(struct credential *credential);
/* There is no plugin any more: ends it, and wipes its credential. */
void renew_stop(struct credential *credential);

/* The credential in use, and who is told about a new one. */

/* Puts files and plugin together under a new serial, hands that to the supervisor, and asks for handlers'
 * tokens with it. 0, or negative, perhaps after child_fatal(). */
int credential_publish(struct credential *credential);
/* Hands out the credential in use again. 0 or a negative errno. */
int credential_send(struct credential *credential);
