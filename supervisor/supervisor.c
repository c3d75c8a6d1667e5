/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/duration.h"
#include "base/error.h"
#include "base/exit-code.h"
#include "base/text.h"
#include "config/config.h"
#include "controller/controller-watch.h"
#include "controller/due/due.h"
#include "controller/effects.h"
#include "controller/order/uninstall.h"
#include "ipc/log.h"
#include "ipc/message-id.h"
#include "ipc/message.h"
#include "os/folder.h"
#include "os/syscall.h"
#include "queue/queue.h"
#include "supervisor/children/configure.h"
#include "supervisor/children/messages.h"
#include "supervisor/children/reap.h"
#include "supervisor/children/spawner-life.h"
#include "supervisor/children/start.h"
#include "supervisor/control/control.h"
#include "supervisor/folders/hash-key.h"
#include "supervisor/folders/leftover-finalizers.h"
#include "supervisor/folders/previous-folder.h"
#include "supervisor/folders/secrets.h"
#include "supervisor/folders/state-folder.h"
#include "supervisor/folders/under-way.h"
#include "supervisor/handlers/access-state.h"
#include "supervisor/handlers/separation.h"
#include "supervisor/handlers/stamp.h"
#include "supervisor/heartbeat.h"
#include "supervisor/lead.h"
#include "supervisor/loop.h"
#include "supervisor/notify.h"
#include "supervisor/reload/kept-port.h"
#include "supervisor/teardown.h"
#include "supervisor/watches/begin-end.h"

static int refuse_start(int code, const char *what, const struct error *error)
{
        char text[8];

        snprintf(text, sizeof(text), "%d", code);
        log_write(LOG_ERR, MESSAGE_ID_CANNOT_START, LOG_FIELDS({"RECONCILED_EXIT_CODE", text}),
                  "cannot start: %s: %s; the operator ends with exit code %d (%s)", what,
                  error_message(error), code, exit_code_name(code));
        notify_failed(code, error_message(error));
        return code;
}

/* ---- signals */

static int on_stop_signal(sd_event_source *source _unused_, const struct signalfd_siginfo *info,
                          void *userdata)
{
        struct supervisor *supervisor = userdata;

        log_info("asked to stop by signal %s", sigabbrev_np((int)info->ssi_signo));
        stop_gracefully(supervisor);
        return 0;
}

static int on_reload_signal(sd_event_source *source _unused_, const struct signalfd_siginfo *info _unused_,
                            void *userdata)
{
        turn_is(userdata, "a reload");
        reload(userdata);
        return 0;
}

static int on_child_signal(sd_event_source *source _unused_, const struct signalfd_siginfo *info _unused_,
                           void *userdata)
{
        turn_is(userdata, "the end of a child");
        children_reap(userdata);
        return 0;
}

static int add_signals(struct supervisor *supervisor)
{
        static const struct {
                int signal;
                sd_event_signal_handler_t handler;
        } table[] = {
                {SIGTERM, on_stop_signal},
                {SIGINT, on_stop_signal},
                {SIGHUP, on_reload_signal},
                {SIGCHLD, on_child_signal},
        };

        for (size_t i = 0; i < ELEMENTS(table); i++) {
                int r = sd_event_add_signal(supervisor->event, NULL, table[i].signal, table[i].handler,
                                            supervisor);

                if (r < 0)
                        return r;
        }
        return 0;
}

/* ---- init */

static int make_folder(const char *path, struct error *error)
{
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
                return error_set(error, -errno, "%s: %s", path, strerror(errno));
        return 0;
}

static int add_watches(struct supervisor *supervisor)
{
        const struct config *config = supervisor->config;
        int r = 0;

        for (size_t i = 0; i < config->watch_count && r >= 0; i++)
                r = watch_begin(supervisor, &config->watch[i]);
        return r;
}

/* Made again at each start: what was only being read when everything was killed is not doubtful for that.
 */
static int add_slots(struct supervisor *supervisor)
{
        supervisor->slots_path = format_string("%s/slots", supervisor->options->runtime_directory);
        if (!supervisor->slots_path)
                return -ENOMEM;
        supervisor->life.runtime_kept = access(supervisor->slots_path, F_OK) == 0;
        return slots_new(supervisor->slots_path,
                         supervisor->controller.watch_room + supervisor->config->workers,
                         &supervisor->slots);
}

static int init_parts(struct supervisor *supervisor)
{
        int r = sd_event_default(&supervisor->event);

        if (r >= 0)
                r = log_attach(supervisor->event);
        if (r >= 0)
                r = loop_prepare(supervisor);
        if (r >= 0)
                r = queue_new(&supervisor->controller.queue);
        if (r >= 0 && !supervisor->measured)
                r = registry_new(&supervisor->measured);
        if (r >= 0)
                r = supervisor_watches_new(supervisor);
        if (r >= 0)
                r = add_slots(supervisor);
        if (r >= 0)
                r = children_new(supervisor);
        if (r >= 0)
                r = under_way_begin(supervisor);
        if (r >= 0)
                r = add_watches(supervisor);
        if (r >= 0)
                r = add_signals(supervisor);
        if (r >= 0)
                r = sys_set_subreaper();
        return r;
}

