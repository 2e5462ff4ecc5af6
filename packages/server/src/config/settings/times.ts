import { duration, setting } from '../setting.ts'
import { integer } from '../values.ts'

/** How long calls, sessions and sockets are waited for. */
export const times = {
  ringTimeoutMs: duration(
    'RINGWIRE_RING_TIMEOUT_MS',
    45_000,
    'How long a call rings before it is missed; a product may set its own.',
    180_000,
  ),
  callerLostMs: duration(
    'RINGWIRE_CALLER_LOST_MS',
    20_000,
    'How long a ringing call waits for a caller whose connection is lost, and an answered one for two peers who closed theirs.',
  ),
  peerLostMs: duration(
    'RINGWIRE_PEER_LOST_MS',
    120_000,
    'How long an answered call waits for a peer whose connection is lost.',
  ),
  maxCallMs: duration('RINGWIRE_MAX_CALL_MS', 43_200_000, 'The longest that an answered call may last.'),
  resumeWindowMs: duration(
    'RINGWIRE_RESUME_WINDOW_MS',
    120_000,
    'How long an extended session can be resumed after its socket was lost.',
  ),
  drainMs: setting(
    'RINGWIRE_DRAIN_MS',
    integer(0, 600_000),
    '10000',
    'How long a node that stops takes to send its clients to other nodes; if there are none, all are closed at once.',
    { unit: 'ms' },
  ),
  rebalancePerSecond: setting(
    'RINGWIRE_REBALANCE_PER_SECOND',
    integer(0, 1_000),
    '0',
    'Idle extended sessions that a node with more than its share of the sockets sends to other nodes, a second at most; 0: none.',
  ),
  httpIdleMs: setting(
    'RINGWIRE_HTTP_IDLE_MS',
    integer(1_000, 255_000),
    '75000',
    'How long an HTTP connection may wait for its next request. Longer than the load balancer keeps its own, which is often 60 s.',
    { unit: 'ms' },
  ),
  pingIntervalMs: duration('RINGWIRE_PING_INTERVAL_MS', 25_000, 'How often a socket is pinged.'),
  pongTimeoutMs: duration('RINGWIRE_PONG_TIMEOUT_MS', 10_000, 'How long a pong may take before the socket is closed.'),
  probeTimeoutMs: duration(
    'RINGWIRE_PROBE_TIMEOUT_MS',
    3_000,
    'The same for the ping that asks whether the holder of a place is still there.',
  ),
}
