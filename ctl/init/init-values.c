/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/init/init-values.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/exit-code.h"

/* ---- what there is to choose from */

static const struct language languages[] = {
        {"sh", "handler", "exec: [./handler]", NULL, NULL, NULL, NULL},
        {"python", "handler.py", "serve: [./handler.py]", "python3 test_handler.py", NULL, NULL,
         "__pycache__/"},
        {"node", "handler.js", "serve: [./handler.js]", "node test.js", NULL, NULL, NULL},
        {"go", "main.go", "serve: [./handler]", "go test ./...", "handler",
         "CGO_ENABLED=0 go build -trimpath -o handler .", "handler"},
        {"rust", "src/main.rs", "serve: [./handler]", "cargo test --quiet", "handler",
         "cargo build --quiet --release && cp target/release/handler .", "handler\ntarget/"},
        {"c", "handler.c", "serve: [./handler]", NULL, "handler",
         "cc -O2 -Wall -Wextra -o handler handler.c -lcjson", "handler"},
};

/* In a manifest, NAME (with its quotes) becomes what the language calls the object's name. */
static const struct child_kind {
        const char *kind, *api_version, *manifest;
} child_kinds[] = {
        {"ConfigMap", "v1",
         "{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": NAME},\n"
         " \"data\": {\"text\": \"an example\"}}"},
        {"Deployment", "apps/v1",
         "{\"apiVersion\": \"apps/v1\", \"kind\": \"Deployment\", \"metadata\": {\"name\": NAME},\n"
         " \"spec\": {\"replicas\": 1, \"selector\": {\"matchLabels\": {\"app\": NAME}},\n"
         "          \"template\": {\"metadata\": {\"labels\": {\"app\": NAME}},\n"
         "                       \"spec\": {\"containers\": [{\"name\": \"main\", \"image\": \"nginx:stable\"}]}}}}"},
        {"Job", "batch/v1",
         "{\"apiVersion\": \"batch/v1\", \"kind\": \"Job\", \"metadata\": {\"name\": NAME},\n"
         " \"spec\": {\"template\": {\"spec\": {\"restartPolicy\": \"Never\",\n"
         "                                \"containers\": [{\"name\": \"main\", \"image\": \"busybox:stable\",\n"
         "                                                \"command\": [\"sh\", \"-c\", \"exit 0\"]}]}}}}"},
        {"Service", "v1",
         "{\"apiVersion\": \"v1\", \"kind\": \"Service\", \"metadata\": {\"name\": NAME},\n"
         " \"spec\": {\"selector\": {\"app\": NAME}, \"ports\": [{\"port\": 80, \"protocol\": \"TCP\"}]}}"},
};

/* The types of fields. */
static const struct field_type {
        const char *name, *also, *schema, *column, *example, *of_go;
} field_types[] = {
        {"string", NULL, "{type: string}", "string", "\"text\"", "string"},
        {"integer", "int", "{type: integer}", "integer", "1", "int64"},
        {"number", NULL, "{type: number}", "number", "1.5", "float64"},
        {"boolean", "bool", "{type: boolean}", "boolean", "true", "bool"},
        {"string[]", NULL, "{type: array, items: {type: string}}", NULL, "[\"text\"]", "[]string"},
};

static const struct language *find_language(const char *name)
{
        for (size_t i = 0; i < ELEMENTS(languages); i++)
                if (strcmp(languages[i].name, name) == 0)
                        return &languages[i];
        return NULL;
}

static const struct child_kind *find_child_kind(const char *kind)
{
        for (size_t i = 0; kind && i < ELEMENTS(child_kinds); i++)
                if (strcmp(child_kinds[i].kind, kind) == 0)
                        return &child_kinds[i];
        return NULL;
}

/* The type in "name:type"; a name alone is a string. */
static const struct field_type *find_type(const char *field)
{
        const char *colon = strchr(field, ':'), *type = colon ? colon + 1 : "string";

        for (size_t i = 0; i < ELEMENTS(field_types); i++)
                if (strcmp(field_types[i].name, type) == 0 ||
                    (field_types[i].also && strcmp(field_types[i].also, type) == 0))
                        return &field_types[i];
        return NULL;
}

static const struct field_type *type_of(const char *field)
{
        const struct field_type *found = find_type(field);

        assert(found); /* check_fields() has looked */
        return found;
}

static int name_size(const char *field)
{
        return (int)strcspn(field, ":");
}

/* ---- reading the options */

#define SMALL   "abcdefghijklmnopqrstuvwxyz"
#define CAPITAL "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGIT   "0123456789"

_printf_(1, 2) static int refuse_init(const char *format, ...)
{
        va_list arguments;

        fputs("reconciledctl: ", stderr);
        va_start(arguments, format);
        vfprintf(stderr, format, arguments);
        va_end(arguments);
        fputs("\nTry 'reconciledctl init --help'.\n", stderr);
        return EXIT_CODE_USAGE;
}

/* The rule of Kubernetes for names: lowercase letters, digits and -, which is neither first nor last. */
static bool is_label(const char *text, size_t size)
{
        return size > 0 && size <= 63 && strspn(text, SMALL DIGIT "-") >= size && text[0] != '-' &&
               text[size - 1] != '-';
}

