/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/effects.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit-code.h"

#define TEXT_MAX          4096
#define COMMIT_DELAY_USEC (5 * USEC_PER_MSEC)

bool controller_has_time(const struct controller *controller)
{
        return controller->effects->has_time(controller->userdata);
}

uint64_t controller_random(struct controller *controller, uint64_t below)
{
        return below == 0 ? 0 : controller->effects->random(controller->userdata) % below;
}

void controller_settle_soon(struct controller *controller)
{
        controller->effects->settle(controller->userdata);
}

void controller_settle_later(struct controller *controller)
{
        if (controller->commit.is_armed)
                return;
        controller->commit.is_armed = true;
        controller->effects->wake(controller->userdata, WAKE_COMMIT,
                                  controller->now.boottime + COMMIT_DELAY_USEC);
}

void controller_log(struct controller *controller, int priority, const char *message_id,
                    const struct log_field *field, const char *format, ...)
{
        char text[TEXT_MAX];
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(text, sizeof(text), format, arguments);
        va_end(arguments);
        controller->effects->log(controller->userdata, priority, message_id, field, text);
}

void controller_fatal(struct controller *controller, int exit_code, const char *key, const char *format, ...)
{
        char text[TEXT_MAX];
        va_list arguments;

        if (controller->is_over)
                return; /* a consequence of the first one */
        controller->is_over = controller->is_ending = true;
        va_start(arguments, format);
        vsnprintf(text, sizeof(text), format, arguments);
        va_end(arguments);
        controller->effects->fatal(controller->userdata, exit_code, key ? key : "", text);
}

void ledger_failed(struct controller *controller, int status)
{
        if (status == -EBADMSG)
                controller_fatal(controller, EXIT_CODE_SOFTWARE, NULL,
                                 "the ledger in %s is damaged; the next start sets it aside",
                                 controller->ledger_folder);
        else
                controller_fatal(controller, EXIT_CODE_IO, NULL, "the ledger in %s cannot be written: %s",
                                 controller->ledger_folder, strerror(-status));
}

void controller_tell_time(struct controller *controller, const struct controller_now *now)
{
        if (controller->clock_ahead == 0) /* this is the first look at the clock */
                controller->clock_ahead = (int64_t)(now->realtime - now->boottime);
        controller->now = *now;
}

uint64_t ledger_time(const struct controller *controller)
{
        return controller->now.boottime + controller->clock_offset;
}

uint64_t ledger_time_to_boottime(const struct controller *controller, uint64_t time)
{
        int64_t boottime = (int64_t)(time - controller->clock_offset);

        return boottime > 0 ? (uint64_t)boottime : 0; /* before this boot */
}
