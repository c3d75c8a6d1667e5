/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* /devserver/...: what a test asks of the server itself. */
#include <stdbool.h>

#include "devserver/http/http-request.h"

bool control_handle(struct request *request); /* false: it is no such request, and is not answered */
