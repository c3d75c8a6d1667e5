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
static uint64_t stamp_file(uint64_t stamp, const char *argument)
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

/* Sums: an order that a handler does not see, as of keys and kinds, counts for nothing. */
static uint64_t sum_texts(uint64_t seed, char *const *text, size_t count)
{
        uint64_t sum = 0;

        for (size_t i = 0; i < count; i++)
                sum += stamp_text(seed, text[i]);
        return sum;
}

static uint64_t sum_kinds(uint64_t seed, const struct config_owned *kind, size_t count)
{
        uint64_t sum = 0;

        for (size_t i = 0; i < count; i++) {
                uint64_t one = stamp_text(stamp_text(seed, kind[i].api_version), kind[i].kind);

                sum += one + sum_texts(one, kind[i].namespace, kind[i].namespace_count);
        }
        return sum;
}

/* What answers are held to (worker/confine.h): an attempt that was refused for it may succeed now. */
static uint64_t add_confinement(uint64_t stamp, const struct config_watch *config)
{
        uint64_t sum = sum_kinds(stamp_text(0, "owns"), config->owns, config->owns_count) +
                       sum_kinds(stamp_text(0, "kinds"), config->answers, config->answers_count) +
                       sum_kinds(stamp_text(0, "patches"), config->patches, config->patches_count) +
                       sum_texts(stamp_text(0, "namespaces"), config->child_namespace,
                                 config->child_namespace_count);

        return XXH3_64bits_withSeed(&sum, sizeof(sum), stamp);
}

uint64_t handler_stamp(const struct config_watch *config)
{
        const struct config_handler *handler = &config->handler;
        uint64_t stamp = stamp_text((uint64_t)handler->kind, RECONCILED_VERSION), names = 0;

        for (size_t i = 0; i < handler->exec_count; i++)
                stamp = stamp_file(stamp_text(stamp, handler->exec[i]), handler->exec[i]);
        for (size_t i = 0; i < handler->environment_count; i++)
                names += stamp_text(0, handler->environment[i].name);
        stamp = XXH3_64bits_withSeed(&names, sizeof(names), stamp);
        stamp = stamp_text(stamp, handler->version ? handler->version : "");
        stamp = add_confinement(stamp, config);
        return stamp ? stamp : 1;
}

bool handler_is_stale(const struct watch *watch)
{
        return !watch->config->owner && watch->config->handler.kind != HANDLER_EXEC &&
               watch->handler_stamp != 0 && watch->handler_stamp != handler_stamp(watch->config);
}

void handlers_reload(struct supervisor *supervisor, const struct config *config)
{
        int r = 0;

        for (size_t i = 0; i < config->watch_count && r >= 0; i++)
                if (!config->watch[i].owner)
                        r = retry_kept_reload(&supervisor->controller, config->watch[i].name,
                                              handler_stamp(&config->watch[i]));
        if (r < 0)
                ledger_failed(&supervisor->controller, r);
}

int handler_take_up(struct watch *watch)
{
        /* Owned and related objects have no runs; during an uninstallation nothing has. */
        if (watch->config->owner || watch->controller->uninstall.active)
                return 0;
        return retry_kept_load(watch, handler_stamp(watch->config));
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
