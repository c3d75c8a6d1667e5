/* SPDX-License-Identifier: Apache-2.0 */
/*
 *     record PID <request
 *
 * Records a run of the tests' handler in the current folder: its request and its environment, in files that
 * begin with the time and PID and appear by a rename, so that a reader never sees half of one. Prints what
 * their names begin with. A program, because a shell takes four for it, in thousands of runs.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static int copy(int from, int to)
{
        char buffer[65536];
        ssize_t size;

        while ((size = read(from, buffer, sizeof(buffer))) > 0)
                for (ssize_t done = 0, written; done < size; done += written)
                        if ((written = write(to, buffer + done, (size_t)(size - done))) < 0)
                                return -1;
        return size < 0 ? -1 : 0;
}

static int write_environment(const char *path)
{
        FILE *file = fopen(path, "we");
        int failed;

        if (!file)
                return -1;
        for (char **variable = environ; *variable; variable++)
                (void)fwrite(*variable, strlen(*variable) + 1, 1, file);
        failed = ferror(file);
        return fclose(file) != 0 || failed ? -1 : 0;
}

int main(int argc, char **argv)
{
        char run[80], hidden[96], name[96];
        struct timespec now;
        int fd;

        if (argc != 2 || clock_gettime(CLOCK_REALTIME, &now) < 0)
                return 99;
        snprintf(run, sizeof(run), "%lld.%09ld-%s", (long long)now.tv_sec, now.tv_nsec, argv[1]);
        snprintf(hidden, sizeof(hidden), ".%s", run);
        snprintf(name, sizeof(name), "%s.environment", run);
        fd = open(hidden, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 || copy(STDIN_FILENO, fd) < 0 || close(fd) < 0 || write_environment(name) < 0)
                return 99;
        snprintf(name, sizeof(name), "%s.request", run);
        return rename(hidden, name) < 0 || puts(run) < 0 || fflush(stdout) != 0 ? 99 : 0;
}
