/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/simulation/model.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/simulation/simulation.h"

void model_broken(struct simulation *sim, const char *format, ...)
{
        va_list arguments;

        if (sim->model.broken[0])
                return;
        va_start(arguments, format);
        vsnprintf(sim->model.broken, sizeof(sim->model.broken), format, arguments);
        va_end(arguments);
        sim_tell(sim, "BROKEN: %s", sim->model.broken);
}

void model_run_begins(struct simulation *sim, unsigned worker, unsigned watch, unsigned name, unsigned uid)
{
        struct model *model = &sim->model;

        model->runs++;
        if (model->running[name].running)
                model_broken(sim, "two runs of %s at once: u%u by worker %u, u%u by worker %u",
                             sim_key(name), model->running[name].uid, model->running[name].worker, uid,
                             worker);
        model->running[name].running = true;
        model->running[name].watch = watch;
        model->running[name].uid = uid;
        model->running[name].worker = worker;
}

void model_run_ends(struct simulation *sim, unsigned name)
{
        sim->model.running[name].running = false;
}

/* The content that failed is shown again: only after its backoff, unless other content came between. */
static void judge_spacing(struct simulation *sim, unsigned watch, unsigned name, unsigned uid,
                          const struct model_seen *seen, uint64_t content)
{
        uint64_t first = sim->config_watch[watch].retry_first_usec,
                 since = sim->boottime - seen->failed_time;

        if (seen->is_unsure) /* it may run once more */
                return;
        if (seen->has_failed && seen->failed_content == content && !seen->is_for_news && !seen->has_news &&
            since < first)
                model_broken(sim, "watch %u, %s u%u: an attempt %llu us after the last failure", watch,
                             sim_key(name), uid, (unsigned long long)since);
}

/* Once in a life of the operator, unless the database has gone back. */
static void judge_end(struct simulation *sim, unsigned watch, unsigned name, unsigned uid,
                      enum model_kind kind, const struct model_seen *seen)
{
        if ((kind == MODEL_DELETED || kind == MODEL_FINALIZE) && seen->seen && seen->ended &&
            seen->ended_life == sim->ends && sim->server.epoch == 0 && !sim->controller.ledger_lost)
                model_broken(sim, "watch %u: the end of %s u%u is told twice", watch, sim_key(name), uid);
}

void model_released(struct simulation *sim, unsigned watch, unsigned uid)
{
        sim->model.seen[watch][uid].released = true;
}

/* Those that it has left for this one are owed nothing any more. */
static void moved_to(struct simulation *sim, unsigned watch, unsigned uid)
{
        for (unsigned i = 0; i < WATCHES; i++) {
                if (i != watch && sim->model.seen[i][uid].moves)
                        model_released(sim, i, uid);
                sim->model.seen[i][uid].moves = false;
        }
}

void model_wrote(struct simulation *sim, unsigned watch, unsigned uid, uint64_t version)
{
        sim->model.seen[watch][uid].written = version;
}

void model_shown(struct simulation *sim, unsigned watch, unsigned name, unsigned uid, enum model_kind kind,
                 uint64_t content, uint64_t version)
{
        struct model_seen *seen = &sim->model.seen[watch][uid];
        const struct sim_object *object = server_object(sim, name, uid);

        if (kind == MODEL_RECONCILE || kind == MODEL_FINALIZE)
                judge_spacing(sim, watch, name, uid, seen, content);
        if (kind == MODEL_DELETED && object && !object->deleting && !sim->model.revived[watch][uid])
                model_broken(sim, "watch %u: the end of %s u%u is told, and it lives", watch, sim_key(name),
                             uid);
        judge_end(sim, watch, name, uid, kind, seen);
        if (version > 0 && version < seen->written)
                model_broken(sim, "watch %u: %s u%u is shown in version %llu, and we have written %llu",
                             watch, sim_key(name), uid, (unsigned long long)version,
                             (unsigned long long)seen->written);
        seen->attempted = content;
        seen->content = kind == MODEL_RECONCILE ? content : 0;
        seen->again_time = 0;
        if (seen->at_rest)
                model_broken(sim, "watch %u: %s u%u was at rest, and runs", watch, sim_key(name), uid);
        if (kind == MODEL_RECONCILE) {
                moved_to(sim, watch, uid);
                seen->seen = true;
                seen->ended = false;
                seen->is_done = seen->is_given_up = seen->is_renewed = false;
                if (object && (object->selected & 1U << watch))
                        seen->released = false;
        }
}

