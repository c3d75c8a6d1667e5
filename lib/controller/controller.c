/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/controller.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit-code.h"

#define TEXT_MAX 4096

int controller_init(struct controller *controller, const struct controller_effects *effects, void *userdata,
                    size_t workers, size_t watch_room)
{
        *controller = (struct controller){
                .effects = effects,
                .userdata = userdata,
                .watch = calloc(watch_room, sizeof(struct watch)),
                .watch_room = watch_room,
                .worker = calloc(workers, sizeof(struct worker)),
                .worker_count = workers,
        };
        if (!controller->watch || !controller->worker)
                return -ENOMEM;
        for (size_t i = 0; i < workers; i++)
                controller->worker[i].controller = controller;
        for (size_t i = 0; i < watch_room; i++)
                controller->watch[i].controller = controller;
        return 0;
}

void controller_done(struct controller *controller)
{
        if (controller->watch)
                FOREACH_WATCH(watch, controller)
                        watch_empty(watch);
        free(controller->watch);
        free(controller->worker);
        controller->watch = NULL;
        controller->worker = NULL;
        controller->watch_count = controller->worker_count = 0;
}

/* ---- time */

void controller_tell_time(struct controller *controller, const struct controller_now *now)
{
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

/* ---- what effects give */

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
