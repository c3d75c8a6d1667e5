/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/folders/leftover-finalizers.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "config/config-watch.h"
#include "ipc/log.h"
#include "ipc/message-id.h"
#include "os/file.h"
#include "supervisor/supervisor.h"

#define FILE_NAME "finalizers"
#define FILE_MAX  (256 * 1024)

struct leftover_finalizer {
        char finalizer[256], kind[256], api_version[256], watch[256];
        uint64_t objects; /* that the ledger knows */
};

/* "Widget.v1.example.com", as kubectl takes it. */
static void format_kind(const struct leftover_finalizer *left, char *buffer, size_t size)
{
        const char *slash = strchr(left->api_version, '/');

        if (slash)
                snprintf(buffer, size, "%s.%s.%.*s", left->kind, slash + 1, (int)(slash - left->api_version),
                         left->api_version);
        else
                snprintf(buffer, size, "%s", left->kind);
}

static bool names_include(const char *list, const char *word)
{
        for (size_t size; *list; list += size + (list[size] == ',')) {
                size = strcspn(list, ",");
                if (size == strlen(word) && strncmp(list, word, size) == 0)
                        return true;
        }
        return false;
}

/* Whether a watch puts the same finalizer on such objects, or takes it off them. One that has another id now
 * does so no more, and a new watch with that finalizer does not look at the objects of the former one. */
static bool is_looked_after(const struct supervisor *supervisor, const struct leftover_finalizer *left)
{
        const struct config *config = supervisor->config;
        struct config_watch former = {.kind = (char *)(uintptr_t)left->kind,
                                      .api_version = (char *)(uintptr_t)left->api_version};

        const struct config_watch *same = config_watch_find(config, left->watch);

        if (same && config_is_of_kind(same, &former) && !names_include(same->finalizers, left->finalizer))
                return false;
        for (size_t i = 0; i < config->watch_count; i++)
                if (!config->watch[i].owner && config_is_of_kind(&config->watch[i], &former) &&
                    names_include(config->watch[i].finalizers, left->finalizer))
                        return true;
        return false;
}

static void log_leftover(const struct supervisor *supervisor, const struct leftover_finalizer *left)
{
        char kind[1024];

        format_kind(left, kind, sizeof(kind));
        log_write(
                LOG_WARNING, MESSAGE_ID_FINALIZERS_LEFT, LOG_FIELDS({"RECONCILED_WATCH", left->watch}),
                "objects of kind %s may carry the finalizer %s of watch %s, which no configured watch takes "
                "off: they cannot be deleted until it is taken off (the watch's handler ran for %" PRIu64
                " of them). For a while, configure a watch of that kind with `finalizer: false`, the same "
                "operator name and the same id, or run: kubectl get %s -A -o json | jq '.items[] | "
                "select(.metadata.finalizers // [] | index(\"%s\")) | .metadata.finalizers -= [\"%s\"]' | "
                "kubectl replace -f -; then remove its line from %s/" FILE_NAME,
                kind, left->finalizer, left->watch, left->objects, kind, left->finalizer, left->finalizer,
                supervisor->options->state_directory);
}

static int add_leftover(struct supervisor *supervisor, struct leftover_finalizer *left)
{
        struct leftover_finalizer *grown =
                reallocarray(supervisor->leftover.item, supervisor->leftover.count + 1, sizeof(*grown));
        int64_t objects = ledger_count(supervisor->controller.ledger, left->watch);

        if (!grown)
                return -ENOMEM;
        left->objects = objects > 0 ? (uint64_t)objects : 0;
        supervisor->leftover.item = grown;
        supervisor->leftover.item[supervisor->leftover.count++] = *left;
        log_leftover(supervisor, left);
        return 0;
}

static void add_line(struct text *text, const char *finalizer, const char *kind, const char *api_version,
                     const char *watch)
{
        text_printf(text, "%s %s %s %s\n", finalizer, kind, api_version, watch);
}

/* Writes in place: a SIGKILL leaves the one text or the other. */
static int write_leftovers(const char *path, const struct text *text)
{
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600), r = 0;

        if (fd < 0)
                return -errno;
        if (pwrite(fd, text->data ? text->data : "", text->size, 0) != (ssize_t)text->size ||
            ftruncate(fd, (off_t)text->size) < 0)
                r = -EIO;
        close(fd);
        return r;
}

static int read_leftovers(struct supervisor *supervisor, char *content, struct text *ret)
{
        char *rest = content, *line;

        while ((line = strsep(&rest, "\n"))) {
                struct leftover_finalizer left = {0};
                int r = 0;

                if (sscanf(line, "%255s %255s %255s %255s", left.finalizer, left.kind, left.api_version,
                           left.watch) != 4 ||
                    is_looked_after(supervisor, &left))
                        continue;
                add_line(ret, left.finalizer, left.kind, left.api_version, left.watch);
                r = add_leftover(supervisor, &left);
                if (r < 0)
                        return r;
        }
        return 0;
}

int leftover_finalizers_review(struct supervisor *supervisor)
{
        const struct config *config = supervisor->config;
        _cleanup_free_ char *path = NULL, *content = NULL;
        _cleanup_text_ struct text text = TEXT_EMPTY;
        size_t size = 0;
        int r;

        leftover_finalizers_free(supervisor);
        path = format_string("%s/" FILE_NAME, supervisor->options->state_directory);
        if (!path)
                return -ENOMEM;
        r = file_read(path, FILE_MAX, &content, &size);
        if (r >= 0)
                r = read_leftovers(supervisor, content, &text);
        if (r < 0 && r != -ENOENT)
                return r;
        for (size_t i = 0; i < config->watch_count; i++)
                if (config->watch[i].finalizer)
                        add_line(&text, config->watch[i].finalizer_key, config->watch[i].kind,
                                 config->watch[i].api_version, config->watch[i].name);
        return text.failed ? -ENOMEM : write_leftovers(path, &text);
}

void leftover_finalizers_free(struct supervisor *supervisor)
{
        free(supervisor->leftover.item);
        supervisor->leftover.item = NULL;
        supervisor->leftover.count = 0;
}

void leftover_finalizers_write_status(const struct supervisor *supervisor, struct text *json)
{
        FOREACH_ARRAY(left, supervisor->leftover.item, supervisor->leftover.count) {
                text_append_string(json, "{");
                json_string(json, "watch", left->watch);
                json_string(json, "apiVersion", left->api_version);
                json_string(json, "kind", left->kind);
                json_string(json, "finalizer", left->finalizer);
                json_uint64(json, "objects", left->objects);
                json_close(json, "},");
        }
}