static bool is_domain(const char *text)
{
        bool dotted = false;

        for (;;) {
                size_t size = strcspn(text, ".");

                if (!is_label(text, size))
                        return false;
                if (!text[size])
                        return dotted;
                dotted = true;
                text += size + 1;
        }
}

static bool is_kind(const char *text)
{
        size_t size = strlen(text);

        return size <= 63 && text[0] && strchr(CAPITAL, text[0]) &&
               strspn(text, SMALL CAPITAL DIGIT) == size;
}

/* YAML 1.1, which many still read, has these for true and false. */
static bool is_truth_value(const char *field, int size)
{
        static const char words[] = " y n on off yes no true false null ";
        char word[16];

        return size < 8 && snprintf(word, sizeof(word), " %.*s ", size, field) > 0 && strstr(words, word);
}

static int check_fields(const struct init_options *options)
{
        for (size_t i = 0; i < options->field_count; i++) {
                const char *field = options->field[i];
                int size = name_size(field);

                if (size == 0 || !strchr(SMALL, field[0]) || (int)strspn(field, SMALL CAPITAL DIGIT) != size)
                        return refuse_init(
                                "--field %s: a name begins with a small letter, and has letters and digits",
                                field);
                if (is_truth_value(field, size))
                        return refuse_init(
                                "--field %s: YAML reads this word as a value of its own; take another name",
                                field);
                if (!find_type(field))
                        return refuse_init(
                                "--field %s: there are the types string, int, number, bool and string[]",
                                field);
                for (size_t j = 0; j < i; j++)
                        if (name_size(options->field[j]) == size &&
                            strncmp(options->field[j], field, (size_t)size) == 0)
                                return refuse_init("--field %s: there are two fields %.*s", field, size,
                                                   field);
        }
        return 0;
}

static int check_words(const struct init_values *values)
{
        const struct init_options *options = values->options;

        if (!is_label(values->name, strlen(values->name)) || !strchr(SMALL, values->name[0]))
                return refuse_init(
                        "%s: the folder names the operator: small letters, digits and -, a letter first",
                        values->name);
        if (!options->kind)
                return refuse_init(
                        "--kind says which kind of objects the operator handles, like --kind Widget");
        if (!is_kind(options->kind))
                return refuse_init(
                        "--kind %s: a kind begins with a capital letter, and has letters and digits",
                        options->kind);
        if (!is_domain(options->group))
                return refuse_init("--group %s: a group is a domain, like example.com", options->group);
        if (options->plural && !is_label(options->plural, strlen(options->plural)))
                return refuse_init("--plural %s: small letters, digits and -", options->plural);
        if (!values->language)
                return refuse_init("--lang %s: there are sh, python, node, go, rust and c",
                                   options->language);
        if (options->child && !values->child)
                return refuse_init(
                        "--child %s: there are examples of ConfigMap, Deployment, Job and Service; take one "
                        "of them, and write yours in the handler and under `owns`",
                        options->child);
        return check_fields(options);
}

/* As one says it, which need not be what Kubernetes guesses. */
static void write_plural(struct init_values *values)
{
        static const char *const hisses[] = {"s", "x", "z", "ch", "sh"};
        const char *word = values->singular, *end = "s";
        int size = (int)strlen(word);

        for (size_t i = 0; i < ELEMENTS(hisses); i++)
                if (ends_with(word, hisses[i]))
                        end = "es";
        if (size > 1 && word[size - 1] == 'y' && !strchr("aeiou", word[size - 2])) {
                end = "ies";
                size--;
        }
        snprintf(values->plural, sizeof(values->plural), "%.*s%s", size, word, end);
}

int init_values_read(const struct init_options *options, struct init_values *ret)
{
        const char *slash = strrchr(options->folder, '/');
        int r;

        *ret = (struct init_values){
                .options = options,
                .language = find_language(options->language),
                .child = find_child_kind(options->child),
                .name = slash ? slash + 1 : options->folder,
        };
        r = check_words(ret);
        if (r != 0)
                return r;
        for (size_t i = 0; options->kind[i]; i++)
                ret->singular[i] = (char)tolower((unsigned char)options->kind[i]);
        if (options->plural)
                snprintf(ret->plural, sizeof(ret->plural), "%s", options->plural);
        else
                write_plural(ret);
        return 0;
}

/* ---- what the words stand for */

bool init_values_has(const struct init_values *values, const char *word)
{
        const struct {
                const char *word;
                bool is_true;
        } table[] = {
                {"finalizer", values->options->finalizer},      {"child", values->options->child != NULL},
                {"test", values->language->test != NULL},       {"built", values->language->built != NULL},
                {"ignored", values->language->ignored != NULL},
        };

        for (size_t i = 0; i < ELEMENTS(table); i++)
                if (strcmp(table[i].word, word) == 0)
                        return table[i].is_true;
        return false;
}

