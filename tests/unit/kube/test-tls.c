/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS: who is believed and who is not. Certificates are made by openssl(1) when the test starts; its
 * s_server is the other side, which asks for a client's certificate when told to.
 */
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/unit/kube/fixture.h"

#define ARGUMENTS_MAX 32

static char folder[] = "/tmp/reconciled-test-tls-XXXXXX";
static char *authority, *stranger, *client_certificate, *client_key;

/* ---- openssl */

static pid_t spawn_openssl(const char *line, int output)
{
        posix_spawn_file_actions_t actions;
        char *copy = strdup(line), *argument[ARGUMENTS_MAX], *next = copy, *word;
        size_t count = 0;
        pid_t pid;

        assert_non_null(copy);
        while ((word = strsep(&next, " ")) && count < ARGUMENTS_MAX - 1)
                argument[count++] = word;
        argument[count] = NULL;
        assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
        if (output >= 0)
                posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
        assert_int_equal(posix_spawnp(&pid, "openssl", &actions, NULL, argument, environ), 0);
        posix_spawn_file_actions_destroy(&actions);
        free(copy);
        return pid;
}

static void openssl(const char *line)
{
        int status;
        pid_t pid = spawn_openssl(line, -1);

        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
}

static char *read_whole(const char *name)
{
        char *text = calloc(1, 65536);
        FILE *file = fopen(name, "re");

        assert_non_null(text);
        assert_non_null(file);
        assert_in_range(fread(text, 1, 65535, file), 1, 65535);
        fclose(file);
        return text;
}

#define KEY     "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -batch"
#define REQUEST "openssl req -x509 " KEY

static int make_certificates(void **state)
{
        (void)state;
        signal(SIGPIPE, SIG_IGN);
        assert_non_null(mkdtemp(folder));
        assert_int_equal(chdir(folder), 0);
        openssl(REQUEST " -subj /CN=authority -keyout ca.key -out ca.pem");
        openssl(REQUEST " -subj /CN=stranger -keyout stranger.key -out stranger.pem");
        openssl(REQUEST " -subj /CN=server -CA ca.pem -CAkey ca.key -keyout server.key -out server.pem"
                        " -addext subjectAltName=DNS:api.example.com,IP:127.0.0.1");
        openssl(REQUEST " -subj /CN=named -CA ca.pem -CAkey ca.key -keyout named.key -out named.pem"
                        " -addext subjectAltName=DNS:api.example.com");
        openssl(REQUEST " -subj /CN=admin -CA ca.pem -CAkey ca.key -keyout client.key -out client.pem");
        authority = read_whole("ca.pem");
        stranger = read_whole("stranger.pem");
        client_certificate = read_whole("client.pem");
        client_key = read_whole("client.key");
        return 0;
}

static int remove_certificates(void **state)
{
        static const char *const name[] = {"ca", "stranger", "server", "named", "client"};
        char path[64];

        (void)state;
        for (size_t i = 0; i < ELEMENTS(name); i++) {
                snprintf(path, sizeof(path), "%s.key", name[i]);
                unlink(path);
                snprintf(path, sizeof(path), "%s.pem", name[i]);
                unlink(path);
        }
        assert_int_equal(chdir("/"), 0);
        free(authority);
        free(stranger);
        free(client_certificate);
        free(client_key);
        return rmdir(folder);
}

/* ---- the server */

struct tls_server {
        pid_t pid;
        char url[64];
};

static void tls_server_start(struct tls_server *server, const char *name, const char *more)
{
        char line[512], output[1024] = "";
        int pipe_fd[2], port = 0;
        size_t used = 0;

        snprintf(line, sizeof(line), "openssl s_server -accept 127.0.0.1:0 -cert %s.pem -key %s.key -www%s",
                 name, name, more);
        assert_int_equal(pipe2(pipe_fd, O_CLOEXEC), 0);
        server->pid = spawn_openssl(line, pipe_fd[1]);
        close(pipe_fd[1]);
        /* "ACCEPT 127.0.0.1:43211", when it is ready */
        while (port == 0) {
                ssize_t n = read(pipe_fd[0], output + used, sizeof(output) - 1 - used);
                const char *ready;

                assert_true(n > 0);
                used += (size_t)n;
                output[used] = '\0';
                ready = strstr(output, "ACCEPT 127.0.0.1:");
                if (ready && strchr(ready, '\n'))
                        port = (int)strtol(ready + strlen("ACCEPT 127.0.0.1:"), NULL, 10);
        }
        snprintf(server->url, sizeof(server->url), "https://127.0.0.1:%d", port);
        close(pipe_fd[0]);
}

