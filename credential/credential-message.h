/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "credential/state.h"

/* What is in use now, as others are told it. The texts are borrowed from `credential`; `ret->header` is the
 * caller's to free. 0 or -ENOMEM (then as well). */
int credential_message(const struct credential *credential, struct message_credential *ret);
