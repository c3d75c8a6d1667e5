# SPDX-License-Identifier: Apache-2.0
"""The benchmarks by name, in the order in which they run. Each is a function that takes the Report."""
from . import death, distance, events, execution, growth, idle, latency, peers, replicas, start, sync, turns

BENCHMARKS = {
    "first-sync": sync.first_sync,
    "event-rate": events.event_rate,
    "exec-rate": execution.exec_rate,
    "serve-rate": execution.serve_rate,
    "latency": latency.latency,
    "idle": idle.idle,
    "start": start.start,
    "warm-restart": start.warm_restart,
    "death": death.death,
    "relist": death.relist,
    "growth-objects": growth.objects,
    "growth-workers": growth.workers,
    "growth-watches": growth.watches,
    "turns": turns.turns,
    "distance": distance.distance,
}

PEERS = {
    "peer-sync": peers.sync,
    "peer-events": peers.events,
    "peer-latency": peers.latency,
    "peer-start": peers.start,
    "peer-idle": peers.idle,
    "peer-distance": distance.beside,
    "replicas": replicas.replicas,
    "peer-sync-100k": peers.sync_large,
}
