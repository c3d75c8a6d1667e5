/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process itself, with the test in the supervisor's place: what it hands out, when it hands out
 * something new, and what it never follows. Argument: the path of reconciled-credential.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "ipc/channel.h"
#include "ipc/child.h"

#define DEADLINE_USEC (20 * USEC_PER_SEC)

static char *program; /* absolute: the tests change the folder */
static char folder[] = "/tmp/reconciled-test-credential-XXXXXX";

struct fixture {
        sd_event *event;
        struct channel *channel;
        pid_t pid;
        bool ready, gone;
        unsigned credentials;
        uint64_t serial, exit_code;
        char token[64], server[64], identity[128], reason[512];
};

/* ---- the process */

static int send_config(struct channel *channel)
{
        int r = channel_send(channel, MESSAGE_CONFIG_CREDENTIAL,
                             &(struct message_config_credential){
                                     .kubeconfig = "config", .context = "", .heartbeat_usec = USEC_PER_SEC});

        channel_set_state(channel, CHILD_CONFIGURED);
        return r;
}

static void note_credential(struct fixture *fixture, const struct message_credential *credential)
{
        fixture->credentials++;
        fixture->serial = credential->serial;
        snprintf(fixture->token, sizeof(fixture->token), "%s", credential->token);
        snprintf(fixture->server, sizeof(fixture->server), "%s", credential->server);
        snprintf(fixture->identity, sizeof(fixture->identity), "%s", credential->identity);
}

static int on_message(struct channel *channel, struct message **message, void *userdata)
{
        struct fixture *fixture = userdata;

        switch ((*message)->type) {
        case MESSAGE_HELLO:
                return send_config(channel);
        case MESSAGE_READY:
                fixture->ready = true;
                channel_set_state(channel, CHILD_RUNNING);
                return 0;
        case MESSAGE_CREDENTIAL:
                note_credential(fixture, &(*message)->credential);
                return 0;
        case MESSAGE_FATAL:
                fixture->exit_code = (*message)->fatal.exit_code;
                snprintf(fixture->reason, sizeof(fixture->reason), "%s", (*message)->fatal.reason);
                return 0;
        default:
                return 0;
        }
}

static void on_error(struct channel *channel, int status, const char *reason, void *userdata)
{
        struct fixture *fixture = userdata;

        (void)channel;
        if (status != -ECONNRESET)
                fail_msg("%s", reason);
        fixture->gone = true;
}

static const struct channel_callbacks callbacks = {.on_message = on_message, .on_error = on_error};

