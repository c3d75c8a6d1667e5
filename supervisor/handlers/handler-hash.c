/* SPDX-License-Identifier: Apache-2.0 */
/* See handler-hash.h. */
#include "supervisor/handlers/handler-hash.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/cleanup.h"
#include "base/sha256.h"
#include "base/text.h"
#include "controller/watch.h"
#include "ledger/ledger.h"
#include "os/file-stamp.h"

#define STEP  ((size_t)256 << 10) /* bytes: 50 us from the page cache, some milliseconds from a disk */
#define BLOCK 64                  /* of SHA-256 */

enum file_state {
        FILE_WAITS,
        FILE_READ,
        FILE_NONE,    /* a word, a folder, a device: nothing to read */
        FILE_REFUSED, /* there is no right to read it */
        FILE_FAILED,
};

struct file {
        char *path;
        enum file_state state;
        int error; /* negative errno */
        uint64_t size;
        struct stat info; /* of what was read; mode 0: no regular file */
        XXH128_hash_t digest;
};

struct handler_hash {
        uint8_t key[HANDLER_KEY_SIZE];
        struct file *file;
        size_t count, next;
        int fd; /* of the next one, while it is read */
        uint64_t taken;
        XXH3_state_t *state;
        uint8_t buffer[STEP];
};

int handler_hash_new(const uint8_t key[HANDLER_KEY_SIZE], struct handler_hash **ret)
{
        struct handler_hash *hash = calloc(1, sizeof(*hash));

        if (hash)
                hash->state = XXH3_createState();
        if (!hash || !hash->state) {
                free(hash);
                return -ENOMEM;
        }
        memcpy(hash->key, key, HANDLER_KEY_SIZE);
        hash->fd = -1;
        *ret = hash;
        return 0;
}

void handler_hash_free(struct handler_hash *hash)
{
        if (!hash)
                return;
        for (size_t i = 0; i < hash->count; i++)
                free(hash->file[i].path);
        free(hash->file);
        if (hash->fd >= 0)
                close(hash->fd);
        XXH3_freeState(hash->state);
        explicit_bzero(hash->key, sizeof(hash->key));
        free(hash);
}

/* Handlers are started in the root folder. */
static int path_of(const char *argument, char **ret)
{
        if (asprintf(ret, "%s%s", argument[0] == '/' ? "" : "/", argument) >= 0)
                return 0;
        *ret = NULL;
        return -ENOMEM;
}

static struct file *find_file(const struct handler_hash *hash, const char *path)
{
        for (size_t i = 0; i < hash->count; i++)
                if (strcmp(hash->file[i].path, path) == 0)
                        return &hash->file[i];
        return NULL;
}

static int add_file(struct handler_hash *hash, const char *argument)
{
        _cleanup_free_ char *path = NULL;
        struct file *grown;
        int r = path_of(argument, &path);

        if (r < 0 || find_file(hash, path))
                return r;
        grown = reallocarray(hash->file, hash->count + 1, sizeof(*grown));
        if (!grown)
                return -ENOMEM;
        hash->file = grown;
        grown[hash->count++] = (struct file){.path = TAKE_PTR(path)};
        return 0;
}

int handler_hash_add(struct handler_hash *hash, const struct config_handler *handler)
{
        int r = 0;

        for (size_t i = 0; i < handler->exec_count && r >= 0; i++)
                r = add_file(hash, handler->exec[i]);
        return r;
}

/* ---- files */

static void end_file(struct handler_hash *hash, struct file *file, enum file_state state, int error)
{
        file->state = state;
        file->error = error;
        file->digest = XXH3_128bits_digest(hash->state);
        if (hash->fd >= 0)
                close(hash->fd);
        hash->fd = -1;
        hash->next++;
}

static enum file_state state_for(int error)
{
        switch (error) {
        case -ENOENT:
        case -ENOTDIR:
        case -ENAMETOOLONG:
        case -ELOOP:
                return FILE_NONE;
        case -EACCES:
        case -EPERM:
                return FILE_REFUSED;
        default:
                return FILE_FAILED;
        }
}

/* A device or a FIFO is not even opened. */
static int open_file(struct file *file)
{
        struct stat info;
        int fd;

        if (stat(file->path, &info) < 0)
                return -errno;
        if (!S_ISREG(info.st_mode))
                return -ENOENT;
        file->info = info;
        fd = open(file->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode)) {
                close(fd);
                return -ENOENT;
        }
        file->info = info;
        file->size = (uint64_t)info.st_size;
        return fd;
}

static void begin_file(struct handler_hash *hash, struct file *file)
{
        int fd = open_file(file);

        hash->taken = 0;
        (void)XXH3_128bits_reset(hash->state);
        if (fd < 0)
                end_file(hash, file, state_for(fd), fd);
        else
                hash->fd = fd;
}

static void read_file(struct handler_hash *hash, struct file *file)
{
        ssize_t n;

        do
                n = read(hash->fd, hash->buffer, sizeof(hash->buffer));
        while (n < 0 && errno == EINTR);
        if (n < 0) {
                end_file(hash, file, FILE_FAILED, -errno);
                return;
        }
        (void)XXH3_128bits_update(hash->state, hash->buffer, (size_t)n);
        hash->taken += (uint64_t)n;
        if (n == 0 || hash->taken >= HANDLER_FILE_MAX)
                end_file(hash, file, FILE_READ, 0);
}

int handler_hash_step(struct handler_hash *hash)
{
        if (hash->next == hash->count)
                return 0;
        if (hash->fd < 0)
                begin_file(hash, &hash->file[hash->next]);
        else
                read_file(hash, &hash->file[hash->next]);
        return hash->next < hash->count;
}

/* ---- the whole */

