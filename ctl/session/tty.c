/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/session/tty.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "os/syscall.h"

#define SHELL        "/bin/sh"
#define EXIT_NOTHING 75

/* What the worker starts. $0: the folder, $1: what sed makes of the request. */
static const char relay[] =
        "cd \"$0\" && umask 077 && sed \"$1\" >request && export -p >environment && : >answer &&\n"
        "echo >asked && read -r status <ended || exit 75\n"
        "cat answer\n"
        "exit \"$status\"\n";
/* What we start. $0: the folder. */
#define WITH_ENVIRONMENT                                                                                    \
        ". \"$0/environment\"\n"                                                                            \
        "export TERM=\"$TERM\" RECONCILED_REQUEST=\"$0/request\" RECONCILED_ANSWER=\"$0/answer\"\n"
static const char as_command[] = WITH_ENVIRONMENT "exec \"$@\"\n";
static const char as_handler[] = WITH_ENVIRONMENT "cd / && exec \"$@\" <\"$0/request\" >\"$0/answer\"\n";

struct tty {
        char **argument;  /* of the program that has the terminal */
        int asked, ended; /* named pipes. Both sides are open here, so that opening them holds up nobody */
        sd_event_source *source;
        const char *folder;
        pid_t pid; /* 0: nothing runs */
};

static int pipe_open(const char *folder, const char *name)
{
        _cleanup_free_ char *path = format_string("%s/%s", folder, name);
        int fd;

        if (!path)
                return -ENOMEM;
        fd = mkfifo(path, 0600) < 0 ? -1 : open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

/* The handler gets the terminal's name from our environment, and the rest from the worker. */
_noreturn_ static void become_handler(char *const *argument, pid_t parent)
{
        const char *name = getenv("TERM");
        char *environment[] = {format_string("TERM=%s", name ? name : "dumb"), NULL};
        sigset_t none;

        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        signal(SIGPIPE, SIG_DFL);
        (void)sys_parent_death_signal(SIGKILL);
        if (getppid() == parent)
                execve(argument[0], argument, environment);
        _exit(EXIT_NOTHING);
}

static void pass_status(struct tty *tty, int status)
{
        char text[16];
        int size = snprintf(text, sizeof(text), "%d\n", status);

        tty->pid = 0;
        (void)sys_write(tty->ended, text, (size_t)size);
}

static int on_asked(sd_event_source *source _unused_, int fd, uint32_t revents _unused_, void *userdata)
{
        struct tty *tty = userdata;
        pid_t parent = getpid();
        char byte;

        if (sys_read(fd, &byte, 1) != 1)
                return 0;
        tty->pid = sys_fork();
        if (tty->pid == 0)
                become_handler(tty->argument, parent);
        if (tty->pid < 0) {
                fprintf(stderr, "reconciledctl: the handler cannot be started: %s\n", strerror(-tty->pid));
                pass_status(tty, EXIT_NOTHING);
        }
        return 0;
}

bool tty_take_end(struct tty *tty, pid_t pid, int status)
{
        if (!tty_is_busy(tty) || pid != tty->pid)
                return false;
        pass_status(tty, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
        return true;
}

bool tty_is_busy(const struct tty *tty)
{
        return tty && tty->pid > 0;
}

/* Nothing limits it, in time or otherwise. A handler that serves, or has a batch, needs an id in its request, and ends with
 * its input. */
int tty_replace_handler(const struct tty *tty, struct record_watch *watch)
{
        bool serves = watch->handler_kind == HANDLER_SERVE || watch->batch_max > 0;
        const char *const word[] = {SHELL, "-c", relay, tty->folder, serves ? "s/^{/{\"id\":1,/" : ""};
        struct record_string *argument = calloc(ELEMENTS(word), sizeof(*argument));

        if (!argument)
                return -ENOMEM;
        for (size_t i = 0; i < ELEMENTS(word); i++)
                argument[i].value = word[i];
        free((void *)(uintptr_t)watch->handler_exec);
        watch->handler_exec = argument;
        watch->handler_exec_count = ELEMENTS(word);
        watch->handler_kind = HANDLER_EXEC;
        watch->batch_max = watch->handler_timeout_usec = 0;
        watch->parallel = 1;
        watch->limit_memory = watch->limit_pids = watch->limit_cpu_milli = watch->user_pids = 0;
        return 0;
}

static char **arguments_for(const char *script, const char *folder, char *const *program)
{
        const char *const head[] = {SHELL, "-c", script, folder};
        size_t count = 0;
        char **argument;

        while (program[count])
                count++;
        argument = calloc(ELEMENTS(head) + count + 1, sizeof(*argument));
        if (!argument)
                return NULL;
        memcpy(argument, head, sizeof(head));
        memcpy(argument + ELEMENTS(head), program, count * sizeof(*argument));
        return argument;
}

int tty_open(sd_event *event, const char *folder, const struct config_watch *watch, char *const *command,
             struct tty **ret)
{
        struct tty *tty = calloc(1, sizeof(*tty));
        int r = 0;

        if (!tty)
                return -ENOMEM;
        tty->folder = folder;
        tty->argument = command ? arguments_for(as_command, folder, command)
                                : arguments_for(as_handler, folder, watch->handler.exec);
        tty->asked = pipe_open(folder, "asked");
        tty->ended = pipe_open(folder, "ended");
        if (!tty->argument)
                r = -ENOMEM;
        else if (tty->asked < 0 || tty->ended < 0)
                r = tty->asked < 0 ? tty->asked : tty->ended;
        if (r >= 0)
                r = sd_event_add_io(event, &tty->source, tty->asked, EPOLLIN, on_asked, tty);
        if (r < 0)
                tty_close(tty);
        else
                *ret = tty;
        return r;
}

void tty_close(struct tty *tty)
{
        if (!tty)
                return;
        if (tty->pid > 0) {
                (void)sys_kill(tty->pid, SIGKILL);
                (void)waitpid(tty->pid, NULL, 0);
        }
        sd_event_source_disable_unref(tty->source);
        if (tty->asked >= 0)
                close(tty->asked);
        if (tty->ended >= 0)
                close(tty->ended);
        free(tty->argument);
        free(tty);
}
