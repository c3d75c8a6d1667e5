/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/ctl-answer.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/duration.h"
#include "base/exit-code.h"
#include "base/text.h"
#include "ctl/output/output.h"
#include "ipc/message-table.h"
#include "ipc/message.h"
#include "os/folder.h"
#include "os/owner-rights.h"
#include "os/syscall.h"
#include "store/reader.h"
#include "json/json.h"

uint64_t ctl_number(const cJSON *object, const char *name)
{
        double number = json_number(json_member(object, name), 0);

        return number > 0 ? (uint64_t)number : 0;
}

bool ctl_is(const cJSON *object, const char *name)
{
        return cJSON_IsTrue(json_member(object, name));
}

const char *ctl_duration(uint64_t usec, char *buffer, size_t size)
{
        uint64_t unit = usec < USEC_PER_SEC      ? USEC_PER_MSEC
                        : usec < USEC_PER_MINUTE ? 100 * USEC_PER_MSEC
                                                 : USEC_PER_SEC;

        return duration_format(usec < USEC_PER_MSEC ? usec : usec / unit * unit, buffer, size);
}

const char *ctl_since(const cJSON *object, const char *name, char *buffer, size_t size)
{
        uint64_t then = ctl_number(object, name), now = clock_realtime_usec();

        return then == 0 || then > now ? "-" : ctl_duration(now - then, buffer, size);
}

const char *ctl_until(const cJSON *object, const char *name, char *buffer, size_t size)
{
        uint64_t then = ctl_number(object, name), now = clock_realtime_usec();

        return then > now ? ctl_duration(then - now, buffer, size) : "a moment";
}

/* ---- one question, one answer, in as many pages as it takes; blocking, with a bound */

#define ANSWER_TIMEOUT_MS 10000
#define ANSWER_MAX        ((size_t)256 * 1024 * 1024)

static int no_answer(struct error *error)
{
        return error_set(error, -ETIMEDOUT, "the operator does not answer");
}

/* The timeout bounds connect() as well: an operator that is stopped (SIGSTOP) accepts no connections. */
static int bound_sending(int fd)
{
        struct timeval timeout = {.tv_sec = ANSWER_TIMEOUT_MS / 1000};

        return setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) < 0 ? -errno : 0;
}

static int connect_to(const char *runtime_directory, struct error *error)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        _cleanup_close_ int fd = -1;
        int length =
                snprintf(address.sun_path, sizeof(address.sun_path), "%s%s/control.sock", runtime_directory,
                         folder_is_open_volume(runtime_directory) ? "/" FOLDER_IN_VOLUME : "");

        if (length < 0 || (size_t)length >= sizeof(address.sun_path))
                return error_set(error, -ENAMETOOLONG, "%s: the path is too long for a socket",
                                 runtime_directory);
        fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        if (fd < 0 || bound_sending(fd) < 0)
                return error_set(error, -errno, "%s", strerror(errno));
        if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
                return TAKE_FD(fd);
        if (errno == EAGAIN)
                return no_answer(error);
        if (errno == ENOENT || errno == ECONNREFUSED)
                return error_set(error, -ENOENT,
                                 "no operator is running with runtime directory %s (its control socket %s)",
                                 runtime_directory, errno == ENOENT ? "does not exist" : "is not answered");
        if (errno == EACCES || errno == EPERM)
                return error_set(error, -EACCES,
                                 "%s: permission denied; run as root or as the operator's user",
                                 address.sun_path);
        return error_set(error, -errno, "%s: %s", address.sun_path, strerror(errno));
}

#define ARGUMENTS_MAX 8

static int send_query(int fd, const char *command, char **argument, struct error *error)
{
        _cleanup_text_ struct text packet = TEXT_EMPTY;
        struct record_string string[ARGUMENTS_MAX];
        struct message_query query = {.version = PROTOCOL_VERSION, .command = command, .argument = string};
        ssize_t sent;
        int r;

        for (; argument && *argument && query.argument_count < ARGUMENTS_MAX; argument++)
                string[query.argument_count++].value = *argument;
        r = message_encode(MESSAGE_QUERY, &query, &packet);

        if (r < 0)
                return error_set(error, r, "%s", strerror(-r));
        sent = sys_send(fd, packet.data, packet.size);
        /* Closed already: what it has said before, or that, is found out by reading. */
        if (sent == -EPIPE || sent == -ECONNRESET)
                return 0;
        return sent == -EAGAIN ? no_answer(error)
               : sent < 0      ? error_set(error, (int)sent, "%s", strerror((int)-sent))
                               : 0;
}