static void hmac(const uint8_t key[HANDLER_KEY_SIZE], struct text *message, char ret[HANDLER_HASH_SIZE])
{
        uint8_t outer[BLOCK + SHA256_SIZE], sum[SHA256_SIZE];

        /* The message begins with the room for this. */
        for (size_t i = 0; i < BLOCK; i++) {
                uint8_t byte = i < HANDLER_KEY_SIZE ? key[i] : 0;

                message->data[i] = (char)(byte ^ 0x36);
                outer[i] = byte ^ 0x5c;
        }
        sha256(message->data, message->size, outer + BLOCK);
        sha256(outer, sizeof(outer), sum);
        for (size_t i = 0; i < HANDLER_HASH_SIZE / 2; i++)
                snprintf(ret + 2 * i, 3, "%02x", sum[i]);
        explicit_bzero(outer, sizeof(outer));
}

static int begin_message(struct text *message)
{
        static const uint8_t room[BLOCK];

        return text_append(message, room, sizeof(room));
}

/* Its length before it: no two handlers make the same message. */
static void add_part(struct text *message, char what, const void *bytes, size_t size)
{
        text_printf(message, "%c%zu:", what, size);
        text_append(message, bytes, size);
}

static void add_text(struct text *message, char what, const char *string)
{
        if (string)
                add_part(message, what, string, strlen(string));
}

static void tell_unread(const struct file *file, struct text *unread)
{
        text_printf(unread, "%s%s: %s", unread->size > 0 ? "; " : "", file->path, strerror(-file->error));
}

static int add_content(const struct handler_hash *hash, const char *argument, struct text *message,
                       struct text *unread)
{
        _cleanup_free_ char *path = NULL;
        const struct file *file;
        XXH128_canonical_t digest;
        int r = path_of(argument, &path);

        if (r < 0)
                return r;
        file = find_file(hash, path);
        if (!file)
                return -ENOENT;
        if (file->state == FILE_READ) {
                XXH128_canonicalFromHash(&digest, file->digest);
                text_printf(message, "f%" PRIu64 ":", file->size);
                text_append(message, &digest, sizeof(digest));
        } else if (file->state == FILE_REFUSED) {
                text_append_string(message, "?");
                tell_unread(file, unread);
        } else if (file->state != FILE_NONE) {
                tell_unread(file, unread);
                return -EIO;
        }
        return 0;
}

static int compare_pairs(const void *a, const void *b)
{
        const struct config_pair *const *left = a, *const *right = b;

        return strcmp((*left)->name, (*right)->name);
}

/* In the order of their names: the order in the file is nothing that a handler sees. */
static int add_pairs(struct text *message, char what, const struct config_pair *pairs, size_t count)
{
        _cleanup_free_ const struct config_pair **pair = calloc(count ? count : 1, sizeof(*pair));

        if (!pair)
                return -ENOMEM;
        for (size_t i = 0; i < count; i++)
                pair[i] = &pairs[i];
        qsort(pair, count, sizeof(*pair), compare_pairs);
        for (size_t i = 0; i < count; i++) {
                add_text(message, what, pair[i]->name);
                add_text(message, '=', pair[i]->value);
        }
        return 0;
}

static int write_message(const struct handler_hash *hash, const struct config_handler *handler,
                         struct text *message, struct text *unread)
{
        int result = begin_message(message);

        text_printf(message, "h%d:", (int)handler->kind);
        for (size_t i = 0; i < handler->exec_count && (result >= 0 || result == -EIO); i++) {
                int r;

                add_text(message, 'a', handler->exec[i]);
                r = add_content(hash, handler->exec[i], message, unread);
                result = r < 0 ? r : result;
        }
        if (result >= 0)
                result = add_pairs(message, 'e', handler->environment, handler->environment_count);
        if (result >= 0) /* where they come from, not what is in them */
                result = add_pairs(message, 'c', handler->credentials, handler->credentials_count);
        add_text(message, 'k', handler->kubernetes_file);
        add_text(message, 's', handler->kubernetes_account);
        add_text(message, 'n', handler->kubernetes_namespace);
        text_printf(message, "r%" PRIu64 ":", handler->request_max);
        add_text(message, 'u', handler->user);
        add_text(message, 'v', handler->version);
        return result < 0 ? result : message->failed || unread->failed ? -ENOMEM : 0;
}

int handler_hash_get(const struct handler_hash *hash, const struct config_handler *handler,
                     char ret[HANDLER_HASH_SIZE], struct text *unread)
{
        _cleanup_text_ struct text message = TEXT_EMPTY;
        int r = write_message(hash, handler, &message, unread);

        if (r >= 0)
                hmac(hash->key, &message, ret);
        if (message.data)
                explicit_bzero(message.data, message.size);
        return r;
}

uint64_t handler_hash_stamp(const struct handler_hash *hash, const struct config_handler *handler)
{
        uint64_t stamp = 0;

        for (size_t i = 0; i < handler->exec_count; i++) {
                _cleanup_free_ char *path = NULL;
                const struct file *file =
                        path_of(handler->exec[i], &path) >= 0 ? find_file(hash, path) : NULL;

                stamp = file_stamp_add(stamp, file ? &file->info : NULL);
        }
        return stamp;
}

void handler_key_name(const uint8_t key[HANDLER_KEY_SIZE], char ret[HANDLER_HASH_SIZE])
{
        _cleanup_text_ struct text message = TEXT_EMPTY;

        ret[0] = '\0';
        if (begin_message(&message) >= 0 && text_append_string(&message, "key") >= 0)
                hmac(key, &message, ret);
}

uint64_t handler_stamp_now(const struct config_handler *handler)
{
        uint64_t stamp = 0;

        for (size_t i = 0; i < handler->exec_count; i++)
                stamp = file_stamp_add_argument(stamp, handler->exec[i]);
        return stamp;
}
