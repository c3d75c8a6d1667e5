/* SPDX-License-Identifier: Apache-2.0 */
/* Finds, parses, merges and checks the files of a configuration. */
#include "config/config.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "base/text.h"
#include "config/check/check.h"
#include "config/handler-limits.h"
#include "config/read/problem.h"
#include "config/table.h"
#include "config/watch-notes.h"
#include "config/yaml-reader.h"
#include "os/file.h"

#define FILE_SIZE_MAX  ((size_t)1024 * 1024)
#define DEFAULT_FILE   RECONCILED_SYSCONFDIR "/reconciled.yaml"
#define DEFAULT_FOLDER RECONCILED_SYSCONFDIR "/conf.d"

void config_free(struct config *config)
{
        if (!config)
                return;
        for (size_t i = 0; i < config->watch_count; i++)
                watch_done(&config->watch[i]);
        free(config->watch);
        table_done(&config_table, config);
        free(config->former_names);
        free(config->kubeconfig_file);
        free(config);
}

void config_problems_done(struct config_problems *problems)
{
        for (size_t i = 0; i < problems->count; i++) {
                free(problems->problem[i].file);
                free(problems->problem[i].key);
                free(problems->problem[i].text);
        }
        free(problems->problem);
        *problems = (struct config_problems){0};
}

void config_problem_add(struct config_problems *problems, const struct config_watch *watch, unsigned line,
                        bool warning, const char *key, const char *format, ...)
{
        struct config_problem *grown = reallocarray(problems->problem, problems->count + 1, sizeof(*grown));
        _cleanup_text_ struct text text = TEXT_EMPTY;
        struct config_problem *problem;
        va_list arguments;

        if (!grown)
                return;
        problems->problem = grown;
        problem = &grown[problems->count];
        *problem = (struct config_problem){.line = line > 0 ? line : watch->line, .warning = warning};
        text_printf(&text, "of watch %s: ", watch->name);
        va_start(arguments, format);
        text_vprintf(&text, format, arguments);
        va_end(arguments);
        problem->file = strdup(watch->file);
        problem->key = format_string("%s.%s", watch->place, key);
        problem->text = text_take(&text);
        problems->count += problem->file && problem->key && problem->text;
}

int config_problem_format(const struct config_problem *problem, struct text *line)
{
        text_append_string(line, problem->file);
        if (problem->line > 0)
                text_printf(line, ":%u", problem->line);
        if (problem->key && problem->key[0])
                text_printf(line, ": %s", problem->key);
        return text_printf(line, ": %s%s", problem->warning ? "warning: " : "", problem->text);
}

struct config *config_new(void)
{
        struct config *config = calloc(1, sizeof(*config));

        if (config)
                *config = (struct config){
                        .workers = 4,
                        .window = 32,
                        .heartbeat_deadline_usec = 20 * USEC_PER_SEC,
                        .stop_grace_usec = 30 * USEC_PER_SEC,
                        .page_limit = 500,
                        .replicas_duration_usec = 15 * USEC_PER_SEC,
                        .secrets_memory = UINT64_C(256) << 20,
                        .previous_total = UINT64_C(256) << 20,
                };
        return config;
}

/* ---- one file */

static int cannot_read(struct reader *reader, int error)
{
        reader->system_error = error;
        problem_add(reader, NULL, false, "", "cannot be read: %s", strerror(-error));
        return error;
}

static int read_whole(struct reader *reader, const char *path, char **ret, size_t *ret_size)
{
        int r = file_read(path, FILE_SIZE_MAX, ret, ret_size);

        if (r == -EINVAL || r == -EFBIG)
                problem_add(reader, NULL, false, "", "is not a regular file of at most 1 MiB");
        else if (r == -ENOMEM)
                reader->out_of_memory = true;
        else if (r < 0)
                return cannot_read(reader, r);
        if (r >= 0 && (strlen(*ret) != *ret_size || text_nests_too_deep(*ret))) {
                problem_add(reader, NULL, false, "",
                            "is not a configuration: NUL bytes, or too many nested brackets");
                return -EINVAL;
        }
        return r;
}

static void syntax_problem(struct reader *reader, const yaml_parser_t *parser)
{
        yaml_node_t place = {.start_mark = parser->problem_mark};

        /* libyaml does not set this error everywhere; every other error has a text. */
        if (parser->error == YAML_MEMORY_ERROR || !parser->problem) {
                reader->out_of_memory = true;
                return;
        }
        problem_add(reader, &place, false, "", "is not valid YAML (column %zu): %s%s%s",
                    parser->problem_mark.column + 1, parser->problem, parser->context ? ", " : "",
                    parser->context ? parser->context : "");
}

