/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest handler that serves: each line is answered with its id. With a file it appends a byte there
 * for each; with "status" behind that it also writes status.seen, as the peers do. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned long long number_behind(const char *line, const char *name)
{
        const char *found = strstr(line, name);

        return found ? strtoull(found + strlen(name), NULL, 10) : 0;
}

static int count_one(int fd)
{
        return fd < 0 || write(fd, ".", 1) == 1 ? 0 : -1;
}

int main(int argc, char **argv)
{
        int fd = argc > 1 ? open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
        char *line = NULL;
        size_t room = 0;

        if (argc > 1 && fd < 0)
                return 1;
        while (getline(&line, &room, stdin) > 0) {
                printf("{\"id\":%llu", number_behind(line, "\"id\":"));
                if (argc > 2)
                        printf(",\"status\":{\"seen\":%llu}", number_behind(line, "\"round\":"));
                puts("}");
                fflush(stdout);
                if (count_one(fd) < 0)
                        return 1;
        }
        free(line);
        return 0;
}
