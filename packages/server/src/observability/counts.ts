import { createCounter, createHistogram } from './series.ts'

/** Upper ends of buckets, in seconds. */
const storeSeconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]
const setupSeconds = [0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 20, 30, 45, 60, 120, 180]
const delaySeconds = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]

export type Counts = ReturnType<typeof createCounts>

/** Every counter and histogram, in the order in which they are printed [MET1]. */
export const createCounts = () => ({ ...createTrafficCounts(), ...createWorkCounts() })

/** What comes from clients, and what becomes of it. */
function createTrafficCounts() {
  return {
    ended: createCounter(
      'ringwire_calls_ended_total',
      ['status', 'end_reason'],
      'Calls that ended; a reason that a client made up counts as other.',
    ),
    relays: createCounter(
      'ringwire_relays_total',
      ['event', 'road'],
      'Messages passed on to the peer; the long road asks the store about the call first.',
    ),
    relayBytes: createCounter('ringwire_relay_bytes_total', [], 'Bytes of the messages passed on to the peer.'),
    requests: createCounter(
      'ringwire_requests_total',
      ['event', 'result'],
      'Messages of clients by ok or the error code, and HTTP requests by their status.',
    ),
    resumes: createCounter('ringwire_resumes_total', ['result'], 'Sessions that came back, by the result.'),
    closes: createCounter(
      'ringwire_closes_total',
      ['code', 'cause'],
      'Sockets that were closed; the cause client says that the client or the network did it.',
    ),
    limits: createCounter('ringwire_limited_total', ['limit'], 'Refusals for a limit.'),
    setup: createHistogram(
      'ringwire_call_setup_seconds',
      ['phase'],
      setupSeconds,
      'Set-up of calls: ring from the invite to the answer, connect from the answer to the first media.',
    ),
  }
}

/** What the service does for that: in its stores, and toward others. */
function createWorkCounts() {
  return {
    stores: createHistogram(
      'ringwire_store_seconds',
      ['store', 'operation'],
      storeSeconds,
      'How long a store took for a request.',
    ),
    storeErrors: createCounter('ringwire_store_errors_total', ['store', 'kind'], 'What a store refused.'),
    delays: createHistogram(
      'ringwire_event_loop_delay_seconds',
      [],
      delaySeconds,
      'How late the event loop was for a timer, ten times a second.',
    ),
    pushes: createCounter(
      'ringwire_pushes_total',
      ['platform', 'result'],
      'Pushes to devices by their result; gone: the device was forgotten; repeated: an attempt that is made again.',
    ),
    hooks: createCounter(
      'ringwire_webhook_deliveries_total',
      ['result'],
      'Attempts to deliver a webhook: delivered, repeated if it failed and is made again, failed for good.',
    ),
    inviteHooks: createCounter(
      'ringwire_invite_hook_total',
      ['result'],
      'Invites on which a backend decided, by the decision; failed: no valid answer came within 2 s.',
    ),
    transfers: createCounter(
      'ringwire_transfers_total',
      ['result'],
      'Transfers by what became of the call with the target: accepted, joined where two calls became one, or how it ended without an answer.',
    ),
    groupCalls: createCounter(
      'ringwire_group_calls_total',
      ['result'],
      'Calls to groups by what became of them: accepted, or how they ended without an answer.',
    ),
    operators: createCounter(
      'ringwire_admin_requests_total',
      ['result'],
      'Requests to the listener for operators by their status; 401 is a wrong token, or none.',
    ),
  }
}
