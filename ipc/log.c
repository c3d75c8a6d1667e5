/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of a process: see log.h. One queue of finished lines, one way to write the first of them without
 * waiting. stderr may be shared with others (a terminal, a pipe of the test, the kubelet's file), so its
 * flags are not ours to change: it is opened again, non-blocking, where that is possible.
 */
#include "ipc/log.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

#include "base/duration.h"
#include "ipc/message-id.h"
#include "ipc/message.h"
#include "os/syscall.h"

/* ---- how a log line looks in each target */
#define LOG_LINE_MAX      ((size_t)8192)
/* Lines of several processes meet in one pipe; up to PIPE_BUF bytes they never mix. */
#define LOG_PIPE_LINE_MAX ((size_t)4096)

struct log_record {
        uint64_t realtime;
        int priority;
        const char *role, *message_id, *message;
        const struct log_field *field;
};

#define FIELD_PREFIX  "RECONCILED_"
#define NAMESPACE_MAX 64 /* a DNS label, and its end */

static const char *level_name(int priority)
{
        static const char *const name[] = {"emergency", "alert",  "critical", "error",
                                           "warning",   "notice", "info",     "debug"};

        return name[priority & 7];
}

/* The object that the record is about: namespace/name, or a name alone, also part by part, so that one can
 * be asked for without the other. */
struct object_name {
        char namespace_name[NAMESPACE_MAX];
        const char *name; /* NULL: it is about no object */
};

static void split_key(const struct log_record *record, struct object_name *ret)
{
        *ret = (struct object_name){0};
        for (const struct log_field *field = record->field; field && field->name; field++) {
                const char *slash;

                if (!field->value || !field->value[0] || strcmp(field->name, FIELD_PREFIX "KEY") != 0)
                        continue;
                slash = strchr(field->value, '/');
                ret->name = slash ? slash + 1 : field->value;
                snprintf(ret->namespace_name, sizeof(ret->namespace_name), "%.*s",
                         slash ? (int)(slash - field->value) : 0, field->value);
        }
}

/* ---- the journal's native protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL): NAME=value, or, when the value
 * holds a newline, NAME, its size as 64 bits little endian, and the value. */

static void journal_field(struct text *out, const char *name, const char *value)
{
        if (!value || !value[0])
                return;
        text_append_string(out, name);
        if (strchr(value, '\n')) {
                uint64_t size = strlen(value);
                unsigned char bytes[8];

                for (size_t i = 0; i < sizeof(bytes); i++)
                        bytes[i] = (unsigned char)(size >> (8 * i));
                text_append(out, "\n", 1);
                text_append(out, bytes, sizeof(bytes));
        } else {
                text_append(out, "=", 1);
        }
        text_append_string(out, value);
        text_append(out, "\n", 1);
}

static void log_format_journal(struct text *out, const struct log_record *record)
{
        char priority[2] = {(char)('0' + (record->priority & 7)), '\0'};
        struct object_name object;

        split_key(record, &object);
        journal_field(out, "MESSAGE", record->message);
        journal_field(out, "PRIORITY", priority);
        journal_field(out, "SYSLOG_IDENTIFIER", "reconciled");
        journal_field(out, "MESSAGE_ID", record->message_id);
        journal_field(out, "RECONCILED_ROLE", record->role);
        for (const struct log_field *field = record->field; field && field->name; field++)
                journal_field(out, field->name, field->value);
        journal_field(out, FIELD_PREFIX "NAMESPACE", object.namespace_name);
        journal_field(out, FIELD_PREFIX "NAME", object.name);
}

/* ---- stderr */

static void write_time(struct text *out, uint64_t realtime, bool with_date)
{
        time_t seconds = (time_t)(realtime / USEC_PER_SEC);
        struct tm tm;
        char buffer[40];

        gmtime_r(&seconds, &tm);
        if (with_date)
                strftime(buffer, sizeof(buffer), "%Y-%m-%dT%H:%M:%S", &tm);
        else
                strftime(buffer, sizeof(buffer), "%H:%M:%S", &tm);
        text_printf(out, "%s.%03u", buffer, (unsigned)(realtime / USEC_PER_MSEC % 1000));
}

/* RECONCILED_WATCH -> watch */
static void short_name(const char *name, char *ret, size_t size)
{
        size_t i = 0;

        if (strncmp(name, FIELD_PREFIX, strlen(FIELD_PREFIX)) == 0)
                name += strlen(FIELD_PREFIX);
        for (; name[i] && i + 1 < size; i++)
                ret[i] = (char)tolower((unsigned char)name[i]);
        ret[i] = '\0';
}

static void log_member(struct text *out, const char *name, const char *value)
{
        if (!value || !value[0])
                return;
        text_append(out, ",", 1);
        text_json_string(out, name);
        text_append(out, ":", 1);
        text_json_string(out, value);
}

static void log_format_json(struct text *out, const struct log_record *record)
{
        struct object_name object;

        split_key(record, &object);
        text_append_string(out, "{\"time\":\"");
        write_time(out, record->realtime, true);
        text_append_string(out, "Z\"");
        log_member(out, "level", level_name(record->priority));
        log_member(out, "role", record->role);
        log_member(out, "message_id", record->message_id);
        log_member(out, "message", record->message);
        for (const struct log_field *field = record->field; field && field->name; field++) {
                char name[64];

                short_name(field->name, name, sizeof(name));
                log_member(out, name, field->value);
        }
        log_member(out, "namespace", object.namespace_name);
        log_member(out, "name", object.name);
        text_append_string(out, "}\n");
}

static void log_format_text(struct text *out, const struct log_record *record)
{
        const char *separator = " (";
        size_t start;

        write_time(out, record->realtime, false);
        text_printf(out, " %s %s: ", record->role, level_name(record->priority));
        start = out->size;
        text_append_string(out, record->message);
        for (const struct log_field *field = record->field; field && field->name; field++) {
                char name[64];

                if (!field->value || !field->value[0])
                        continue;
                short_name(field->name, name, sizeof(name));
                text_printf(out, "%s%s=%s", separator, name, field->value);
                separator = " ";
        }
        if (separator[1] == '\0')
                text_append(out, ")", 1);
        if (out->data)
                utf8_clean(out->data + start);
        text_append(out, "\n", 1);
}

#define QUEUE_MAX      ((size_t)1024 * 1024)
#define LINE_USUAL     ((size_t)2048)
#define DONE_USEC      (500 * USEC_PER_MSEC)
#define JOURNAL_SOCKET "/run/systemd/journal/socket"

struct line {
        struct line *next;
        size_t size;
        char data[];
};

/* A process has one log. */
static struct log {
        enum log_target target;
        char role[16];
        int fd;
        bool is_socket, may_block, is_pipe;
        int level;
        sd_event_source *source;
        struct line *first, *last;
        size_t queued;
        uint64_t dropped, dropped_told;
        bool telling;
        struct text message,
                record; /* made at the start, so that a line needs no memory when there is none */
} self = {.fd = -1, .level = LOG_INFO, .target = LOG_TARGET_TEXT};

static const char *const target_name[] = {
        [LOG_TARGET_AUTO] = "auto",
        [LOG_TARGET_JOURNAL] = "journal",
        [LOG_TARGET_JSON] = "json",
        [LOG_TARGET_TEXT] = "text",
};

int log_target_parse(const char *name, enum log_target *ret)
{
        for (size_t i = 0; i < ELEMENTS(target_name); i++)
                if (strcmp(name, target_name[i]) == 0) {
                        *ret = (enum log_target)i;
                        return 0;
                }
        return -EINVAL;
}

const char *log_target_name(enum log_target target)
{
        return target_name[target == LOG_TARGET_AUTO ? self.target : target];
}

/* ---- where to */

/* JOURNAL_STREAM names device and inode of the stream that systemd made for us; stderr may be another by
 * now. */
static bool stderr_is_journal(void)
{
        const char *stream = getenv("JOURNAL_STREAM");
        unsigned long long device, inode;
        struct stat st;

        return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
               fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

static int open_journal(void)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = JOURNAL_SOCKET};
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (fd < 0)
                return -errno;
        if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
                return -errno;
        self.is_socket = true;
        return TAKE_FD(fd);
}