static void tls_server_stop(struct tls_server *server)
{
        kill(server->pid, SIGKILL);
        assert_int_equal(waitpid(server->pid, NULL, 0), server->pid);
}

static void get(struct fixture *fixture, const struct message_credential *credential)
{
        fixture_use(fixture, credential);
        fixture_get(fixture, "/version");
}

static void assert_believed(struct fixture *fixture)
{
        if (fixture->error.failure != KUBE_FAILURE_NONE)
                fail_msg("%s: %s", kube_failure_name(fixture->error.failure), fixture->error.message);
        assert_int_equal(fixture->http_status, 200);
}

static void assert_not_believed(struct fixture *fixture)
{
        assert_int_equal(fixture->error.failure, KUBE_FAILURE_TLS);
        assert_int_equal(fixture->http_status, 0);
}

/* ---- tests */

static void test_authority(void **state)
{
        struct fixture *fixture = *state;
        struct tls_server server;
        struct message_credential credential;

        tls_server_start(&server, "server", "");
        credential = fixture_credential(server.url, "t");
        credential.certificate_authority = authority;
        get(fixture, &credential);
        assert_believed(fixture);
        /* the same client, the same server: the connection that stands is not good enough for another */
        credential.certificate_authority = stranger;
        get(fixture, &credential);
        assert_not_believed(fixture);
        credential.certificate_authority = ""; /* the machine's own ones */
        get(fixture, &credential);
        assert_not_believed(fixture);
        credential.certificate_authority = "not a certificate";
        get(fixture, &credential);
        assert_not_believed(fixture);
        credential.certificate_authority = "";
        credential.insecure = true;
        get(fixture, &credential);
        assert_believed(fixture);
        tls_server_stop(&server);
}

static void test_name(void **state)
{
        struct fixture *fixture = *state;
        struct tls_server server;
        struct message_credential credential;

        tls_server_start(&server, "named", "");
        credential = fixture_credential(server.url, "t");
        credential.certificate_authority = authority;
        get(fixture, &credential); /* the certificate is for a name, not for this address */
        assert_not_believed(fixture);
        credential.tls_server_name = "api.example.com";
        get(fixture, &credential);
        assert_believed(fixture);
        credential.tls_server_name = "other.example.com";
        get(fixture, &credential);
        assert_not_believed(fixture);
        tls_server_stop(&server);
}

static void test_client_certificate(void **state)
{
        struct fixture *fixture = *state;
        struct tls_server server;
        struct message_credential credential;

        tls_server_start(&server, "server", " -CAfile ca.pem -Verify 1 -verify_return_error");
        credential = fixture_credential(server.url, "");
        credential.certificate_authority = authority;
        get(fixture, &credential);
        assert_int_not_equal(fixture->error.failure, KUBE_FAILURE_NONE);
        credential.client_certificate = client_certificate;
        credential.client_key = client_key;
        get(fixture, &credential);
        assert_believed(fixture);
        tls_server_stop(&server);
}

static void test_plain_server(void **state)
{
        struct fixture *fixture = *state;
        struct kube_request request = fixture_request(fixture, "/version", false);
        char url[64] = "";
        struct message_credential credential = fixture_credential(url, "s3cret");

        snprintf(url, sizeof(url), "https://127.0.0.1:%d", fixture->server.port);
        fixture_use(fixture, &credential);
        assert_int_equal(kube_client_start(fixture->client, &request, NULL), 0);
        fixture_wait(fixture, &fixture->server.connections, 1);
        server_say(fixture->server.connection[0], "HTTP/1.1 400 Bad Request\r\n\r\n");
        fixture_wait(fixture, &fixture->done, 1);
        assert_not_believed(fixture);
        assert_int_equal(fixture->server.requests, 0); /* nothing was said in the clear */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
        const struct CMUnitTest test[] = {
                TEST(test_authority),
                TEST(test_name),
                TEST(test_client_certificate),
                TEST(test_plain_server),
        };

        return cmocka_run_group_tests(test, make_certificates, remove_certificates);
}
