/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/handlers/stamp.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "controller/due/retry-kept.h"
#include "controller/effects.h"
#include "supervisor/supervisor.h"

static uint64_t stamp_text(uint64_t stamp, const char *text)
{
        /* With its end, so that "ab", "c" is not "a", "bc". */
        return XXH3_64bits_withSeed(text, strlen(text) + 1, stamp);
}

/* Handlers are started in the root folder. A file that is not there is a mere argument; so is a folder. */
static uint64_t add_file(uint64_t stamp, const char *argument)
{
        char path[PATH_MAX + 1];
        struct stat info;
        int length = snprintf(path, sizeof(path), "%s%s", argument[0] == '/' ? "" : "/", argument);

        if (length < 0 || (size_t)length >= sizeof(path) || stat(path, &info) < 0 || !S_ISREG(info.st_mode))
                return stamp;
        return XXH3_64bits_withSeed((uint64_t[]){(uint64_t)info.st_size, (uint64_t)info.st_mtim.tv_sec,
                                                 (uint64_t)info.st_mtim.tv_nsec},
                                    3 * sizeof(uint64_t), stamp);
}

uint64_t handler_stamp(const struct config_handler *handler)
{
        uint64_t stamp = stamp_text((uint64_t)handler->kind, RECONCILED_VERSION), names = 0;

        for (size_t i = 0; i < handler->exec_count; i++)
                stamp = add_file(stamp_text(stamp, handler->exec[i]), handler->exec[i]);
        /* A sum: the order in which the file has them is nothing that a handler sees. */
        for (size_t i = 0; i < handler->environment_count; i++)
                names += stamp_text(0, handler->environment[i].name);
        stamp = XXH3_64bits_withSeed(&names, sizeof(names), stamp);
        stamp = stamp_text(stamp, handler->version ? handler->version : "");
        return stamp ? stamp : 1;
}

bool handler_is_stale(const struct watch *watch)
{
        return !watch->config->owner && watch->config->handler.kind != HANDLER_EXEC &&
               watch->handler_stamp != 0 && watch->handler_stamp != handler_stamp(&watch->config->handler);
}

void handlers_reload(struct supervisor *supervisor, const struct config *config)
{
        int r = 0;

        for (size_t i = 0; i < config->watch_count && r >= 0; i++)
                if (!config->watch[i].owner)
                        r = retry_kept_reload(&supervisor->controller, config->watch[i].name,
                                              handler_stamp(&config->watch[i].handler));
        if (r < 0)
                ledger_failed(&supervisor->controller, r);
}

int handler_take_up(struct watch *watch)
{
        /* Owned and related objects have no runs; during an uninstallation nothing has. */
        if (watch->config->owner || watch->controller->uninstall.active)
                return 0;
        return retry_kept_load(watch, handler_stamp(&watch->config->handler));
}

void handlers_take_up(struct supervisor *supervisor)
{
        FOREACH_WATCH(watch, &supervisor->controller) {
                int r = handler_take_up(watch);

                if (r < 0) {
                        ledger_failed(&supervisor->controller, r);
                        return;
                }
        }
}
