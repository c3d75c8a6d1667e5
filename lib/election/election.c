/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each input first lets time pass, as a lead whose time is over has ended before anything else counts; then it notes what
 * was learnt, and moves the state by the table. What to ask next follows from what is known then (plan_...()).
 */
#include "election/election.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define NEVER UINT64_MAX

/* ---- states */

enum event {
        EVENT_TAKE,      /* the record is being taken */
        EVENT_TAKEN,     /* it is ours */
        EVENT_NOT_TAKEN, /* it is not, or that is unknown */
        EVENT_LAPSED,    /* the time of our lead is over */
        EVENT_FOREIGN,   /* the record, or our member Lease, is not ours any more */
        EVENT_STEP_DOWN,
        EVENT_REAPED,
        EVENT_FREE, /* the record does not name our last tenure */
        EVENT_COUNT
};

/* An event that has no cell never comes in that state: move() asserts it. */
static const enum election_state table[ELECTION_STATE_COUNT][EVENT_COUNT] = {
        [ELECTION_ENDING] = {[EVENT_FOREIGN] = ELECTION_ENDING,
                             [EVENT_STEP_DOWN] = ELECTION_ENDING,
                             [EVENT_REAPED] = ELECTION_RELEASING},
        /* What was being taken when we stepped down is answered here: whatever the answer, nothing has run. */
        [ELECTION_RELEASING] = {[EVENT_TAKEN] = ELECTION_RELEASING,
                                [EVENT_NOT_TAKEN] = ELECTION_RELEASING,
                                [EVENT_FOREIGN] = ELECTION_RELEASING,
                                [EVENT_STEP_DOWN] = ELECTION_RELEASING,
                                [EVENT_REAPED] = ELECTION_RELEASING,
                                [EVENT_FREE] = ELECTION_FOLLOWING},
        [ELECTION_FOLLOWING] = {[EVENT_TAKE] = ELECTION_TAKING,
                                [EVENT_FOREIGN] = ELECTION_FOLLOWING,
                                [EVENT_STEP_DOWN] = ELECTION_FOLLOWING,
                                [EVENT_REAPED] = ELECTION_FOLLOWING},
        [ELECTION_TAKING] = {[EVENT_TAKEN] = ELECTION_LEADING,
                             [EVENT_NOT_TAKEN] = ELECTION_FOLLOWING,
                             [EVENT_FOREIGN] = ELECTION_TAKING,
                             [EVENT_STEP_DOWN] = ELECTION_RELEASING,
                             [EVENT_REAPED] = ELECTION_TAKING},
        [ELECTION_LEADING] = {[EVENT_LAPSED] = ELECTION_ENDING,
                              [EVENT_FOREIGN] = ELECTION_ENDING,
                              [EVENT_STEP_DOWN] = ELECTION_ENDING},
};

/* The record is to be read by then. What is told while it is being read is not forgotten over the answer. */
static void look_by(struct election *election, uint64_t at)
{
        if (at < election->look_at)
                election->look_at = at;
}

static void move(struct election *election, enum event event, uint64_t now)
{
        enum election_state next;

        assert(election->state < ELECTION_STATE_COUNT && event < EVENT_COUNT);
        next = table[election->state][event];
        assert(next != ELECTION_NO_STATE);
        if (next == ELECTION_RELEASING && next != election->state)
                look_by(election, now); /* whether there is something to release */
        election->state = next;
}

/* ---- times */

static uint64_t later(uint64_t a, uint64_t b)
{
        return a > b ? a : b;
}

static uint64_t part(const struct election *election, unsigned fifteenths)
{
        return election->duration_usec / 15 * fifteenths;
}

/* Nobody else can have led by then since our tenure began. Later, a record of it may have been put back. */
static bool is_in_time(const struct election *election, uint64_t at)
{
        return at < election->valid_from + part(election, ELECTION_STOP);
}

static void pass_time(struct election *election, uint64_t now)
{
        if (election->state == ELECTION_LEADING && !is_in_time(election, now))
                move(election, EVENT_LAPSED, now);
}

static bool is_renewed(const struct election *election, uint64_t now)
{
        return election->is_member && now < election->renewed + part(election, ELECTION_STOP);
}

/*
 * Others may have seen our member Lease missing, and not that it came back: deleted again, it would have been missing
 * all the time for them. So when it is another object than before, the record gets another version, too,
 * which makes them look again; and until then nothing extends our lead.
 */
