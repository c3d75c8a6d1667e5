/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What handlers may answer: it is understood or refused, and does no harm. A refusal names its place. What a worker accepts of
 * `metrics`, the supervisor takes or drops, but never holds against the worker; and what is shown of it stays in its lines.
 */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "metric/registry.h"
#include "worker/run/answer.h"
#include "worker/write/answer-metrics.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void take(struct registry *registry, const cJSON *item)
{
        _cleanup_text_ struct text labels = TEXT_EMPTY, buckets = TEXT_EMPTY;
        struct record_metric metric;
        int r = measured_read(item, &metric, &labels, &buckets);

        if (r < 0)
                abort();
        r = registry_take(registry, "fuzz", 1, &metric);
        assert(r >= 0 && r < METRIC_DROP_COUNT);
}

static void check_lines(const struct text *text)
{
        const char *line = text->data, *end;

        for (; line && *line; line = end + 1) {
                end = strchr(line, '\n');
                assert(end);
                assert(strncmp(line, "# TYPE ", 7) == 0 || strncmp(line, "# HELP ", 7) == 0 ||
                       memmem(line, (size_t)(end - line), "{watch=\"fuzz\"", 13));
        }
}

static void check_metrics(const cJSON *list)
{
        _cleanup_(registry_free_pointer) struct registry *registry = NULL;
        _cleanup_text_ struct text text = TEXT_EMPTY;
        const cJSON *item;

        if (registry_new(&registry) < 0)
                abort();
        cJSON_ArrayForEach(item, list) take(registry, item);
        registry_write(registry, &text);
        assert(registry_samples(registry) <= REGISTRY_SAMPLES_MAX && !text.failed);
        check_lines(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        char *output = malloc(size + 1);
        struct answer answer = {0};
        int r;

        if (!output)
                abort();
        memcpy(output, data, size);
        output[size] = '\0';
        r = answer_parse(output, size, &answer, &error);
        assert(r == 0 || r == 1 || (r == -EINVAL && strstr(error_message(&error), "the handler's answer")));
        if (r == 0) {
                uint64_t after = answer_requeue_after(&answer, UINT64_C(1796090400000000));

                assert((after > 0) == (answer.requeue_after_usec > 0 || answer.requeue_at_usec > 0));
                check_metrics(answer.metrics);
                answer_done(&answer);
        }
        free(output);
        return 0;
}
