/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens to replicas: rounds of trouble, each with a rest behind it, in which all that was away is there again, and
 * the promises about time must hold too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "tests/simulation/replicas.h"
#include "tests/simulation/simulation.h"

#define ROUNDS    4
#define SITUATION 2 /* rounds from this one on are one of those, and no other trouble */

/* Clocks differ by less than a fifteenth, to either side of `now`. */
#define RATE_SPREAD 30000

/* After the end of all trouble, on the slowest clock: a duration, and what is in flight and is tried again. */
#define LEAD_WITHIN (DURATION * 104 / 100 + DURATION / 15 * 4)
#define PASS_WITHIN USEC_PER_SEC

/* In a duration of rest: renewals, the leader's looks at its record, and a few looks of each. */
#define REST_REQUESTS (8 * REPLICAS + 8 * REPLICAS + 3 * REPLICAS)

/* ---- trouble */

typedef void (*trouble_t)(struct replicas *world, struct replica *replica);

static uint64_t a_while(struct replicas *world)
{
        /* About as long as a lease, or as what is left of one, or a moment. */
        static const uint64_t longest[] = {DURATION / 15, DURATION, DURATION * 14 / 15, 2 * DURATION};

        return world->now + 1 + replicas_chance(world, longest[replicas_chance(world, ELEMENTS(longest))]);
}

static void cut_off(struct replicas *world, struct replica *replica)
{
        replica->cut_off_until = a_while(world);
}

static void break_watch(struct replicas *world, struct replica *replica)
{
        replica->watch_broken_until = a_while(world);
}

static void slow_down(struct replicas *world, _unused_ struct replica *replica)
{
        world->slow_until = a_while(world);
}

static void server_goes(struct replicas *world, _unused_ struct replica *replica)
{
        world->server.down_until = a_while(world);
}

static void clock_jumps(struct replicas *world, _unused_ struct replica *replica)
{
        if (replicas_chance(world, 2) == 0)
                world->server.seconds += replicas_chance(world, 3600);
        else
                world->server.seconds -= replicas_chance(world, 3);
}

static void delete_record(struct replicas *world, _unused_ struct replica *replica)
{
        world->server.database.record = (struct stored_lease){.exists = false};
        server_wrote_record(world);
}

/* By hand, or as a thing that watches for rubbish: again and again. */
static void delete_twice(struct replicas *world, struct replica *replica)
{
        uint64_t until = a_while(world);

        delete_record(world, replica);
        while (replicas_step(world, until))
                ;
        delete_record(world, replica);
}

static void delete_member(struct replicas *world, struct replica *replica)
{
        unsigned member = (unsigned)(replica - world->replica);

        world->server.database.member[member] = (struct stored_lease){.exists = false};
}

static void write_record(struct replicas *world, const struct leader_claim *claim, bool refused)
{
        struct stored_lease *record = &world->server.database.record;
        bool is_new = !record->exists || replicas_chance(world, 2) == 0;
        unsigned uid = is_new ? ++world->server.uids : record->uid;

        *record = (struct stored_lease){.exists = true,
                                        .uid = uid,
                                        .version = ++world->server.versions,
                                        .claim = *claim,
                                        .refused = refused};
        server_wrote_record(world);
}

/* Somebody applies a copy of it that was kept. */
static void put_back(struct replicas *world, _unused_ struct replica *replica)
{
        unsigned count = world->server.kept_count < KEPT ? world->server.kept_count : KEPT;

        if (count > 0)
                write_record(world, &world->server.kept[replicas_chance(world, count)], false);
}

static void annotate(struct replicas *world, _unused_ struct replica *replica)
{
        if (world->server.database.record.exists)
                world->server.database.record.version = ++world->server.versions;
        server_wrote_record(world);
}

static void damage(struct replicas *world, _unused_ struct replica *replica)
{
        struct leader_claim claim = world->server.database.record.claim;
        bool leaps = replicas_chance(world, 2) == 0;

        if (leaps)
                claim.epoch += 2 * ELECTION_LEAP;
        write_record(world, &claim, !leaps);
}

