/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The election: which of several replicas leads, decided with Leases of Kubernetes alone. It is pure: its caller, a
 * process of its own that nothing else can hold up, tells it the time and what happens, sends the requests that it asks
 * for, and ends our runs by the deadlines that it gives. So all orders in which things happen can be tried
 * (tests/simulation/replicas.h).
 *
 * Each replica is a member, and renews a Lease of its own. The leader record (leader-record.h) names a member, is valid
 * while that member's Lease is, and is written on changes alone. Never: two replicas whose runs overlap. For that
 *
 * - a lead is counted from when the older of two proofs was *sent*: the last renewal that succeeded, and the last look
 *   at the record that showed it to be ours. No answer ends a lead later than that, and none begins it again.
 * - the record is taken from another member only after its Lease has not changed for a full duration since it was first
 *   seen so, and by a write that replaces exactly the version that was seen. A watch arms a timer, and proves nothing.
 * - another member is given its own duration, if that is longer: as its Lease says, which it renews itself, or the record.
 * - a missing record is made without a holder, and that one is taken once it has not changed for a duration: so a
 *   creation that arrives late names no leader. Only who leads puts its name into it at once.
 * - a record that names us, but was not written in this tenure, may be anybody's: a duration passes first.
 * - nothing is taken or released before all that ran in our former tenure or life is proven reaped.
 *
 * A record may be shared with others who know it alone (client-go; claim.foreign): then it is renewed as well, and taken from
 * one of them once it has not changed for a duration. They are not fenced.
 *
 * Not covered: a database that is restored in less than a duration, a record that somebody overwrites by hand with one that
 * claims to be released, and a holder whose duration is longer than ours and is made shorter in both of its Leases.
 *
 * All times are CLOCK_BOOTTIME in microseconds: it counts suspend, and nobody sets it. Clocks of members may differ in
 * rate by a fifteenth. After each input, and at election_wake_at(), the caller calls election_next() until it is false.
 */
#include "election/leader-record.h"

/* Fifteenths of the duration. */
#define ELECTION_RENEW   2  /* from one renewal, and one look at our own record, to the next */
#define ELECTION_RETRY   1  /* after a failure */
#define ELECTION_LOOK    3  /* from one look at the holder's Lease to the next, if its watch is silent */
#define ELECTION_TIMEOUT 3  /* of a request */
#define ELECTION_STOP    10 /* no new runs and writes; TERM to handlers */
#define ELECTION_KILL    12 /* KILL to all that may write */
#define ELECTION_REAPED  14 /* it is proven to be gone */

/* Further ahead of the server's clock than a year, an epoch is damage: it would be everybody's from then on. */
#define ELECTION_LEAP (366 * UINT64_C(86400))

/* "UID resourceVersion" of an object, with that space; "": it is not there. */
#define ELECTION_VERSION_MAX 160

enum election_state {
        ELECTION_NO_STATE,
        ELECTION_ENDING,    /* what ran in the former tenure may live; a life begins here */
        ELECTION_RELEASING, /* all is reaped; the record must not name that tenure any more */
        ELECTION_FOLLOWING,
        ELECTION_TAKING, /* the record is being written: its answer decides */
        ELECTION_LEADING,
        ELECTION_STATE_COUNT
};

/* Requests: at most one for our member Lease and one for the record are in flight. Reads are quorum reads. */
enum election_ask_kind {
        ASK_OWN,    /* read our member Lease */
        ASK_RECORD, /* read the record */
        ASK_HOLDER, /* read the member Lease of `member` */
        ASK_RENEW,  /* write our member Lease: our life, and `number` */
        ASK_VACATE, /* write the record: it has no holder */
        ASK_TAKE,   /* ... it is ours */
        ASK_RESTORE, /* ... it is ours still, though it was deleted, or our member Lease was; or with other lines after it */
        ASK_RELEASE, /* ... it is released */
};

struct election_ask {
        enum election_ask_kind kind;
        uint64_t number;                    /* grows; its answer has it, too */
        uint64_t timeout_usec;              /* then the caller ends it, as OUTCOME_UNKNOWN */
        char version[ELECTION_VERSION_MAX]; /* of a write: it replaces exactly this one; "": it creates */
        char member[LEADER_NAME_MAX + 1];
        struct leader_claim
                claim; /* of a write of the record; what comes after it is the caller's, or stays as it is in that version */
};

enum election_outcome {
        OUTCOME_DONE,
        OUTCOME_MISSING,  /* 404 of the object */
        OUTCOME_CONFLICT, /* 409 of a write: it has another version, or exists */
        OUTCOME_UNKNOWN,  /* anything else: it may have been done, or may yet be */
};

