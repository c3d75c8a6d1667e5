/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a child, from fd 3 to the last word: see child.h.
 */
#include "ipc/child.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "os/assertion.h"
#include "os/syscall.h"

#define COUNTERS_MAX    32
#define IDLE_CPU_USEC   (2 * USEC_PER_MSEC) /* from one heartbeat to the next */
#define LAST_WORDS_USEC USEC_PER_SEC
#define TEXT_MAX        1024

static const struct option option[] = {
        {"log", required_argument, NULL, 'l'},
        {"log-level", required_argument, NULL, 'L'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {0},
};

/* ---- the channel */

static const struct message *as_config(const struct message *message)
{
        switch (message->type) {
        case MESSAGE_CONFIG_CREDENTIAL:
        case MESSAGE_CONFIG_WATCHER:
        case MESSAGE_CONFIG_WORKER:
        case MESSAGE_CONFIG_GATEWAY:
        case MESSAGE_CONFIG_LEASE:
                return message;
        default:
                return NULL;
        }
}

static uint64_t config_heartbeat(const struct message *message)
{
        switch (message->type) {
        case MESSAGE_CONFIG_CREDENTIAL:
                return message->config_credential.heartbeat_usec;
        case MESSAGE_CONFIG_WATCHER:
                return message->config_watcher.heartbeat_usec;
        case MESSAGE_CONFIG_GATEWAY:
                return message->config_gateway.heartbeat_usec;
        case MESSAGE_CONFIG_LEASE:
                return message->config_lease.heartbeat_usec;
        default:
                return message->config_worker.heartbeat_usec;
        }
}

static void take_stop(struct child *child, uint64_t grace_usec)
{
        if (child->stopping && grace_usec > 0)
                return;
        child->stopping = true;
        channel_set_state(child->channel, CHILD_STOPPING);
        if (child->operations->on_stop)
                child->operations->on_stop(child, grace_usec);
        else
                child_exit(child, EXIT_CODE_OK);
}

static int child_ready(struct child *child);

static int on_parent_message(struct channel *channel, struct message **message, void *userdata)
{
        struct child *child = userdata;
        int r;

        if ((*message)->type == MESSAGE_STOP) {
                take_stop(child, (*message)->stop.grace_usec);
                return 0;
        }
        if (!as_config(*message)) {
                r = child->operations->on_message ? child->operations->on_message(child, message) : -EPROTO;
                return r == -ECANCELED ? 0 : r;
        }
        child->heartbeat_usec = config_heartbeat(*message);
        channel_set_state(channel, CHILD_CONFIGURED);
        r = child->operations->on_config(child, message);
        if (r > 0)
                r = child_ready(child);
        return r == -ECANCELED ? 0 : r;
}

/* The supervisor is gone, or lies: either way there is nobody left to serve. */
static void on_parent_error(struct channel *channel _unused_, int status, const char *reason, void *userdata)
{
        struct child *child = userdata;

        if (status != -ECONNRESET)
                log_error("the channel to the supervisor failed, ending: %s", reason);
        child->stopping = true;
        if (child->operations->on_stop)
                child->operations->on_stop(child, 0);
        else
                child_exit(child, EXIT_CODE_SOFTWARE);
}

static const struct channel_callbacks callbacks = {.on_message = on_parent_message,
                                                   .on_error = on_parent_error};

/* ---- heartbeat */

/* A file about this process. Kept open: opening it each time costs several times as much as reading it. */
static int memory_fd = -1;

static uint64_t resident_bytes(void)
{
        unsigned long long resident = 0;
        char text[128];
        ssize_t size;

        if (memory_fd < 0)
                memory_fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
        size = memory_fd < 0 ? -1 : pread(memory_fd, text, sizeof(text) - 1, 0);
        if (size <= 0)
                return 0;
        text[size] = '\0';
        return sscanf(text, "%*u %llu", &resident) == 1 ? resident * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

static uint64_t cpu_usec(void)
{
        struct timespec cpu = {0};

        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
        return (uint64_t)cpu.tv_sec * USEC_PER_SEC + (uint64_t)cpu.tv_nsec / 1000;
}

size_t child_count_process(struct record_counter *counter, size_t max)
{
        if (max < CHILD_PROCESS_COUNTERS)
                return 0;
        counter[0] = (struct record_counter){"memory_resident_bytes", resident_bytes()};
        counter[1] = (struct record_counter){"cpu_usec", cpu_usec()};
        return CHILD_PROCESS_COUNTERS;
}

static int send_heartbeat(struct child *child)
{
        struct record_counter counter[COUNTERS_MAX];
        struct message_heartbeat heartbeat = {.counter = counter};

        if (child->operations->count)
                heartbeat.counter_count = child->operations->count(child, counter, COUNTERS_MAX);
        heartbeat.counter_count += child_count_process(counter + heartbeat.counter_count,
                                                       COUNTERS_MAX - heartbeat.counter_count);
        return child_send(child, MESSAGE_HEARTBEAT, &heartbeat);
}

void child_beat(struct child *child)
{
        struct message_heartbeat heartbeat = {0};

        child->beaten = clock_monotonic_usec();
        if (child_send(child, MESSAGE_HEARTBEAT, &heartbeat) >= 0)
                (void)channel_flush(child->channel, 0); /* what does not leave now leaves later */
}

void child_beat_if_due(struct child *child)
{
        if (child->ready && clock_monotonic_usec() - child->beaten >= child->heartbeat_usec)
                child_beat(child);
}

/* Once for each time of rest: what a crowd of objects needed is of no use until the next one. A heartbeat
 * alone takes a tenth of that. */
static void child_rest_if_idle(struct child *child)
{
        uint64_t cpu = cpu_usec();
        bool idle = cpu - child->cpu_usec < IDLE_CPU_USEC;

        if (idle && !child->rested) {
                if (child->operations->at_rest)
                        child->operations->at_rest(child);
                malloc_trim(0);
                cpu = cpu_usec();
        }
        child->rested = idle;
        child->cpu_usec = cpu;
}

static int on_heartbeat(sd_event_source *source, uint64_t usec _unused_, void *userdata)
{
        struct child *child = userdata;
        int r;

        child_rest_if_idle(child);
        child->beaten = clock_monotonic_usec();
        (void)send_heartbeat(child); /* a failure shows as a missing heartbeat */
        r = sd_event_source_set_time_relative(source, child->heartbeat_usec);
        return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int child_ready(struct child *child)
{
        int r;

        assert(!child->ready && !child->heartbeat);
        r = child_send(child, MESSAGE_READY, &(struct message_ready){.pid = (uint64_t)getpid()});

        if (r < 0)
                return r;
        channel_set_state(child->channel, CHILD_RUNNING);
        child->ready = true;
        return sd_event_add_time_relative(child->event, &child->heartbeat, CLOCK_MONOTONIC,
                                          child->heartbeat_usec, 0, on_heartbeat, child);
}

/* ---- init */

static int parse_arguments(const struct child_operations *operations, int argc, char **argv,
                           enum log_target *ret_target)
{
        int c, level;

        while ((c = getopt_long(argc, argv, "h", option, NULL)) >= 0)
                switch (c) {
                case 'l':
                        if (log_target_parse(optarg, ret_target) < 0) {
                                fprintf(stderr, "%s: --log takes auto, journal, json or text, not \"%s\"\n",
                                        argv[0], optarg);
                                return -EINVAL;
                        }
                        break;
                case 'L':
                        if (log_level_parse(optarg, &level) < 0) {
                                fprintf(stderr, "%s: there is no log level \"%s\"\n", argv[0], optarg);
                                return -EINVAL;
                        }
                        log_set_level(level);
                        break;
                case 'V':
                        puts("reconciled " RECONCILED_VERSION);
                        return -ECANCELED;
                case 'h':
                        printf("reconciled-%s is a child of reconciled(1), which starts it; there is "
                               "nothing "
                               "to run by hand.\n",
                               operations->log_role);
                        return -ECANCELED;
                default:
                        return -EINVAL;
                }
        return 0;
}

static bool channel_is_there(void)
{
        int type = 0;
        socklen_t size = sizeof(type);

        return getsockopt(CHILD_CHANNEL_FD, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
               type == SOCK_SEQPACKET;
}

static int set_signals(void)
{
        sigset_t mask;

        sigemptyset(&mask);
        sigaddset(&mask, SIGTERM);
        sigaddset(&mask, SIGCHLD);
        if (sigprocmask(SIG_SETMASK, &mask, NULL) < 0)
                return -errno;
        /* A terminal's interrupt is for the supervisor, which says what follows from it. */
        signal(SIGINT, SIG_IGN);
        signal(SIGHUP, SIG_IGN);
        signal(SIGPIPE, SIG_IGN);
        signal(SIGTTOU, SIG_IGN); /* the log goes to a terminal whose foreground group we are not in */
        signal(SIGCHLD, SIG_DFL); /* as handed down, it may be ignored, and is never sent then */
        return 0;
}

/* A stop of the whole control group reaches us as well as the supervisor, and maybe first. The supervisor
 * ends us in its order; a clean exit of our own would let it hand our runs to other workers before it has
 * seen the exit. */
static int on_terminate(sd_event_source *source _unused_, const struct signalfd_siginfo *info,
                        void *userdata)
{
        struct child *child = userdata;

        if (info->ssi_pid == (uint32_t)child->parent)
                take_stop(child, 0);
        else if (!child->stopping)
                (void)child_send(child, MESSAGE_SIGNALLED,
                                 &(struct message_signalled){info->ssi_pid, info->ssi_uid});
        return 0;
}

static void child_tell_assertion(const char *text, void *userdata)
{
        struct child *child = userdata;
        const struct message_fatal fatal = {.exit_code = EXIT_CODE_SOFTWARE, .reason = text};

        if (child_send(child, MESSAGE_FATAL, &fatal) < 0)
                log_error("%s", text);
        (void)channel_flush(child->channel, LAST_WORDS_USEC);
        log_done();
}

static int child_set_up(struct child *child)
{
        struct message_hello hello = {
                .version = PROTOCOL_VERSION,
                .role = role_name(child->operations->role),
                .pid = (uint64_t)getpid(),
        };
        int r;

        umask(077);
        child->parent = getppid();
        r = sys_set_not_dumpable();
        if (r >= 0)
                r = set_signals();
        if (r >= 0)
                r = sys_follow_parent(CHILD_CHANNEL_FD, child->operations->parent_death_signal);
        if (r >= 0)
                r = sd_event_default(&child->event);
        if (r >= 0)
                r = log_attach(child->event);
        if (r >= 0)
                r = sd_event_add_signal(child->event, NULL, SIGTERM, on_terminate, child);
        if (r >= 0)
                r = channel_new(child->event, CHILD_CHANNEL_FD, child->operations->role, ROLE_SUPERVISOR,
                                &callbacks, child, &child->channel);
        if (r >= 0)
                assertion_on_failure(child_tell_assertion, child);
        return r < 0 ? r : child_send(child, MESSAGE_HELLO, &hello);
}

int child_init(struct child *child, const struct child_operations *operations, int argc, char **argv)
{
        enum log_target target = LOG_TARGET_AUTO;
        int r;

        *child = (struct child){.operations = operations};
        r = parse_arguments(operations, argc, argv, &target);
        if (r < 0)
                return r;
        if (!channel_is_there()) {
                fprintf(stderr, "%s: not started by reconciled(1): there is no channel on descriptor 3\n",
                        argv[0]);
                return -EINVAL;
        }
        r = log_init(target, operations->log_role);
        if (r >= 0)
                r = child_set_up(child);
        if (r < 0 && r != -ESRCH)
                log_error("cannot start: %s", strerror(-r));
        return r;
}

/* --help was answered; run by hand; or there was no room to begin. */
int child_init_exit_code(int status)
{
        return status == -ECANCELED ? EXIT_CODE_OK : (int)exit_code_for(status, EXIT_CODE_USAGE);
}

int child_run(struct child *child)
{
        int r = sd_event_loop(child->event);

        if (r < 0) {
                log_error("the event loop failed: %s", strerror(-r));
                return EXIT_CODE_SOFTWARE;
        }
        return r;
}

void child_done(struct child *child)
{
        assertion_on_failure(NULL, NULL);
        sd_event_source_disable_unref(child->heartbeat);
        if (memory_fd >= 0)
                close(memory_fd);
        memory_fd = -1;
        channel_free(child->channel);
        log_done();
        sd_event_unref(child->event);
        *child = (struct child){0};
}

int child_send(struct child *child, enum message_type type, const void *fields)
{
        return channel_send(child->channel, type, fields);
}

void child_exit(struct child *child, int exit_code)
{
        (void)channel_flush(child->channel, LAST_WORDS_USEC); /* a peer that is gone hears nothing */
        sd_event_exit(child->event, exit_code);
}

int child_fatal(struct child *child, int exit_code, const char *format, ...)
{
        char reason[TEXT_MAX];
        const struct message_fatal fatal = {.exit_code = (uint64_t)exit_code, .reason = reason};
        va_list arguments;

        assert(exit_code != EXIT_CODE_OK);
        va_start(arguments, format);
        vsnprintf(reason, sizeof(reason), format, arguments);
        va_end(arguments);
        utf8_clean(reason);
        if (!child->stopping && child_send(child, MESSAGE_FATAL, &fatal) < 0)
                log_error("ending with exit code %d: %s", exit_code, reason);
        child->stopping = true;
        child_exit(child, exit_code);
        return -ECANCELED;
}
