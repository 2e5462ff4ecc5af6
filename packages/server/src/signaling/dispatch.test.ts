import { describe, expect, test } from 'bun:test'
import { createMessageParser } from '@ringwire/protocol/envelope'
import { errorBody } from '@ringwire/protocol/errors'
import { allowedActions } from '@ringwire/protocol/rest'
import type { SessionClaims } from '../auth/tokens.ts'
import type { Calls } from '../calls/calls.ts'
import type { Relay } from '../calls/relay.ts'
import { StoreError } from '../ports/store-error.ts'
import { createDispatch, type DispatchResult, type SignalingSession } from './dispatch.ts'

const callUuid = '00000000-0000-4000-8000-000000000000'
const session: SignalingSession = {
  participant: { product: 'shop', role: 'customer', userId: 'ann' },
  sessionId: 's',
  deviceId: null,
  displayName: 'Ann',
  node: 'n',
  allowedActions,
  allowedPeerRoles: ['agent'],
  contextType: 'order',
  contextId: '1',
  issuedAt: 0,
  key: null,
  expiresAt: 1_000,
  extended: false,
}

const nothing: DispatchResult = { reply: undefined, malformed: false, n: undefined }

function setUp(
  options: { verb?: () => Promise<never>; relay?: Relay['relay']; now?: number; verified?: SessionClaims } = {},
) {
  const restricted: [sessionId: string, roles: readonly string[]][] = []
  const failures: { error: unknown; event: string }[] = []
  const answered: [string | undefined, string | undefined][] = []
  const unused = () => Promise.reject(new Error('not asked for'))
  const calls: Calls = {
    invite: async () => ({ ok: false, error: errorBody('CALLEE_BUSY') }),
    verb: options.verb ?? (async () => ({ ok: false, error: errorBody('CALL_NOT_FOUND') })),
    seat: unused,
    take: unused,
    transfer: unused,
    transferForBackend: unused,
    alerting: unused,
    hearEnd: unused,
    rejectRinging: unused,
    run: unused,
    begin: unused,
  }
  const dispatch = createDispatch({
    parse: createMessageParser(),
    calls,
    relay: { relay: options.relay ?? (() => 'accepted') },
    quality: { report: async () => 'connected' },
    activeCalls: unused,
    presence: { watch: unused, restrict: ({ sessionId }, roles) => void restricted.push([sessionId, roles]) },
    isPresenceOpen: () => false,
    verify: () => (options.verified ? { ok: true, claims: options.verified } : { ok: false, expired: false }),
    renew() {},
    now: () => options.now ?? 0,
    onError: (error, event) => void failures.push({ error, event }),
    onAnswered: (_, request, error) => void answered.push([request?.event, error?.code]),
  })
  const ask = async (message: object, who: SignalingSession = session) => {
    const { reply, malformed } = await dispatch.handle(who, JSON.stringify(message), 0)
    return { malformed, ...(reply === undefined ? {} : JSON.parse(reply)) }
  }
  return { dispatch, ask, failures, answered, restricted }
}

const end = { event: 'call.end', request_id: 'r', data: { call_uuid: callUuid } }
const candidate = {
  event: 'webrtc.ice_candidate',
  request_id: 'r',
  data: { call_uuid: callUuid, candidate: { candidate: 'x' } },
}

test('[ENV2] an error comes with the request_id of its request, in both shapes', async () => {
  const { ask } = setUp()
  const error = errorBody('CALL_NOT_FOUND')
  expect(await ask(end)).toEqual({ malformed: false, event: 'call.error', request_id: 'r', error, data: { error } })
  expect(await ask({ ...end, request_id: undefined })).not.toHaveProperty('request_id')
})

test('[ENV5] a store that is away: SERVICE_UNAVAILABLE, retryable, and no bug', async () => {
  for (const kind of ['unavailable', 'unknown'] as const) {
    const { ask, failures } = setUp({ verb: () => Promise.reject(new StoreError(kind, 'disk I/O error')) })
    expect((await ask(end)).error).toEqual(errorBody('SERVICE_UNAVAILABLE'))
    // It hears that the store refused something.
    expect(failures).toMatchObject([{ error: { name: 'StoreError', kind }, event: 'call.end' }])
  }
})

