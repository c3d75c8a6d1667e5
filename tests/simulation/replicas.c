/* SPDX-License-Identifier: Apache-2.0 */
/* Replicas: a lease process with the real election, a supervisor and a worker each; and what must never be. */
#include "tests/simulation/replicas.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "tests/simulation/simulation.h"

/* In about a duration, of all; at rest there are some 35. */
#define HAMMERING 180

#define TICK (10 * USEC_PER_MSEC)

static const char *const state_name[] = {"", "ending", "releasing", "following", "taking", "leading"};

void replicas_broken(struct replicas *world, const char *format, ...)
{
        va_list arguments;

        if (world->broken[0])
                return;
        va_start(arguments, format);
        vsnprintf(world->broken, sizeof(world->broken), format, arguments);
        va_end(arguments);
}

void replicas_tell(struct replicas *world, const char *format, ...)
{
        va_list arguments;

        if (world->is_quiet)
                return;
        va_start(arguments, format);
        printf("%10.3f ", (double)world->now / 1e6);
        vprintf(format, arguments);
        printf("\n");
        va_end(arguments);
}

uint64_t replicas_chance(struct replicas *world, uint64_t below)
{
        return below > 0 ? sim_random(&world->random) % below : 0;
}

/* ---- clocks */

uint64_t replicas_boottime(const struct replicas *world, const struct replica *replica)
{
        return replica->boottime + world->now * replica->rate / 1000000;
}

/* When that clock shows this time, or has just done so. */
static uint64_t when(const struct replicas *world, const struct replica *replica, uint64_t boottime)
{
        uint64_t now = replicas_boottime(world, replica);

        if (boottime == UINT64_MAX)
                return FOREVER;
        if (boottime <= now)
                return world->now;
        return ((boottime - replica->boottime) * 1000000 + replica->rate - 1) / replica->rate;
}

/* ---- workers */

static unsigned number_of(const struct replicas *world, const struct replica *replica)
{
        return (unsigned)(replica - world->replica);
}

static void judge_worker(struct replicas *world, const struct replica *replica, uint64_t epoch)
{
        FOREACH_ARRAY(other, world->replica, REPLICAS)
                if (other != replica && other->has_worker)
                        replicas_broken(world, "replica %u writes with epoch %llu, and %u still with %llu",
                                        number_of(world, replica), (unsigned long long)epoch,
                                        number_of(world, other), (unsigned long long)other->epoch);
        if (replica->has_worker || world->now < replica->reaped_at)
                replicas_broken(world,
                                "replica %u leads with epoch %llu, and its runs of %llu are not reaped",
                                number_of(world, replica), (unsigned long long)epoch,
                                (unsigned long long)replica->epoch);
        if (epoch <= world->last_epoch)
                replicas_broken(world, "a tenure of replica %u has epoch %llu, after %llu",
                                number_of(world, replica), (unsigned long long)epoch,
                                (unsigned long long)world->last_epoch);
}

bool replica_leads(const struct replicas *world, const struct replica *replica)
{
        struct election_hold hold;

        if (!replica->is_up)
                return false;
        election_hold(&replica->election, replicas_boottime(world, replica), &hold);
        return hold.leads && replica->has_worker && replica->epoch == hold.epoch;
}

static void worker_dies(struct replicas *world, struct replica *replica)
{
        replicas_tell(world, "replica %u: its worker of epoch %llu is gone", number_of(world, replica),
                      (unsigned long long)replica->epoch);
        replica->has_worker = false;
        replica->worker_from = replica->worker_until = replica->kill_at = FOREVER;
        /* It may hang in a system call until long after that. */
        replica->reaped_at = world->now + replicas_chance(world, world->is_calm ? TICK : 100 * TICK);
        if (!world->is_calm && replicas_chance(world, 8) == 0)
                replica->reaped_at += replicas_chance(world, 3 * DURATION);
}

/* What the lease process holds reaches the supervisor and the worker, as far as these are there. */
static void tell_hold(struct replicas *world, struct replica *replica)
{
        struct election_hold hold;
        bool is_stopped = world->now < replica->supervisor_stopped_until;

        election_hold(&replica->election, replicas_boottime(world, replica), &hold);
        if (!hold.leads) {
                replica->worker_from = FOREVER;
                if (replica->has_worker && replica->worker_until == FOREVER && !is_stopped)
                        replica->worker_until =
                                world->now + replicas_chance(world, world->is_calm ? TICK : DURATION);
                return;
        }
        if (replica->has_worker && replica->epoch == hold.epoch)
                replica->kill_at = when(world, replica, hold.kill_at);
        else if (replica->worker_from == FOREVER && !is_stopped)
                replica->worker_from = world->now + replicas_chance(world, TICK);
}

