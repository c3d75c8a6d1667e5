/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `reconciledctl top`: the status, drawn again all the time. On a terminal it takes the screen and gives it
 * back as it was, however it ends; elsewhere it is one picture.
 */
#include "ctl/inspect/top.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/duration.h"
#include "base/error.h"
#include "base/exit-code.h"
#include "base/text.h"
#include "ctl/ctl-answer.h"
#include "ctl/inspect/ctl-status.h"
#include "ctl/output/output.h"
#include "os/file.h"
#include "os/syscall.h"
#include "json/json.h"

/* What `reconciledctl top` shows: a screen of the given rows and columns, drawn from two answers. */
struct picture {
        struct text text; /* lines, each ended by `line_end` */
        size_t rows, columns;
        size_t row; /* the next one */
        bool colour;
        const char *line_end;
};

/* ---- lines */

enum style { PLAIN, BOLD, RED, REVERSE };

static const char *style_code(enum style style)
{
        static const char *const code[] = {"", "\033[1m", "\033[31m", "\033[7m"};

        return code[style];
}

/* So much of it as fits, and nothing that a terminal would act on. */
static void append_clipped(struct text *text, const char *string, size_t columns)
{
        size_t left = strlen(string);

        while (left > 0 && columns-- > 0) {
                size_t size = utf8_sequence(string, left);

                if (size == 0 || (unsigned char)*string < ' ' || *string == 0x7f) {
                        text_append_string(text, "?");
                        size = 1;
                } else {
                        text_append(text, string, size);
                }
                string += size;
                left -= size;
        }
}

static void line(struct picture *picture, enum style style, const char *format, ...) _printf_(3, 4);
static void line(struct picture *picture, enum style style, const char *format, ...)
{
        _cleanup_text_ struct text text = TEXT_EMPTY;
        va_list arguments;

        if (picture->row == picture->rows)
                return;
        picture->row++;
        va_start(arguments, format);
        text_vprintf(&text, format, arguments);
        va_end(arguments);
        if (picture->colour)
                text_append_string(&picture->text, style_code(style));
        append_clipped(&picture->text, text.data ? text.data : "", picture->columns);
        if (picture->colour && style != PLAIN)
                text_append_string(&picture->text, "\033[0m");
        text_append_string(&picture->text, picture->line_end);
}

static size_t rows_left(const struct picture *picture)
{
        return picture->rows - picture->row;
}

/* ---- numbers */

static const cJSON *same_watch(const cJSON *status, const cJSON *watch)
{
        const cJSON *item;

        cJSON_ArrayForEach(item, json_member(status, "watches")) if (strcmp(json_text(item, "name"),
                                                                            json_text(watch, "name")) ==
                                                                     0) return item;
        return NULL;
}

/* How much a number has grown since the answer before, or from the beginning if there is none, or the
 * operator has started again. */
static uint64_t grown(const cJSON *watch, const cJSON *before, const char *name)
{
        uint64_t value = ctl_number(watch, name), old = ctl_number(before, name);

        return value >= old ? value - old : value;
}

static uint64_t sum(const cJSON *status, const char *name)
{
        const cJSON *watch;
        uint64_t result = 0;

        cJSON_ArrayForEach(watch, json_member(status, "watches")) result += ctl_number(watch, name);
        return result;
}

static uint64_t sum_grown(const cJSON *now, const cJSON *before, const char *name)
{
        uint64_t value = sum(now, name), old = sum(before, name);

        return value >= old ? value - old : value;
}

static double rate(uint64_t count, uint64_t usec)
{
        return usec > 0 ? (double)count * (double)USEC_PER_SEC / (double)usec : 0;
}

/* ---- sections */

static void draw_head(struct picture *picture, const cJSON *now)
{
        char buffer[64], clock[16] = "";
        time_t seconds = time(NULL);
        struct tm tm;

        if (localtime_r(&seconds, &tm))
                strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
        line(picture, BOLD, "%s  %s, up %s, %" PRIu64 " %s  %s", json_text(now, "operator"),
             json_text(now, "phase"), ctl_since(now, "startedAt", buffer, sizeof(buffer)),
             ctl_number(now, "restarts"), counted(ctl_number(now, "restarts"), "restart", "restarts"),
             clock);
}

