/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEBSITE_H
#define WEBSITE_H

#include "reconciled-kit.h"

struct rk_value *website_reconcile(struct rk_request *request);
struct rk_value *website_finalize(struct rk_request *request);

#endif
