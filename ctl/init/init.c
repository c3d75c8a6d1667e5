/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/init/init.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/exit-code.h"
#include "base/text.h"
#include "ctl/check/rbac.h"
#include "ctl/init/init-values.h"
#include "ctl/init/templates.h"
#include "ctl/output/output.h"
#include "os/file.h"

/* ---- a template becomes a text */

/* Further lines of a value begin where its first one does. */
static void append_indented(const char *lines, size_t column, struct text *out)
{
        for (const char *at = lines; at && *at; at++) {
                text_append(out, at, 1);
                if (*at == '\n')
                        text_printf(out, "%*s", (int)column, "");
        }
}

/* Expands a word from its '@' on; returns what follows the word. */
static const char *expand_word(const struct init_values *values, const char *at, const char *end,
                               size_t column, struct text *out)
{
        const char *close = memchr(at + 1, '@', (size_t)(end - at - 1));
        _cleanup_free_ char *name = close ? strndup(at + 1, (size_t)(close - at - 1)) : NULL;
        _cleanup_text_ struct text value = TEXT_EMPTY;

        if (!name || !init_values_write(values, name, &value)) {
                text_append(out, at, 1);
                return at + 1;
        }
        append_indented(value.data, column, out);
        return close + 1;
}

static void expand_line(const struct init_values *values, const char *line, const char *end,
                        struct text *out)
{
        _cleanup_text_ struct text expanded = TEXT_EMPTY;

        for (const char *at = line; at < end;)
                if (*at == '@')
                        at = expand_word(values, at, end, expanded.size, &expanded);
                else
                        text_append(&expanded, at++, 1);
        while (expanded.size > 0 && expanded.data[expanded.size - 1] == ' ')
                expanded.size--;
        if (expanded.size > 0 || line == end) {
                text_append_string(&expanded, "\n");
                text_append(out, expanded.data, expanded.size);
        }
}

/* The line after "@?WORD ", or NULL if it is left out. */
static const char *wanted_line(const struct init_values *values, const char *line, const char *end)
{
        char word[32];
        size_t size;
        bool inverted;

        if (strncmp(line, "@?", 2) != 0)
                return line;
        line += 2;
        inverted = *line == '!';
        line += inverted;
        size = strcspn(line, " \n");
        snprintf(word, sizeof(word), "%.*s", (int)size, line);
        line += size;
        if (init_values_has(values, word) == inverted)
                return NULL;
        return line < end ? line + 1 : line;
}

static char *expand(const struct init_values *values, const char *text)
{
        struct text out = TEXT_EMPTY;

        while (*text) {
                const char *end = strchrnul(text, '\n'), *line = wanted_line(values, text, end);

                if (line)
                        expand_line(values, line, end, &out);
                text = *end ? end + 1 : end;
        }
        return text_take(&out);
}

/* ---- files */

static int refuse_path(const char *path, int error)
{
        fprintf(stderr, "reconciledctl: %s: %s\n", path, strerror(error));
        return EXIT_CODE_IO;
}

static int write_file(const char *path, const char *text)
{
        bool runs = strncmp(text, "#!", 2) == 0;
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, runs ? 0777 : 0666);
        int r = fd >= 0 ? file_write_all(fd, text, strlen(text)) : -errno;

        if (fd >= 0 && close(fd) < 0 && r >= 0)
                r = -errno;
        return r < 0 ? refuse_path(path, -r) : EXIT_CODE_OK;
}

/* The path in the folder that a template is written to; NULL if it is for another language. */
static const char *path_of_template(const struct init_values *values, const char *name)
{
        const char *slash = strchr(name, '/');
        size_t size = strlen(values->language->name);

        if (strcmp(name, "gitignore") == 0)
                return ".gitignore";
        if (!slash || strncmp(name, "deploy/", 7) == 0)
                return name;
        return (size_t)(slash - name) == size && strncmp(name, values->language->name, size) == 0 ? slash + 1
                                                                                                  : NULL;
}

