/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Requests of several runs that one process of a handler has: `parallel` of serve, and `batch` of exec. One rule says what
 * becomes of those that it has not answered when it is gone, since nothing tells over which of them it died: a single one
 * has failed; several go back, and that counts for none of them. After that each run has the process for itself, until all
 * that went back could have had their turn, or one of them has failed and the next one has not. The object that failed alone
 * is remembered, and shares no process, not even one that others had before it, until it is answered.
 */
#include "worker/run-state.h"

/* How a request ended. */
enum asked_end {
        ASKED_ANSWERED,    /* with `text`, which may have an "id"; NULL: no memory for it */
        ASKED_TOO_MUCH,    /* the answer is larger than PROCESS_ANSWER_MAX */
        ASKED_FAILED,      /* `text` says why; likewise: */
        ASKED_NOT_STARTED, /* there is no process, whatever it asks */
        ASKED_EXITED, /* a program for this batch, of which run->handler.result tells; `text`: its last line */
        ASKED_UNREADABLE, /* the process wrote an answer to no request; `text` has it */
        ASKED_LOST,       /* with others; `text` says how */
        ASKED_TOO_LARGE,  /* the request is, as run->excess says */
};

struct asked {
        struct asked *next;
        struct run *run;
        uint64_t id;         /* 0: the process does not have it yet */
        uint64_t timeout_at; /* CLOCK_MONOTONIC */
        bool is_over;
        enum asked_end end;
        char *text;
        size_t size;
};

/* In the order in which they were added. */
void asked_add(struct asked **first, struct asked *asked);
/* It may have been taken out already. */
void asked_remove(struct asked **first, const struct asked *asked);
void asked_done(struct asked *asked);
size_t asked_count_sent(const struct asked *first);
size_t asked_count_unsent(const struct asked *first);
/* The one that the line {"id": 7, ...} answers; NULL if there is none. cut: only the beginning of the line is there. is_only: the process
 * never had another request. */
struct asked *asked_find(struct asked *first, const char *line, size_t size, bool cut, bool is_only);
/* Whether the line has this id. */
bool asked_is_answer_to(const char *line, size_t size, uint64_t id);
/* Whether the line is one JSON value, and nothing stands after it. */
bool asked_is_whole(const char *line, size_t size);
/* Takes it out, and wakes its run. */
void asked_end(struct asked **first, struct asked *asked, enum asked_end end, const char *text, size_t size);

/* The number of runs of this watch that can share the process, this one included; 1 if it is alone. */
size_t asked_together(const struct run *run);
/* The same for a process that takes one request after the other: a batch is one turn. */
size_t asked_at_once(const struct run *run);
/* The process has answered this run. */
void asked_note_answer(const struct run *run);
/* The process is gone, and has not answered those that it had. by_itself: nobody has ended it for another reason than a
 * timeout. `why` is for people; end: of a single one, if that has failed. */
void asked_settle(struct asked **first, bool by_itself, enum asked_end end, const char *why,
                  const char *last_line);
bool asked_is_feared(const struct run *run);
/* The process is gone, and what it wrote may hold the answers of those that it has not answered. A request that it had alone has
 * failed; of several, also if others were answered, each is asked again alone, which counts for none of them. */
void asked_settle_unclear(struct asked **first, bool had_others, const char *why);
