/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The election's requests and answers. Nothing here decides anything: election.h does, and this carries out.
 */
#include "lease/elect.h"

#include <errno.h>
#include <string.h>
#include <systemd/sd-id128.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "kube/notice.h"
#include "object/scan.h"

#define HTTP_CONFLICT 409

static void carry_on(struct lease *lease);

static uint64_t fifteenths(const struct lease *lease, unsigned count)
{
        return lease->config->duration_usec / 15 * count;
}

static int no_timer(const struct lease *lease, int status)
{
        return child_fatal(lease->child, EXIT_CODE_SOFTWARE, "no timer for the lease: %s",
                           strerror(-status));
}

/* At `at` (CLOCK_BOOTTIME). */
static void arm(struct lease *lease, sd_event_source **source, uint64_t at, sd_event_time_handler_t handler)
{
        int r;

        *source = sd_event_source_disable_unref(*source);
        r = sd_event_add_time(lease->child->event, source, CLOCK_BOOTTIME, at, 1, handler, lease);
        if (r < 0)
                no_timer(lease, r);
}

/* ---- what the supervisor is told */

/* Of the record, or of ours: nobody else can follow us then. */
static bool epoch_is_ahead(const struct election *election)
{
        return election->epoch_leaps ||
               (election->state == ELECTION_LEADING && election->server_seconds > 0 &&
                election->epoch > election->server_seconds + ELECTION_LEAP);
}

static const char *trouble(const struct lease *lease)
{
        const struct election *election = &lease->election;

        if (election->is_superseded)
                return "another process renews the Lease of this replica: two of them have the same state folder, or copies of it";
        if (epoch_is_ahead(election))
                return "the epoch of the leader record is more than a year ahead of the server's clock, so that no other replica can lead: "
                       "end all replicas, delete the Lease of the leader record, and start them again";
        if (election->record_refused)
                return lease->refusal;
        return lease->member_lane.failure[0] ? lease->member_lane.failure : lease->record_lane.failure;
}

static void fill_state(struct lease *lease, struct message_lease *ret)
{
        const struct election *election = &lease->election;
        struct election_hold hold;

        election_hold(election, clock_boottime_usec(), &hold);
        if (hold.leads && !lease->has_led)
                lease->heard_until = hold.stop_at;
        lease->has_led = lease->has_led || hold.leads;
        *ret = (struct message_lease){
                .state = hold.leads               ? LEAD_LEADING
                         : lease->has_led         ? LEAD_LOST
                         : election->record.known ? LEAD_FOLLOWING
                                                  : LEAD_UNKNOWN,
                .leader = election->claim.holder.name,
                .lasting = "",
                .trouble = trouble(lease),
                .refused = election->record_refused,
                .epoch = election->claim.epoch,
        };
        if (!lease->has_led)
                return;
        ret->epoch = election->epoch;
        ret->former_epoch = lease->former_epoch;
        ret->released = lease->released;
        ret->clean = lease->clean;
        ret->recorded = lease->written_serial;
        /* Once, with the lead: from then on it is the supervisor's. */
        ret->lasting = lease->told.state != LEAD_LEADING && lease->rest ? lease->rest : "";
        ret->stop_boottime = hold.stop_at;
        ret->kill_boottime = hold.kill_at;
}

static bool is_told(const struct lease *lease, const struct message_lease *state)
{
        const struct message_lease *told = &lease->told;

        return told->state == state->state && told->epoch == state->epoch &&
               told->refused == state->refused && told->stop_boottime == state->stop_boottime &&
               told->recorded == state->recorded && strcmp(lease->told_leader, state->leader) == 0 &&
               strcmp(lease->told_trouble, state->trouble) == 0;
}

static void tell(struct lease *lease)
{
        struct message_lease state;

        fill_state(lease, &state);
        if (lease->child->stopping || lease->leaves || is_told(lease, &state))
                return;
        snprintf(lease->told_leader, sizeof(lease->told_leader), "%s", state.leader);
        snprintf(lease->told_trouble, sizeof(lease->told_trouble), "%s", state.trouble);
        lease->told = state;
        (void)child_send(lease->child, MESSAGE_LEASE, &state);
}

/* ---- requests */

