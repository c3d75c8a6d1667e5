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
