/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The objects that a request chooses. */
#include "base/text.h"
#include "devserver/http/http-request.h"
#include "devserver/storage/selector.h"

/* The selector of the query, the caller's; NULL: answered. */
struct selector *list_selector(struct request *request);
/* The keys that the request's namespace and selectors choose, each with its NUL; answers on an error. */
void list_collect_keys(struct request *request, struct text *keys);