static int start(struct lease *lease, struct lease_request *request, uint64_t timeout_usec, void *userdata,
                 void (*on_done)(struct kube_transfer *transfer, const struct kube_response *response,
                                 void *userdata),
                 struct kube_transfer **ret)
{
        struct kube_request own = {
                .method = request->method,
                .path = request->path,
                .content_type = request->method && strcmp(request->method, "PATCH") == 0
                                        ? "application/merge-patch+json"
                                        : NULL,
                .body = request->body.data,
                .body_size = request->body.size,
                .timeout_usec = timeout_usec,
                .on_done = on_done,
                .body_max = 4 * LEADER_RECORD_MAX,
                .userdata = userdata,
        };
        int r = request->method ? kube_client_start(lease->client, &own, ret) : -ENOMEM;

        lease_request_done(request);
        return r;
}

static void note_failure(struct lease_lane *lane, const struct kube_response *response)
{
        const struct kube_error *error = &response->error;
        struct lease *lease = lane->lease;

        notice_refused_credential(lease->child, error, response->credential_serial, &lease->refresh_serial);
        snprintf(lane->failure, sizeof(lane->failure), "%s", error->message);
        utf8_clean(lane->failure);
}

/* A missing namespace, or a server without Leases, answers 404 as well. */
static enum election_outcome outcome_of(const struct election_ask *ask, const struct kube_error *error)
{
        bool creates = ask->kind >= ASK_RENEW && !ask->version[0];

        if (error->failure == KUBE_FAILURE_NONE)
                return OUTCOME_DONE;
        if (!creates && kube_error_is_not_found(error))
                return OUTCOME_MISSING;
        return ask->kind >= ASK_RENEW && error->failure == KUBE_FAILURE_HTTP &&
                               error->http_status == HTTP_CONFLICT
                       ? OUTCOME_CONFLICT
                       : OUTCOME_UNKNOWN;
}

/* Keeps the lines of a record that was read or written that are to stay in it. */
static void take_record(struct lease *lease, const struct kube_response *response, bool is_read,
                        struct election_answer *answer)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        struct leader_record record;
        int r = lease_record(&lease->names, response->body, response->body_size, &record, &error);

        if (r < 0) {
                answer->refused = true;
                snprintf(lease->refusal, sizeof(lease->refusal), "the Lease %s/%s: %s",
                         lease->names.namespace_name, lease->names.record, error_message(&error));
                utf8_clean(lease->refusal);
                return;
        }
        if (is_read)
                answer->claim = record.claim;
        free(lease->rest);
        lease->rest = record.rest;
        /* Somebody has changed our lines of the record: they are written again. */
        if (is_read && lease->lasting && strcmp(lease->lasting, lease->rest ? lease->rest : "") != 0)
                election_note(&lease->election, clock_boottime_usec());
}

static void take_body(struct lease_lane *lane, const struct kube_response *response,
                      struct election_answer *answer)
{
        enum election_ask_kind kind = lane->ask.kind;
        bool is_member = kind == ASK_OWN || kind == ASK_HOLDER || kind == ASK_RENEW;

        if (lease_version(response->body, response->body_size, answer->version) < 0) {
                answer->outcome = OUTCOME_UNKNOWN;
                snprintf(lane->failure, sizeof(lane->failure),
                         "the server's answer about a Lease cannot be read");
                return;
        }
        if (is_member) {
                lease_life(response->body, response->body_size, answer->life);
                answer->duration_usec = lease_duration(response->body, response->body_size);
        } else {
                take_record(lane->lease, response, kind == ASK_RECORD, answer);
        }
}

/* The trouble, with a request that succeeds. What could not be written is none any more once another replica leads. */
static bool is_over(const struct lease_lane *lane)
{
        const struct election *election = &lane->lease->election;
        const char *holder = election->claim.holder.name;

        return lane->ask.kind >= ASK_RENEW || !lane->is_of_write ||
               (election->state == ELECTION_FOLLOWING && holder[0] &&
                strcmp(holder, election->self.name) != 0);
}

static void take_answer(struct lease_lane *lane, const struct kube_response *response)
{
        struct lease *lease = lane->lease;
        struct election_answer answer = {.number = lane->ask.number,
                                         .outcome = outcome_of(&lane->ask, &response->error),
                                         .server_seconds = response->server_seconds};

        if (answer.outcome == OUTCOME_UNKNOWN)
                note_failure(lane, response);
        else if (is_over(lane))
                lane->failure[0] = '\0';
        if (answer.outcome == OUTCOME_UNKNOWN)
                lane->is_of_write = lane->ask.kind >= ASK_RENEW;
        else if (answer.outcome == OUTCOME_DONE)
                take_body(lane, response, &answer);
        if (answer.outcome == OUTCOME_DONE && lane->ask.kind > ASK_TAKE)
                lease->written_serial = lease->sent_serial;
        election_answer(&lease->election, &answer, clock_boottime_usec());
}