static int write_template(const struct init_values *values, const struct template *template)
{
        const char *name = path_of_template(values, template->name),
                   *slash = name ? strchr(name, '/') : NULL;
        _cleanup_free_ char *text = NULL, *path = NULL, *folder = NULL;

        if (!name)
                return EXIT_CODE_OK;
        text = expand(values, template->text);
        path = format_string("%s/%s", values->options->folder, name);
        folder = format_string("%s/%.*s", values->options->folder, slash ? (int)(slash - name) : 0, name);
        if (!text || !path || !folder)
                return refuse_path(name, ENOMEM);
        if (slash && mkdir(folder, 0777) < 0 && errno != EEXIST)
                return refuse_path(folder, errno);
        return write_file(path, text);
}

/* ---- roles */

static const char *find_template(const char *name)
{
        for (const struct template *template = templates; template->name; template ++)
                if (strcmp(template->name, name) == 0)
                        return template->text;
        return NULL;
}

/* The configuration, with a handler that is there before the operator's own is built. -1 with errno. */
static int open_configuration(const struct init_values *values)
{
        const struct language any = {"", "", "exec: [/bin/true]", NULL, NULL, NULL, NULL};
        struct init_values stand_in = *values;
        _cleanup_free_ char *text = NULL;
        int fd = memfd_create("reconciled.yaml", MFD_CLOEXEC);

        stand_in.language = &any;
        text = expand(&stand_in, find_template("reconciled.yaml"));
        if (fd >= 0 && (!text || file_write_all(fd, text, strlen(text)) < 0)) {
                close(fd);
                return -1;
        }
        return fd;
}

/* `reconciledctl rbac` prints. */
static int print_roles(const struct init_values *values, int output)
{
        _cleanup_free_ char *plural = format_string("%s=%s", values->options->kind, values->plural);
        struct rbac_options options = {.namespace = values->name,
                                       .service_account = values->name,
                                       .plural = {plural},
                                       .plural_count = 1};
        int fd = open_configuration(values), own = dup(STDOUT_FILENO), r = EXIT_CODE_SOFTWARE;
        char path[64];

        if (fd >= 0 && own >= 0 && plural && dup2(output, STDOUT_FILENO) >= 0) {
                snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
                r = ctl_rbac(path, &options, false);
                if (fflush(stdout) != 0)
                        r = EXIT_CODE_IO;
                dup2(own, STDOUT_FILENO);
        }
        if (fd >= 0)
                close(fd);
        if (own >= 0)
                close(own);
        return r;
}

static int write_roles(const struct init_values *values)
{
        _cleanup_free_ char *path = format_string("%s/deploy/rbac.yaml", values->options->folder);
        int fd = path ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666) : -1, r;

        if (fd < 0)
                return refuse_path("deploy/rbac.yaml", errno);
        r = print_roles(values, fd);
        close(fd);
        return r;
}

/* ---- the command */

static int tell_created(const struct init_values *values, bool json)
{
        const char *folder = values->options->folder;
        cJSON *answer;
        int r;

        if (!json) {
                printf("%s: an operator for %s (%s.%s), with its handler in %s\n"
                       "    cd %s && make test     # one run, on an API server in memory\n"
                       "    cd %s && make run      # an API server in memory and the operator, until Ctrl-C\n"
                       "%s/README.md says what to change first.\n",
                       folder, values->options->kind, values->plural, values->options->group,
                       values->language->source, folder, folder, folder);
                return EXIT_CODE_OK;
        }
        answer = cJSON_CreateObject();
        cJSON_AddStringToObject(answer, "folder", folder);
        cJSON_AddStringToObject(answer, "handler", values->language->source);
        r = ctl_print_json(answer);
        cJSON_Delete(answer);
        return r < 0 ? EXIT_CODE_SOFTWARE : EXIT_CODE_OK;
}

int ctl_init(const struct init_options *options, bool json)
{
        struct init_values values;
        int r = init_values_read(options, &values);

        if (r != EXIT_CODE_OK)
                return r;
        if (mkdir(options->folder, 0777) < 0)
                return refuse_path(options->folder, errno);
        for (const struct template *template = templates; template->name && r == EXIT_CODE_OK; template ++)
                r = write_template(&values, template);
        if (r == EXIT_CODE_OK)
                r = write_roles(&values);
        return r == EXIT_CODE_OK ? tell_created(&values, json) : r;
}
