/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A handler as a plugin. It reports how often this process has seen the widget:
 *
 *     cc -shared -fPIC -o widgets.so widgets.c
 *     handler: {plugin: /usr/lib/widgets/widgets.so}
 */
#include <reconciled-plugin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct state {
        unsigned long runs;
};

static int start(void **state)
{
        *state = calloc(1, sizeof(struct state));
        return *state ? 0 : -1;
}

static int run(void *userdata, const struct reconciled_request *request, struct reconciled_answer *answer)
{
        struct state *state = userdata;
        size_t size = 128;

        state->runs++;
        if (strcmp(request->action, "deleted") == 0) {
                printf("cleaning up after %s\n", request->name);
                return RECONCILED_DONE;
        }
        if (request->name[0] == 'x') {
                answer->error = strdup("a widget's name must not begin with x");
                return RECONCILED_PERMANENT;
        }
        answer->json = malloc(size);
        if (!answer->json)
                return RECONCILED_RETRY;
        snprintf(answer->json, size, "{\"status\": {\"runs\": %lu, \"attempt\": %llu}}", state->runs,
                 (unsigned long long)request->attempt);
        return RECONCILED_DONE;
}

static void stop(void *state)
{
        free(state);
}

const struct reconciled_plugin *reconciled_plugin(void)
{
        static const struct reconciled_plugin plugin = {RECONCILED_PLUGIN_VERSION, start, run, stop};

        return &plugin;
}
