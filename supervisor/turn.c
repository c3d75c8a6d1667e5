/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/turn.h"

#include <time.h>

#include "supervisor/supervisor.h"

static uint64_t processor_nsec(void)
{
        struct timespec now;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

void turns_begin(struct turns *turns)
{
        turns->processor_nsec = processor_nsec();
}

void turn_is(struct supervisor *supervisor, const char *what)
{
        supervisor->turns.what = what;
}

bool turn_is_spent(const struct supervisor *supervisor)
{
        return clock_monotonic_usec() - supervisor->turns.began_usec >= TURN_USEC;
}

void turn_begin(struct turns *turns, uint64_t now)
{
        turns->began_usec = now;
        turns->what = "a channel or a timer"; /* other sources, which have hardly any work */
}

#define SHORT_USEC 100 /* the first bound of the histogram */
#define UNREAD_MAX 16

/* The processor's clock is a system call, which costs more than its answer is worth for a short turn. A
 * short turn counts as long as it was by the wall, which is never less. For a long turn, the clock tells
 * how much was used since it was read; the short turns since then are taken off. What the waits between
 * them have used remains, so UNREAD_MAX bounds their number. */
static uint64_t processor_usec(struct turns *turns, uint64_t wall_usec)
{
        uint64_t now, took, unread_usec = turns->unread_usec;

        if (wall_usec <= SHORT_USEC && turns->unread < UNREAD_MAX) {
                turns->unread++;
                turns->unread_usec += wall_usec;
                return wall_usec;
        }
        now = processor_nsec();
        took = (now - turns->processor_nsec) / 1000;
        turns->processor_nsec = now;
        turns->unread_usec = turns->unread = 0;
        took = took > unread_usec ? took - unread_usec : 0;
        return took < wall_usec ? took : wall_usec;
}

void turn_end(struct turns *turns)
{
        struct turn turn = {.wall_usec = clock_monotonic_usec() - turns->began_usec, .what = turns->what};

        turn.processor_usec = processor_usec(turns, turn.wall_usec);
        histogram_add(&turns->wall, turn.wall_usec);
        histogram_add(&turns->processor, turn.processor_usec);
        turns->slow += turn.processor_usec > TURN_SLOW_USEC;
        if (turn.wall_usec <= turns->longest.wall_usec &&
            turn.processor_usec <= turns->longest_processor.processor_usec)
                return;
        turn.ended_realtime = clock_realtime_usec();
        if (turn.wall_usec > turns->longest.wall_usec)
                turns->longest = turn;
        if (turn.processor_usec > turns->longest_processor.processor_usec)
                turns->longest_processor = turn;
}

void turn_settle_soon(struct supervisor *supervisor)
{
        (void)sd_event_source_set_enabled(supervisor->settle_source, SD_EVENT_ONESHOT);
}

#define IDLE_PRIORITY 30 /* after the end of the turn, and after the check of the heartbeats */

int turn_when_idle(struct supervisor *supervisor, sd_event_source **source, sd_event_handler_t callback)
{
        int r = 0;

        if (!*source) {
                r = sd_event_add_defer(supervisor->event, source, callback, supervisor);
                if (r >= 0)
                        r = sd_event_source_set_priority(*source, IDLE_PRIORITY);
        }
        return r < 0 ? r : sd_event_source_set_enabled(*source, SD_EVENT_ONESHOT);
}
