/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The credential that is in use now, and who is told of it. */
#include "credential/state.h"

/* Puts files and plugin together under a new serial, hands that to the supervisor, and asks for handlers'
 * tokens with it. 0, or negative, perhaps after child_fatal(). */
int credential_publish(struct credential *credential);
/* Hands out again what is in use. 0 or a negative errno. */
int credential_send(struct credential *credential);
