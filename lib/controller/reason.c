/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/reason.h"

bool finalizer_is_reason(enum run_reason reason)
{
        return reason == RUN_FINALIZER_LOST || reason == RUN_FINALIZER;
}

bool run_is_without_handler(enum run_reason reason)
{
        return reason == RUN_RELEASE || reason == RUN_UNINSTALL || reason == RUN_FINALIZER ||
               reason == RUN_FINALIZER_LOST;
}
