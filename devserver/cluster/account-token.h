/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Tokens of service accounts. */
#include <stdbool.h>

#include "devserver/http/http-request.h"

void account_token_handle(struct request *request); /* a TokenRequest: answers */
bool account_token_is_valid(struct server *server, const char *text);
void account_tokens_free(struct server *server);
