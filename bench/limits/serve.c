/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limit of handlers that serve: one such process a lane, over pipes; write a line, read the answer, and
 * the next; nothing else. Prints the seconds that it took.
 *
 *     limit-serve COUNT LANES REQUEST-BYTES PROGRAM [ARGUMENT...]
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct handler {
        int in, out;
};

static _Noreturn void die(const char *what)
{
        fprintf(stderr, "limit-serve: %s: %s\n", what, strerror(errno));
        exit(1);
}

static double now(void)
{
        struct timespec time;

        clock_gettime(CLOCK_MONOTONIC, &time);
        return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static struct handler start(char **command)
{
        static char *const environment[] = {NULL};
        posix_spawn_file_actions_t actions;
        int in[2], out[2];
        pid_t pid;

        if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
                die("pipe2");
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, in[0], 0);
        posix_spawn_file_actions_adddup2(&actions, out[1], 1);
        errno = posix_spawn(&pid, command[0], &actions, NULL, command, environment);
        if (errno != 0)
                die(command[0]);
        posix_spawn_file_actions_destroy(&actions);
        close(in[0]);
        close(out[1]);
        return (struct handler){in[1], out[0]};
}

static void ask(struct handler handler, const char *line, size_t size)
{
        char answer[4096];
        ssize_t got;

        if (write(handler.in, line, size) != (ssize_t)size)
                die("write");
        do {
                got = read(handler.out, answer, sizeof(answer));
                if (got <= 0)
                        die("read");
        } while (answer[got - 1] != '\n');
}

static void lane(size_t count, char *line, size_t size, char **command)
{
        struct handler handler = start(command);

        ask(handler, line, size); /* it has started */
        for (size_t i = 0; i < count; i++)
                ask(handler, line, size);
        close(handler.in);
        if (wait(NULL) < 0)
                die("wait");
}

int main(int argc, char **argv)
{
        size_t count, lanes, size;
        double begin;
        char *line;

        if (argc < 5) {
                fprintf(stderr, "limit-serve COUNT LANES REQUEST-BYTES PROGRAM [ARGUMENT...]\n");
                return 64;
        }
        count = strtoul(argv[1], NULL, 10);
        lanes = strtoul(argv[2], NULL, 10);
        size = strtoul(argv[3], NULL, 10);
        line = malloc(size + 64);
        if (!line || lanes == 0)
                die("memory");
        memset(line, 'x', size + 64);
        memcpy(line, "{\"id\":7,\"padding\":\"", 19);
        memcpy(line + size - 3, "\"}\n", 3);
        begin = now();
        for (size_t i = 0; i < lanes; i++) {
                pid_t pid = fork();

                if (pid < 0)
                        die("fork");
                if (pid == 0) {
                        lane(count / lanes, line, size, argv + 4);
                        _exit(0);
                }
        }
        for (size_t i = 0; i < lanes; i++) {
                int status;

                if (wait(&status) < 0 || status != 0)
                        die("a lane failed");
        }
        printf("%.6f\n", now() - begin);
        free(line);
        return 0;
}
