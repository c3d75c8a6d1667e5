/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limit of latency: curl reads the watch and starts the program for each line, nothing else. Ends when
 * the watch does. The program notes its own first instruction (bench/noop.c).
 *
 *     limit-latency URL PROGRAM [ARGUMENT...]
 */
#include <curl/curl.h>
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static int start(char **command)
{
        static char *const environment[] = {NULL};
        int status;
        pid_t pid;

        errno = posix_spawn(&pid, command[0], NULL, NULL, command, environment);
        if (errno != 0 || waitpid(pid, &status, 0) != pid)
                return -1;
        return status == 0 ? 0 : -1;
}

static size_t on_data(char *bytes, size_t size, size_t count, void *userdata)
{
        for (size_t i = 0; i < size * count; i++)
                if (bytes[i] == '\n' && start(userdata) < 0) {
                        fprintf(stderr, "limit-latency: the program failed: %s\n", strerror(errno));
                        return 0;
                }
        return size * count;
}

int main(int argc, char **argv)
{
        CURL *curl;
        CURLcode code;

        if (argc < 3) {
                fprintf(stderr, "limit-latency URL PROGRAM [ARGUMENT...]\n");
                return 64;
        }
        curl_global_init(CURL_GLOBAL_DEFAULT);
        curl = curl_easy_init();
        if (!curl)
                return 1;
        curl_easy_setopt(curl, CURLOPT_URL, argv[1]);
        curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
        curl_easy_setopt(curl, CURLOPT_WRITEDATA, argv + 2);
        code = curl_easy_perform(curl);
        curl_easy_cleanup(curl);
        return code == CURLE_OK ? 0 : 1;
}
