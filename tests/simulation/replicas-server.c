/* SPDX-License-Identifier: Apache-2.0 */
/* The API server with its Leases, the network to it, and watches. */
#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "tests/simulation/replicas.h"

/* ---- watches */

void server_version(const struct stored_lease *lease, char version[ELECTION_VERSION_MAX])
{
        version[0] = '\0';
        if (lease->exists)
                snprintf(version, ELECTION_VERSION_MAX, "%u %llu", lease->uid,
                         (unsigned long long)lease->version);
}

static uint64_t way(struct replicas *world)
{
        uint64_t usec = USEC_PER_MSEC * (1 + replicas_chance(world, 20));

        if (world->is_calm)
                return usec;
        if (world->now < world->slow_until && replicas_chance(world, 3) > 0)
                return usec + replicas_chance(world, DURATION * 6 / 5);
        if (replicas_chance(world, 16) < world->slowness)
                return usec + replicas_chance(world, DURATION / 5);
        return usec;
}

static void send_hint(struct replicas *world, struct replica *replica, bool is_of_holder)
{
        struct hint hint = {.active = true, .is_of_holder = is_of_holder}, *place = NULL;

        if (!replica->is_up || world->now < replica->watch_broken_until ||
            world->now < replica->cut_off_until)
                return;
        for (unsigned i = 0; i < HINTS_MAX && !place; i++)
                if (!world->hint[i].active)
                        place = &world->hint[i];
        if (!place)
                return; /* a watch may lose what it likes */
        server_version(&world->server.database.record, hint.version);
        hint.replica = (unsigned)(replica - world->replica);
        hint.life = replica->life;
        hint.at = world->now + way(world);
        if (hint.at <= replica->last_hint)
                hint.at = replica->last_hint + 1;
        replica->last_hint = hint.at;
        *place = hint;
}

void server_wrote_record(struct replicas *world)
{
        FOREACH_ARRAY(replica, world->replica, REPLICAS)
                send_hint(world, replica, false);
}

static void wrote_member(struct replicas *world, unsigned member)
{
        FOREACH_ARRAY(replica, world->replica, REPLICAS)
                if (strcmp(replica->election.claim.holder.name, world->replica[member].election.self.name) ==
                    0)
                        send_hint(world, replica, true);
}

void watch_begin(struct replicas *world, struct replica *replica)
{
        send_hint(world, replica, false);
}

/* ---- requests */

static void answer_read(const struct stored_lease *lease, struct election_answer *answer)
{
        answer->outcome = lease->exists ? OUTCOME_DONE : OUTCOME_MISSING;
        server_version(lease, answer->version);
        memcpy(answer->life, lease->life, sizeof(answer->life));
        answer->claim = lease->claim;
        answer->refused = lease->refused;
}

static bool is_same_claim(const struct leader_claim *a, const struct leader_claim *b)
{
        return leader_member_is(&a->holder, &b->holder) && a->epoch == b->epoch && a->writes == b->writes &&
               a->duration_usec == b->duration_usec && a->released == b->released &&
               strcmp(a->successor, b->successor) == 0;
}

/* Optimistic concurrency, as the server has it. A write that changes nothing leaves the version as it is. */
static void write_lease(struct replicas *world, struct stored_lease *lease,
                        const struct stored_lease *content, const struct election_ask *ask,
                        struct election_answer *answer)
{
        char version[ELECTION_VERSION_MAX];
        bool creates = !ask->version[0];

        server_version(lease, version);
        answer->outcome = OUTCOME_DONE;
        if (world->now < world->server.without_namespace_until) {
                answer->outcome = OUTCOME_MISSING;
        } else if (creates ? lease->exists : lease->exists && strcmp(version, ask->version) != 0) {
                answer->outcome = OUTCOME_CONFLICT;
        } else if (!creates && !lease->exists) {
                answer->outcome = OUTCOME_MISSING;
        } else if (creates || strcmp(lease->life, content->life) != 0 ||
                   lease->sequence != content->sequence || !is_same_claim(&lease->claim, &content->claim)) {
                unsigned uid = creates ? ++world->server.uids : lease->uid;

                *lease = *content;
                lease->exists = true;
                lease->uid = uid;
                lease->version = ++world->server.versions;
        }
        server_version(lease, answer->version);
}

static void keep(struct server *server, const struct leader_claim *claim)
{
        if (claim->holder.name[0])
                server->kept[server->kept_count++ % KEPT] = *claim;
}

