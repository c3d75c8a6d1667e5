/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/change/handled.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void drop_all(struct watch *watch)
{
        for (size_t i = 0; i < watch->handled_count; i++) {
                free(watch->handled[i].key);
                free(watch->handled[i].uid);
        }
        watch->handled_count = 0;
}

void handled_forget(struct watch *watch)
{
        drop_all(watch);
        free(watch->handled);
        watch->handled = NULL;
}

int handled_add(struct watch *watch, const char *key, const char *uid, uint64_t sequence)
{
        struct handled *grown = reallocarray(watch->handled, watch->handled_count + 1, sizeof(*grown));
        struct handled handled = {strdup(key), strdup(uid), sequence};

        if (grown)
                watch->handled = grown;
        if (!grown || !handled.key || !handled.uid) {
                free(handled.key);
                free(handled.uid);
                return -ENOMEM;
        }
        watch->handled[watch->handled_count++] = handled;
        watch->controller->commit.due = true;
        return 0;
}

void handled_send(struct watch *watch)
{
        const struct controller *controller = watch->controller;
        struct record_handled record[PAGE_HANDLED];
        size_t sent = 0;

        while (sent < watch->handled_count && watch->is_up) {
                struct message_handled message = {.watch = watch->config->name, .handled = record};

                while (message.handled_count < PAGE_HANDLED &&
                       sent + message.handled_count < watch->handled_count) {
                        const struct handled *handled = &watch->handled[sent + message.handled_count];

                        record[message.handled_count++] =
                                (struct record_handled){handled->sequence, handled->key, handled->uid};
                }
                controller->effects->handled(controller->userdata, watch, &message);
                sent += message.handled_count;
        }
        drop_all(watch);
}