test('[ENV5] [LOG1] a bug: INTERNAL_ERROR, reported by its event, and nothing of it is said to the client', async () => {
  const bug = new Error('secret details')
  const throwing: Parameters<typeof setUp>[0][] = [
    { verb: () => Promise.reject(bug) },
    {
      verb: () => {
        throw bug
      },
    },
  ]
  for (const options of throwing) {
    const { ask, failures } = setUp(options)
    const answer = await ask(end)
    expect(answer).toMatchObject({ malformed: false, request_id: 'r', error: errorBody('INTERNAL_ERROR') })
    expect(JSON.stringify(answer)).not.toContain('secret')
    expect(failures).toEqual([{ error: bug, event: 'call.end' }])
  }
  const { ask, failures } = setUp({
    relay() {
      throw bug
    },
  })
  expect((await ask(candidate)).error.code).toBe('INTERNAL_ERROR')
  expect(failures).toHaveLength(1)
})

test('[ORD1] what is no relay waits until the relays ahead of it are answered; a relay does not', async () => {
  const log: string[] = []
  const { dispatch } = setUp({
    relay: () => {
      log.push('relay')
      return 'accepted'
    },
    verb: () => {
      log.push('end')
      return Promise.reject(new StoreError('unavailable', 'away'))
    },
  })
  const ahead = Promise.withResolvers<void>()
  const waiter = {
    ahead: { n: 1, done: ahead.promise },
    waitsFor() {},
    waitsOutside: () => AbortSignal.any([]),
    nextNumber: () => undefined,
    isUnderWayAs() {},
  }
  const ask = (message: object) => dispatch.handle(session, JSON.stringify(message), 0, undefined, waiter)
  const ended = ask(end)
  await ask(candidate)
  expect(log).toEqual(['relay'])
  ahead.resolve()
  await ended
  expect(log).toEqual(['relay', 'end'])
})

test('a relay that is answered at once is answered without a promise', () => {
  const { dispatch } = setUp()
  expect(dispatch.handle(session, JSON.stringify(candidate), 0)).toEqual(nothing)
})

test('[WS5] after expiry an invite gets AUTH_TOKEN_INVALID, to the millisecond, and verbs go on', async () => {
  const invite = { event: 'call.invite', request_id: 'r', data: { callee_user_id: 'bob', callee_role: 'agent' } }
  expect((await setUp({ now: 999 }).ask(invite)).error.code).toBe('CALLEE_BUSY')
  expect((await setUp({ now: 1_000 }).ask(invite)).error.code).toBe('AUTH_TOKEN_INVALID')
  expect((await setUp({ now: 5_000 }).ask(end)).error.code).toBe('CALL_NOT_FOUND')
})

test('[ENV5] what the token does not permit: ACTION_NOT_ALLOWED, also where the rest is wrong', async () => {
  const reader = { ...session, allowedActions: ['call.end'] }
  const { ask } = setUp()
  expect((await ask(candidate, reader)).error.code).toBe('ACTION_NOT_ALLOWED')
  expect((await ask(end, reader)).error.code).toBe('CALL_NOT_FOUND')
})

test('[ENV1] only what is no envelope counts as malformed', async () => {
  const { ask, dispatch } = setUp()
  const counts = async (message: object) => (await ask(message)).malformed
  expect(await counts({ event: 1 })).toBe(true)
  expect(await counts({ event: 'test.unknown' })).toBe(false)
  expect(await counts({ event: 'call.end', data: {} })).toBe(false)
  expect(await counts(end)).toBe(false)
  expect(await dispatch.handle(session, '{', 0)).toMatchObject({ malformed: true })
  expect(await dispatch.handle(session, 'ping', 0)).toEqual(nothing)
})

