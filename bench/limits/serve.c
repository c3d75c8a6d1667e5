/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limit of handlers that serve: one such process a lane, over pipes; write a line, read the answer, and
 * the next; nothing else. Prints the seconds that it took.
 *
 *     limit-serve COUNT LANES REQUEST-BYTES PROGRAM [ARGUMENT...]
 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/limits/lanes.h"

static void ask(const struct lane_program *handler, const char *line, size_t size)
{
        char answer[4096];
        ssize_t got;

        if (write(handler->in, line, size) != (ssize_t)size)
                lanes_die("write");
        do {
                got = read(handler->out, answer, sizeof(answer));
                if (got <= 0)
                        lanes_die("read");
        } while (answer[got - 1] != '\n');
}

static void lane(const struct lane_order *order, size_t number, const char *line)
{
        struct lane_program handler = lanes_start(order->command);

        (void)number;
        ask(&handler, line, order->size); /* it has started */
        for (size_t i = 0; i < order->count / order->lanes; i++)
                ask(&handler, line, order->size);
        close(handler.in);
        if (wait(NULL) < 0)
                lanes_die("wait");
}

int main(int argc, char **argv)
{
        struct lane_order order = lanes_order(argc, argv);
        char *line = malloc(order.size + 64);

        if (!line)
                lanes_die("memory");
        memset(line, 'x', order.size + 64);
        memcpy(line, "{\"id\":7,\"padding\":\"", 19);
        memcpy(line + order.size - 3, "\"}\n", 3);
        lanes_run(&order, line, lane);
        free(line);
        return 0;
}
