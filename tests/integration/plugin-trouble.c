/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin for tests: does what the object's name says. */
#include <reconciled-plugin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LONG ((size_t)2 * 1024 * 1024)

static int start(void **state)
{
        *state = NULL;
        fprintf(stderr, "started as %d\n", (int)getpid());
        return 0;
}

static const char *const answer_of[][2] = {
        {"pretty", "\n{\n  \"status\": {\n    \"text\": \"two\\nlines\"\n  }\n}\n"},
        {"empty", " { } "},
        {"broken", "{\"status\": "},
        {"trailing", "{} {}"},
        {"array", "[]"},
        {"forged", "{\"id\": 1000}"},
        {"unknown", "{\"statsu\": {}}"},
};

static int run(void *state, const struct reconciled_request *request, struct reconciled_answer *answer)
{
        (void)state;
        if (strcmp(request->name, "crash") == 0)
                abort();
        if (strcmp(request->name, "hang") == 0)
                pause();
        if (strcmp(request->name, "talk") == 0) {
                printf("{\"id\": 1} is only output\n");
                if (strlen(request->json) != request->json_size ||
                    strcmp(request->namespace_name, "default") != 0)
                        return RECONCILED_RETRY;
        }
        if (strcmp(request->name, "fail") == 0) {
                answer->error = strdup("no \"luck\"\n");
                return RECONCILED_RETRY;
        }
        if (strcmp(request->name, "long") == 0) {
                static const char begin[] = "{\"status\": {\"text\": \"", end[] = "\"}}";
                char *text = malloc(LONG);

                if (!text)
                        return RECONCILED_RETRY;
                memset(text, 'x', LONG);
                memcpy(text, begin, sizeof(begin) - 1);
                memcpy(text + LONG - sizeof(end), end, sizeof(end));
                answer->json = text;
                return RECONCILED_DONE;
        }
        if (strcmp(request->name, "never") == 0)
                return RECONCILED_PERMANENT;
        for (size_t i = 0; i < sizeof(answer_of) / sizeof(answer_of[0]); i++)
                if (strcmp(request->name, answer_of[i][0]) == 0)
                        answer->json = strdup(answer_of[i][1]);
        return RECONCILED_DONE;
}

static void stop(void *state)
{
        (void)state;
        fprintf(stderr, "stopped in order\n");
}

const struct reconciled_plugin *reconciled_plugin(void)
{
        static const struct reconciled_plugin plugin = {RECONCILED_PLUGIN_VERSION, start, run, stop};

        return &plugin;
}