static void on_lease_answer(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                            void *userdata)
{
        struct lease_lane *lane = userdata;

        take_answer(lane, response);
        carry_on(lane->lease);
}

/* The lines after the claim: ours while we lead, else as they are in the version that is replaced. */
static const char *rest_of(const struct lease *lease, const struct election_ask *ask)
{
        if (ask->kind > ASK_TAKE && lease->lasting)
                return lease->lasting;
        return ask->version[0] ? lease->rest : NULL;
}

static void send_ask(struct lease *lease, const struct election_ask *ask)
{
        bool is_member = ask->kind == ASK_OWN || ask->kind == ASK_RENEW;
        struct lease_lane *lane = is_member ? &lease->member_lane : &lease->record_lane;
        struct lease_request request;
        int r;

        lane->lease = lease;
        lane->ask = *ask;
        if (ask->kind == ASK_TAKE) {
                const struct leader_claim *former = &lease->election.claim;

                lease->former_epoch = former->epoch;
                lease->released = former->released && former->epoch >= lease->election.highest;
                lease->clean = lease->released && !former->late;
        }
        if (ask->kind > ASK_TAKE)
                lease->sent_serial = lease->serial;
        lease_request_make(&lease->names, &lease->election.self, ask, rest_of(lease, ask),
                           clock_realtime_usec(), &request);
        r = start(lease, &request, ask->timeout_usec, lane, on_lease_answer, NULL);
        if (r < 0)
                take_answer(lane,
                            &(struct kube_response){.error = {.failure = KUBE_FAILURE_PROTOCOL,
                                                              .retry_after_sec = -1,
                                                              .message = (char *)(uintptr_t)strerror(-r)},
                                                    .body = ""});
}

/* ---- watches: of the record, and while another member has it, of that one's Lease */

static void on_record_change(void *userdata)
{
        struct lease *lease = userdata;

        election_watched_record(&lease->election, "changed", clock_boottime_usec());
        carry_on(lease);
}

static void on_holder_change(void *userdata)
{
        struct lease *lease = userdata;

        election_watched_holder(&lease->election, clock_boottime_usec());
        carry_on(lease);
}

static void watch_holder(struct lease *lease)
{
        const struct election *election = &lease->election;
        const char *holder = election->claim.holder.name;
        bool is_other = election->state == ELECTION_FOLLOWING && !election->claim.foreign &&
                        strcmp(holder, election->self.name) != 0;

        lease_watch_set(&lease->holder_watch, is_other ? holder : "");
}

/* ---- the end, once the lead is released */

static void on_deleted(struct kube_transfer *transfer _unused_,
                       const struct kube_response *response _unused_, void *userdata)
{
        const struct lease *lease = userdata;

        child_exit(lease->child, EXIT_CODE_OK); /* if it is left behind, it is out of date */
}

static void leave(struct lease *lease)
{
        struct lease_request request;

        if (lease->deletes)
                return;
        lease->deletes = true;
        if (lease->election.is_member) {
                lease_deletion_make(&lease->names, lease->election.self.name,
                                    lease->election.renewed_version, &request);
                if (start(lease, &request, fifteenths(lease, ELECTION_TIMEOUT), lease, on_deleted, NULL) >=
                    0)
                        return;
        }
        child_exit(lease->child, EXIT_CODE_OK);
}

/* ---- the election */

static int on_wake(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        carry_on(userdata);
        return 0;
}

static void carry_on(struct lease *lease)
{
        struct election *election = &lease->election;
        struct election_ask ask;
        uint64_t now = clock_boottime_usec(), at;

        if (lease->child->stopping || lease->deletes)
                return;
        if (lease->leaves && election->state == ELECTION_FOLLOWING) {
                leave(lease);
                return;
        }
        while (election_next(election, now, &ask))
                send_ask(lease, &ask);
        at = election_wake_at(election, now);
        if (at != UINT64_MAX)
                arm(lease, &lease->wake, at, on_wake);
        watch_holder(lease);
        tell(lease);
        if (lease->has_led && !lease->leaves && now >= lease->heard_until)
                child_fatal(lease->child, EXIT_CODE_LEAD_LOST,
                            "the lead is over, or the supervisor does not hear that it was renewed");
        if (election->is_superseded)
                child_fatal(lease->child, EXIT_CODE_LEAD_LOST, "%s", trouble(lease));
}