void model_answered(struct simulation *sim, unsigned watch, unsigned uid, enum model_kind kind, bool success,
                    bool own, bool refused, bool permanent)
{
        struct model_seen *seen = &sim->model.seen[watch][uid];
        unsigned limit = sim->config_watch[watch].retry_attempts;

        if ((kind == MODEL_DELETED || kind == MODEL_FINALIZE) && success) {
                seen->ended = true;
                seen->ended_life = sim->ends;
        }
        if (kind == MODEL_UNSELECTED && success)
                seen->seen = false;
        seen->failures = success ? 0 : seen->failures + (own || refused);
        if (kind == MODEL_RECONCILE) {
                seen->is_done = success;
                seen->is_given_up = !seen->is_from_before &&
                                    (permanent || (own && limit > 0 && seen->failures >= limit));
        }
        if (success) {
                seen->has_failed = false;
                return;
        }
        sim->model.failures++;
        seen->has_failed = own && (kind == MODEL_RECONCILE || kind == MODEL_FINALIZE);
        seen->is_heard = seen->is_kept = false;
        seen->failed_content = seen->attempted;
        seen->failed_time = sim->boottime;
}

void model_left(struct simulation *sim, unsigned watch, unsigned uid, unsigned selected)
{
        bool moves = selected != 0;

        for (unsigned i = 0; i < WATCHES; i++)
                moves = moves && (i == watch || !sim->model.seen[i][uid].seen);
        sim->model.seen[watch][uid].moves = moves;
        if (!moves)
                model_released(sim, watch, uid);
}

void model_given(struct simulation *sim, unsigned watch, unsigned uid)
{
        sim->model.seen[watch][uid].is_for_news = sim->model.seen[watch][uid].has_news;
        sim->model.seen[watch][uid].has_news = false;
        sim->model.seen[watch][uid].is_given = true;
        sim->model.seen[watch][uid].is_from_before = false;
}

void model_returned(struct simulation *sim, unsigned watch, unsigned uid)
{
        sim->model.seen[watch][uid].has_news |= sim->model.seen[watch][uid].is_for_news;
}

void model_touched(struct simulation *sim, unsigned uid)
{
        for (unsigned i = 0; i < WATCHES; i++)
                sim->model.seen[i][uid].at_rest = false;
}

void model_heard(struct simulation *sim, unsigned watch, unsigned uid, uint64_t content, bool restored)
{
        struct model_seen *seen = &sim->model.seen[watch][uid];

        seen->has_news = seen->has_news || seen->is_given || content != seen->attempted;
        if (content != 0 && restored)
                seen->is_known = true;
}

void model_unsettle(struct simulation *sim)
{
        for (unsigned uid = 0; uid <= sim->server.last_uid; uid++)
                model_touched(sim, uid);
}

void model_gone(struct simulation *sim, unsigned uid, unsigned selected)
{
        sim->model.last_selected[uid] = selected;
}

void model_lost(struct simulation *sim, unsigned watch)
{
        for (unsigned uid = 0; uid <= sim->server.last_uid; uid++)
                sim->model.seen[watch][uid].released = true;
}

void model_forgives(struct simulation *sim, unsigned watch, unsigned uid)
{
        sim->model.seen[watch][uid].has_failed = false;
}

void model_forgives_all(struct simulation *sim)
{
        for (unsigned i = 0; i < WATCHES; i++)
                for (unsigned uid = 0; uid <= sim->server.last_uid; uid++) {
                        sim->model.seen[i][uid].has_failed = false;
                        sim->model.seen[i][uid].has_news =
                                true; /* also if it fails before it is asked for */
                }
}

void model_renewed(struct simulation *sim)
{
        sim->model.stamp = sim->stamp;
        for (unsigned i = 0; i < WATCHES; i++)
                for (unsigned uid = 0; uid <= sim->server.last_uid; uid++) {
                        sim->model.seen[i][uid].is_renewed |= sim->model.seen[i][uid].is_given_up;
                        sim->model.seen[i][uid].is_from_before |= sim->model.seen[i][uid].is_given;
                }
        model_forgives_all(sim);
        model_unsettle(sim);
}

void model_revived(struct simulation *sim, unsigned watch, unsigned uid)
{
        sim->model.revived[watch][uid] = true;
        sim->model.seen[watch][uid].is_known = false;
}

void model_power_lost(struct simulation *sim)
{
        model_unsettle(sim);
        for (unsigned i = 0; i < WATCHES; i++)
                for (unsigned uid = 0; uid <= sim->server.last_uid; uid++)
                        sim->model.seen[i][uid].is_unsure = true;
}