/* A script that has started us with its own output (`>>log 2>&1`) writes on with the position of its descriptor, which
 * our lines do not move: its next line would lie on top of ours. Appending harms no user of a file. */
static void append_to_file(int fd)
{
        struct stat st;
        int flags = fcntl(fd, F_GETFL);

        if (flags >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
                (void)fcntl(fd, F_SETFL, flags | O_APPEND);
}

static int open_stderr(void)
{
        struct stat st;
        int fd;

        if (fstat(STDERR_FILENO, &st) < 0)
                return -errno;
        append_to_file(STDOUT_FILENO);
        append_to_file(STDERR_FILENO);
        self.is_socket = S_ISSOCK(st.st_mode);
        self.is_pipe = S_ISFIFO(st.st_mode);
        if (!self.is_socket) {
                fd = open("/proc/self/fd/2", O_WRONLY | O_APPEND | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
                if (fd >= 0)
                        return fd;
        }
        self.may_block = !self.is_socket;
        fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
        return fd < 0 ? -errno : fd;
}

int log_init(enum log_target target, const char *role)
{
        int fd;

        if (target == LOG_TARGET_AUTO)
                target = stderr_is_journal() ? LOG_TARGET_JOURNAL
                                             : (isatty(STDERR_FILENO) ? LOG_TARGET_TEXT : LOG_TARGET_JSON);
        if (text_reserve(&self.message, LINE_USUAL) < 0 || text_reserve(&self.record, LINE_USUAL) < 0)
                return -ENOMEM;
        self.target = target;
        snprintf(self.role, sizeof(self.role), "%s", role);
        fd = target == LOG_TARGET_JOURNAL ? open_journal() : -1;
        if (fd < 0 && target == LOG_TARGET_JOURNAL)
                self.target =
                        LOG_TARGET_TEXT; /* journald is not there at the moment; its stream still takes text */
        if (fd < 0)
                fd = open_stderr();
        if (self.fd >= 0)
                close(self.fd);
        self.fd = fd;
        return fd < 0 ? fd : 0;
}

int log_level_parse(const char *name, int *ret)
{
        for (int i = LOG_ERR; i <= LOG_DEBUG; i++)
                if (strcmp(level_name(i), name) == 0) {
                        *ret = i;
                        return 0;
                }
        return -EINVAL;
}

const char *log_level_name(void)
{
        return level_name(self.level);
}

void log_set_level(int level)
{
        self.level = level;
}

uint64_t log_dropped(void)
{
        return self.dropped;
}

/* ---- the queue */

static int write_bytes(const char *data, size_t size)
{
        struct pollfd pollfd = {.fd = self.fd, .events = POLLOUT};
        ssize_t r;

        if (self.fd < 0)
                return 0; /* nowhere to write: the line is gone */
        if (self.is_socket)
                r = sys_send(self.fd, data, size);
        else if (self.may_block && (poll(&pollfd, 1, 0) <= 0 || !(pollfd.revents & POLLOUT)))
                r = -EAGAIN;
        else
                r = sys_write(self.fd, data, size);
        if (r == -EAGAIN || r == -ENOBUFS)
                return -EAGAIN;
        return 0; /* this error cannot be reported anywhere; others will report a full file system
                   */
}

static void log_watch_writable(bool enabled)
{
        if (self.source)
                sd_event_source_set_enabled(self.source, enabled ? SD_EVENT_ON : SD_EVENT_OFF);
}

static void log_tell_dropped(void)
{
        uint64_t dropped = self.dropped - self.dropped_told;

        if (dropped == 0 || self.telling)
                return;
        self.telling = true;
        self.dropped_told = self.dropped;
        log_write(LOG_WARNING, MESSAGE_ID_LOG_DROPPED, NULL,
                  "%llu log %s dropped because nobody read them in time", (unsigned long long)dropped,
                  counted(dropped, "line was", "lines were"));
        self.telling = false;
}

static void send_waiting(void)
{
        while (self.first) {
                struct line *line = self.first;

                if (write_bytes(line->data, line->size) == -EAGAIN) {
                        log_watch_writable(true);
                        return;
                }
                self.first = line->next;
                if (!self.first)
                        self.last = NULL;
                self.queued -= line->size;
                free(line);
        }
        log_watch_writable(false);
        log_tell_dropped();
}

static void enqueue_line(const char *data, size_t size)
{
        struct line *line = NULL;

        if (self.queued + size <= QUEUE_MAX)
                line = malloc(sizeof(*line) + size);
        if (!line) {
                self.dropped++;
                return;
        }
        line->next = NULL;
        line->size = size;
        memcpy(line->data, data, size);
        if (self.last)
                self.last->next = line;
        else
                self.first = line;
        self.last = line;
        self.queued += size;
}

/* ---- in */

static void format_record(struct text *out, const struct log_record *record)
{
        switch (self.target) {
        case LOG_TARGET_JOURNAL:
                log_format_journal(out, record);
                break;
        case LOG_TARGET_JSON:
                log_format_json(out, record);
                break;
        case LOG_TARGET_AUTO:
        case LOG_TARGET_TEXT:
                log_format_text(out, record);
                break;
        }
}

/* A message that is too long for the target is shortened, so that the line stays a whole one. */
static void format_bounded(struct text *out, struct log_record *record, char *message)
{
        size_t max = self.is_pipe && self.target != LOG_TARGET_JOURNAL ? LOG_PIPE_LINE_MAX : LOG_LINE_MAX;

        record->message = message;
        format_record(out, record);
        for (size_t keep = strlen(message); out->size > max && keep > 0;) {
                keep = keep > 8 ? keep / 2 : 0;
                message[keep] = '\0';
                utf8_clean(message);
                text_clear(out);
                format_record(out, record);
        }
}

/* A very long message is no reason to keep that much memory. */
static void keep_usual(struct text *text)
{
        if (text->allocated <= 8 * LINE_USUAL)
                return;
        text_done(text);
        (void)text_reserve(text, LINE_USUAL);
}

void log_write(int priority, const char *message_id, const struct log_field *field, const char *format, ...)
{
        struct text *message = &self.message, *out = &self.record;
        struct log_record record = {
                .priority = priority,
                .role = self.role,
                .message_id = message_id,
                .field = field,
        };
        va_list arguments;

        if (priority > self.level)
                return;
        record.realtime = clock_realtime_usec();
        text_clear(message);
        text_clear(out);
        va_start(arguments, format);
        text_vprintf(message, format, arguments);
        va_end(arguments);
        if (!message->failed && message->data)
                format_bounded(out, &record, message->data);
        if (message->failed || out->failed || out->size == 0) {
                self.dropped++;
                return;
        }
        if (self.first || write_bytes(out->data, out->size) == -EAGAIN)
                enqueue_line(out->data, out->size);
        keep_usual(message);
        keep_usual(out);
        send_waiting();
}

/* ---- the loop */

static int on_log_writable(sd_event_source *source _unused_, int fd _unused_, uint32_t revents _unused_,
                           void *userdata _unused_)
{
        send_waiting();
        return 0;
}

int log_attach(sd_event *event)
{
        int r;

        if (self.fd < 0)
                return 0;
        r = sd_event_add_io(event, &self.source, self.fd, EPOLLOUT, on_log_writable, NULL);
        if (r == -EPERM)
                return 0; /* a regular file never makes us wait */
        if (r < 0)
                return r;
        log_watch_writable(self.first != NULL);
        return 0;
}

/*
 * journald learns the unit of a line from /proc/PID as it takes the line, so the process must live until then;
 * otherwise `journalctl -u` never shows the cause of a start that fails at once. It takes one datagram after
 * the other: when an empty one, which it ignores, has been taken, it is through with the lines before.
 */
static void wait_until_taken(uint64_t deadline)
{
        int unread = 0;

        if (self.target != LOG_TARGET_JOURNAL || !self.is_socket || sys_send(self.fd, "", 0) < 0)
                return;
        while (ioctl(self.fd, SIOCOUTQ, &unread) == 0 && unread > 0 && clock_boottime_usec() < deadline)
                (void)poll(NULL, 0, 1);
}

void log_done(void)
{
        uint64_t deadline = clock_boottime_usec() + DONE_USEC;

        self.source = sd_event_source_disable_unref(self.source);
        send_waiting();
        while (self.first && clock_boottime_usec() < deadline) {
                struct pollfd pollfd = {.fd = self.fd, .events = POLLOUT};

                if (poll(&pollfd, 1, 50) < 0 && errno != EINTR)
                        break;
                send_waiting();
        }
        wait_until_taken(deadline);
        while (self.first) {
                struct line *next = self.first->next;

                free(self.first);
                self.first = next;
        }
        self.last = NULL;
        self.queued = 0;
        text_done(&self.message);
        text_done(&self.record);
        if (self.fd >= 0)
                close(self.fd);
        self.fd = -1;
}