static void serve(struct replicas *world, struct flight *flight, struct election_answer *answer)
{
        struct database *database = &world->server.database;
        const struct election_ask *ask = &flight->ask;
        struct stored_lease content = {.claim = ask->claim, .order = flight->order};

        *answer = (struct election_answer){.number = ask->number, .outcome = OUTCOME_UNKNOWN};
        if (world->now < world->server.down_until || world->now < world->server.restored_at)
                return;
        answer->server_seconds = world->now / USEC_PER_SEC + world->server.seconds;
        switch (ask->kind) {
        case ASK_OWN:
                answer_read(&database->member[flight->replica], answer);
                break;
        case ASK_HOLDER:
                answer_read(&database->member[ask->member[1] - '0'], answer);
                answer->duration_usec = DURATION;
                break;
        case ASK_RECORD:
                answer_read(&database->record, answer);
                flight->order = database->record.order;
                break;
        case ASK_RENEW:
                content.sequence = ask->number;
                snprintf(content.life, sizeof(content.life), "%u", flight->life);
                write_lease(world, &database->member[flight->replica], &content, ask, answer);
                wrote_member(world, flight->replica);
                break;
        default:
                write_lease(world, &database->record, &content, ask, answer);
                if (answer->outcome == OUTCOME_DONE)
                        keep(&world->server, &ask->claim);
                server_wrote_record(world);
        }
}

/* ---- the network */

void flight_send(struct replicas *world, struct replica *replica, const struct election_ask *ask)
{
        struct flight *flight = NULL;
        uint64_t at = world->now + way(world);

        for (unsigned i = 0; i < FLIGHTS_MAX && !flight; i++)
                if (!world->flight[i].active)
                        flight = &world->flight[i];
        if (!flight) {
                replicas_broken(world, "too many requests are in flight");
                return;
        }
        if (world->now < replica->cut_off_until) {
                if (replicas_chance(world, 2) == 0)
                        return; /* lost */
                at = replica->cut_off_until + way(world);
        }
        if (world->now < (ask->kind < ASK_RENEW ? replica->reads_lost_until : replica->writes_lost_until) ||
            (!world->is_calm && replicas_chance(world, 24) < world->losses))
                return;
        *flight = (struct flight){
                .active = true,
                .replica = (unsigned)(replica - world->replica),
                .life = replica->life,
                .ask = *ask,
                .order = ask->kind > ASK_TAKE && replica->order > 0 ? replica->order
                         : ask->version[0]                          ? replica->order_read
                                                                    : 0,
                .loses_answer = !world->is_calm && replicas_chance(world, 24) < world->losses,
                .comes_twice = !world->is_calm && replicas_chance(world, 24) < world->losses,
                .at = at};
}

/* As the lease process does it (lease/elect.c). */
static void take_order(struct replica *replica, const struct flight *flight)
{
        bool is_of_record = flight->ask.kind == ASK_RECORD || flight->ask.kind >= ASK_VACATE;

        if (is_of_record && flight->answer.outcome == OUTCOME_DONE)
                replica->order_read = flight->order;
        if (flight->ask.kind == ASK_TAKE)
                replica->order = 0;
}

static void give_answer(struct replicas *world, struct replica *replica,
                        const struct election_answer *answer)
{
        for (unsigned i = 0; i < 2; i++)
                if (replica->waiting[i].number == answer->number) {
                        replica->waiting[i].number = 0;
                        election_answer(&replica->election, answer, replicas_boottime(world, replica));
                        replica_drive(world, replica);
                        return;
                }
}

static void tell_served(struct replicas *world, const struct flight *flight,
                        const struct election_answer *answer)
{
        static const char *const kind[] = {"own",    "record", "holder",  "renew",
                                           "vacate", "take",   "restore", "release"};
        static const char *const outcome[] = {"done", "missing", "conflict", "unknown"};
        const struct leader_claim *claim =
                flight->ask.kind == ASK_RECORD ? &answer->claim : &flight->ask.claim;

        replicas_tell(world, "server: %s of %u: %s, holder %s/%s epoch %llu%s %s", kind[flight->ask.kind],
                      flight->replica, outcome[answer->outcome], claim->holder.name, claim->holder.life,
                      (unsigned long long)claim->epoch, claim->released ? ", released" : "",
                      claim->successor);
}

/* It arrives at the server, or its answer at the replica. */
void flight_move(struct replicas *world, struct flight *flight)
{
        struct replica *replica = &world->replica[flight->replica];
        struct election_answer answer;

        if (flight->is_back) {
                answer = flight->answer;
                flight->active = false;
                if (replica->is_up && replica->life == flight->life) {
                        take_order(replica, flight);
                        give_answer(world, replica, &answer);
                }
                return;
        }
        serve(world, flight, &answer);
        tell_served(world, flight, &answer);
        if (flight->comes_twice) {
                flight->comes_twice = false; /* the answer to either may be the one that arrives */
                if (replicas_chance(world, 2) == 0)
                        flight->answer = answer;
                flight->at = world->now + way(world);
                return;
        }
        if (!flight->answer.number)
                flight->answer = answer;
        flight->is_back = true;
        flight->active = !flight->loses_answer && world->now >= replica->cut_off_until;
        flight->at = world->now + way(world);
}