void model_killed(struct simulation *sim)
{
        memset(sim->model.running, 0, sizeof(sim->model.running));
        for (unsigned i = 0; i < WATCHES; i++)
                for (unsigned uid = 0; uid <= sim->server.last_uid; uid++) {
                        sim->model.seen[i][uid].is_given = false;
                        sim->model.seen[i][uid].is_known = false;
                        sim->model.seen[i][uid].is_renewed = false;
                        sim->model.seen[i][uid].is_from_before = false;
                        if (!sim->model.seen[i][uid].is_kept)
                                model_forgives(sim, i, uid);
                }
}

void model_ended(struct simulation *sim, unsigned watch, unsigned uid)
{
        sim->model.seen[watch][uid].is_heard = true;
        sim->model.seen[watch][uid].is_given = false;
}

void model_committed(struct simulation *sim)
{
        sim->model.kept_stamp = sim->model.stamp;
        for (unsigned i = 0; i < WATCHES; i++)
                for (unsigned uid = 0; uid <= sim->server.last_uid; uid++) {
                        sim->model.seen[i][uid].is_kept |= sim->model.seen[i][uid].is_heard;
                        if (sim->model.seen[i][uid].is_renewed)
                                sim->model.seen[i][uid].is_given_up = false;
                        sim->model.seen[i][uid].is_renewed = false;
                        if (sim->model.seen[i][uid].is_known)
                                sim->model.revived[i][uid] = false;
                }
}

void model_requeued(struct simulation *sim, unsigned watch, unsigned uid, uint64_t usec)
{
        sim->model.seen[watch][uid].again_time = usec > 0 ? sim->boottime + usec : 0;
}

void model_vanished(struct simulation *sim, unsigned watch, unsigned uid)
{
        const struct model_seen *seen = &sim->model.seen[watch][uid];

        if (seen->ended && seen->ended_life == sim->ends && sim->server.epoch == 0)
                model_broken(sim, "watch %u: it is said that u%u vanished, and it was finalized", watch,
                             uid);
}

static bool lives(const struct simulation *sim, unsigned uid)
{
        for (unsigned name = 0; name < NAMES; name++)
                if (sim->server.object[name].exists && sim->server.object[name].uid == uid)
                        return true;
        return false;
}

static bool store_knows(const struct sim_store *store, unsigned uid)
{
        for (unsigned name = 0; name < NAMES; name++)
                if (store->stored[name].exists && store->stored[name].object.uid == uid)
                        return true;
        for (size_t i = 0; i < store->tombstone_count; i++)
                if (store->tombstone[i].uid == uid)
                        return true;
        return false;
}

void model_ledger_lost(struct simulation *sim, unsigned watch)
{
        const struct sim_store *store = &sim->watcher[watch].store;

        model_forgives_all(sim);
        for (unsigned uid = 1; uid <= sim->server.last_uid; uid++)
                if (!lives(sim, uid) && !store_knows(store, uid))
                        sim->model.seen[watch][uid].may_hold = true; /* its row alone knew of its end */
        for (unsigned name = 0; name < NAMES; name++) {
                const struct sim_object *object = &sim->server.object[name];
                const struct sim_stored *stored = &store->stored[name];

                if (!(object->selected & 1U << watch) || !stored->exists ||
                    stored->object.uid != object->uid)
                        sim->model.seen[watch][object->uid].may_hold = true;
        }
}

/* ---- at rest */

/* `status` and `explain` show what nobody owes any more, or wait for what does not come. */
void model_row(struct simulation *sim, unsigned watch, const struct model_row *row)
{
        const struct sim_object *object = server_object(sim, row->name, row->uid);

        if (!object || !(object->selected & 1U << watch))
                model_broken(sim, "at rest: watch %u still has a row of %s u%u, which %s", watch,
                             sim_key(row->name), row->uid, object ? "it does not select" : "is gone");
        else if (!object->deleting && (row->is_end || row->fails || row->is_due))
                model_broken(sim, "at rest: the row of %s u%u for watch %u %s", sim_key(row->name), row->uid,
                             watch,
                             row->is_end  ? "waits for its end"
                             : row->fails ? "fails, and nobody tries again"
                                          : "is due, and nobody comes");
}

#define AGAIN_USEC (10 * UINT64_C(1000000)) /* what is due comes a moment later */

static bool may_hold(const struct simulation *sim, unsigned watch, const struct sim_object *object)
{
        return sim->model.seen[watch][object->uid].may_hold;
}