static void draw_sums(struct picture *picture, const cJSON *now, const cJSON *before, uint64_t usec)
{
        char rates[64] = "";

        if (before)
                snprintf(rates, sizeof(rates), "%.1f runs/s, %.1f fail/s; ",
                         rate(sum_grown(now, before, "runs"), usec),
                         rate(sum_grown(now, before, "failed"), usec));
        line(picture, PLAIN,
             "%s%" PRIu64 " queued, %" PRIu64 " running, %" PRIu64 " waiting, %" PRIu64
             " failing, %d in quarantine",
             rates, sum(now, "queued"), sum(now, "running"), sum(now, "waiting"), sum(now, "failing"),
             cJSON_GetArraySize(json_member(now, "quarantine")));
}

static void draw_watch(struct picture *picture, const cJSON *watch, const cJSON *before, uint64_t usec,
                       int width)
{
        bool paused = ctl_number(watch, "pausedSince") > 0, trouble = json_text(watch, "reason")[0] != '\0';
        uint64_t runs = grown(watch, before, "runs"), time = grown(watch, before, "runTime");
        char mean[64] = "-", per_second[32] = "-";

        if (before)
                snprintf(per_second, sizeof(per_second), "%.1f", rate(runs, usec));
        if (runs == 0) {
                runs = ctl_number(watch, "runs");
                time = ctl_number(watch, "runTime");
        }
        if (runs > 0)
                ctl_duration(time / runs, mean, sizeof(mean));
        line(picture, trouble || paused ? RED : PLAIN,
             "%-*s %-9s %8" PRIu64 " %7" PRIu64 " %7" PRIu64 " %7" PRIu64 " %7" PRIu64 " %7s %8s", width,
             json_text(watch, "name"), paused ? "paused" : json_text(watch, "state"),
             ctl_number(watch, "objects"), ctl_number(watch, "queued"), ctl_number(watch, "running"),
             ctl_number(watch, "waiting"), ctl_number(watch, "failing"), per_second, mean);
        if (ctl_number(watch, "rateWaiting") > 0)
                line(picture, PLAIN, "    %" PRIu64 " " CTL_RATE_WAITS, ctl_number(watch, "rateWaiting"),
                     counted(ctl_number(watch, "rateWaiting"), "waits", "wait"));
        if (ctl_is(watch, "handlerStale"))
                line(picture, RED, "%s", "    " CTL_STALE_HANDLER);
}

/* Up to a third of the rows; the rest is for what hurts. */
static void draw_watches(struct picture *picture, const cJSON *now, const cJSON *before, uint64_t usec)
{
        size_t most = picture->rows / 3, drawn = 0;
        int width = ctl_name_width(json_member(now, "watches"));
        const cJSON *watch;

        line(picture, PLAIN, "%s", "");
        line(picture, REVERSE, "%-*s %-9s %8s %7s %7s %7s %7s %7s %8s", width, "WATCH", "STATE", "OBJECTS",
             "QUEUED", "RUNNING", "WAITING", "FAILING", "RUNS/S", "MEAN");
        cJSON_ArrayForEach(watch, json_member(now, "watches")) if (drawn++ < most)
                draw_watch(picture, watch, same_watch(before, watch), usec, width);
        if (drawn > most)
                line(picture, PLAIN, "... and %zu more %s", drawn - most,
                     counted(drawn - most, "watch", "watches"));
}

static void draw_running(struct picture *picture, const cJSON *now, size_t most)
{
        const cJSON *worker, *longest;
        uint64_t below = UINT64_MAX;
        char buffer[64];

        /* By age; there are few workers. */
        for (size_t drawn = 0; drawn < most; drawn++) {
                longest = NULL;
                cJSON_ArrayForEach(worker, json_member(now, "workers"))
                {
                        uint64_t age = ctl_number(worker, "runningFor");

                        if (age > 0 && age < below && (!longest || age > ctl_number(longest, "runningFor")))
                                longest = worker;
                }
                if (!longest)
                        return;
                below = ctl_number(longest, "runningFor");
                line(picture, PLAIN, "%9s  %s  %s  runs in worker %" PRIu64,
                     ctl_duration(below, buffer, sizeof(buffer)), json_text(longest, "key"),
                     json_text(longest, "watch"), ctl_number(longest, "index"));
        }
}

