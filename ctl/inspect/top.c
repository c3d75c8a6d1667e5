/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `reconciledctl top`: the status, drawn anew all the time. On a terminal it takes the screen and gives it
 * back as it was, however it ends; elsewhere it is one picture.
 */
#include "ctl/inspect/top.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/duration.h"
#include "base/error.h"
#include "base/exit-code.h"
#include "base/text.h"
#include "ctl/answer/query.h"
#include "ctl/inspect/top-draw.h"
#include "ctl/output/output.h"
#include "os/file.h"
#include "os/syscall.h"

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
        int r = ctl_query(top->runtime_directory, "status", &answer, error);

        if (r < 0)
                return r;
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

/* Until it is time for the next picture. */
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