static void write_schema(const struct init_values *values, struct text *out)
{
        if (values->options->field_count == 0)
                text_append_string(out, "              x-kubernetes-preserve-unknown-fields: true");
        else
                text_append_string(out, "              properties:");
        for (size_t i = 0; i < values->options->field_count; i++) {
                const char *field = values->options->field[i];

                text_printf(out, "\n                %.*s: %s", name_size(field), field,
                            type_of(field)->schema);
        }
}

static void write_columns(const struct init_values *values, struct text *out)
{
        for (size_t i = 0; i < values->options->field_count; i++) {
                const char *field = values->options->field[i];

                if (type_of(field)->column)
                        text_printf(out, "%s        - {name: %c%.*s, type: %s, jsonPath: .spec.%.*s}",
                                    out->size > 0 ? "\n" : "", toupper((unsigned char)field[0]),
                                    name_size(field) - 1, field + 1, type_of(field)->column,
                                    name_size(field), field);
        }
}

static void write_example(const struct init_values *values, struct text *out)
{
        text_append_string(out, values->options->field_count == 0 ? "spec: {}" : "spec:");
        for (size_t i = 0; i < values->options->field_count; i++) {
                const char *field = values->options->field[i];

                text_printf(out, "\n  %.*s: %s", name_size(field), field, type_of(field)->example);
        }
}

static void write_field_members(const struct init_values *values, bool of_python, struct text *out)
{
        for (size_t i = 0; i < values->options->field_count; i++) {
                const char *field = values->options->field[i], *example = type_of(field)->example;

                text_printf(out, "%s\"%.*s\": %s", i > 0 ? ", " : "", name_size(field), field,
                            of_python && strcmp(example, "true") == 0 ? "True" : example);
        }
}

static void write_json_members(const struct init_values *values, struct text *out)
{
        write_field_members(values, false, out);
}

static void write_python_members(const struct init_values *values, struct text *out)
{
        write_field_members(values, true, out);
}

static void write_go_fields(const struct init_values *values, struct text *out)
{
        for (size_t i = 0; i < values->options->field_count; i++) {
                const char *field = values->options->field[i];

                text_printf(out, "%s\t%c%.*s %s `json:\"%.*s\"`", i > 0 ? "\n" : "",
                            toupper((unsigned char)field[0]), name_size(field) - 1, field + 1,
                            type_of(field)->of_go, name_size(field), field);
        }
}

/* name: what stands for NAME. */
static void write_manifest(const struct init_values *values, const char *name, struct text *out)
{
        const char *rest = values->child->manifest, *place;

        while ((place = strstr(rest, "NAME"))) {
                text_append(out, rest, (size_t)(place - rest));
                text_append_string(out, name);
                rest = place + 4;
        }
        text_append_string(out, rest);
}

static void write_child_code(const struct init_values *values, struct text *out)
{
        write_manifest(values, "name", out);
}

static void write_child_jq(const struct init_values *values, struct text *out)
{
        write_manifest(values, "$name", out);
}

static void write_child_go(const struct init_values *values, struct text *out)
{
        write_manifest(values, "\"%[1]s\"", out);
}

/* A string of C for each line. */
static void write_child_c(const struct init_values *values, struct text *out)
{
        _cleanup_text_ struct text manifest = TEXT_EMPTY;

        write_manifest(values, "\"%1$s\"", &manifest);
        for (const char *line = manifest.data; line && *line;) {
                size_t size = strcspn(line, "\n");

                text_append_string(out, out->size > 0 ? "\n                " : "                ");
                text_json_bytes(out, line, size);
                line += size + (line[size] == '\n');
        }
}

static void write_child_version(const struct init_values *values, struct text *out)
{
        text_append_string(out, values->child->api_version);
}

bool init_values_write(const struct init_values *values, const char *name, struct text *out)
{
        const struct {
                const char *name, *value; /* NULL: */
                void (*write)(const struct init_values *values, struct text *out);
        } table[] = {
                {"name", values->name, NULL},
                {"kind", values->options->kind, NULL},
                {"group", values->options->group, NULL},
                {"singular", values->singular, NULL},
                {"plural", values->plural, NULL},
                {"child", values->options->child, NULL},
                {"source", values->language->source, NULL},
                {"command", values->language->command, NULL},
                {"test", values->language->test, NULL},
                {"built", values->language->built, NULL},
                {"build", values->language->build, NULL},
                {"ignored", values->language->ignored, NULL},
                {"schema", NULL, write_schema},
                {"columns", NULL, write_columns},
                {"example", NULL, write_example},
                {"example_json", NULL, write_json_members},
                {"example_python", NULL, write_python_members},
                {"fields_go", NULL, write_go_fields},
                {"child_version", NULL, write_child_version},
                {"child_code", NULL, write_child_code},
                {"child_jq", NULL, write_child_jq},
                {"child_go", NULL, write_child_go},
                {"child_c", NULL, write_child_c},
        };

        for (size_t i = 0; i < ELEMENTS(table); i++) {
                if (strcmp(table[i].name, name) != 0)
                        continue;
                if (table[i].write)
                        table[i].write(values, out);
                else
                        text_append_string(out, table[i].value);
                return true;
        }
        return false;
}