/* Its servers are stopped for that, for longer than a lead can last. */
static void restore_database(struct replicas *world, _unused_ struct replica *replica)
{
        struct server *server = &world->server;

        if (!server->has_backup || replicas_chance(world, 3) == 0) {
                server->backup = server->database;
                server->has_backup = true;
                return;
        }
        server->database = server->backup;
        server->restored_at = world->now + DURATION * 11 / 10 + replicas_chance(world, DURATION);
}

static void stop_lease(struct replicas *world, struct replica *replica)
{
        replica->lease_stopped_until = a_while(world);
}

static void stop_supervisor(struct replicas *world, struct replica *replica)
{
        replica->supervisor_stopped_until = a_while(world);
}

/* By SIGSTOP, or since the machine is suspended: CLOCK_BOOTTIME goes on, and timers that kill are the kernel's. */
static void stop_all(struct replicas *world, struct replica *replica)
{
        replica->lease_stopped_until = replica->supervisor_stopped_until = a_while(world);
}

static void crash(struct replicas *world, struct replica *replica)
{
        replica_crash(world, replica, replicas_chance(world, 3) > 0);
}

static void step_down(struct replicas *world, struct replica *replica)
{
        char successor[8] = "";

        if (!replica->is_up || world->now < replica->lease_stopped_until)
                return;
        if (replicas_chance(world, 2) == 0)
                snprintf(successor, sizeof(successor), "m%u", (unsigned)replicas_chance(world, REPLICAS));
        election_step_down(&replica->election, successor, replicas_chance(world, 4) == 0, world->steps % 2,
                           replicas_boottime(world, replica));
        replica_drive(world, replica);
}

static void leader_steps_down(struct replicas *world, struct replica *replica)
{
        FOREACH_ARRAY(other, world->replica, REPLICAS)
                if (replica_leads(world, other))
                        replica = other;
        step_down(world, replica);
}

static void namespace_goes(struct replicas *world, struct replica *replica)
{
        world->server.without_namespace_until = a_while(world);
        delete_record(world, replica);
        FOREACH_ARRAY(other, world->replica, REPLICAS)
                delete_member(world, other);
}

static void nothing(_unused_ struct replicas *world, _unused_ struct replica *replica)
{
}

static struct replica *leader(struct replicas *world)
{
        FOREACH_ARRAY(replica, world->replica, REPLICAS)
                if (replica_leads(world, replica))
                        return replica;
        return NULL;
}

static struct replica *leader_or(struct replicas *world, struct replica *other)
{
        struct replica *found = leader(world);

        return found ? found : other;
}

static void go_on(struct replicas *world, uint64_t usec)
{
        uint64_t until = world->now + usec;

        while (!world->broken[0] && replicas_step(world, until))
                ;
}

/* ---- situations: what chance rarely makes of these */

/* Nobody hears of anything, and what is known is not so any more. */
static void all_blind(struct replicas *world, struct replica *replica)
{
        FOREACH_ARRAY(other, world->replica, REPLICAS)
                other->watch_broken_until = world->now + 2 * DURATION;
        if (replicas_chance(world, 2) == 0)
                delete_record(world, replica);
        else if (replicas_chance(world, 2) == 0)
                put_back(world, replica);
        go_on(world, 2 * DURATION);
}

/* The leader hears an answer late, and then none any more of that kind, or of either. */
static void stopped_while_asking(struct replicas *world, struct replica *replica)
{
        uint64_t until = world->now + DURATION / 5, number, over;
        bool reads, writes;

        replica = leader_or(world, replica);
        number = replica->election.numbers;
        while (replica->election.numbers == number && replicas_step(world, until))
                ;
        writes = replica->election.member_lane.in_flight || replicas_chance(world, 4) == 0;
        reads = !writes || replicas_chance(world, 4) == 0;
        replica->lease_stopped_until = world->now + DURATION / 5 + replicas_chance(world, DURATION * 2 / 5);
        go_on(world, USEC_PER_SEC / 20);
        over = world->now + 3 * DURATION;
        if (writes)
                replica->writes_lost_until = over;
        if (reads) {
                replica->reads_lost_until = replica->watch_broken_until = over;
                delete_record(world, replica);
        }
        go_on(world, 3 * DURATION);
}

/* A proxy. */
static void lose_reads(struct replicas *world, struct replica *replica)
{
        replica->reads_lost_until = a_while(world);
}

static void lose_writes(struct replicas *world, struct replica *replica)
{
        replica->writes_lost_until = a_while(world);
}