/* Names of the operator's files in both folders: it takes files of these names for its own. */
static const char *const own_name[] = {
        "instance", "ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm",
        "store",    "under-way",     "under-way.new",     "finalizers",
        "slots",    "secrets",       "control.sock",      "secrets.handlers",
        "hash.key", "hash.key.new",
};

static int take_folder(char **folder, struct error *error)
{
        char *whole;
        int r;

        if (folder_is_open_volume(*folder)) {
                char *inside = format_string("%s/" FOLDER_IN_VOLUME, *folder);

                if (!inside)
                        return error_set(error, -ENOMEM, "no memory");
                free(*folder);
                *folder = inside;
        }
        r = folder_own(*folder, &whole, error);
        if (r < 0)
                return r;
        free(*folder);
        *folder = whole;
        for (size_t i = 0; i < ELEMENTS(own_name) && r >= 0; i++)
                r = folder_check_entry(whole, own_name[i], error);
        return r;
}

static int init_folders(struct supervisor *supervisor, struct error *error)
{
        _cleanup_free_ char *store = NULL;
        int r = take_folder(&supervisor->options->state_directory, error);

        if (r >= 0)
                r = take_folder(&supervisor->options->runtime_directory, error);
        store = format_string("%s/store", supervisor->options->state_directory);
        if (!store)
                return error_set(error, -ENOMEM, "no memory");
        return r < 0 ? r : make_folder(store, error);
}

int supervisor_init(struct supervisor *supervisor, struct options *options, const struct reload_life *life)
{
        struct config *config = life->config;
        _cleanup_error_ struct error error = ERROR_NONE;
        int r;

        *supervisor = (struct supervisor){
                .options = options,
                .config = config,
                .lock = {-1, -1},
                .control.fd = -1,
                .child_callbacks = &child_messages,
                .life.started_realtime = clock_realtime_usec(),
                .life.started_boottime = clock_boottime_usec(),
                .reload.since = life->since,
                .measured = life->measured,
        };
        supervisor_set_phase(supervisor, PHASE_STARTING);
        umask(077);
        r = controller_init(&supervisor->controller, &supervisor_effects, supervisor, config->workers,
                            config->watch_count);
        if (r < 0) {
                error_set(&error, r, "%s", strerror(-r));
                return refuse_start(exit_code_for(r, EXIT_CODE_SOFTWARE), "no resources", &error);
        }
        supervisor->controller.config = config;
        effects_tell_time(supervisor);
        r = configure_can_tell(supervisor, config, &error);
        if (r < 0)
                return refuse_start(exit_code_for(r, EXIT_CODE_CONFIGURATION), "the configuration", &error);
        r = init_folders(supervisor, &error);
        if (r < 0)
                return refuse_start(r == -EPERM || r == -ENOTDIR ? EXIT_CODE_CONFIGURATION : EXIT_CODE_IO,
                                    "the folders", &error);
        r = state_folder_take(supervisor, &error);
        if (r < 0)
                return refuse_start(r == -EBUSY ? EXIT_CODE_CONFIGURATION : EXIT_CODE_IO, "the state folder",
                                    &error);
        r = secrets_begin(supervisor, &error);
        if (r < 0)
                return refuse_start(r == -EOPNOTSUPP ? EXIT_CODE_CONFIGURATION : EXIT_CODE_IO,
                                    "the folder for Secrets", &error);
        r = runtime_folder_take(supervisor, &error);
        if (r < 0)
                return refuse_start(r == -EBUSY ? EXIT_CODE_CONFIGURATION : EXIT_CODE_IO,
                                    "the runtime directory", &error);
        r = access_folder_begin(supervisor, &error);
        if (r < 0)
                return refuse_start(r == -EOPNOTSUPP ? EXIT_CODE_CONFIGURATION : EXIT_CODE_IO,
                                    "the folder for handlers' credentials", &error);
        r = state_ledger_open(supervisor, life->voids_ledger, &error);
        if (r >= 0 && (r = secrets_clean(supervisor)) < 0)
                error_set(&error, r, "%s", strerror(-r));
        if (r < 0)
                return refuse_start(r == -EPROTONOSUPPORT ? EXIT_CODE_CONFIGURATION : EXIT_CODE_IO,
                                    "the ledger", &error);
        r = hash_key_begin(supervisor, &error);
        if (r < 0)
                return refuse_start(EXIT_CODE_IO, "the key of hashes", &error);
        supervisor->controller.started =
                life->started > 0 ? life->started : ledger_time(&supervisor->controller);
        supervisor->controller.startup_over = life->startup_over;
        r = init_parts(supervisor);
        if (r >= 0)
                r = lead_begin(supervisor);
        if (r < 0) {
                error_set(&error, r, "%s", strerror(-r));
                return refuse_start(exit_code_for(r, EXIT_CODE_SOFTWARE), "no resources", &error);
        }
        r = uninstall_load(&supervisor->controller);
        if (r < 0) {
                error_set(&error, r, "%s", strerror(-r));
                return refuse_start(EXIT_CODE_IO, "the ledger", &error);
        }
        if (control_start(supervisor, &error) < 0)
                return refuse_start(EXIT_CODE_IO, "the control socket", &error);
        return EXIT_CODE_OK;
}

