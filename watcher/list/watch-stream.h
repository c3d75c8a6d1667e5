/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * WATCH: from the last resourceVersion, for as long as the server and the network let it; or with the list
 * as its first events (WatchList), where the server has that.
 */
#include "watcher/stream/stream.h"

void watch_start(struct stream *stream);
void watch_initial(struct stream *stream);