/* A leader sleeps until another one leads, and awakes to the record of its own time. */
static void old_leader_awakes(struct replicas *world, struct replica *replica)
{
        struct leader_claim claim = world->server.database.record.claim;
        uint64_t until = world->now + 3 * DURATION;

        replica = leader(world);
        if (!replica || !world->server.database.record.exists)
                return;
        replica->lease_stopped_until = until;
        while ((!leader(world) || leader(world) == replica) && replicas_step(world, until))
                ;
        go_on(world, DURATION / 5);
        write_record(world, &claim, false);
        replica->lease_stopped_until = world->now + replicas_chance(world, DURATION / 10);
        go_on(world, DURATION / 2);
}

/* The leader's Lease is deleted, which others see, and again, after they have seen nothing else. */
static void member_twice(struct replicas *world, struct replica *replica)
{
        replica = leader_or(world, replica);
        delete_member(world, replica);
        go_on(world, DURATION / 20);
        FOREACH_ARRAY(other, world->replica, REPLICAS)
                other->watch_broken_until = world->now + 2 * DURATION;
        go_on(world, DURATION * 9 / 10 + replicas_chance(world, DURATION / 5));
        delete_member(world, replica);
        go_on(world, DURATION / 5);
}

/* Its processes die but one, which hangs; it would lead again before that one is gone, as nobody else is there. */
static void hangs_in_its_death(struct replicas *world, struct replica *replica)
{
        uint64_t over = world->now + 3 * DURATION;

        replica = leader_or(world, replica);
        FOREACH_ARRAY(other, world->replica, REPLICAS)
                if (other != replica)
                        other->lease_stopped_until = over;
        replica_crash(world, replica, true);
        replica->reaped_at = over;
        go_on(world, 3 * DURATION);
}

static const struct {
        const char *name;
        trouble_t make;
} troubles[] = {
        {"leader steps down", leader_steps_down},
        {"record deleted", delete_record},
        {"nothing", nothing},
        {"cut off", cut_off},
        {"watch broken", break_watch},
        {"network slow", slow_down},
        {"server away", server_goes},
        {"server's clock", clock_jumps},
        {"record deleted twice", delete_twice},
        {"member deleted", delete_member},
        {"record put back", put_back},
        {"record annotated", annotate},
        {"record damaged", damage},
        {"database", restore_database},
        {"lease process stopped", stop_lease},
        {"supervisor stopped", stop_supervisor},
        {"all stopped", stop_all},
        {"crash", crash},
        {"step down", step_down},
        {"namespace gone", namespace_goes},
        {"reads lost", lose_reads},
        {"writes lost", lose_writes},
};

/* Each begins with a leader, after a rest. */
static const struct {
        const char *name;
        trouble_t make;
} situations[] = {
        {"all blind", all_blind},
        {"stopped while asking", stopped_while_asking},
        {"old leader awakes", old_leader_awakes},
        {"member deleted twice", member_twice},
        {"hangs in its death", hangs_in_its_death},
};

/* Of the first round: what makes a replica send each request that there is. */
#define FIRST_MIX 3

/* ---- rest */

/* All in flight arrives now, or never. */
static void settle_network(struct replicas *world)
{
        FOREACH_ARRAY(flight, world->flight, FLIGHTS_MAX) {
                if (flight->active && !flight->is_back && replicas_chance(world, 2) == 0)
                        flight_move(world, flight);
                flight->active = false;
        }
        FOREACH_ARRAY(hint, world->hint, HINTS_MAX)
                hint->active = false;
        FOREACH_ARRAY(replica, world->replica, REPLICAS)
                for (unsigned i = 0; i < ELEMENTS(replica->waiting); i++)
                        replica->waiting[i].give_up = world->now;
}

/* A replica that has left, or is over, ends; whoever runs it starts it again. */
static void mend_replica(struct replicas *world, struct replica *replica)
{
        replica->cut_off_until = replica->watch_broken_until = replica->last_hint = 0;
        replica->lease_stopped_until = replica->supervisor_stopped_until = 0;
        replica->reads_lost_until = replica->writes_lost_until = replica->reaped_at = 0;
        if (replica->worker_until != FOREVER)
                replica->worker_until = world->now;
        if (replica->is_up && (replica->election.leaves || replica->election.is_superseded))
                replica_crash(world, replica, true);
        if (!replica->is_up) {
                if (replica->has_worker)
                        replica->worker_until = world->now;
                replica->start_at = world->now;
        } else {
                watch_begin(world, replica);
                replica_drive(world, replica);
        }
}

