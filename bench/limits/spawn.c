/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limit of running programs: posix_spawn with pipes for stdin and stdout, write a request, read until
 * EOF, wait; so many at once, nothing else. Prints the seconds that it took.
 *
 *     limit-spawn COUNT LANES REQUEST-BYTES PROGRAM [ARGUMENT...]
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/limits/lanes.h"

static void run(char **command, const char *request, size_t size)
{
        struct lane_program program = lanes_start(command);
        char buffer[4096];
        int status;

        if (write(program.in, request, size) < 0 && errno != EPIPE)
                lanes_die("write");
        close(program.in);
        while (read(program.out, buffer, sizeof(buffer)) > 0)
                ;
        close(program.out);
        if (waitpid(program.pid, &status, 0) != program.pid || status != 0)
                lanes_die("the program failed");
}

static void lane(const struct lane_order *order, size_t number, const char *request)
{
        for (size_t i = number; i < order->count; i += order->lanes)
                run(order->command, request, order->size);
}

int main(int argc, char **argv)
{
        struct lane_order order = lanes_order(argc, argv);
        char *request = malloc(order.size + 1);

        if (!request)
                lanes_die("memory");
        memset(request, 'x', order.size);
        signal(SIGPIPE, SIG_IGN); /* a program need not read its request */
        lanes_run(&order, request, lane);
        free(request);
        return 0;
}