static int receive_page(int fd, struct text *body, bool *ret_last, struct error *error)
{
        static char buffer[MESSAGE_SIZE_MAX];
        _cleanup_message_ struct message *message = NULL;
        struct pollfd pollfd = {.fd = fd, .events = POLLIN};
        ssize_t size;

        if (poll(&pollfd, 1, ANSWER_TIMEOUT_MS) <= 0)
                return no_answer(error);
        size = sys_receive(fd, buffer, sizeof(buffer));
        if (size <= 0)
                return error_set(
                        error, -EACCES,
                        "the operator closed the connection: it refuses other users than root and its "
                        "own, or restarts in place just now");
        if (message_decode(buffer, (size_t)size, &message) < 0 || message->type != MESSAGE_REPLY)
                return error_set(error, -EPROTO, "the operator's answer cannot be understood");
        if (message->reply.error[0])
                return error_set(error, -EPROTO, "%s", message->reply.error);
        if (body->size + message->reply.body_size > ANSWER_MAX)
                return error_set(error, -EMSGSIZE, "the operator's answer is too large");
        *ret_last = message->reply.last;
        return text_append(body, message->reply.body, message->reply.body_size);
}

int ctl_query(const char *runtime_directory, const char *command, char **argument, cJSON **ret,
              struct error *error)
{
        _cleanup_text_ struct text body = TEXT_EMPTY;
        _cleanup_close_ int fd = connect_to(runtime_directory, error);
        bool last = false;
        int r = fd < 0 ? fd : send_query(fd, command, argument, error);

        while (r >= 0 && !last)
                r = receive_page(fd, &body, &last, error);
        if (r < 0)
                return r;
        *ret = json_parse(body.data, body.size);
        return *ret ? 0 : error_set(error, -EPROTO, "the operator's answer is not JSON");
}

int ctl_command(const char *runtime_directory, const char *command, char **argument, struct error *error)
{
        _cleanup_json_ cJSON *answer = NULL;

        return ctl_query(runtime_directory, command, argument, &answer, error);
}

void ctl_clean_texts(cJSON *item)
{
        if (cJSON_IsString(item))
                utf8_clean(item->valuestring);
        for (cJSON *child = item->child; child; child = child->next)
                ctl_clean_texts(child);
}

void ctl_show_answer(cJSON *answer, enum form form, void (*print)(const cJSON *answer, const void *userdata),
                     const void *userdata)
{
        if (form == FORM_JSON)
                (void)ctl_print_json(answer);
        else if (form == FORM_YAML)
                ctl_print_yaml(answer);
        else {
                ctl_clean_texts(answer);
                print(answer, userdata);
        }
}

int ctl_show(const char *runtime_directory, const char *command, const char *const *argument, enum form form,
             void (*print)(const cJSON *answer, const void *userdata), const void *userdata)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        _cleanup_json_ cJSON *answer = NULL;
        int r = ctl_query(runtime_directory, command, (char **)(uintptr_t)argument, &answer, &error);

        if (r < 0)
                return ctl_failed(r, &error);
        ctl_show_answer(answer, form, print, userdata);
        return EXIT_CODE_OK;
}

/* The object is read where it lies. The operator never sees an object, and neither do we: we see only what
 * identifies it. */
int ctl_read_store(const cJSON *answer, const char *key, struct store_object *ret)
{
        const cJSON *where = json_member(answer, "store");
        struct owner_rights rights;
        struct store *store = NULL;
        int r = owner_enter(json_text(where, "folder"), &rights);

        if (r < 0)
                return r;
        r = store_reader_new(json_text(where, "folder"), &store);
        if (r >= 0)
                r = store_read(store, ctl_number(where, "generation"), key, ret);
        store_free(store);
        owner_leave(&rights);
        return r == -ENAMETOOLONG ? -ENOENT : r; /* so long is no name */
}