static void mend(struct replicas *world)
{
        struct stored_lease *record = &world->server.database.record;

        world->is_calm = true;
        world->server.down_until = world->slow_until = world->server.without_namespace_until = 0;
        settle_network(world);
        /* People do what the log advises. */
        if (record->refused ||
            record->claim.epoch > world->now / USEC_PER_SEC + world->server.seconds + ELECTION_LEAP)
                *record = (struct stored_lease){.exists = false};
        FOREACH_ARRAY(replica, world->replica, REPLICAS)
                mend_replica(world, replica);
}

/* An order is confirmed once the record has it. Each later leader knows of it. */
static void give_order(struct replicas *world, struct replica *replica)
{
        bool is_lost = world->steps % 2; /* the first write of it */
        uint64_t within = is_lost ? DURATION / 3 : USEC_PER_SEC / 2;

        replica->order = ++world->orders;
        if (is_lost)
                replica->writes_lost_until = world->now + DURATION / 30;
        election_note(&replica->election, replicas_boottime(world, replica));
        replica_drive(world, replica);
        go_on(world, within);
        if (world->server.database.record.order != world->orders)
                replicas_broken(world, "an order is not in the record after %llu ms",
                                (unsigned long long)(within / USEC_PER_MSEC));
}

static void pass_on(struct replicas *world)
{
        struct replica *old = leader(world), *next = old;
        uint64_t until;

        if (!old || world->broken[0])
                return;
        for (unsigned i = 0; next == old || !next->is_up || next->election.leaves; i++) {
                if (i == 100)
                        return; /* nobody else is there */
                next = &world->replica[replicas_chance(world, REPLICAS)];
        }
        give_order(world, old);
        until = world->now + PASS_WITHIN;
        replicas_tell(world, "handed over");
        election_step_down(&old->election, replicas_chance(world, 2) ? next->election.self.name : "",
                           replicas_chance(world, 2), world->steps % 2, replicas_boottime(world, old));
        replica_drive(world, old);
        /* Others may be reading the record, as a watch tells old news. */
        go_on(world, replicas_chance(world, USEC_PER_SEC / 20));
        election_watched_record(&next->election, "old", replicas_boottime(world, next));
        replica_drive(world, next);
        go_on(world, until - world->now);
        if (!leader(world) || leader(world) == old)
                replicas_broken(world, "nobody else leads a second after a release");
        if (world->server.database.record.order != world->orders)
                replicas_broken(world, "an order was lost as the lead was handed over");
}

/* The record says an hour for a moment, and its leader dies: others wait as long as that one's own Lease says. */
static void forge_duration(struct replicas *world, struct replica *old)
{
        struct stored_lease *record = &world->server.database.record;

        record->claim.duration_usec = LEADER_DURATION_MAX;
        record->version = ++world->server.versions;
        server_wrote_record(world);
        go_on(world, DURATION / 5);
        if (record->claim.duration_usec != DURATION)
                replicas_broken(world, "the leader leaves a duration in its record that is not its own");
        replica_crash(world, old, true);
        old->start_at = FOREVER;
        go_on(world, LEAD_WITHIN);
        old->start_at = world->now;
        if (!leader(world))
                replicas_broken(world, "nobody leads, as the record said something else for a moment");
}

/* What is missing is made again by who leads, and who has lost the record stops. */
static void meddle(struct replicas *world)
{
        unsigned number = (unsigned)replicas_chance(world, 4);
        struct leader_claim claim = world->server.database.record.claim;
        struct replica *old = leader(world);
        uint64_t epoch = world->last_epoch;

        if (!old || world->broken[0])
                return;
        replicas_tell(world, "meddling %u", number);
        if (number == 0)
                delete_record(world, old);
        if (number == 1)
                delete_member(world, old);
        if (number == 2) {
                snprintf(claim.holder.life, sizeof(claim.holder.life), "another");
                write_record(world, &claim, false);
                go_on(world, DURATION / 15);
                if (leader(world))
                        replicas_broken(world, "replica %u leads, and the record is not its own",
                                        (unsigned)(leader(world) - world->replica));
                go_on(world, LEAD_WITHIN);
        }
        if (number == 3)
                forge_duration(world, old);
        go_on(world, DURATION);
        if (number < 2 && world->last_epoch != epoch)
                replicas_broken(world, "the lead ends over a Lease that was deleted");
        if (!leader(world))
                replicas_broken(world, "nobody leads since somebody has meddled");
}

