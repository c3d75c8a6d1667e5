/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Several replicas in one process: the real election (lib/election), with a simulated API server, network, watches,
 * lease processes, supervisors and workers, and a clock of its own for each machine (CLOCK_BOOTTIME: wall clocks are no
 * input of the election, but for the server's). A seed decides everything.
 * `now` is the time of a clock that nobody in it has. What holds is judged from outside, by what workers could do.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "election/election.h"

#define REPLICAS    3
#define DURATION    (15 * UINT64_C(1000000))
#define FLIGHTS_MAX 128
#define HINTS_MAX   128
#define KEPT        4 /* copies of the record, to be put back */
#define FOREVER     UINT64_MAX

/* ---- the API server */

struct stored_lease {
        bool exists;
        unsigned uid;
        uint64_t version;
        char life[LEADER_LIFE_MAX + 1]; /* of a member */
        uint64_t sequence;
        struct leader_claim claim; /* of the record */
        uint64_t order;            /* the newest that it has */
        bool refused;              /* it says something that is not ours */
};

struct database {
        struct stored_lease member[REPLICAS], record;
};

struct server {
        struct database database, backup;
        bool has_backup;
        uint64_t versions;
        unsigned uids;
        uint64_t down_until, restored_at, without_namespace_until;
        uint64_t seconds; /* its clock is ahead of `now` by that */
        struct leader_claim kept[KEPT];
        unsigned kept_count;
};

/* A request, until its last effect. */
struct flight {
        bool active, is_back; /* is_back: the answer is on its way */
        bool loses_answer, comes_twice;
        unsigned replica, life;
        struct election_ask ask;
        struct election_answer answer;
        uint64_t order; /* in the record: that the write brings, or the answer */
        uint64_t at;
};

/* A watch tells that something has changed. */
struct hint {
        bool active;
        unsigned replica, life;
        bool is_of_holder; /* else of the record */
        char version[ELECTION_VERSION_MAX];
        uint64_t at;
};

/* ---- a replica */

struct replica {
        unsigned life;
        bool is_up; /* its lease process */
        struct election election;
        uint64_t boottime,
                rate; /* its clock at 0, and how many of its seconds pass in a million of `now`'s */
        struct {
                uint64_t number, give_up;
        } waiting[2]; /* requests without an answer so far; number 0: none */
        uint64_t start_at, lease_stopped_until, supervisor_stopped_until, cut_off_until, watch_broken_until;
        uint64_t reads_lost_until, writes_lost_until; /* by a proxy */
        uint64_t last_hint;
        uint64_t order,
                order_read; /* that it has as leader (0: none yet); of the record as it was last read */
        bool has_worker;    /* one that may write */
        uint64_t epoch;     /* the worker's */
        uint64_t worker_from, worker_until, kill_at; /* FOREVER: nothing is planned */
        uint64_t reaped_at;
};

struct replicas {
        uint64_t random, now;
        bool is_quiet, is_calm;
        struct server server;
        struct replica replica[REPLICAS];
        struct flight flight[FLIGHTS_MAX];
        struct hint hint[HINTS_MAX];
        unsigned slowness, losses; /* of the network, in this seed: 0 to 3 */
        uint64_t slow_until;
        uint64_t last_epoch;          /* of a tenure that has begun */
        uint64_t window, window_asks; /* when it began, and how many there were before */
        uint64_t orders;
        uint64_t steps, asks, troubled_asks, crash_at_ask;
        char broken[512];
};

/* ---- replicas.c */
void replicas_broken(struct replicas *world, const char *format, ...) _printf_(2, 3);
void replicas_tell(struct replicas *world, const char *format, ...) _printf_(2, 3); /* a line of history */
uint64_t replicas_chance(struct replicas *world, uint64_t below);
uint64_t replicas_boottime(const struct replicas *world, const struct replica *replica);
void replica_start(struct replicas *world, struct replica *replica);
/* tree: workers die with it. Else they live until their supervisor or their timers end them. */
void replica_crash(struct replicas *world, struct replica *replica, bool tree);
/* The lease process asks for what it wants, and its hold is told to the workers. */
void replica_drive(struct replicas *world, struct replica *replica);
bool replica_leads(const struct replicas *world, const struct replica *replica);
/* Does what comes next, if it comes before `until`; else false. */
bool replicas_step(struct replicas *world, uint64_t until);

/* ---- replicas-server.c */
void flight_send(struct replicas *world, struct replica *replica, const struct election_ask *ask);
void flight_move(struct replicas *world, struct flight *flight);
/* Somebody has written: watches tell it. */
void server_wrote_record(struct replicas *world);
void server_version(const struct stored_lease *lease, char version[ELECTION_VERSION_MAX]);
void watch_begin(struct replicas *world, struct replica *replica); /* it lists */

/* ---- replicas-trouble.c */
/* One seed. True: a promise does not hold, and `broken` says which. */
bool replicas_play(uint64_t seed, bool history, char broken[512], uint64_t *steps);