static void election_begin(struct lease *lease)
{
        struct leader_member self;
        sd_id128_t life;
        int r = sd_id128_randomize(&life);

        if (r < 0) {
                child_fatal(lease->child, EXIT_CODE_SOFTWARE, "no random number: %s", strerror(-r));
                return;
        }
        snprintf(self.name, sizeof(self.name), "%s", lease->config->member);
        snprintf(self.life, sizeof(self.life), SD_ID128_FORMAT_STR, SD_ID128_FORMAT_VAL(life));
        election_init(&lease->election, &self, lease->config->compatible, lease->config->duration_usec,
                      clock_boottime_usec());
        election_reaped(&lease->election, clock_boottime_usec());
        lease->holder_watch = (struct lease_watch){.child = lease->child,
                                                   .client = lease->client,
                                                   .names = &lease->names,
                                                   .pause_usec = fifteenths(lease, ELECTION_RENEW),
                                                   .on_change = on_holder_change,
                                                   .userdata = lease};
        lease->record_watch = lease->holder_watch;
        lease->record_watch.on_change = on_record_change;
        lease_watch_set(&lease->record_watch, lease->names.record);
        carry_on(lease);
}

/* ---- which cluster this is */

static int on_identify(sd_event_source *source, uint64_t usec, void *userdata);

static bool take_cluster(struct lease *lease, const struct kube_response *response)
{
        _cleanup_free_ char *uid = NULL;
        struct scan_object object;

        if (kube_error_is_withheld(&response->error)) {
                snprintf(lease->cluster, sizeof(lease->cluster), "%s", LEASE_CLUSTER_UNKNOWN);
                return true;
        }
        if (response->error.failure != KUBE_FAILURE_NONE) {
                note_failure(&lease->record_lane, response);
                return false;
        }
        if (scan_object(response->body, response->body_size, &object) < 0 ||
            scan_string(object.uid, &uid) < 0 || !leader_name_fits(uid)) {
                snprintf(lease->record_lane.failure, sizeof(lease->record_lane.failure),
                         "the answer about namespace kube-system cannot be read");
                return false;
        }
        snprintf(lease->cluster, sizeof(lease->cluster), "%s", uid);
        return true;
}

static void on_identity(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                        void *userdata)
{
        struct lease *lease = userdata;

        lease->record_lane.failure[0] = '\0';
        if (take_cluster(lease, response)) {
                election_begin(lease);
                return;
        }
        tell(lease);
        arm(lease, &lease->identify, clock_boottime_usec() + fifteenths(lease, ELECTION_RETRY), on_identify);
}

void elect_begin(struct lease *lease)
{
        const struct kube_request request = {.method = "GET",
                                             .path = "/api/v1/namespaces/kube-system",
                                             .timeout_usec = fifteenths(lease, ELECTION_TIMEOUT),
                                             .on_done = on_identity,
                                             .userdata = lease};

        lease->record_lane.lease = lease;
        if (kube_client_start(lease->client, &request, NULL) < 0)
                arm(lease, &lease->identify, clock_boottime_usec() + fifteenths(lease, ELECTION_RETRY),
                    on_identify);
}

static int on_identify(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        elect_begin(userdata);
        return 0;
}

int elect_keep(struct lease *lease, const struct message_lasting *lasting)
{
        if (!lease->has_led || lasting->serial <= lease->serial)
                return -EPROTO;
        if (text_replace(&lease->lasting, lasting->lines) < 0)
                return -ENOMEM;
        lease->serial = lasting->serial;
        election_note(&lease->election, clock_boottime_usec());
        carry_on(lease);
        return 0;
}

void elect_release(struct lease *lease, const char *successor, bool late)
{
        if (!lease->cluster[0]) { /* it never stood for election */
                child_exit(lease->child, EXIT_CODE_OK);
                return;
        }
        lease->leaves = true;
        election_step_down(&lease->election, successor, true, late, clock_boottime_usec());
        election_reaped(&lease->election, clock_boottime_usec());
        carry_on(lease);
}

void elect_done(struct lease *lease)
{
        sd_event_source_disable_unref(lease->wake);
        sd_event_source_disable_unref(lease->record_watch.retry);
        sd_event_source_disable_unref(lease->holder_watch.retry);
        sd_event_source_disable_unref(lease->identify);
        free(lease->rest);
        free(lease->lasting);
}