struct election_answer {
        uint64_t number;
        enum election_outcome outcome;
        char version[ELECTION_VERSION_MAX]; /* DONE: of what was read, or has been written */
        uint64_t server_seconds;            /* of its Date, since 1970; 0: it has none */
        char life[LEADER_LIFE_MAX + 1];     /* in a member Lease that was read */
        uint64_t duration_usec;             /* ... likewise; 0: it tells none */
        bool refused;                       /* the record that was read: leader_record_read() failed */
        struct leader_claim claim;          /* else what it says */
};

struct election_view { /* of an object, as it was last seen */
        bool known;
        char version[ELECTION_VERSION_MAX];
        uint64_t since; /* first seen so */
};

struct election_lane { /* requests, one after the other */
        bool in_flight;
        struct election_ask ask;
        uint64_t sent, next; /* next: none before */
};

/* A plain value, that callers may read. */
struct election {
        struct leader_member self;
        uint64_t duration_usec;
        uint64_t
                longest_usec; /* of all that were seen since a holder's own Lease told its; others are given so much */
        enum election_state state;
        bool leaves, late; /* as election_step_down() was told */
        bool is_shared;    /* others see by the record itself that we lead: it is renewed */
        bool must_note;    /* the lines after the claim have changed since the record was last written */
        uint64_t epoch;    /* of our last tenure, or attempt at one */
        uint64_t highest;  /* ever seen in the record */
        uint64_t numbers;
        /* Why we cannot lead, for people: no answer had a Date (0); a life after ours has our member Lease, so this
         * process is to end; the record is damaged or another's; its epoch leaps. */
        uint64_t server_seconds;
        bool is_superseded, record_refused, epoch_leaps;

        struct election_lane member_lane, record_lane;
        struct election_view own, record, holder;   /* member Leases: ours, the record holder's */
        bool is_member;                             /* our life is in our Lease */
        uint64_t member_since;                      /* no former life can renew it from then on */
        uint64_t renewed;                           /* when the last renewal that succeeded was sent */
        char renewed_version[ELECTION_VERSION_MAX]; /* ... of it */
        uint64_t recreated;        /* when our Lease was first known to be another object than before */
        struct leader_claim claim; /* of `record` */
        bool is_ours;              /* this version of the record is of our tenure */
        bool is_our_release;
        bool is_checked;     /* the holder has not renewed for a duration, by a read */
        bool holder_changed; /* its watch says so, and it has not been read since */
        uint64_t holder_asked;
        uint64_t look_at;
        uint64_t proven;     /* when the look or write that last showed our record was sent */
        uint64_t written;    /* ... the write */
        uint64_t valid_from; /* the older proof of our tenure */
        char successor[LEADER_NAME_MAX + 1];
};

/* What we hold. Once all is reaped, and without a tenure, epoch is 0. */
struct election_hold {
        uint64_t epoch;
        bool leads;                           /* runs may begin, and write until stop_at */
        uint64_t stop_at, kill_at, reaped_at; /* they stay when the lead ends: runs end by them */
};

/* In ELECTION_ENDING: that nothing of former lives runs is to be reported first. */
void election_init(struct election *election, const struct leader_member *self, bool is_shared,
                   uint64_t duration_usec, uint64_t now);

void election_answer(struct election *election, const struct election_answer *answer, uint64_t now);
/* A watch has shown the record in this version; "": the record was deleted. */
void election_watched_record(struct election *election, const char *version, uint64_t now);
/* The holder's Lease has another version, so it is to be read. */
void election_watched_holder(struct election *election, uint64_t now);
/* No run, worker or handler of a former tenure or life is left. Not while we lead. */
void election_reaped(struct election *election, uint64_t now);
/* We want to lead no more. successor: goes first; "": anybody. leaves: we never take it again, and may exit once we are
 * FOLLOWING, or when nobody can wait for that. late: a write of ours may still be on its way, though all is reaped. */
void election_step_down(struct election *election, const char *successor, bool leaves, bool late,
                        uint64_t now);
/* While we lead: what the caller puts after the claim has changed, so the record is to be written
 * (ASK_RESTORE). */
void election_note(struct election *election, uint64_t now);

bool election_next(struct election *election, uint64_t now, struct election_ask *ret);
uint64_t election_wake_at(const struct election *election, uint64_t now); /* UINT64_MAX: never */
void election_hold(const struct election *election, uint64_t now, struct election_hold *ret);