/* ---- loop */

int supervisor_run(struct supervisor *supervisor)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        int r;

        log_write(LOG_INFO, MESSAGE_ID_STARTED, NULL,
                  "reconciled %s starts operator %s: %zu %s, %zu %s, state in %s", RECONCILED_VERSION,
                  supervisor->config->operator_name, supervisor->controller.watch_count,
                  counted(supervisor->controller.watch_count, "watch", "watches"),
                  supervisor->controller.worker_count,
                  counted(supervisor->controller.worker_count, "worker", "workers"),
                  supervisor->options->state_directory);
        limits_prepare(supervisor); /* what is started from here on is in our control group */
        kept_port_begin(supervisor->config);
        r = supervisor_close_in(supervisor);
        if (r >= 0) {
                separation_warn(supervisor);
                secrets_warn(supervisor);
                r = leftover_finalizers_review(supervisor);
                if (r < 0)
                        log_warning("the state folder cannot record which objects have a finalizer: %s",
                                    strerror(-r));
                r = access_folder_check(supervisor, &error);
                if (r < 0)
                        supervisor_fatal(supervisor, EXIT_CODE_CONFIGURATION, NULL, NULL, "%s",
                                         error_message(&error));
                else
                        r = children_start(supervisor);
        }
        if (r >= 0)
                r = heartbeat_start(supervisor);
        if (r < 0 && !error.message)
                supervisor_fatal(supervisor, EXIT_CODE_SOFTWARE, NULL, NULL,
                                 "the children cannot be started: %s", strerror(-r));
        effects_tell_time(supervisor);
        handlers_take_up(supervisor);
        due_arm(&supervisor->controller);
        teardown_begin(supervisor);
        r = loop_run(supervisor);
        if (r < 0) {
                log_error("the event loop failed: %s", strerror(-r));
                notify_fault("the event loop failed", r);
                r = EXIT_CODE_SOFTWARE;
        }
        supervisor->exit_code = r;
        if (r == EXIT_CODE_OK && !supervisor->reload.restarting)
                log_write(LOG_INFO, MESSAGE_ID_STOPPED, NULL, "operator %s has stopped",
                          supervisor->config->operator_name);
        return r;
}

void supervisor_done(struct supervisor *supervisor)
{
        if (supervisor->exit_code == EXIT_CODE_OK)
                previous_folders_end(supervisor);
        state_folder_note_exit(supervisor);
        hash_key_wipe(supervisor);
        control_done(supervisor);
        lead_done(supervisor);
        free(supervisor->lead.lasting.kept);
        free(supervisor->lead.lasting.sent);
        access_folder_end(supervisor);
        access_free(supervisor);
        secrets_end(supervisor);
        for (size_t i = 0; i < supervisor->child_count; i++) {
                channel_free(supervisor->child[i].process.channel);
                sd_event_source_disable_unref(supervisor->child[i].eof_timer);
        }
        leftover_finalizers_free(supervisor);
        slots_free(supervisor->slots);
        free(supervisor->slots_path);
        ledger_free(supervisor->controller.ledger);
        under_way_close(supervisor);
        under_way_free(supervisor->under_way);
        queue_free(supervisor->controller.queue);
        registry_free(supervisor->measured);
        message_free(supervisor->credential);
        cgroup_delegation_done(&supervisor->delegation);
        sd_event_source_disable_unref(supervisor->listen_timer);
        sd_event_source_disable_unref(supervisor->notify.timer);
        sd_event_source_disable_unref(supervisor->control.list_source);
        slowest_done(&supervisor->slowest);
        sd_event_source_disable_unref(supervisor->heartbeat.timer);
        sd_event_source_disable_unref(supervisor->kill_timer);
        sd_event_source_disable_unref(supervisor->end.timer);
        sd_event_source_disable_unref(supervisor->notify.extend_timer);
        supervisor_watches_free(supervisor);
        effects_free(supervisor);
        free(supervisor->child);
        log_done();
        sd_event_unref(supervisor->event);
        if (supervisor->lock.runtime_fd >= 0)
                close(supervisor->lock.runtime_fd);
        if (supervisor->lock.state_fd >= 0)
                close(supervisor->lock.state_fd);
        config_free(supervisor->reload.next.config);
        config_free(supervisor->config);
}