static bool must_touch(const struct election *election)
{
        return election->written < election->recreated;
}

/* A proof has come, in time. */
static void extend(struct election *election)
{
        uint64_t older = election->renewed < election->proven ? election->renewed : election->proven;

        if (election->state == ELECTION_LEADING && !must_touch(election))
                election->valid_from = later(election->valid_from, older);
}

/* ---- what the record says */

static bool is_held(const struct election *election)
{
        return election->claim.holder.name[0] != '\0';
}

/* By another member, whose Lease shows whether it lives. Our own shows nothing about a record that names us. */
static bool is_held_by_another(const struct election *election)
{
        return is_held(election) && strcmp(election->claim.holder.name, election->self.name) != 0;
}

/* When the record may be taken. */
static uint64_t due_at(const struct election *election)
{
        const struct leader_claim *claim = &election->claim;
        bool is_successor = strcmp(claim->successor, election->self.name) == 0;
        uint64_t since = election->record.since;

        /* With an older epoch it was not released by its last holder: somebody has put it back. */
        if (claim->released && claim->epoch >= election->highest) {
                bool waits = !is_successor && (claim->successor[0] || election->is_our_release);

                return waits ? since + part(election, ELECTION_RENEW) : since;
        }
        if (is_held_by_another(election))
                since = later(since, election->holder.since);
        else if (is_held(election))
                since = later(since, election->member_since);
        return since + election->longest_usec;
}

/* ---- what to ask */

struct plan {
        uint64_t at;
        enum election_ask_kind kind;
};

static struct plan plan_member(const struct election *election)
{
        if (election->member_lane.in_flight || election->is_superseded)
                return (struct plan){NEVER, ASK_OWN};
        return (struct plan){election->member_lane.next, election->own.known ? ASK_RENEW : ASK_OWN};
}

/* How the record becomes ours. */
static struct plan plan_following(const struct election *election, uint64_t now)
{
        struct plan plan = {later(now, due_at(election)), ASK_TAKE};

        if (election->leaves || election->server_seconds == 0 || !election->record.known ||
            election->record_refused || !is_renewed(election, now))
                return (struct plan){NEVER, ASK_RECORD};
        if (!election->record.version[0])
                return (struct plan){now, ASK_VACATE};
        /* The write replaces the version that was seen, so a foreign holder has not renewed it either. */
        if (!is_held_by_another(election) || election->claim.foreign)
                return plan;
        if (!election->holder.known)
                return (struct plan){now, ASK_HOLDER};
        if (!election->is_checked) {
                uint64_t look = election->holder_changed
                                        ? now
                                        : election->holder_asked + part(election, ELECTION_LOOK);

                plan.kind = ASK_HOLDER;
                if (look < plan.at)
                        plan.at = later(now, look);
        }
        return plan;
}

static struct plan plan_record(const struct election *election, uint64_t now)
{
        struct plan look = {election->look_at, ASK_RECORD}, plan = {NEVER, ASK_RECORD};

        if (election->record_lane.in_flight || election->state == ELECTION_ENDING)
                return plan;
        if (election->state == ELECTION_FOLLOWING)
                plan = plan_following(election, now);
        else if (election->state == ELECTION_RELEASING)
                plan = (struct plan){now, ASK_RELEASE};
        else if (!election->is_ours || must_touch(election) || election->must_note)
                plan = (struct plan){now, ASK_RESTORE};
        else if (election->is_shared && election->state == ELECTION_LEADING)
                plan = (struct plan){election->written + part(election, ELECTION_RENEW), ASK_RESTORE};
        if (look.at <= now || look.at < plan.at)
                plan = look;
        plan.at = later(plan.at, election->record_lane.next);
        return plan;
}

static void fill_claim(struct election *election, struct election_ask *ask)
{
        struct leader_claim *claim = &ask->claim;

        memcpy(ask->version, election->record.version, sizeof(ask->version));
        if (ask->kind == ASK_TAKE)
                election->epoch =
                        later(later(election->highest, election->epoch) + 1, election->server_seconds);
        claim->epoch = ask->kind == ASK_VACATE ? later(election->highest, 1) : election->epoch;
        claim->writes = ask->number; /* a write that changes nothing is none for the server */
        claim->duration_usec = ask->kind == ASK_VACATE ? election->longest_usec : election->duration_usec;
        claim->released = ask->kind == ASK_RELEASE;
        claim->late = claim->released && election->late;
        if (claim->released)
                memcpy(claim->successor, election->successor, sizeof(claim->successor));
        else if (ask->kind != ASK_VACATE)
                claim->holder = election->self;
}