static void rest(struct replicas *world)
{
        uint64_t asks, epoch;

        if (world->now < world->server.restored_at)
                go_on(world, world->server.restored_at - world->now);
        replicas_tell(world, "rest");
        mend(world);
        go_on(world, LEAD_WITHIN);
        if (!leader(world))
                replicas_broken(world, "nobody leads though nothing is in the way");
        epoch = world->last_epoch;
        asks = world->asks;
        go_on(world, DURATION);
        if (world->last_epoch != epoch || !leader(world))
                replicas_broken(world, "the lead is lost at rest");
        if (world->asks - asks > REST_REQUESTS)
                replicas_broken(world, "%llu requests at rest", (unsigned long long)(world->asks - asks));
        meddle(world);
        pass_on(world);
        pass_on(world);
        world->is_calm = false;
}

/* ---- a seed */

static void begin(struct replicas *world)
{
        world->server.seconds = 1764216000;
        world->slowness = (unsigned)replicas_chance(world, 4);
        world->losses = (unsigned)replicas_chance(world, 4);
        FOREACH_ARRAY(replica, world->replica, REPLICAS) {
                replica->boottime = replicas_chance(world, 1000 * DURATION);
                replica->rate = 1000000 - RATE_SPREAD + replicas_chance(world, 2 * RATE_SPREAD + 1);
                replica->worker_from = replica->worker_until = replica->kill_at = FOREVER;
                replica->start_at = replicas_chance(world, DURATION / 10);
        }
}

static uint64_t gap(struct replicas *world)
{
        static const uint64_t longest[] = {20 * USEC_PER_MSEC, DURATION / 15, DURATION / 5, DURATION / 5,
                                           DURATION};

        return replicas_chance(world, longest[replicas_chance(world, ELEMENTS(longest))]);
}

static void make_trouble(struct replicas *world, uint32_t mix, unsigned count)
{
        while (count-- > 0 && !world->broken[0]) {
                unsigned number = (unsigned)replicas_chance(world, ELEMENTS(troubles));
                struct replica *replica = &world->replica[replicas_chance(world, REPLICAS)];
                uint64_t until = world->now + gap(world);

                while (!world->broken[0] && replicas_step(world, until))
                        ;
                if (!(mix & 1U << number))
                        continue;
                replicas_tell(world, "trouble: %s, replica %u", troubles[number].name,
                              (unsigned)(replica - world->replica));
                troubles[number].make(world, replica);
        }
}

static void make_situation(struct replicas *world)
{
        unsigned number = (unsigned)replicas_chance(world, ELEMENTS(situations));

        replicas_tell(world, "situation: %s", situations[number].name);
        situations[number].make(world, &world->replica[replicas_chance(world, REPLICAS)]);
}

bool replicas_play(uint64_t seed, bool history, char broken[512], uint64_t *steps)
{
        static struct replicas world;
        uint32_t mix;

        world = (struct replicas){.random = seed ^ UINT64_C(0xe1ec7), .is_quiet = !history};
        begin(&world);
        mix = (uint32_t)sim_random(&world.random);
        if (replicas_chance(&world, 3) > 0)
                mix &= (uint32_t)sim_random(&world.random); /* few kinds, so that each has its effect */
        /* Of as many seeds in a row, each crashes a replica at another one of its first requests. */
        world.crash_at_ask = seed % 256 + 1;
        for (unsigned round = 0; round < ROUNDS && !world.broken[0]; round++) {
                if (round < SITUATION)
                        make_trouble(&world, round == 0 ? FIRST_MIX : mix,
                                     8 + (unsigned)replicas_chance(&world, 24));
                else
                        make_situation(&world);
                rest(&world);
        }
        *steps += world.steps;
        memcpy(broken, world.broken, sizeof(world.broken));
        return broken[0] != '\0';
}
