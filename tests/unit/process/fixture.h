/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One process, what it says, and how it ended. Behind the headers of cmocka. */
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "os/descendants.h"
#include "process/process.h"

#define DEADLINE_USEC (30 * USEC_PER_SEC)
#define LONG_USEC     (25 * USEC_PER_SEC)

struct fixture {
        sd_event *event;
        struct process *process;
        struct text input;
        struct text lines; /* each with a newline */
        size_t line_count, longest_line;
        bool serves, done;
        uint64_t started, took;
        /* of the result */
        enum process_end end;
        int wait_status, start_error;
        struct text output;
        bool output_too_large, left_over;
        char *last_line;
};

static int setup(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));

        assert_non_null(fixture);
        assert_true(sd_event_new(&fixture->event) >= 0);
        *state = fixture;
        return 0;
}

static int teardown(void **state)
{
        struct fixture *fixture = *state;

        process_free(fixture->process);
        assert_false(descendants_reap()); /* whatever the test was: nobody is left */
        text_done(&fixture->input);
        text_done(&fixture->lines);
        text_done(&fixture->output);
        free(fixture->last_line);
        sd_event_unref(fixture->event);
        free(fixture);
        return 0;
}

static void on_line(const char *line, void *userdata)
{
        struct fixture *fixture = userdata;

        text_printf(&fixture->lines, "%s\n", line);
        fixture->line_count++;
        if (strlen(line) > fixture->longest_line)
                fixture->longest_line = strlen(line);
}

static void on_done(const struct process_result *result, void *userdata)
{
        struct fixture *fixture = userdata;

        assert_false(fixture->done);
        fixture->done = true;
        fixture->took = clock_boottime_usec() - fixture->started;
        fixture->end = result->end;
        fixture->wait_status = result->wait_status;
        fixture->start_error = result->start_error;
        fixture->output_too_large = result->output_too_large;
        fixture->left_over = result->left_over;
        fixture->last_line = strdup(result->last_line);
        text_append(&fixture->output, result->output->data, result->output->size);
}

static void turn(struct fixture *fixture)
{
        assert_true(clock_boottime_usec() - fixture->started < DEADLINE_USEC);
        assert_true(sd_event_run(fixture->event, USEC_PER_SEC) >= 0);
}

static void wait_done(struct fixture *fixture)
{
        while (!fixture->done)
                turn(fixture);
}
