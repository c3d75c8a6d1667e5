/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses and tokens: what is let in, and what is not. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "gateway/http-server.h"
#include "os/listen.h"

static void test_addresses(void **state)
{
        static const char *const good[] = {"127.0.0.1:0", "localhost:0", "0.0.0.0:0"};
        static const char *const bad[] = {"",       ":",     "127.0.0.1",   "somewhere:1",
                                          "[::1:0", "::1:0", "256.0.0.1:1", "unix:"};

        (void)state;
        for (size_t i = 0; i < ELEMENTS(good); i++) {
                char *path = NULL;
                int fd = listen_open(good[i], false, &path, NULL);

                assert_true(fd >= 0);
                assert_null(path);
                close(fd);
        }
        for (size_t i = 0; i < ELEMENTS(bad); i++) {
                _cleanup_error_ struct error error = ERROR_NONE;
                char *path = NULL;

                assert_true(listen_open(bad[i], false, &path, &error) < 0);
                assert_null(path);
        }
}

static void test_a_socket_takes_the_place_of_a_former_one(void **state)
{
        char folder[] = "/tmp/test-gateway-XXXXXX", where[64], *path = NULL, *again = NULL;
        int first, second;
        struct stat st;

        (void)state;
        assert_non_null(mkdtemp(folder));
        snprintf(where, sizeof(where), "unix:%s/socket", folder);
        first = listen_open(where, false, &path, NULL);
        assert_true(first >= 0);
        second = listen_open(where, false, &again, NULL);
        assert_true(second >= 0);
        assert_string_equal(path, where + 5);
        assert_int_equal(stat(path, &st), 0);
        assert_true(S_ISSOCK(st.st_mode));
        close(first);
        close(second);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(rmdir(folder), 0);
        free(path);
        free(again);
}

static const char *swapped_in, *swapped_for; /* NULL: by nobody */

/* In place of the C library's: the owner of the folder is as fast as can be. */
int bind(int fd, const struct sockaddr *address, socklen_t size)
{
        int r = (int)syscall(SYS_bind, fd, address, size);

        if (swapped_in)
                assert_int_equal(rename(swapped_in, swapped_for), 0);
        return r;
}

static void test_who_swaps_the_socket_for_a_link(void **state)
{
        char folder[] = "/tmp/test-gateway-XXXXXX", where[64], link[64], victim[64], *path = NULL;
        mode_t mask = umask(0077);
        struct stat st;
        int fd;

        (void)state;
        assert_non_null(mkdtemp(folder));
        snprintf(where, sizeof(where), "unix:%s/socket", folder);
        snprintf(victim, sizeof(victim), "%s/victim", folder);
        snprintf(link, sizeof(link), "%s/link", folder);
        close(open(victim, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
        assert_int_equal(symlink(victim, link), 0);

        fd = listen_open(where, false, &path, NULL);
        assert_true(fd >= 0);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode, S_IFSOCK | 0666);
        close(fd);
        free(path);

        swapped_in = link;
        swapped_for = where + 5;
        fd = listen_open(where, false, &path, NULL);
        swapped_in = NULL;
        assert_int_equal(stat(victim, &st), 0);
        assert_int_equal(st.st_mode, S_IFREG | 0600);
        assert_int_equal(umask(mask), 0077);
        close(fd);
        free(path);
        assert_int_equal(unlink(victim), 0);
        assert_int_equal(unlink(where + 5), 0);
        assert_int_equal(rmdir(folder), 0);
}

static uint16_t port_of(int fd)
{
        struct sockaddr_in address = {0};
        socklen_t size = sizeof(address);

        assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
        return ntohs(address.sin_port);
}

/* A connection that the server ends: in FIN_WAIT2 while the client stays, then in TIME_WAIT. Returns the client. */
static int leave_connection(int listener)
{
        struct sockaddr_in address;
        socklen_t size = sizeof(address);
        int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), accepted = -1;

        assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
        assert_int_equal(connect(client, (struct sockaddr *)&address, size), 0);
        assert_int_equal(poll(&(struct pollfd){.fd = listener, .events = POLLIN}, 1, -1), 1);
        accepted = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        assert_true(accepted >= 0);
        close(accepted);
        assert_int_equal(read(client, &(char){0}, 1), 0);
        return client;
}

/* One after the other, as the lives of an operator: with a port that is kept, and with one that is not. */
static void test_connections_of_a_former_life(void **state)
{
        int staying = -1, keeper = listen_keep("127.0.0.1:0");
        char where[32];

        (void)state;
        assert_true(keeper >= 0);
        snprintf(where, sizeof(where), "127.0.0.1:%u", port_of(keeper));
        close(keeper);
        for (int life = 0; life < 4; life++) {
                bool kept = life % 2 == 0;
                char *path = NULL;
                int listener;

                keeper = listen_keep(where);
                assert_true(keeper >= 0);
                if (!kept)
                        close(keeper);
                listener = listen_open(where, kept, &path, NULL);
                assert_true(listener >= 0);
                if (staying >= 0)
                        close(staying);
                close(leave_connection(listener));
                staying = leave_connection(listener);
                assert_int_equal(listen_keep(where), -EADDRINUSE);
                assert_int_equal(listen_open(where, false, &path, NULL), -EADDRINUSE);
                close(listener);
                if (kept)
                        close(keeper);
        }
        close(staying);
}

static void write_token(const char *path, const char *token)
{
        FILE *file = fopen(path, "w");

        assert_non_null(file);
        assert_int_equal(fwrite(token, 1, strlen(token), file), strlen(token));
        assert_int_equal(fclose(file), 0);
}

static void test_tokens(void **state)
{
        char path[] = "/tmp/test-gateway-XXXXXX";
        int fd = mkstemp(path);

        (void)state;
        assert_true(fd >= 0);
        close(fd);
        write_token(path, "secret\r\n");
        assert_true(gateway_token_matches(path, "Bearer secret"));
        assert_true(gateway_token_matches(path, "bearer secret"));
        assert_false(gateway_token_matches(path, NULL));
        assert_false(gateway_token_matches(path, ""));
        assert_false(gateway_token_matches(path, "Bearer"));
        assert_false(gateway_token_matches(path, "Bearer "));
        assert_false(gateway_token_matches(path, "Bearer secre"));
        assert_false(gateway_token_matches(path, "Bearer secrets"));
        assert_false(gateway_token_matches(path, "Bearer secret\n"));
        assert_false(gateway_token_matches(path, "Basic secret"));
        write_token(path, "\n");
        assert_false(gateway_token_matches(path, "Bearer "));
        assert_int_equal(unlink(path), 0);
        assert_false(gateway_token_matches(path, "Bearer secret"));
        assert_false(gateway_token_matches(path, "Bearer "));
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_addresses),
                cmocka_unit_test(test_a_socket_takes_the_place_of_a_former_one),
                cmocka_unit_test(test_who_swaps_the_socket_for_a_link),
                cmocka_unit_test(test_connections_of_a_former_life),
                cmocka_unit_test(test_tokens),
        };

        return cmocka_run_group_tests(test, NULL, NULL);
}
