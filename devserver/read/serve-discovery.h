/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which kinds there are, as kubectl and clients ask for it. */
#include <stdbool.h>

#include "devserver/http/http-request.h"

/* Also versions and health. false: it is none of these URLs, and is not answered. */
bool discovery_handle(struct request *request);