static void worker_begins(struct replicas *world, struct replica *replica)
{
        struct election_hold hold;

        replica->worker_from = FOREVER;
        election_hold(&replica->election, replicas_boottime(world, replica), &hold);
        if (!replica->is_up || !hold.leads)
                return;
        replicas_tell(world, "replica %u: runs begin with epoch %llu", number_of(world, replica),
                      (unsigned long long)hold.epoch);
        judge_worker(world, replica, hold.epoch);
        world->last_epoch = hold.epoch;
        replica->has_worker = true;
        replica->epoch = hold.epoch;
        replica->worker_until = FOREVER;
        replica->kill_at = when(world, replica, hold.kill_at);
}

/* ---- lease processes */

void replica_start(struct replicas *world, struct replica *replica)
{
        struct leader_member self;

        replica->life++;
        snprintf(self.name, sizeof(self.name), "m%u", number_of(world, replica));
        snprintf(self.life, sizeof(self.life), "%u", replica->life);
        replica->is_up = true;
        replica->start_at = FOREVER;
        replica->waiting[0].number = replica->waiting[1].number = 0;
        replica->order = replica->order_read = 0;
        replicas_tell(world, "replica %u: life %u begins", number_of(world, replica), replica->life);
        election_init(&replica->election, &self, false, DURATION, replicas_boottime(world, replica));
        watch_begin(world, replica);
        replica_drive(world, replica);
}

void replica_crash(struct replicas *world, struct replica *replica, bool tree)
{
        if (!replica->is_up)
                return;
        replicas_tell(world, "replica %u: crash of %s", number_of(world, replica),
                      tree ? "all" : "its lease process");
        replica->is_up = false;
        replica->worker_from = FOREVER;
        replica->start_at = world->now + replicas_chance(world, world->is_calm ? TICK : DURATION);
        if (tree && replica->has_worker)
                worker_dies(world, replica);
        else if (replica->has_worker && world->now >= replica->supervisor_stopped_until)
                replica->worker_until = world->now + replicas_chance(world, DURATION);
}

static void note_waiting(struct replicas *world, struct replica *replica, const struct election_ask *ask)
{
        unsigned place = replica->waiting[0].number ? 1 : 0;

        if (replica->waiting[place].number)
                replicas_broken(world, "replica %u has three requests in flight", number_of(world, replica));
        replica->waiting[place].number = ask->number;
        replica->waiting[place].give_up =
                when(world, replica, replicas_boottime(world, replica) + ask->timeout_usec);
}

void replica_drive(struct replicas *world, struct replica *replica)
{
        enum election_state state = replica->election.state;
        uint64_t now = replicas_boottime(world, replica);
        struct election_ask ask;

        if (state == ELECTION_ENDING && !replica->has_worker && world->now >= replica->reaped_at)
                election_reaped(&replica->election, now);
        while (replica->is_up && election_next(&replica->election, now, &ask)) {
                bool crashes = !world->is_calm && ++world->troubled_asks == world->crash_at_ask;

                world->asks++;
                if (crashes && world->random % 2 == 0) {
                        replica_crash(world, replica, true);
                        return;
                }
                note_waiting(world, replica, &ask);
                flight_send(world, replica, &ask);
                if (crashes)
                        replica_crash(world, replica, world->random % 4 == 1);
        }
        /* Its process ends, and whoever runs it starts it again. */
        if (replica->election.is_superseded)
                replica_crash(world, replica, true);
        if (replica->is_up)
                tell_hold(world, replica);
        if (replica->election.state != state)
                replicas_tell(world, "replica %u: %s", number_of(world, replica),
                              state_name[replica->election.state]);
}

static void judge_requests(struct replicas *world)
{
        if (world->now < world->window + DURATION)
                return;
        if (world->asks - world->window_asks > HAMMERING)
                replicas_broken(world, "%llu requests in a duration",
                                (unsigned long long)(world->asks - world->window_asks));
        world->window = world->now;
        world->window_asks = world->asks;
}

/* ---- what comes next */

struct next {
        uint64_t at;
        struct replica *replica;
        struct flight *flight;
        struct hint *hint;
        void (*act)(struct replicas *world, struct replica *replica);
};

