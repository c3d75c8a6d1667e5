#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Proves that the simulation finds faults: each mutant is one mistake in the controller, the queue, the ledger, the order of a run or
the election. One after another is compiled into a copy of the simulation, which must break a promise within a million steps. That is a
minute or less of one core; counted in steps, the verdict is the same on a busy machine.

    tests/simulation/mutants.py [--build FOLDER] [--seed N] [--steps N] [--jobs N] [--results FILE] [--all | NAME...]

A mutant whose text is not in the source any more is a failure, too: it is to follow the code that it breaks.
"""
import argparse
import concurrent.futures
import functools
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time

STEPS = 1_000_000
FIRST = 1  # seed
SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
CHANGE = "lib/controller/change/change.c"
DECISION = "lib/controller/change/decision.c"
EPOCH = "lib/controller/change/epoch.c"
OUTCOME = "lib/controller/run/outcome.c"
ASSIGN = "lib/controller/run/assign.c"
DUE = "lib/controller/due/due.c"
SETTLE = "lib/controller/controller.c"
QUEUE = "lib/queue/queue.c"
SUSPECT = "lib/queue/alone.c"
TENANT = "lib/queue/tenant.c"
RATE = "lib/queue/rate.c"
READING = "worker/run/reading.c"
WRITE = "worker/write/write.c"
PATCH = "worker/write/patch.c"
OBJECT = "worker/write/object.c"
LEAVING = "worker/write/leaving.c"
ELECTION = "lib/election/election.c"

# name: (file, text, what stands there instead)
MUTANTS = {
    # Faults that were found in the field.
    "reverted change is lost": (OUTCOME, "        row->fingerprint = 0;\n        if (row->permanent && !is_of_now)",
                                "        if (row->permanent && !is_of_now)"),
    "change reverted to what was given up is lost": (OUTCOME, "if (row->permanent && !is_of_now)", "if (false)"),
    "change during a run is compared with the row": (DECISION, "if (is_running)\n", "if (false && is_running)\n"),
    "given up, and a change does not help": (DECISION,
        "[ROW_GIVEN_UP] = {ALIVE(DECIDE_RUN, DECIDE_RUN,", "[ROW_GIVEN_UP] = {ALIVE(DECIDE_NOTHING, DECIDE_NOTHING,"),
    "due work beside the deletion of a predecessor": (DUE,
        "if (kind != CHANGE_DELETED && queue_has_other(", "if (false && queue_has_other("),
    "restored database and a pending deletion": (DECISION,
        "[ROW_DELETING] = {ALIVE_ALWAYS(DECIDE_RESTORE)", "[ROW_DELETING] = {ALIVE_ALWAYS(DECIDE_NOTHING)"),
    "withdrawn deletion stays in the queue": (CHANGE, "queue_withdraw_deletion(controller->queue, watch_number(watch)",
                                              "if (false)\n                queue_withdraw_deletion(controller->queue, watch_number(watch)"),
    "clock that goes back": ("lib/controller/effects.c", "return controller->now.boottime + controller->clock_offset;",
                             "return controller->now.realtime;"),
    "two watches run one object at once": ("lib/controller/controller-watch.c", "return config->owner ? 0 : hash;", "return hash * 0;"),
    "finalizer switched off stays": ("lib/controller/change/finalizer-only.c",
        "int r = change->finalizer == FINALIZER_FINE ? -ENOENT", "int r = true ? -ENOENT"),
    "lost ledger, and the object leaves": (CHANGE, "if (!row && controller->ledger_lost && told)", "if (false)"),
    # Order.
    "RUN before the commit": (ASSIGN, "controller->commit.due = controller->commit.due || given->is_first;", ""),
    "RUN without a row": (ASSIGN, "r = ledger_owe(controller->ledger, watch->config->name, run->key, run->uid);", "r = 1;"),
    "HANDLED before the run": (CHANGE, "? change_push(watch, change, CHANGE_DELETED, &deleting, RUN_DELETED, 0)",
                               "? handled_add(watch, change->key, change->uid, change->sequence)"),
    "dirty during a run is dropped": (QUEUE, "if (work->kind == CHANGE_UPDATED && was_read(entry->update, work, outcome))",
                                      "if (work->kind == CHANGE_UPDATED && entry->update)"),
    "returned run is dropped": (QUEUE, "        ready_since = entry->ready_since;\n        work_return(entry, work);",
                                "        ready_since = entry->ready_since;\n        work_free(work);"),
    "returned first run of a deleted object": (OUTCOME, "if (given->is_first && r >= 0 && !row.deleting && !row.unselected)",
                                               "if (given->is_first && r >= 0)"),
    "failed run does not come again": (OUTCOME, "r = queue_done(controller->queue, run->id, &ending.outcome,",
                                       "ending.outcome.handled = true;\n        if (r >= 0)\n"
                                       "                r = queue_done(controller->queue, run->id, &ending.outcome,"),
    "lost ledger is ignored": (CHANGE, "if (watch->config->finalizer || !controller->ledger_lost)", "if (true)"),
    "deletion takes the update of the next object": (QUEUE,
        "if (work_is_of(entry->update, item->uid))\n                drop_work(&entry->update);\n        if (work_is_of(entry->nudge",
        "if (entry->update)\n                drop_work(&entry->update);\n        if (work_is_of(entry->nudge"),
    "own write: comparison turned round": (DECISION, "version <= row->known_version", "version >= row->known_version"),
    "deletion is not kept": (CHANGE, "return keep_row(watch, &deleting)\n", "return true\n"),
    "unselected is not kept": (CHANGE, "return keep_row(watch, &left)\n", "return true\n"),
    "selected again keeps what was handled": (CHANGE,
        "again.fingerprint = again.failed_fingerprint = again.next_realtime = 0;", ""),
    "news that it is gone overtakes the run": (OUTCOME, "r = forget_deletion(controller, ending, run);", "r = 0;"),
    "end of a run that has left writes its row": (OUTCOME, "ending->has_left = ending->kind == CHANGE_UPDATED;", ""),
    "due rows are not looked for after a sync": (DUE, "if (synced != controller->due.synced)", "if (false)"),
    "row that cannot go to the queue is forgotten": (DUE, "return come_again(watch, row);", "return 0;"),
    "rows are not compared with the store": (CHANGE, "owed_start(watch);", ""),
    "killed run is not judged": ("lib/controller/run/last-life.c", "ledger_row_unknown(&row);", ";"),
    "machine went down, and nothing is unsure": (CHANGE, "r = watch->unsure ? unsure_is_same(watch, change, row) : 1;",
                                                 "r = 1;"),
    "backoff is not waited for": ("lib/controller/due/next-attempt.c", "backoff_after(config->retry_first_usec,",
                                  "backoff_after(config->retry_first_usec / 16,"),
    "failed content runs again at once": (DECISION, "if (has_failed && row->failed_fingerprint == change->fingerprint)",
                                          "if (false && has_failed)"),
    "paused watch is not resumed": ("lib/controller/order/by-hand.c", "watch->paused_realtime = 0;\n", ";\n"),
    "credit is not given": (SETTLE, "watch->is_up ? credit_due(watch) : 0", "0"),
    "commit that is busy is not tried again": (SETTLE, "        controller_settle_later(controller);\n        return 0;\n}\n\n/* ---- the turn */",
                                               "        return 0;\n}\n\n/* ---- the turn */"),
    "suspend counts as a busy ledger": (SETTLE, "uint64_t now = controller->now.monotonic;", "uint64_t now = controller->now.boottime;"),
    "finalizer that was lost is not put on": ("lib/controller/change/finalizer-only.c",
        "if (row->deleting || row->unselected || waits_for_first_run(watch, row))", "if (true)"),
    "conflict ends the run": (OUTCOME, "ending->outcome.delay_usec = ending->watch->config->retry_first_usec;",
                              "ending->outcome.handled = true;"),
    "run that was behind is over": (OUTCOME, "ending->outcome.delay_usec = waits_long ? BEHIND_LONG_USEC : BEHIND_USEC;",
                                    "ending->outcome.handled = true;"),
    "withdrawal is not written at once": (CHANGE, "        controller->commit.due = true;\n        queue_withdraw", "        queue_withdraw"),
    "withdrawn deletion comes back from its worker": (QUEUE, "entry->current->withdrawn = true;", ";"),
    "finalized object is finalized again": (CHANGE, "        if (mark_find(&watch->finalized, change->key, change->uid))", "        if (false)"),
    "work that is announced before the end is done behind it": (OUTCOME,
        "queue_forget(controller->queue, run->watch, run->key, run->uid, now);\n        return mark_add",
        "return mark_add"),
    "first run after a lost ledger forgets what was handed out": (OUTCOME,
        "(ending->watch->config->finalizer || !ending->watch->controller->ledger_lost)", "true"),
    "due work that a restore brings back is lost": (EPOCH, "        ledger_due_again(watch->controller->ledger);\n", ""),
    "change after the machine went down leaves its row": (CHANGE, "if (!watch->unsure || (row->fingerprint == 0 && !row->permanent))", "if (true)"),
    "restored database is unheard of": (EPOCH, "marks_forget(&watch->finalized);\n", ";\n"),
    "object that is gone is remembered": (CHANGE, "        mark_drop(&watch->tries, change->key, change->uid);\n", ""),
    "own write: of another epoch": (DECISION, "row->written_realtime > watch->epoch_since && row", "row"),
    "object that moves is nobody's until the other watch runs": (ASSIGN, ".taken = has_left &&", ".taken = has_left ||"),
    "walk that a reload began is lost with its life": ("lib/controller/due/retry-kept.c", "watch->kept_walk = kept.walk;\n",
                                                      "retry_walk_done(&kept.walk);\n"),
    "walk does not keep its place": ("lib/controller/due/retry.c", "r >= 0 && walk == &watch->kept_walk", "false"),
    "another handler is no reason": ("lib/controller/due/retry-kept.c", "if (kept.stamp == stamp)", "if (true)"),
    "run from before a reload is the last word": (OUTCOME, "given->reloads < controller->reloads", "false"),
    "returned run of an object that has left comes back": (OUTCOME, "if (r == -ENOENT && given->run.kind == CHANGE_UPDATED)", "if (false)"),
    "deletion that comes while its leaving is told is forgotten": (OUTCOME,
        "ending->row.deleting = ending->row.deleting || ending->row.unselected;", "ending->row.deleting = ending->row.unselected;"),
    "deletion whose object is there again, and left, writes its row": (OUTCOME,
        "ending->is_withdrawn = ending->kind == CHANGE_DELETED; /*", "/*"),
    "tries of what is gone are remembered": ("lib/controller/change/finalizer-only.c", "        if (has_ended(", "        if (false && has_ended("),
    "failing row is written after its removal": (OUTCOME, "if (ending->remove_row)\n", "if (false)\n"),
    "worker gets a run of a watch whose next one waits there": (ASSIGN,
        "if (given->first_of_watch && given->run.watch == watch)", "if (false && given->run.watch == watch)"),
    "write over what was restored is claimed": (OUTCOME, "ending.outcome.known_version = ending.outcome.own_fingerprint = 0;",
                                                "ending.outcome.known_version = 0;"),
    "given up before a success, and the machine went down": ("lib/controller/change/unsure.c", ": epoch_realtime(watch),", ": UINT64_MAX,"),
    # The order of a run.
    "store that is behind our own write is believed": (READING,
        "resource_version_less(run->object.resource_version, order->at_least_version) ||", "false ||"),
    "another object of the name is run": (READING, "if (strcmp(run->object.uid, order->uid) != 0)", "if (false)"),
    "finalizer is not put on": (WRITE, "r = step(run, finalizer_is_wrong, finalizer_send);", "r = 0;"),
    "object that goes is reconciled": (WRITE, "if (wanted && run->action == ACTION_RECONCILE && object_is_deleting(run))", "if (false)"),
    "deletion that was undone is finalized": (PATCH, "if (was_going && !is_going(run))", "if (false)"),
    "change in between passes for our own": (PATCH, "fingerprint != expected)\n                run->now.foreign = true;",
                                             "fingerprint != expected)\n                ;"),
    "lost answer is not asked for": (PATCH, "(conflicts || error->failure == KUBE_FAILURE_INTERRUPTED)", "conflicts"),
    "version after a change in between is known": (OBJECT, "if (!run->now.foreign && strlen(version) < 19)", "if (strlen(version) < 19)"),
    "content after a change in between is known": (OBJECT, "if (r >= 0 && !run->now.foreign)", "if (r >= 0)"),
    "object that moves is let go at once": (LEAVING, "return has_others && is_selected &&", "return false && has_others && is_selected &&"),
    # Turns.
    "tenant keeps its turn": (TENANT, "        move_in_rings(watch, tenant, line, ring_append);\n", ""),
    "tenants of a watch are one": (TENANT, "return slash ? (size_t)(slash - key) : 0;", "return slash ? 0 : 0;"),
    "what has begun goes before all tenants": (TENANT, ": line != LINE_BEGUN);", ": true);"),
    "what is new does not age behind what has begun": (TENANT, "++tenant->picks % QUEUE_AGEING != 0", "true"),
    "lines do not age": (TENANT, "next = aged < LINE_COUNT ? aged : first;", "next = first;"),
    "watches take no turns": (QUEUE, "queue->turn = (turn + 1) % queue->watch_count;", "queue->turn = 0;"),
    "suspects let nobody go between them": (SUSPECT, "queue->was_alone || (suspect", "(suspect"),
    "suspect holds all others back": (SUSPECT, "return now - queue->drain.since < queue->drain.usec;", "return true;"),
    "suspect holds nobody back": (SUSPECT, "return now - queue->drain.since < queue->drain.usec;", "return false;"),
    "run takes no token": (RATE, "        bucket_take(bucket, now);\n}\n\nvoid rate_ran", "}\n\nvoid rate_ran"),
    "token of a run without a handler is lost": (RATE, "                bucket_give_back(bucket);\n", "                ;\n"),
    "what goes on and asks its handler owes nothing": (RATE, "        if (handler_ran)\n                bucket_take(bucket, now);", "        if (handler_ran)\n                ;"),
    "nobody wakes up for a token": ("lib/queue/look.c", "if (token < due)", "if (false)"),
    "suspects take all tokens": (SUSPECT, " && !(watch->bucket.suspect_last && tenant_may_pick(watch))", ""),
    "suspect takes a token that is not there": (SUSPECT, "(!watch->bucket.empty && !(", "(!("),
    "suspect waits for a gap between long runs": (SUSPECT, "                queue->drain.usec *= 2;\n", ""),
    # RUNs that are held back.
    "RUN that was held back is forgotten": (ASSIGN, "                        else\n                                worker->filling = true;\n", ""),
    "RUN that was held back is still aside": (ASSIGN, "        if (given->aside)\n                step_back(worker, given);\n        return true;", "        return true;"),
    "RUN that is held back leaves though its watch is paused": (ASSIGN, "if (!given->to_send ||\n", "if (true ||\n"),
    "deletion that was dropped leaves all the same": ("lib/controller/due/assigned.c", "        if (given && given->to_send) {", "        if (false) {"),
    # Replicas.
    "renewal counts from its receipt": (ELECTION, "election->renewed = lane->sent;", "election->renewed = now;"),
    "look at the record counts from its receipt": (ELECTION, "                election->proven = sent;", "                election->proven = now;"),
    "renewal that nobody knows of counts": (ELECTION, "        else if (lane->ask.kind == ASK_RENEW && !is_unknown)",
        "        else if (lane->ask.kind == ASK_RENEW && is_unknown && election->is_member) {\n"
        "                election->renewed = lane->sent;\n                extend(election);\n        } else if (lane->ask.kind == ASK_RENEW)"),
    "lead without a look at the record": (ELECTION, "election->renewed < election->proven ? election->renewed : election->proven",
                                          "election->renewed"),
    "release before the reap": (ELECTION, "[EVENT_STEP_DOWN] = ELECTION_ENDING},\n};", "[EVENT_STEP_DOWN] = ELECTION_RELEASING},\n};"),
    "missing record is taken at once": (ELECTION, "{now, ASK_VACATE}", "{now, ASK_TAKE}"),
    "record without a holder is taken at once": (ELECTION, "        return since + election->longest_usec;",
                                                 "        return is_held(election) ? since + election->longest_usec : since;"),
    "holder is not read before the record is taken": (ELECTION, "        if (!election->is_checked) {\n", "        if (false) {\n"),
    "a look before the record is due counts": (ELECTION, "        else if (election->holder_asked >= due_at(election))\n", "        else\n"),
    "epoch is not raised": (ELECTION, "later(election->highest, election->epoch) + 1", "later(election->highest, election->epoch)"),
    "epoch without the server's clock": (ELECTION, "election->epoch) + 1, election->server_seconds);", "election->epoch) + 1, 0);"),
    "record that names us is ours": (ELECTION, "        else if (is_held(election))\n"
        "                since = later(since, election->member_since);", "        else if (is_held(election))\n                return since;"),
    "record that was put back is released": (ELECTION, "election->claim.epoch == election->epoch && is_in_time(election, sent))",
                                             "election->claim.epoch == election->epoch)"),
    "foreign record does not end a lead": (ELECTION, "        } else if (is_lost) {", "        } else if (false) {"),
    "member Lease was deleted twice": (ELECTION, "return election->written < election->recreated;", "return false;"),
    "kill comes late": (ELECTION, "election->valid_from + part(election, ELECTION_KILL)", "election->valid_from + 16 * part(election, 1)"),
    "news during a look is forgotten": (ELECTION, "        look_by(election, later(now + 1, sent + election->duration_usec));",
        "        election->look_at = later(now + 1, sent + election->duration_usec);"),
    "missing namespace is asked without a pause": (ELECTION, "if (is_unknown || (!is_read && answer->outcome != OUTCOME_DONE))",
                                                   "if (is_unknown)"),
    "others wait until the leader kills": (ELECTION, "        return since + election->longest_usec;",
                                           "        return since + part(election, ELECTION_KILL);"),
    "life begins with the runs of the former one": (ELECTION, ".state = ELECTION_ENDING,", ".state = ELECTION_FOLLOWING,"),
    "successor waits as others do": (ELECTION, "!is_successor && (claim", "(claim"),
    "order is not tried again": (ELECTION, "election->must_note || (kind == ASK_RESTORE && !is_done)", "election->must_note"),
    "order is written with the next proof": (ELECTION, " || must_touch(election) || election->must_note)", " || must_touch(election))"),
    "duration that the record had for a moment is remembered": (ELECTION, "        if (duration_usec > 0 && election->claim", "        if (false && election->claim"),
    "leader leaves a duration that is not its own": (ELECTION, "        if (election->is_ours && election->claim.duration_usec", "        if (false && election->claim.duration_usec"),
    "leader does not restore its record": (ELECTION, "plan = (struct plan){now, ASK_RESTORE};", ";"),
}
# Not always found within a million steps: these need luck, or --steps.
LUCKY = {
    "returned first run of a deleted object", "selected again keeps what was handled", "withdrawal is not written at once",
    "withdrawn deletion comes back from its worker", "change after the machine went down leaves its row",
    "first run after a lost ledger forgets what was handed out", "tries of what is gone are remembered",
    "deletion whose object is there again, and left, writes its row",
}


# Where the way from the seed 1 to the first seed that finds a mutant is long, that seed: tried first, and if it finds the mutant no
# more, all are. A change of the simulation moves them; the lines of the output that want one here name it.
SEEDS = {
    "suspects take all tokens": 14,
    "change reverted to what was given up is lost": 236, "change during a run is compared with the row": 20,
    "due work beside the deletion of a predecessor": 196, "restored database and a pending deletion": 25,
    "withdrawn deletion stays in the queue": 13, "lost ledger, and the object leaves": 205, "returned run is dropped": 268,
    "failed run does not come again": 59, "unselected is not kept": 29, "news that it is gone overtakes the run": 87,
    "end of a run that has left writes its row": 345, "due rows are not looked for after a sync": 236,
    "row that cannot go to the queue is forgotten": 1269, "backoff is not waited for": 20,
    "failed content runs again at once": 25, "commit that is busy is not tried again": 112,
    "suspend counts as a busy ledger": 261, "conflict ends the run": 153, "run that was behind is over": 53,
    "finalized object is finalized again": 293, "work that is announced before the end is done behind it": 733,
    "due work that a restore brings back is lost": 141, "restored database is unheard of": 1455,
    "own write: of another epoch": 155, "worker gets a run of a watch whose next one waits there": 471, "object that moves is nobody's until the other watch runs": 253,
    "walk that a reload began is lost with its life": 13, "walk does not keep its place": 72, "another handler is no reason": 44,
    "returned run of an object that has left comes back": 3764,
    "deletion that comes while its leaving is told is forgotten": 4761,
    "machine went down, and nothing is unsure": 49, "suspects let nobody go between them": 19,
    "suspect waits for a gap between long runs": 18,
    "store that is behind our own write is believed": 83, "deletion that was undone is finalized": 189,
    "RUN that was held back is forgotten": 20, "RUN that was held back is still aside": 643,
    "RUN that is held back leaves though its watch is paused": 15, "deletion that was dropped leaves all the same": 2125,
    "change in between passes for our own": 19, "version after a change in between is known": 19,
    "content after a change in between is known": 19, "lost answer is not asked for": 190, "object that moves is let go at once": 253,
    "write over what was restored is claimed": 890, "given up before a success, and the machine went down": 6083,
    "reverted change is lost": 20, "killed run is not judged": 28, "object that is gone is remembered": 426,
}
FAR = 8000  # steps
# The seeds of replicas are their own: each of these mutants is found from each of these.
REPLICAS = "lib/election/"
REPLICAS_FIRST = (1, 100_001, 200_001)
REPLICAS_TIMES = 20  # so many times the steps: they are that much cheaper, and what needs two losses at once is rare
BROKEN = re.compile(r"seed \d+ breaks a promise after (\d+) steps")


def output(command, **more):
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **more)


@functools.cache
def compile_command(build, name):
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(os.path.normpath(os.path.join(entry["directory"], entry["file"])))
        if path == SOURCE / name and ("tests/simulation" in entry["command"].split(" -o ")[1] or "controller" not in name):
            return shlex.split(entry["command"])
    raise SystemExit(f"{name} is not compiled in {build}")


@functools.cache
def link_command(build):
    lines = output(["ninja", "-C", str(build), "-t", "commands", "tests/simulation/simulate"]).stdout.splitlines()
    return shlex.split([line for line in lines if " -o tests/simulation/simulate " in line][-1])


def replaced(command, flag, value):
    at = command.index(flag)
    return command[:at + 1] + [value] + command[at + 2:]


def make(build, name, folder):
    """The simulation with this mutant, or why there is none."""
    path, text, instead = MUTANTS[name]
    source = (SOURCE / path).read_text()
    if source.count(text) != 1:
        return None, f"{path} has the text of this mutant {source.count(text)} times: {text!r}"
    mutant = folder / os.path.basename(path)
    mutant.write_text(source.replace(text, instead))
    command = compile_command(build, path)
    command = [str(mutant) if word.endswith(path) else word for word in command if word != "-Werror"]
    command = replaced(replaced(command, "-o", str(folder / "mutant.o")), "-MF", str(folder / "mutant.d"))
    command += ["-w", "-O0", "-g0"]  # one file of the program, and one run: to compile it well takes longer than it saves
    done = output(command, cwd=build)
    if done.returncode == 0:
        link = link_command(build)
        at = link.index("-o")
        link = link[:at] + ["-o", str(folder / "simulate"), str(folder / "mutant.o")] + link[at + 2:]
        link = [word for word in link if not word.endswith("_" + path.replace("/", "_") + ".o")]
        done = output(link, cwd=build)
    return (folder / "simulate", "") if done.returncode == 0 else (None, done.stdout)


def judge_replicas(program, arguments):
    """(the run that told most, its seeds' verdicts)."""
    said = []
    for seed in REPLICAS_FIRST if arguments.seed == FIRST else (arguments.seed,):
        done = output([str(program), "--replicas", "--seed", str(seed), "--total",
                       str(REPLICAS_TIMES * arguments.steps)], timeout=1800)
        said.append((done.stdout.splitlines() or [""])[0])
        if done.returncode == 0:
            break
    return done, "; ".join(said)


def judge(build, name, arguments):
    """(found, line)."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        program, why = make(build, name, pathlib.Path(folder))
        if not program:
            return False, why.strip().splitlines()[-1]
        began, far = time.monotonic(), ""
        if MUTANTS[name][0].startswith(REPLICAS):
            done, said = judge_replicas(program, arguments)
            return done.returncode != 0, f"{time.monotonic() - began:5.1f} s  {said}"
        known = SEEDS.get(name, FIRST) if arguments.seed == FIRST else arguments.seed
        done = output([str(program), "--seed", str(known), "--seeds", "1", "--no-shrink"], timeout=1800)
        if done.returncode == 0:
            done = output([str(program), "--seed", str(arguments.seed), "--total", str(arguments.steps), "--no-shrink"],
                          timeout=1800)
            far = " (SEEDS wants this seed)" if arguments.seed == FIRST and (broken := BROKEN.match(done.stdout)) and int(broken[1]) > FAR else ""
        took = time.monotonic() - began
    first = (done.stdout.splitlines() or [""])[0]
    if done.returncode == 0:
        return False, f"not found: {first}"
    return True, f"{took:5.1f} s{far}  {first if done.returncode == 1 else 'it died: ' + str(done.returncode)}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=os.environ.get("RECONCILED_BUILD", SOURCE / "build"), type=pathlib.Path)
    parser.add_argument("--seed", default=FIRST, type=int, help="the first one")
    parser.add_argument("--steps", default=STEPS, type=int)
    parser.add_argument("--jobs", default=os.cpu_count() or 1, type=int)
    parser.add_argument("--results")
    parser.add_argument("--all", action="store_true", help="those that a million steps do not always find, too")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    if output(["ninja", "-C", str(build), "tests/simulation/simulate"]).returncode != 0:
        raise SystemExit("the simulation cannot be built")
    names = arguments.names or [name for name in MUTANTS if arguments.all or name not in LUCKY]
    missed = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for name, (found, line) in zip(names, pool.map(lambda name: judge(build, name, arguments), names)):
            print(f"{'found ' if found else 'MISSED'} {name}: {line}", flush=True)
            missed += not found
            if arguments.results:
                with open(arguments.results, "a", encoding="utf-8") as results:
                    results.write(f"mutant: {name}\t{'passed' if found else 'failed'}\n")
    print(f"{len(names) - missed} of {len(names)} mutants found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
