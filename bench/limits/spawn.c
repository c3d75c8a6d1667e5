/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limit of running programs: posix_spawn with pipes for stdin and stdout, write a request, read until
 * EOF, wait; so many at once, nothing else. Prints the seconds that it took.
 *
 *     limit-spawn COUNT CONCURRENCY REQUEST-BYTES PROGRAM [ARGUMENT...]
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static _Noreturn void die(const char *what)
{
        fprintf(stderr, "limit-spawn: %s: %s\n", what, strerror(errno));
        exit(1);
}

static double now(void)
{
        struct timespec time;

        clock_gettime(CLOCK_MONOTONIC, &time);
        return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void run(char **command, const char *request, size_t size)
{
        static char *const environment[] = {NULL};
        posix_spawn_file_actions_t actions;
        int in[2], out[2], status;
        char buffer[4096];
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
        if (write(in[1], request, size) < 0 && errno != EPIPE)
                die("write");
        close(in[1]);
        while (read(out[0], buffer, sizeof(buffer)) > 0)
                ;
        close(out[0]);
        if (waitpid(pid, &status, 0) != pid || status != 0)
                die("the program failed");
}

/* One process a lane, as there is one worker a lane. */
int main(int argc, char **argv)
{
        size_t count, lanes, size;
        double start;
        char *request;

        if (argc < 5)
                die("usage: limit-spawn COUNT CONCURRENCY REQUEST-BYTES PROGRAM");
        count = strtoul(argv[1], NULL, 10);
        lanes = strtoul(argv[2], NULL, 10);
        size = strtoul(argv[3], NULL, 10);
        request = calloc(1, size + 1);
        if (!request || lanes == 0)
                die("memory");
        memset(request, 'x', size);
        signal(SIGPIPE, SIG_IGN); /* a program need not read its request */
        start = now();
        for (size_t lane = 0; lane < lanes; lane++) {
                pid_t pid = fork();

                if (pid < 0)
                        die("fork");
                if (pid == 0) {
                        for (size_t i = lane; i < count; i += lanes)
                                run(argv + 4, request, size);
                        _exit(0);
                }
        }
        for (size_t lane = 0; lane < lanes; lane++) {
                int status;

                if (wait(&status) < 0 || status != 0)
                        die("a lane failed");
        }
        printf("%.6f\n", now() - start);
        free(request);
        return 0;
}