static void start(struct fixture *fixture)
{
        int pair[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        assert_true(sd_event_new(&fixture->event) >= 0);
        fixture->pid = fork();
        assert_true(fixture->pid >= 0);
        if (fixture->pid == 0) {
                int log = open("log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

                if (log < 0 || dup2(log, STDERR_FILENO) < 0)
                        _exit(99);
                if (pair[1] == CHILD_CHANNEL_FD ? fcntl(pair[1], F_SETFD, 0) < 0
                                                : dup2(pair[1], CHILD_CHANNEL_FD) < 0)
                        _exit(99);
                execl(program, program, "--log", "text", NULL);
                _exit(99);
        }
        close(pair[1]);
        assert_int_equal(channel_new(fixture->event, pair[0], ROLE_SUPERVISOR, ROLE_CREDENTIAL, &callbacks,
                                     fixture, &fixture->channel),
                         0);
}

static int stop(struct fixture *fixture)
{
        int status;

        assert_int_equal(waitpid(fixture->pid, &status, 0), fixture->pid);
        channel_free(fixture->channel);
        sd_event_unref(fixture->event);
        assert_true(WIFEXITED(status));
        return WEXITSTATUS(status);
}

#define WAIT(fixture, condition)                                                                            \
        do {                                                                                                \
                uint64_t deadline_ = clock_boottime_usec() + DEADLINE_USEC;                                 \
                while (!(condition)) {                                                                      \
                        assert_true(clock_boottime_usec() < deadline_);                                     \
                        assert_true(sd_event_run((fixture)->event, USEC_PER_SEC) >= 0);                     \
                }                                                                                           \
        } while (false)

static void refresh(struct fixture *fixture, uint64_t serial)
{
        assert_int_equal(
                channel_send(fixture->channel, MESSAGE_REFRESH, &(struct message_refresh){.serial = serial}),
                0);
}

static int ask_to_stop(struct fixture *fixture)
{
        assert_int_equal(
                channel_send(fixture->channel, MESSAGE_STOP, &(struct message_stop){.grace_usec = 1}), 0);
        WAIT(fixture, fixture->gone);
        return stop(fixture);
}

/* ---- files */

static void write_file(const char *name, const char *text)
{
        FILE *file = fopen("new", "we");

        assert_non_null(file);
        assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
        assert_int_equal(fclose(file), 0);
        assert_int_equal(rename("new", name), 0);
}

static void write_config(const char *server, const char *context)
{
        char text[1024];

        snprintf(text, sizeof(text),
                 "current-context: %s\n"
                 "contexts:\n- {name: prod, context: {cluster: c, user: u}}\n"
                 "- {name: staging, context: {cluster: d, user: u}}\n"
                 "clusters:\n- {name: c, cluster: {server: '%s'}}\n- {name: d, cluster: {server: "
                 "'https://staging'}}\n"
                 "users:\n- {name: u, user: {tokenFile: token}}\n",
                 context, server);
        write_file("config", text);
}

static bool log_holds(const char *text)
{
        static char log[65536];
        FILE *file = fopen("log", "re");
        size_t n;

        assert_non_null(file);
        n = fread(log, 1, sizeof(log) - 1, file);
        fclose(file);
        log[n] = '\0';
        return strstr(log, text);
}

static int make_folder(void **state)
{
        (void)state;
        return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int remove_folder(void **state)
{
        (void)state;
        return chdir("/") == 0 && rmdir(folder) == 0 ? 0 : -1;
}

static int clean(void **state)
{
        (void)state;
        unlink("config");
        unlink("token");
        unlink("log");
        return 0;
}

/* ---- tests */

static void test_hands_out_and_renews(void **state)
{
        struct fixture fixture = {0};

        (void)state;
        write_config("https://prod", "prod");
        write_file("token", "first-secret\n");
        start(&fixture);
        WAIT(&fixture, fixture.ready && fixture.credentials == 1);
        assert_int_equal(fixture.serial, 1);
        assert_string_equal(fixture.token, "first-secret");
        assert_non_null(strstr(fixture.identity, "context prod"));

        refresh(&fixture, 1); /* nothing new: the same again, so that who asked may go on backing off */
        WAIT(&fixture, fixture.credentials == 2);
        assert_int_equal(fixture.serial, 1);

        write_file("token", "second-secret\n");
        refresh(&fixture, 1);
        WAIT(&fixture, fixture.credentials == 3);
        assert_int_equal(fixture.serial, 2);
        assert_string_equal(fixture.token, "second-secret");

        refresh(&fixture, 1); /* an old question: answered already */
        refresh(&fixture, 2);
        WAIT(&fixture, fixture.credentials == 4);
        assert_int_equal(fixture.serial, 2);

        assert_int_equal(ask_to_stop(&fixture), EXIT_CODE_OK);
        assert_int_equal(fixture.credentials, 4);
        assert_false(log_holds("secret"));
}

static void test_keeps_what_worked(void **state)
{
        struct fixture fixture = {0};

        (void)state;
        write_config("https://prod", "prod");
        write_file("token", "first");
        start(&fixture);
        WAIT(&fixture, fixture.ready && fixture.credentials == 1);

        unlink("token");
        refresh(&fixture, 1);
        refresh(&fixture, 1);
        write_file("config", "{");
        refresh(&fixture, 1);
        WAIT(&fixture, log_holds("the old one stays in use"));
        assert_int_equal(fixture.credentials, 1);

        write_config("https://prod", "prod");
        write_file("token", "second");
        while (fixture.serial == 1 || fixture.credentials == 1) {
                unsigned before = fixture.credentials;

                refresh(&fixture, 1);
                WAIT(&fixture, fixture.credentials > before);
        }
        assert_int_equal(fixture.serial, 2);
        assert_string_equal(fixture.token, "second");
        assert_int_equal(ask_to_stop(&fixture), EXIT_CODE_OK);
}

/* kubectl config use-context, in the file that the operator runs with. */
static void test_never_follows_to_another_cluster(void **state)
{
        struct fixture fixture = {0};

        (void)state;
        write_config("https://prod", "prod");
        write_file("token", "t");
        start(&fixture);
        WAIT(&fixture, fixture.ready && fixture.credentials == 1);

        write_config("https://prod", "staging"); /* another current-context: ours is still prod */
        refresh(&fixture, 1);
        WAIT(&fixture, fixture.credentials == 2);
        assert_string_equal(fixture.server, "https://prod");
        assert_int_equal(fixture.serial, 1);

        write_config("https://elsewhere", "prod");
        refresh(&fixture, 1);
        WAIT(&fixture, log_holds("it now leads to https://elsewhere"));
        assert_int_equal(fixture.credentials, 2);
        assert_int_equal(ask_to_stop(&fixture), EXIT_CODE_OK);
}

static void test_cannot_work(void **state)
{
        struct fixture fixture = {0};

        (void)state;
        write_config("https://prod", "prod"); /* and no token file */
        start(&fixture);
        WAIT(&fixture, fixture.gone);
        assert_int_equal(stop(&fixture), EXIT_CODE_CONFIGURATION);
        assert_int_equal(fixture.exit_code, EXIT_CODE_CONFIGURATION);
        assert_non_null(strstr(fixture.reason, "config:9: user.tokenFile: token: cannot be read"));
        assert_false(fixture.ready);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, clean, clean)

int main(int argc, char **argv)
{
        const struct CMUnitTest test[] = {
                TEST(test_hands_out_and_renews),
                TEST(test_keeps_what_worked),
                TEST(test_never_follows_to_another_cluster),
                TEST(test_cannot_work),
        };
        int r;

        program = argc == 2 ? realpath(argv[1], NULL) : NULL;
        if (!program)
                return EXIT_CODE_USAGE;
        r = cmocka_run_group_tests(test, make_folder, remove_folder);
        free(program);
        return r;
}
