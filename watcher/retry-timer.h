/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The one-shot timers of a watcher, after which something is tried again. */
#include "watcher/watcher.h"

/* Sets the timer anew, `delay_usec` from now by CLOCK_BOOTTIME: time that the machine sleeps counts.
 * *timer is owned by the caller; on_over() sets it to NULL with sd_event_source_disable_unref(). A
 * failure is fatal to the watcher, as the attempt would never come. */
void retry_timer_start(struct watcher *watcher, sd_event_source **timer, uint64_t delay_usec,
                       sd_event_time_handler_t on_over, void *userdata);
