/* SPDX-License-Identifier: Apache-2.0 */
#include "credential/plugin.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>

#include "base/duration.h"
#include "base/text.h"
#include "ipc/log.h"
#include "os/file.h"
#include "process/process.h"

#define TIMEOUT_USEC USEC_PER_MINUTE
#define GRACE_USEC   USEC_PER_SEC

extern char **environ;

struct plugin {
        struct process *process;
        char *command, *api_version;
        plugin_done_t done;
        void *userdata;
};

void plugin_free(struct plugin *plugin)
{
        if (!plugin)
                return;
        process_free(plugin->process);
        free(plugin->command);
        free(plugin->api_version);
        free(plugin);
}

/* ---- its input */

static void add_json_text(struct text *json, const char *name, const char *value)
{
        if (!value[0])
                return;
        text_printf(json, ",\"%s\":", name);
        text_json_string(json, value);
}

static void describe_cluster(struct text *json, const struct kubeconfig *config)
{
        text_json(json, ",\"cluster\":{\"server\":?", config->server);
        add_json_text(json, "tls-server-name", config->tls_server_name);
        add_json_text(json, "proxy-url", config->proxy_url);
        if (config->insecure)
                text_append_string(json, ",\"insecure-skip-tls-verify\":true");
        if (config->certificate_authority[0]) {
                text_append_string(json, ",\"certificate-authority-data\":\"");
                text_append_base64(json, config->certificate_authority);
                text_append_string(json, "\"");
        }
        if (config->exec.cluster_config)
                text_printf(json, ",\"config\":%s", config->exec.cluster_config);
        text_append_string(json, "}");
}

static char *exec_info(const struct kubeconfig *config)
{
        _cleanup_text_ struct text json = TEXT_EMPTY;

        text_json(
                &json,
                "KUBERNETES_EXEC_INFO={\"kind\":\"ExecCredential\",\"apiVersion\":?,\"spec\":{\"interactive\":false",
                config->exec.api_version);
        if (config->exec.provide_cluster_info)
                describe_cluster(&json, config);
        text_append_string(&json, "}}");
        return text_take(&json);
}

static void strings_free(char **string)
{
        for (size_t i = 0; string && string[i]; i++)
                free(string[i]);
        free(string);
}

static bool is_overridden(const struct kubeconfig_exec *exec, const char *variable)
{
        size_t length = strcspn(variable, "=");

        for (size_t i = 0; i < exec->environment.count; i++)
                if (strlen(exec->environment.pair[i].name) == length &&
                    strncmp(exec->environment.pair[i].name, variable, length) == 0)
                        return true;
        return strncmp(variable, "KUBERNETES_EXEC_INFO=", 21) == 0;
}

/* Ours, what the kubeconfig adds, and what the plugin is to know. */
static char **make_environment(const struct kubeconfig *config)
{
        const struct kubeconfig_exec *exec = &config->exec;
        size_t room = exec->environment.count + 2, used = 0;
        char **made;

        for (size_t i = 0; environ[i]; i++)
                room++;
        made = calloc(room, sizeof(char *));
        if (!made)
                return NULL;
        for (size_t i = 0; environ[i]; i++)
                if (!is_overridden(exec, environ[i]) && !(made[used++] = strdup(environ[i])))
                        goto fail;
        for (size_t i = 0; i < exec->environment.count; i++)
                if (!(made[used++] = format_string("%s=%s", exec->environment.pair[i].name,
                                                   exec->environment.pair[i].value)))
                        goto fail;
        made[used] = exec_info(config);
        if (made[used])
                return made;
fail:
        strings_free(made);
        return NULL;
}

/* ---- which program */

static char **make_command(const struct kubeconfig_exec *exec)
{
        size_t count = 0;
        char **made;

        while (exec->argument[count])
                count++;
        made = calloc(count + 2, sizeof(char *));
        if (!made)
                return NULL;
        made[0] = strchr(exec->command, '/') ? strdup(exec->command) : file_in_path(exec->command);
        for (size_t i = 0; i < count && made[i]; i++)
                made[i + 1] = strdup(exec->argument[i]);
        if (made[0] && (count == 0 || made[count]))
                return made;
        strings_free(made);
        return NULL;
}

/* ---- its end */

static void on_line(const char *line, void *userdata)
{
        const struct plugin *plugin = userdata;

        log_info("credential plugin %s: %s", plugin->command, line);
}

static int judge_plugin(const struct plugin *plugin, const struct process_result *result,
                        struct plugin_credential *ret, struct error *error)
{
        int status = result->wait_status;

        if (result->end == PROCESS_TIMED_OUT)
                return error_set(error, -ETIMEDOUT, "it did not end within a minute");
        if (WIFSIGNALED(status))
                return error_set(error, -EIO, "it was killed by signal %d", WTERMSIG(status));
        if (WEXITSTATUS(status) != 0)
                return error_set(error, -EIO, "it exited with %d%s%s", WEXITSTATUS(status),
                                 result->last_line[0] ? ": " : "", result->last_line);
        if (result->output_too_large || result->output->failed)
                return error_set(error, -EINVAL, "its output is larger than a credential");
        return plugin_read(result->output->data ? result->output->data : "", result->output->size,
                           plugin->api_version, ret, error);
}

static void on_exec_plugin_done(const struct process_result *result, void *userdata)
{
        struct plugin *plugin = userdata;
        struct plugin_credential credential = {0};
        _cleanup_error_ struct error error = ERROR_NONE;
        int r = judge_plugin(plugin, result, &credential, &error);

        if (result->output->data)
                explicit_bzero(result->output->data, result->output->size);
        plugin->done(r < 0 ? NULL : &credential, r < 0 ? error_message(&error) : "", plugin->userdata);
        plugin_credential_done(&credential);
}

/* ---- start */

static int cannot_run(const struct kubeconfig_exec *exec, int status, struct error *error)
{
        return error_set(error, status, "the credential plugin %s cannot be run: %s%s%s", exec->command,
                         strerror(-status), exec->install_hint[0] ? ". " : "", exec->install_hint);
}

int plugin_start(sd_event *event, const struct kubeconfig *config, plugin_done_t done, void *userdata,
                 struct plugin **ret, struct error *error)
{
        struct plugin *plugin = calloc(1, sizeof(*plugin));
        char **command, **environment = make_environment(config);
        struct text input = TEXT_EMPTY;
        int r = -ENOMEM;

        errno = ENOMEM;
        command = make_command(&config->exec);
        if (plugin && environment && command) {
                plugin->command = strdup(config->exec.command);
                plugin->api_version = strdup(config->exec.api_version);
                plugin->done = done;
                plugin->userdata = userdata;
                if (plugin->command && plugin->api_version)
                        r = process_start(event,
                                          &(struct process_options){.argument = command,
                                                                    .environment = environment,
                                                                    .input = &input,
                                                                    .timeout_usec = TIMEOUT_USEC,
                                                                    .grace_usec = GRACE_USEC,
                                                                    .on_line = on_line,
                                                                    .on_done = on_exec_plugin_done,
                                                                    .userdata = plugin},
                                          &plugin->process);
        } else if (!command) {
                r = -errno;
        }
        strings_free(command);
        strings_free(environment);
        if (r < 0) {
                plugin_free(plugin);
                return cannot_run(&config->exec, r, error);
        }
        *ret = plugin;
        return 0;
}
