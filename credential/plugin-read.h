/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What an exec plugin prints: an ExecCredential. */
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* What it has brought. Owned; "" = not given. */
struct plugin_credential {
        char *token, *client_certificate, *client_key;
        uint64_t expires_realtime; /* usec; 0: until it is refused */
};

void plugin_credential_done(struct plugin_credential *credential); /* wipes */

/* Reads what a plugin has printed. 0; -ENOMEM; -EINVAL with the problem, in which none of the output is repeated. */
int plugin_read(const char *output, size_t size, const char *api_version, struct plugin_credential *ret,
                struct error *error);
