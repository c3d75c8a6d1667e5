/* SPDX-License-Identifier: Apache-2.0 */
/* The loop, and how long its turns take: see turn.h. */
#include "supervisor/turn.h"

#include <time.h>

#include "base/duration.h"
#include "supervisor/json.h"
#include "supervisor/supervisor.h"

static uint64_t processor_nsec(void)
{
        struct timespec now;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

void turn_is(struct supervisor *supervisor, const char *what)
{
        supervisor->turns.what = what;
}

bool turn_is_spent(const struct supervisor *supervisor)
{
        return clock_monotonic_usec() - supervisor->turns.began_usec >= TURN_USEC;
}

static void begin(struct turns *turns, uint64_t now)
{
        turns->began_usec = now;
        turns->what = "";
}

#define SHORT_USEC 100 /* the first bound of the histogram */
#define UNREAD_MAX 16

/* The processor's clock is a system call, which costs more than its answer is worth for a short turn. A short
 * turn counts as long as it was by the wall, which is never less. For a long turn, the clock tells how much
 * was used since it was read; the short turns since then are taken off. What the waits between them have
 * used remains, so UNREAD_MAX bounds their number. */
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

static void end(struct turns *turns)
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

/* One turn; what sd_event_run() does. */
static int run_once(struct supervisor *supervisor)
{
        int r = sd_event_prepare(supervisor->event);

        if (r == 0)
                r = sd_event_wait(supervisor->event, UINT64_MAX);
        effects_tell_time(supervisor);
        begin(&supervisor->turns, supervisor->controller.now.monotonic);
        if (r > 0)
                r = sd_event_dispatch(supervisor->event);
        effects_end(supervisor);
        end(&supervisor->turns);
        return r;
}

int turns_run(struct supervisor *supervisor)
{
        int code = 0, r = 0;

        supervisor->turns.processor_nsec = processor_nsec();
        while (r >= 0 && sd_event_get_state(supervisor->event) != SD_EVENT_FINISHED)
                r = run_once(supervisor);
        if (r >= 0)
                r = sd_event_get_exit_code(supervisor->event, &code);
        return r < 0 ? r : code;
}

/* ---- for people */

static void write_turn(struct text *json, const char *name, const struct turn *turn)
{
        text_printf(json, "\"%s\":{", name);
        json_number(json, "took", turn->wall_usec);
        json_number(json, "processor", turn->processor_usec);
        json_string(json, "what", turn->what ? turn->what : "");
        json_number(json, "endedAt", turn->ended_realtime);
        json_close(json, "},");
}

void turns_write_status(const struct supervisor *supervisor, struct text *json)
{
        const struct turns *turns = &supervisor->turns;

        text_append_string(json, "\"turns\":{");
        json_number(json, "count", turns->processor.count);
        json_number(json, "slow", turns->slow);
        write_turn(json, "longest", &turns->longest);
        write_turn(json, "longestProcessor", &turns->longest_processor);
        json_close(json, "},");
}