/* What is not read is reported. */
static void refuse_more(struct reader *reader, yaml_parser_t *parser)
{
        yaml_document_t document;
        yaml_node_t *root;

        if (!yaml_parser_load(parser, &document)) {
                syntax_problem(reader, parser);
                return;
        }
        root = yaml_document_get_root_node(&document);
        if (root)
                problem_add(reader, root, false, "",
                            "a second document begins here; a file holds one, put this into conf.d/*.yaml");
        yaml_document_delete(&document);
}

static void read_document(struct reader *reader, const char *content, size_t size)
{
        yaml_document_t document;
        yaml_parser_t parser;
        yaml_node_t *root;

        if (!yaml_parser_initialize(&parser)) {
                reader->out_of_memory = true;
                return;
        }
        yaml_parser_set_input_string(&parser, (const unsigned char *)content, size);
        if (!yaml_parser_load(&parser, &document)) {
                syntax_problem(reader, &parser);
        } else {
                reader->document = &document;
                root = yaml_document_get_root_node(&document);
                if (root)
                        read_mapping(reader, root, "", &config_table, reader->config);
                yaml_document_delete(&document);
                refuse_more(reader, &parser);
        }
        yaml_parser_delete(&parser);
}

static void read_config_file(struct reader *reader, const char *path)
{
        _cleanup_free_ char *content = NULL;
        size_t size;

        reader->file = path;
        if (read_whole(reader, path, &content, &size) >= 0)
                read_document(reader, content, size);
}

/* ---- the default place */

static int is_yaml(const struct dirent *entry)
{
        const char *dot = strrchr(entry->d_name, '.');

        return entry->d_name[0] != '.' && dot && strcmp(dot, ".yaml") == 0;
}

static void read_folder(struct reader *reader, const char *folder)
{
        struct dirent **entry = NULL;
        int count = scandir(folder, &entry, is_yaml, alphasort);

        if (count < 0 && errno != ENOENT) {
                reader->file = folder;
                cannot_read(reader, -errno);
        }
        for (int i = 0; i < count; i++) {
                _cleanup_free_ char *path = format_string("%s/%s", folder, entry[i]->d_name);

                if (path)
                        read_config_file(reader, path);
                else
                        reader->out_of_memory = true;
                free(entry[i]);
        }
        free(entry);
}

bool config_has_errors(const struct config_problems *problems)
{
        for (size_t i = 0; i < problems->count; i++)
                if (!problems->problem[i].warning)
                        return true;
        return false;
}

const char *config_own_action(const struct config_watch *watch)
{
        static const char *const action[] = {
                [OWN_NONE] = "", [OWN_SCHEDULE] = "schedule", [OWN_STARTUP] = "startup"};

        return action[watch->own];
}

unsigned config_at_once(const struct config *config, const struct config_watch *watch)
{
        const struct config_handler *handler = &watch->handler;
        unsigned takes = handler->batch_max > handler->parallel ? handler->batch_max : handler->parallel;

        return config->workers * (takes > 0 ? takes : 1);
}

static void check_within_window(const struct reader *reader, const struct config_watch *watch,
                                const char *name, unsigned value)
{
        unsigned window = reader->config->window;

        if (value > window)
                config_problem_add(reader->problems, watch, 0, false, name,
                                   "%u is more than `window`, the most runs that a worker has (%u); set "
                                   "window: %u at the top of the file, or lower this",
                                   value, window, value);
}

/* Another file may set `window`. */
static void check_window(const struct reader *reader, const struct config_watch *watch)
{
        check_within_window(reader, watch, "handler.parallel", watch->handler.parallel);
        check_within_window(reader, watch, "handler.batch.max", watch->handler.batch_max);
}

int config_load(const char *path, struct config **ret, struct config_problems *problems)
{
        _cleanup_(config_free_pointer) struct config *config = config_new();
        struct reader reader = {.config = config, .problems = problems};

        if (!config)
                return -ENOMEM;
        read_config_file(&reader, path ? path : DEFAULT_FILE);
        if (!path)
                read_folder(&reader, DEFAULT_FOLDER);
        reader.file = path ? path : DEFAULT_FILE;
        if (!config_has_errors(problems) || config->watch_count > 0)
                check_config(&reader);
        for (size_t i = 0; i < config->watch_count; i++)
                if (config->watch[i].name && config->watch[i].place && config->watch[i].file)
                        check_window(&reader, &config->watch[i]);
        places_done(&reader);
        if (reader.out_of_memory)
                return -ENOMEM;
        if (reader.system_error < 0)
                return reader.system_error;
        if (config_has_errors(problems))
                return -EINVAL;
        if (expand_owned(config) < 0 || config_name_notes(config) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < config->watch_count; i++) {
                config->watch[i].serial = config->watch[i].concurrency == 1;
                if (config->watch[i].concurrency == 0)
                        config->watch[i].concurrency = config_at_once(config, &config->watch[i]);
        }
        sum_user_pids(config);
        *ret = TAKE_PTR(config);
        return 0;
}
