/* SPDX-License-Identifier: Apache-2.0 */
/* See hash-key.h. The file is one line: the key, and a sum of it by which damage is seen. */
#include "supervisor/folders/hash-key.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/text.h"
#include "ipc/log.h"
#include "ipc/message-id.h"
#include "os/file.h"
#include "supervisor/folders/state-folder.h"
#include "supervisor/supervisor.h"

#define LINE_SIZE 50 /* with the line break */
#define SUM_OF    "hash.key"

struct line {
        char text[LINE_SIZE + 1];
};

static uint64_t hash_key_sum(const uint64_t key[2])
{
        return siphash_of((const uint8_t *)key, SUM_OF, strlen(SUM_OF)).low;
}

static struct line print_key(const uint64_t key[2])
{
        struct line line;

        snprintf(line.text, sizeof(line.text), "%016" PRIx64 "%016" PRIx64 " %016" PRIx64 "\n", key[0],
                 key[1], hash_key_sum(key));
        return line;
}

static bool parse_key(const char *text, size_t size, uint64_t key[2])
{
        struct line line;
        bool is_key;

        if (size != LINE_SIZE || sscanf(text, "%16" SCNx64 "%16" SCNx64, &key[0], &key[1]) != 2)
                return false;
        line = print_key(key);
        is_key = memcmp(line.text, text, LINE_SIZE) == 0;
        explicit_bzero(&line, sizeof(line));
        return is_key;
}

/* 0; -ENOENT; -EBADMSG: it is damaged; or what the disk says. */
static int read_hash_key(const char *path, uint64_t key[2])
{
        char *text;
        size_t size;
        bool is_key;
        int r = file_read(path, LINE_SIZE, &text, &size);

        if (r < 0)
                return r == -EFBIG || r == -EINVAL ? -EBADMSG : r;
        is_key = parse_key(text, size, key);
        explicit_bzero(text, size);
        free(text);
        if (!is_key)
                return -EBADMSG;
        return chmod(path, 0600) < 0 ? -errno : 0; /* a copy from a backup may be readable by others */
}

static int make_hash_key(const char *path, uint64_t key[2])
{
        _cleanup_free_ char *temporary = format_string("%s.new", path);
        struct line line;
        int r;

        if (!temporary)
                return -ENOMEM;
        if (getrandom(key, SIPHASH_KEY_SIZE, 0) != SIPHASH_KEY_SIZE)
                return errno ? -errno : -EIO;
        line = print_key(key);
        r = file_replace(path, temporary, line.text, LINE_SIZE,
                         &(struct file_rules){.mode = 0600, .durable = true});
        explicit_bzero(&line, sizeof(line));
        return r;
}

static uint64_t count_rows(struct ledger *ledger)
{
        uint64_t count = 0;

        for (const char *name = ""; (name = ledger_next_watch(ledger, name));)
                count += (uint64_t)ledger_count(ledger, name);
        return count;
}

static void tell_lost_key(struct supervisor *supervisor, const char *path, const char *what)
{
        uint64_t rows = count_rows(supervisor->controller.ledger);

        if (rows > 0)
                log_write(
                        LOG_ERR, MESSAGE_ID_HASH_KEY_LOST, NULL,
                        "%s %s; whether the %" PRIu64
                        " objects that were handled have changed since is unknown: each of them runs once; no change and no deletion is lost",
                        path, what, rows);
}

/* The file that names the last life's key may be of an earlier release, or lost; then the last life's key is
 * unknown. */
static bool is_another(const struct supervisor *supervisor, const uint64_t key[2])
{
        return supervisor->life.key_sum != 0 && supervisor->life.key_sum != hash_key_sum(key);
}

int hash_key_begin(struct supervisor *supervisor, struct error *error)
{
        _cleanup_free_ char *path = format_string("%s/hash.key", supervisor->options->state_directory);
        uint64_t key[2] = {0, 0};
        int r;

        if (!path)
                return error_set(error, -ENOMEM, "no memory");
        r = read_hash_key(path, key);
        if (r == -ENOENT || r == -EBADMSG) {
                bool is_damaged = r == -EBADMSG;

                r = make_hash_key(path, key);
                if (r >= 0)
                        tell_lost_key(supervisor, path,
                                      is_damaged
                                              ? "is damaged; a new key is made"
                                              : "is missing (removed, or the state folder is of an earlier "
                                                "release); a new key is made");
        } else if (r >= 0 && is_another(supervisor, key)) {
                tell_lost_key(
                        supervisor, path,
                        "is not the one of the last start (it is of another state folder); it is used");
        }
        if (r >= 0) {
                supervisor->life.key_sum = hash_key_sum(key);
                state_folder_note_time(supervisor);
        }
        memcpy(supervisor->hash_key, key, sizeof(supervisor->hash_key));
        explicit_bzero(key, sizeof(key));
        return r < 0 ? error_set(error, r, "%s: %s", path, strerror(-r)) : 0;
}

void hash_key_wipe(struct supervisor *supervisor)
{
        explicit_bzero(supervisor->hash_key, sizeof(supervisor->hash_key));
}