static void start_ask(struct election *election, struct election_lane *lane, enum election_ask_kind kind,
                      uint64_t now, struct election_ask *ret)
{
        struct election_ask ask = {.kind = kind,
                                   .number = ++election->numbers,
                                   .timeout_usec = part(election, ELECTION_TIMEOUT)};

        assert(!lane->in_flight);
        assert(kind != ASK_RELEASE || election->state == ELECTION_RELEASING);
        assert(kind != ASK_RESTORE || election->state == ELECTION_LEADING);
        if (kind >= ASK_VACATE)
                fill_claim(election, &ask);
        else if (kind == ASK_RENEW)
                memcpy(ask.version, election->own.version, sizeof(ask.version));
        else if (kind == ASK_HOLDER) {
                memcpy(ask.member, election->claim.holder.name, sizeof(ask.member));
                election->holder_asked = now;
                election->holder_changed = false;
        } else if (kind == ASK_RECORD)
                election->look_at = NEVER;
        if (kind >= ASK_TAKE)
                election->must_note = false;
        if (kind == ASK_TAKE) {
                election->is_checked = election->late = false;
                election->successor[0] = '\0';
                move(election, EVENT_TAKE, now);
        }
        *lane = (struct election_lane){.in_flight = true, .ask = ask, .sent = now};
        *ret = ask;
}

bool election_next(struct election *election, uint64_t now, struct election_ask *ret)
{
        struct election_lane *lane = &election->member_lane;
        struct plan plan;

        pass_time(election, now);
        plan = plan_member(election);
        if (plan.at > now) {
                lane = &election->record_lane;
                plan = plan_record(election, now);
        }
        if (plan.at > now)
                return false;
        start_ask(election, lane, plan.kind, now, ret);
        return true;
}

uint64_t election_wake_at(const struct election *election, uint64_t now)
{
        uint64_t member = plan_member(election).at, record = plan_record(election, now).at;
        uint64_t at = member < record ? member : record;
        uint64_t stop = election->valid_from + part(election, ELECTION_STOP);

        return election->state == ELECTION_LEADING && stop < at ? stop : at;
}

/* ---- answers about our member Lease */

static void answer_own(struct election *election, const struct election_answer *answer, uint64_t now)
{
        bool is_there = answer->outcome == OUTCOME_DONE;

        if (is_there && election->is_member && strcmp(answer->life, election->self.life) != 0) {
                election->is_superseded = true;
                election->is_member = false;
                move(election, EVENT_FOREIGN, now);
                return;
        }
        election->own.known = true;
        snprintf(election->own.version, sizeof(election->own.version), "%s",
                 is_there ? answer->version : "");
}

static bool is_same_object(const char *version, const char *other)
{
        size_t size = strcspn(version, " ");

        return size == strcspn(other, " ") && memcmp(version, other, size) == 0;
}

static void answer_renewal(struct election *election, const struct election_answer *answer, uint64_t now)
{
        struct election_lane *lane = &election->member_lane;
        struct election_view *own = &election->own;

        if (answer->outcome != OUTCOME_DONE) {
                /* Missing: made again. Conflict: looked at first. */
                own->known = answer->outcome == OUTCOME_MISSING;
                own->version[0] = '\0';
                return;
        }
        if (strcmp(answer->version, lane->ask.version) == 0) { /* for others it is no renewal */
                lane->next = now + part(election, ELECTION_RETRY);
                return;
        }
        if (!is_same_object(answer->version, election->renewed_version))
                election->recreated = now;
        memcpy(own->version, answer->version, sizeof(own->version));
        memcpy(election->renewed_version, answer->version, sizeof(election->renewed_version));
        if (!election->is_member)
                election->member_since = now;
        election->is_member = true;
        election->renewed = lane->sent;
        lane->next = later(now, lane->sent + part(election, ELECTION_RENEW));
        extend(election);
}

/* ---- answers about the record */

