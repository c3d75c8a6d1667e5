/* SPDX-License-Identifier: Apache-2.0 */
#include "watcher/retry-timer.h"

#include "base/exit-code.h"

void retry_timer_start(struct watcher *watcher, sd_event_source **timer, uint64_t delay_usec,
                       sd_event_time_handler_t on_over, void *userdata)
{
        *timer = sd_event_source_disable_unref(*timer);
        if (sd_event_add_time_relative(watcher->child->event, timer, CLOCK_BOOTTIME, delay_usec, 1, on_over,
                                       userdata) < 0)
                child_fatal(watcher->child, EXIT_CODE_SOFTWARE, watcher->config->watch, NULL,
                            "no memory for a timer");
}