static void judge_object(struct simulation *sim, unsigned watch, unsigned name)
{
        const struct sim_object *object = &sim->server.object[name];
        const struct model_seen *seen = &sim->model.seen[watch][object->uid];
        uint64_t content = sim_fingerprint(object);

        if (!object->exists)
                return;
        /* Known limits (docs/reliability.md): a restored database may show our finalizer on an object that had
         * left the watch, and a ledger that was lost just then does not know that it left. */
        if (object->finalizers & 1U << watch && object->deleting && sim->config_watch[watch].finalizer &&
            (object->selected & 1U << watch || !may_hold(sim, watch, object))) {
                model_broken(sim, "at rest: %s u%u is being deleted, and watch %u holds it for ever",
                             sim_key(name), object->uid, watch);
                return;
        }
        if (!(object->selected & 1U << watch) && (object->finalizers & 1U << watch) &&
            !may_hold(sim, watch, object))
                model_broken(
                        sim,
                        "at rest: our finalizer of watch %u is left over on %s u%u, which it does not select",
                        watch, sim_key(name), object->uid);
        if (!(object->selected & 1U << watch) || object->deleting)
                return;
        if ((object->finalizers >> watch & 1U) != sim->config_watch[watch].finalizer)
                model_broken(sim, "at rest: our finalizer of watch %u is %s %s u%u", watch,
                             sim->config_watch[watch].finalizer ? "not on" : "left over on", sim_key(name),
                             object->uid);
        if (!seen->seen)
                model_broken(sim, "at rest: watch %u was never shown %s u%u", watch, sim_key(name),
                             object->uid);
        else if (seen->content == 0)
                model_broken(sim, "at rest: watch %u was last shown the end of %s u%u, and it lives", watch,
                             sim_key(name), object->uid);
        else if (seen->content != content)
                model_broken(sim,
                             "at rest: watch %u was last shown %s u%u with fingerprint %llu, and it is %llu",
                             watch, sim_key(name), object->uid, (unsigned long long)seen->content,
                             (unsigned long long)content);
        else if (!seen->is_done && !seen->is_given_up)
                model_broken(
                        sim,
                        "at rest: the last run of %s u%u for watch %u has not succeeded, and nobody tries again",
                        sim_key(name), object->uid, watch);
        else if (seen->again_time > 0 && seen->again_time + AGAIN_USEC < sim->boottime)
                model_broken(sim, "at rest: %s u%u asked watch %u to run it again, which it has not",
                             sim_key(name), object->uid, watch);
}

static bool is_told(const struct simulation *sim, unsigned uid)
{
        for (unsigned watch = 0; watch < WATCHES; watch++)
                if (sim->model.seen[watch][uid].ended)
                        return true;
        return false;
}

/* It went while another watch of its kind had it, or was about to have it: one of them is told. (Where a watch
 * that it has left wants finalizers, the finalizer has held it, unless a user took that off. Known limit: a lost
 * ledger does not know who had it.) */
static void judge_moved(struct simulation *sim, unsigned watch, unsigned uid)
{
        const struct model_seen *seen = &sim->model.seen[watch][uid];

        if (seen->seen && !seen->released && !seen->may_hold && !lives(sim, uid) &&
            sim->model.last_selected[uid] != 0 && sim->server.epoch == 0 &&
            !sim->config_watch[watch].finalizer && !is_told(sim, uid))
                model_broken(sim, "at rest: watch %u was the last to have u%u, and nobody was told its end",
                             watch, uid);
}

void model_at_rest(struct simulation *sim)
{
        for (unsigned watch = 0; watch < WATCHES; watch++) {
                for (unsigned name = 0; name < NAMES; name++)
                        judge_object(sim, watch, name);
                operator_see_rows(sim, watch);
                for (unsigned uid = 1; uid <= sim->server.last_uid; uid++) {
                        const struct model_seen *seen = &sim->model.seen[watch][uid];

                        sim->model.seen[watch][uid].at_rest = seen->seen;
                        sim->model.seen[watch][uid].is_unsure = false;
                        judge_moved(sim, watch, uid);
                        if (seen->seen && !seen->ended && !seen->released && !lives(sim, uid) &&
                            (sim->model.last_selected[uid] & 1U << watch))
                                model_broken(sim, "at rest: watch %u was shown u%u, and never its end",
                                             watch, uid);
                        if (!lives(sim, uid) && operator_remembers(sim, watch, uid))
                                model_broken(sim, "at rest: watch %u remembers u%u, which is gone", watch,
                                             uid);
                }
        }
}