static void see_record(struct election *election, const char *version, const struct leader_claim *claim,
                       uint64_t now)
{
        struct election_view *record = &election->record;

        if (!record->known || strcmp(version, record->version) != 0) {
                snprintf(record->version, sizeof(record->version), "%s", version);
                record->known = true;
                record->since = now;
                /* The holder is looked at again, too: must_touch() says why. */
                election->holder.known = election->is_checked = false;
                election->is_ours = election->is_our_release = false;
        }
        election->claim = *claim;
        election->highest = later(election->highest, claim->epoch);
        election->longest_usec = later(election->longest_usec, claim->duration_usec);
}

static void learn_record(struct election *election, const struct election_answer *answer, uint64_t now)
{
        static const struct leader_claim nobody;
        uint64_t most = later(election->highest, election->server_seconds) + ELECTION_LEAP;
        bool exists = answer->outcome == OUTCOME_DONE;

        election->epoch_leaps = exists && !answer->refused && answer->claim.epoch > most;
        election->record_refused = election->epoch_leaps || (exists && answer->refused);
        see_record(election, exists ? answer->version : "",
                   exists && !election->record_refused ? &answer->claim : &nobody, now);
}

/* Judges our lead by the record: it is ours, or was deleted (and maybe made without a holder), or we are not
 * its holder. */
static void judge_lead(struct election *election, uint64_t sent, uint64_t now)
{
        bool is_lost = election->record_refused || is_held(election) || election->claim.released;

        look_by(election, later(now + 1, sent + part(election, ELECTION_RENEW)));
        if (election->is_ours) {
                election->proven = sent;
                extend(election);
        } else if (is_lost) {
                move(election, EVENT_FOREIGN, now);
        }
}

static void answer_look(struct election *election, const struct election_answer *answer, uint64_t now)
{
        uint64_t sent = election->record_lane.sent;

        learn_record(election, answer, now);
        look_by(election, later(now + 1, sent + election->duration_usec));
        if (leader_member_is(&election->claim.holder, &election->self) &&
            election->claim.epoch == election->epoch && is_in_time(election, sent))
                election->is_ours = true;
        /* Others go by its duration, and somebody has changed it. */
        if (election->is_ours && election->claim.duration_usec != election->duration_usec)
                election->must_note = true;
        if (election->state == ELECTION_LEADING)
                judge_lead(election, sent, now);
        else if (election->state == ELECTION_RELEASING && !election->is_ours)
                move(election, EVENT_FREE, now);
}

static void see_holder(struct election *election, const char *version, uint64_t now)
{
        struct election_view *holder = &election->holder;

        holder->known = true;
        holder->since = now;
        snprintf(holder->version, sizeof(holder->version), "%s", version);
        election->is_checked = false;
}

/* What stood in the record for a moment is not for ever. One that was put back proves nothing about who led last. */
static void learn_duration(struct election *election, uint64_t duration_usec)
{
        if (duration_usec > 0 && election->claim.epoch >= election->highest)
                election->longest_usec =
                        later(election->duration_usec, later(election->claim.duration_usec, duration_usec));
}

/* A Lease of another life is as good as none: the holder cannot renew it any more. Until it is due it is looked at for when it
 * was last renewed. */
static void answer_holder(struct election *election, const struct election_answer *answer, uint64_t now)
{
        const struct leader_member *holder = &election->claim.holder;
        bool is_there = answer->outcome == OUTCOME_DONE && strcmp(answer->life, holder->life) == 0;
        const char *version = is_there ? answer->version : "";

        if (is_there)
                learn_duration(election, answer->duration_usec);
        if (!election->holder.known || strcmp(version, election->holder.version) != 0)
                see_holder(election, version, now);
        else if (election->holder_asked >= due_at(election))
                election->is_checked = true;
}

/* What was written, or not, is looked at again; but for what is ours now. */
static void answer_write(struct election *election, const struct election_answer *answer, uint64_t now)
{
        const struct election_lane *lane = &election->record_lane;
        enum election_ask_kind kind = lane->ask.kind;
        bool is_done = answer->outcome == OUTCOME_DONE;

        if (is_done) {
                see_record(election, answer->version, &lane->ask.claim, now);
                election->is_our_release = kind == ASK_RELEASE;
                election->is_ours = kind == ASK_TAKE || (kind == ASK_RESTORE && is_in_time(election, now));
        }
        if (election->is_ours && is_done)
                election->proven = election->written = lane->sent;
        if (kind == ASK_TAKE) {
                /* Too late an answer begins a lead that has lapsed. */
                election->valid_from = 0;
                move(election, is_done ? EVENT_TAKEN : EVENT_NOT_TAKEN, now);
        }
        extend(election);
        election->must_note = election->must_note || (kind == ASK_RESTORE && !is_done);
        look_by(election, is_done && election->state == ELECTION_LEADING
                                  ? later(now + 1, lane->sent + part(election, ELECTION_RENEW))
                                  : now);
        if (is_done && kind == ASK_RELEASE)
                move(election, EVENT_FREE, now);
}