static void offer(struct next *next, uint64_t at, struct replica *replica,
                  void (*act)(struct replicas *world, struct replica *replica))
{
        if (at < next->at)
                *next = (struct next){.at = at, .replica = replica, .act = act};
}

static void supervisor_goes_on(struct replicas *world, struct replica *replica)
{
        replica->supervisor_stopped_until = 0;
        if (replica->is_up && world->now >= replica->lease_stopped_until)
                tell_hold(world, replica);
}

static void watch_goes_on(struct replicas *world, struct replica *replica)
{
        if (world->now >= replica->watch_broken_until)
                replica->watch_broken_until = 0;
        if (world->now >= replica->cut_off_until)
                replica->cut_off_until = 0;
        watch_begin(world, replica);
}

static void give_up(struct replicas *world, struct replica *replica)
{
        for (unsigned i = 0; i < 2; i++)
                if (replica->waiting[i].number && replica->waiting[i].give_up <= world->now) {
                        struct election_answer answer = {.number = replica->waiting[i].number,
                                                         .outcome = OUTCOME_UNKNOWN};

                        replica->waiting[i].number = 0;
                        election_answer(&replica->election, &answer, replicas_boottime(world, replica));
                }
        replica_drive(world, replica);
}

static uint64_t after(uint64_t at, uint64_t other)
{
        return at > other ? at : other;
}

static void offer_replica(struct replicas *world, struct next *next, struct replica *replica)
{
        uint64_t stopped = replica->lease_stopped_until;

        offer(next, replica->kill_at, replica, worker_dies); /* before all else: the kernel does it */
        offer(next, replica->worker_until, replica, worker_dies);
        if (replica->watch_broken_until > 0)
                offer(next, replica->watch_broken_until, replica, watch_goes_on);
        if (replica->cut_off_until > 0)
                offer(next, replica->cut_off_until, replica, watch_goes_on);
        if (replica->supervisor_stopped_until > 0)
                offer(next, replica->supervisor_stopped_until, replica, supervisor_goes_on);
        offer(next, after(replica->worker_from, replica->supervisor_stopped_until), replica, worker_begins);
        if (!replica->is_up) {
                offer(next, replica->start_at, replica, replica_start);
                return;
        }
        for (unsigned i = 0; i < 2; i++)
                /* After a stop either the answer is heard first, or that it is late. */
                if (replica->waiting[i].number)
                        offer(next,
                              after(replica->waiting[i].give_up, stopped + replica->waiting[i].number % 2),
                              replica, give_up);
        if (replica->election.state == ELECTION_ENDING && !replica->has_worker)
                offer(next, after(replica->reaped_at, stopped), replica, replica_drive);
        offer(next,
              after(when(world, replica,
                         election_wake_at(&replica->election, replicas_boottime(world, replica))),
                    stopped),
              replica, replica_drive);
}

static void hint_arrives(struct replicas *world, struct hint *hint)
{
        struct replica *replica = &world->replica[hint->replica];
        uint64_t now = replicas_boottime(world, replica);

        hint->active = false;
        if (!replica->is_up || replica->life != hint->life)
                return;
        if (hint->is_of_holder)
                election_watched_holder(&replica->election, now);
        else
                election_watched_record(&replica->election, hint->version, now);
        replica_drive(world, replica);
}

bool replicas_step(struct replicas *world, uint64_t until)
{
        struct next next = {.at = FOREVER};

        FOREACH_ARRAY(replica, world->replica, REPLICAS)
                offer_replica(world, &next, replica);
        FOREACH_ARRAY(flight, world->flight, FLIGHTS_MAX) {
                uint64_t stopped = flight->is_back ? world->replica[flight->replica].lease_stopped_until : 0;

                if (flight->active && after(flight->at, stopped) < next.at)
                        next = (struct next){.at = after(flight->at, stopped), .flight = flight};
        }
        FOREACH_ARRAY(hint, world->hint, HINTS_MAX) {
                uint64_t at = after(hint->at, world->replica[hint->replica].lease_stopped_until);

                if (hint->active && at < next.at)
                        next = (struct next){.at = at, .hint = hint};
        }
        if (next.at >= until) {
                world->now = after(world->now, until);
                return false;
        }
        world->now = after(world->now, next.at);
        world->steps++;
        judge_requests(world);
        if (next.flight)
                flight_move(world, next.flight);
        else if (next.hint)
                hint_arrives(world, next.hint);
        else
                next.act(world, next.replica);
        return true;
}