static void draw_slowest(struct picture *picture, const cJSON *now, size_t most)
{
        char took[64], ago[64];
        size_t drawn = 0;
        const cJSON *run;

        line(picture, PLAIN, "%s", "");
        line(picture, REVERSE, "%9s  %s", "SLOWEST", "of what runs, then of the last ten minutes");
        draw_running(picture, now, most / 2);
        cJSON_ArrayForEach(run, json_member(now, "slowest")) if (drawn++ < most / 2)
                line(picture, PLAIN, "%9s  %s  %s  %s, %s ago",
                     ctl_duration(ctl_number(run, "took"), took, sizeof(took)), json_text(run, "key"),
                     json_text(run, "watch"), json_text(run, "result"),
                     ctl_since(run, "endedAt", ago, sizeof(ago)));
}

static void draw_failing(struct picture *picture, const cJSON *now)
{
        const cJSON *item;
        char next[64];

        line(picture, PLAIN, "%s", "");
        line(picture, REVERSE, "%9s  %s", "FAILING",
             "the worst first: given up, refused by the server, by attempts");
        cJSON_ArrayForEach(item, json_member(now, "failing"))
                line(picture, ctl_is(item, "permanent") ? RED : PLAIN, "%9s  %s  %s  %" PRIu64 "x: %s",
                     ctl_is(item, "permanent") ? "never" : ctl_until(item, "next", next, sizeof(next)),
                     json_text(item, "key"), json_text(item, "watch"), ctl_failures(item),
                     json_text(item, "lastError"));
}

/* A single waiting run waits for no other run. */
static void draw_namespaces(struct picture *picture, const cJSON *now, size_t most)
{
        const cJSON *item;
        size_t drawn = 0;
        char waits[64];

        if (cJSON_GetArraySize(json_member(now, "namespaces")) < 2 || most < 4)
                return;
        line(picture, PLAIN, "%s", "");
        line(picture, REVERSE, "%7s %7s %9s  %s", "QUEUED", "RUNNING", "OLDEST",
             "NAMESPACES that take turns, the largest first");
        cJSON_ArrayForEach(item, json_member(now, "namespaces")) if (drawn++ < most - 2)
                line(picture, PLAIN, "%7" PRIu64 " %7" PRIu64 " %9s  %s  %s", ctl_number(item, "queued"),
                     ctl_number(item, "running"),
                     ctl_number(item, "waitingFor") > 0
                             ? ctl_duration(ctl_number(item, "waitingFor"), waits, sizeof(waits))
                             : "-",
                     json_text(item, "namespace")[0] ? json_text(item, "namespace") : "(of the cluster)",
                     json_text(item, "watch"));
}

/* now, before: answers to `status`, `usec` apart; before may be NULL (then there are no rates), and so may
 * now (then `trouble` says why). */
static void top_draw(struct picture *picture, const cJSON *now, const cJSON *before, uint64_t usec,
                     const char *trouble)
{
        picture->row = 0;
        text_clear(&picture->text);
        if (!now) {
                line(picture, RED, "%s", trouble);
                return;
        }
        draw_head(picture, now);
        draw_sums(picture, now, before, usec);
        draw_watches(picture, now, before, usec);
        draw_namespaces(picture, now, rows_left(picture) / 3);
        draw_slowest(picture, now, rows_left(picture) / 2);
        draw_failing(picture, now);
}

#define BATCH_ROWS    200
#define BATCH_COLUMNS 400
#define SMALLEST      4 /* rows and columns that are drawn, whatever the terminal says */

/* A handler can do nothing else; both are looked at after each wait, which every signal ends. */
static volatile sig_atomic_t ended;

static void on_signal(int number)
{
        if (number != SIGWINCH)
                ended = 1;
}

struct top {
        const char *runtime_directory;
        struct picture picture;
        cJSON *now, *before;
        uint64_t now_usec, before_usec;
        struct termios saved;
        bool has_keys; /* stdin is a terminal, and `saved` is how it was */
};

/* ---- the screen */