test('[WS7] a refusal names the request where it can, whatever else is wrong with it', () => {
  const { dispatch } = setUp()
  const error = errorBody('RATE_LIMITED', { retry_after_ms: 5, limit: 'messages' })
  const texts: [string, string | undefined][] = [
    [JSON.stringify(end), 'r'],
    ['{"event":"test.unknown","request_id":"q"}', 'q'],
    ['{"event":1,"request_id":"q"}', 'q'],
    ['{"request_id":5}', undefined],
    ['{', undefined],
    ['ping', undefined],
  ]
  for (const [text, requestId] of texts) {
    for (const mayBeUnlimited of text === JSON.stringify(end) ? [false] : [false, true]) {
      const result = dispatch.handle(session, text, 0, { error, mayBeUnlimited })
      if (result instanceof Promise) throw new Error('it took effect')
      expect(JSON.parse(result.reply ?? '')).toEqual({
        event: 'call.error',
        ...(requestId && { request_id: requestId }),
        error,
        data: { error },
      })
    }
  }
})

test('[LOG2] each message of a client is told of with how it was answered', async () => {
  const { ask, answered } = setUp()
  await ask(candidate)
  await ask(end)
  // An error in its data does not hide the request.
  await ask({ event: 'call.end' })
  await ask({ ...candidate, data: { call_uuid: callUuid, candidate: { candidate: 'x'.repeat(9_000) } } })
  await ask({ event: 'no.such' })
  await ask({ event: 'call.end', data: 7 })
  expect(answered).toEqual([
    ['webrtc.ice_candidate', undefined],
    ['call.end', 'CALL_NOT_FOUND'],
    ['call.end', 'INVALID_PAYLOAD'],
    ['webrtc.ice_candidate', 'PAYLOAD_TOO_LARGE'],
    [undefined, 'UNKNOWN_EVENT'],
    [undefined, 'INVALID_MESSAGE'],
  ])
})

test('[WS7] hanging up and a new token are not refused for the rate; what only names them is', async () => {
  const { dispatch } = setUp()
  const refusal = { error: errorBody('RATE_LIMITED', { limit: 'messages' }), mayBeUnlimited: true }
  const codeOf = async (message: object) => {
    const { reply } = await dispatch.handle({ ...session, extended: true }, JSON.stringify(message), 0, refusal)
    return JSON.parse(reply ?? '').error.code
  }
  for (const event of ['call.end', 'call.cancel', 'call.reject']) {
    expect(await codeOf({ ...end, event })).toBe('CALL_NOT_FOUND')
  }
  expect(await codeOf({ event: 'auth.refresh', data: { token: 'x' } })).toBe('AUTH_TOKEN_INVALID')
  for (const event of ['call.accept', 'call.connected']) expect(await codeOf({ ...end, event })).toBe('RATE_LIMITED')
  expect(await codeOf({ ...candidate, more: 'call.end' })).toBe('RATE_LIMITED')
  expect(await codeOf({ event: 'call.end', data: {} })).toBe('RATE_LIMITED')
})

test('[ORD1] [EXT4] a hang-up of who is gone counts, and has no number: it may be sent again, with what came before it', async () => {
  const { dispatch, answered } = setUp()
  const gone = { ...session, extended: true }
  expect(await dispatch.handleLast(gone, JSON.stringify({ ...candidate, n: 1 }), 0)).toEqual(nothing)
  expect(await dispatch.handleLast(gone, JSON.stringify({ ...end, n: 2 }), 0)).toMatchObject({ n: undefined })
  expect(answered).toEqual([['call.end', 'CALL_NOT_FOUND']])
  expect(await dispatch.handle(gone, JSON.stringify({ ...end, n: 2 }), 1)).toMatchObject({ n: 2 })
})

