/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The OpenMetrics document. Names are those that Kubernetes people know (client-go's workqueue,
 * controller-runtime) where the thing is the same; ours begin with reconciled_. docs/metrics.md lists them.
 */
#include "base/text.h"

struct supervisor;

int metrics_write(const struct supervisor *supervisor, struct text *text); /* -ENOMEM */