static void take_screen(struct top *top)
{
        static const char begin[] = "\033[?1049h\033[?25l";
        static const int number[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH};
        struct termios raw;

        for (size_t i = 0; i < ELEMENTS(number); i++)
                (void)sigaction(number[i], &(struct sigaction){.sa_handler = on_signal}, NULL);
        /* Stopped, it would leave the screen in our hands. */
        (void)sigaction(SIGTSTP, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
        if (tcgetattr(STDIN_FILENO, &top->saved) == 0) {
                top->has_keys = true;
                raw = top->saved;
                raw.c_lflag &= (tcflag_t) ~(ICANON | ECHO);
                (void)tcsetattr(STDIN_FILENO, TCSANOW, &raw);
        }
        (void)file_write_all(STDOUT_FILENO, begin, strlen(begin));
}

static void give_screen_back(struct top *top)
{
        static const char end[] = "\033[?25h\033[?1049l";

        (void)sys_write(STDOUT_FILENO, end, strlen(end));
        if (top->has_keys)
                (void)tcsetattr(STDIN_FILENO, TCSANOW, &top->saved);
}

static void measure(struct picture *picture)
{
        struct winsize size = {.ws_row = 24, .ws_col = 80};

        (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
        /* The last line stays free: what is written there may scroll the screen. */
        picture->rows = size.ws_row > SMALLEST ? size.ws_row - 1U : SMALLEST;
        picture->columns = size.ws_col > SMALLEST ? size.ws_col : SMALLEST;
}

/* ---- what is shown */

static int ask_status(struct top *top, struct error *error)
{
        cJSON *answer = NULL;
        int r = ctl_query(top->runtime_directory, "status", NULL, &answer, error);

        if (r < 0)
                return r;
        ctl_clean_texts(answer);
        cJSON_Delete(top->before);
        top->before = top->now;
        top->before_usec = top->now_usec;
        top->now = answer;
        top->now_usec = clock_boottime_usec();
        return 0;
}

/* An operator that is away for a moment comes back: then the next picture has no rates. */
static void forget_status(struct top *top)
{
        cJSON_Delete(top->before);
        cJSON_Delete(top->now);
        top->before = top->now = NULL;
}

static int redraw(struct top *top)
{
        static const char home[] = "\033[H", rest[] = "\033[J";
        _cleanup_error_ struct error error = ERROR_NONE;
        int r = ask_status(top, &error);

        if (r < 0)
                forget_status(top);
        measure(&top->picture);
        top_draw(&top->picture, top->now, top->before, top->now_usec - top->before_usec,
                 error_message(&error));
        if (top->picture.text.failed)
                return -ENOMEM;
        r = file_write_all(STDOUT_FILENO, home, strlen(home));
        if (r >= 0)
                r = file_write_all(STDOUT_FILENO, top->picture.text.data, top->picture.text.size);
        return r < 0 ? r : file_write_all(STDOUT_FILENO, rest, strlen(rest));
}

/* Waits until it is time for the next picture. */
static void wait_for_next(struct top *top, uint64_t interval_usec)
{
        struct pollfd input = {.fd = top->has_keys ? STDIN_FILENO : -1, .events = POLLIN};
        struct timespec timeout = {.tv_sec = (time_t)(interval_usec / USEC_PER_SEC),
                                   .tv_nsec = (long)(interval_usec % USEC_PER_SEC * 1000)};
        sigset_t all, before;
        bool key_pressed = false;
        char key;

        /* No signal may come between looking at `ended` and waiting. */
        sigfillset(&all);
        (void)sigprocmask(SIG_SETMASK, &all, &before);
        if (!ended)
                key_pressed = ppoll(&input, 1, &timeout, &before) > 0;
        (void)sigprocmask(SIG_SETMASK, &before, NULL);
        if (key_pressed && (read(STDIN_FILENO, &key, 1) != 1 || key == 'q'))
                ended = 1;
}

static int run_top(struct top *top, uint64_t interval_usec)
{
        int r = 0;

        take_screen(top);
        while (r >= 0 && !ended) {
                r = redraw(top);
                if (r >= 0)
                        wait_for_next(top, interval_usec);
        }
        give_screen_back(top);
        return ended ? 0 : r;
}

static int print_once(struct top *top, struct error *error)
{
        int r = ask_status(top, error);

        if (r < 0)
                return r;
        top->picture.rows = BATCH_ROWS;
        top->picture.columns = BATCH_COLUMNS;
        top_draw(&top->picture, top->now, NULL, 0, "");
        return top->picture.text.failed
                       ? -ENOMEM
                       : file_write_all(STDOUT_FILENO, top->picture.text.data, top->picture.text.size);
}

int ctl_top(const char *runtime_directory, uint64_t interval_usec)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        bool live = isatty(STDOUT_FILENO) == 1;
        struct top top = {
                .runtime_directory = runtime_directory,
                .picture = {.colour = live && ctl_wants_colour(), .line_end = live ? "\033[K\n" : "\n"},
        };
        int r = live ? run_top(&top, interval_usec) : print_once(&top, &error);

        forget_status(&top);
        text_done(&top.picture.text);
        if (r < 0)
                error_set(&error, r, "the screen cannot be written: %s", strerror(-r));
        return r < 0 ? ctl_failed(r, &error) : EXIT_CODE_OK;
}