describe('[EXT4] the number of a message', () => {
  const extended = { ...session, extended: true }
  const refusal = { error: errorBody('RATE_LIMITED', { limit: 'messages' }), mayBeUnlimited: true }

  test('that skips one is refused with the one that is expected, takes no effect and uses no number', async () => {
    const { dispatch, answered } = setUp()
    for (const message of [end, candidate, { event: 'no.such' }, { event: 'ping' }, { event: 'call.end', data: 7 }]) {
      for (const rate of [undefined, refusal]) {
        const result = await dispatch.handle(extended, JSON.stringify({ ...message, n: 7 }), 5, rate)
        expect(result).toMatchObject({ malformed: false, n: undefined })
        const { error } = JSON.parse(result.reply ?? '')
        expect(error).toMatchObject({ code: 'INVALID_MESSAGE', field: 'n', expected_n: 6 })
        expect(error.message).toContain('must be 6')
      }
    }
    expect(new Set(answered.map(([, code]) => code))).toEqual(new Set(['INVALID_MESSAGE']))
  })

  test('is used by whatever has the right one, also a ping and what is refused', async () => {
    const { dispatch } = setUp()
    const texts = [
      end,
      candidate,
      { event: 'no.such' },
      { event: 'ping' },
      { type: 'ping' },
      { event: 'call.end', data: 7 },
    ]
    for (const text of texts.map((message) => JSON.stringify({ ...message, n: 6 }))) {
      expect(await dispatch.handle(extended, text, 5)).toMatchObject({ n: 6 })
      expect(await dispatch.handle(extended, text, 5, refusal)).toMatchObject({ n: 6 })
      expect(await dispatch.handle(extended, text, 6)).toEqual(nothing)
    }
  })

  test('is a whole number of at least 1, or the message is malformed; one without any is none of the row', async () => {
    const { dispatch } = setUp()
    for (const n of [0, -1, 1.5, '6', true, []]) {
      const result = await dispatch.handle(extended, JSON.stringify({ ...end, n }), 5)
      expect(result).toMatchObject({ malformed: true, n: undefined })
      expect(JSON.parse(result.reply ?? '').error).toMatchObject({ code: 'INVALID_MESSAGE', expected_n: 6 })
    }
    for (const n of [undefined, null]) {
      const { reply } = await dispatch.handle(extended, JSON.stringify({ ...end, n }), 5)
      expect(JSON.parse(reply ?? '').error.code).toBe('CALL_NOT_FOUND')
    }
  })

  test('means nothing in a base session', async () => {
    const { dispatch } = setUp()
    for (const n of [0, 7, 'x', 1]) {
      const { reply } = await dispatch.handle(session, JSON.stringify({ ...end, n }), 0)
      expect(JSON.parse(reply ?? '').error.code).toBe('CALL_NOT_FOUND')
    }
  })
})

test('[ENV5] a base session hears that an event is for extended ones, and how it becomes one', async () => {
  const { ask } = setUp()
  for (const message of [
    { event: 'call.stats', data: { call_uuid: callUuid, stats: {} } },
    { event: 'presence.watch', data: { participants: [] } },
    { event: 'auth.refresh', data: { token: 'x' } },
  ]) {
    const { error } = await ask(message)
    expect(error).toEqual({
      code: 'UNKNOWN_EVENT',
      message: `There is no such event: ${message.event}. Extended sessions have it: connect with ?ext=1.`,
    })
  }
})

test('[PRES1] [WS5] whom a session may watch goes by its new token, and by no other participant’s', async () => {
  const refresh = { event: 'auth.refresh', request_id: 'r', data: { token: 'x' } }
  const extended = { ...session, extended: true }
  const fewer = { ...session, appVersion: null, tokenId: 't', allowedPeerRoles: ['guest'] }
  const own = setUp({ verified: fewer })
  expect(await own.ask(refresh, extended)).toMatchObject({ event: 'auth.refreshed' })
  expect(own.restricted).toEqual([['s', ['guest']]])
  const other = setUp({ verified: { ...fewer, participant: { ...session.participant, userId: 'eve' } } })
  expect(await other.ask(refresh, extended)).toMatchObject({ error: { code: 'AUTH_TOKEN_INVALID' } })
  expect(other.restricted).toEqual([])
})

test('[UUID1] what is answered names the call in lower case, in whatever case the client did', async () => {
  const { ask } = setUp({
    relay(_, __, data) {
      data.call_uuid = data.call_uuid.toLowerCase()
      return 'accepted'
    },
  })
  const named = 'ABCDEF00-0000-4000-8000-000000000000'
  const extended = { ...session, extended: true }
  for (const [event, data] of [
    ['webrtc.ice_candidate', { candidate: { candidate: 'x' } }],
    ['call.media', { audio: true, video: false, screen: false }],
    ['call.stats', { stats: {} }],
  ] as const) {
    const answered = await ask({ event, request_id: 'r', data: { call_uuid: named, ...data } }, extended)
    expect(answered).toMatchObject({ event: 'call.ack', data: { call_uuid: named.toLowerCase() } })
  }
})