/* ---- inputs */

void election_init(struct election *election, const struct leader_member *self, bool is_shared,
                   uint64_t duration_usec, uint64_t now)
{
        assert(leader_name_fits(self->name) && leader_name_fits(self->life));
        assert(duration_usec >= LEADER_DURATION_MIN && duration_usec <= LEADER_DURATION_MAX);
        *election = (struct election){.self = *self,
                                      .is_shared = is_shared,
                                      .duration_usec = duration_usec,
                                      .longest_usec = duration_usec,
                                      .state = ELECTION_ENDING,
                                      .look_at = now};
}

void election_answer(struct election *election, const struct election_answer *answer, uint64_t now)
{
        bool is_member =
                election->member_lane.in_flight && election->member_lane.ask.number == answer->number;
        struct election_lane *lane = is_member ? &election->member_lane : &election->record_lane;
        bool is_read = lane->ask.kind < ASK_RENEW, is_unknown = answer->outcome == OUTCOME_UNKNOWN;

        assert(lane->in_flight && lane->ask.number == answer->number);
        assert(!is_read || answer->outcome != OUTCOME_CONFLICT);
        pass_time(election, now);
        if (answer->server_seconds > 0)
                election->server_seconds = answer->server_seconds;
        lane->in_flight = false;
        /* A write that was not done is not tried again at once, whatever the reason: its namespace may be missing. */
        if (is_unknown || (!is_read && answer->outcome != OUTCOME_DONE))
                lane->next = now + part(election, ELECTION_RETRY);
        if (is_unknown && is_read)
                look_by(election, now); /* an answer that did not come says nothing */
        else if (lane->ask.kind == ASK_OWN)
                answer_own(election, answer, now);
        else if (lane->ask.kind == ASK_RENEW && !is_unknown)
                answer_renewal(election, answer, now);
        else if (lane->ask.kind == ASK_RECORD)
                answer_look(election, answer, now);
        else if (lane->ask.kind == ASK_HOLDER)
                answer_holder(election, answer, now);
        else if (lane->ask.kind >= ASK_VACATE)
                answer_write(election, answer, now);
}

void election_watched_record(struct election *election, const char *version, uint64_t now)
{
        pass_time(election, now);
        if (!election->record.known || strcmp(version, election->record.version) != 0)
                look_by(election, now);
}

void election_watched_holder(struct election *election, uint64_t now)
{
        pass_time(election, now);
        election->holder_changed = true;
}

/* That a Lease is missing, or another life's, is known by a read alone: unlike a version, it may be so again. */
void election_reaped(struct election *election, uint64_t now)
{
        pass_time(election, now);
        move(election, EVENT_REAPED, now);
}

void election_step_down(struct election *election, const char *successor, bool leaves, bool late,
                        uint64_t now)
{
        assert(!successor[0] || leader_name_fits(successor));
        pass_time(election, now);
        election->leaves = election->leaves || leaves;
        election->late = election->late || late;
        snprintf(election->successor, sizeof(election->successor), "%s", successor);
        move(election, EVENT_STEP_DOWN, now);
}

void election_note(struct election *election, uint64_t now)
{
        pass_time(election, now);
        election->must_note = true;
}

/* ---- what we hold */

void election_hold(const struct election *election, uint64_t now, struct election_hold *ret)
{
        bool leads = election->state == ELECTION_LEADING;

        *ret = (struct election_hold){.epoch = 0};
        if (!leads && election->state != ELECTION_ENDING)
                return;
        ret->epoch = election->epoch;
        ret->stop_at = election->valid_from + part(election, ELECTION_STOP);
        ret->kill_at = election->valid_from + part(election, ELECTION_KILL);
        ret->reaped_at = election->valid_from + part(election, ELECTION_REAPED);
        ret->leads = leads && now < ret->stop_at;
}
