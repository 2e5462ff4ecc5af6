import { describe, expect, test } from 'bun:test'
import type { ErrorCode } from '@ringwire/protocol/errors'
import fc from 'fast-check'
import { createFake } from './environment.fixture.ts'
import { RingwireError } from './error.ts'
import { createRequests, type Requests } from './requests.ts'
import type { ReplyData } from './wire.ts'

type Sent = { event: string; request_id: string; n: number; data: object }

function setUp() {
  const fake = createFake()
  const sent: Sent[] = []
  const renewals: PromiseWithResolvers<void>[] = []
  const requests = createRequests(fake.env, {
    timeoutMs: 10_000,
    transmit: (text) => sent.push(JSON.parse(text)),
    renewToken: () => {
      const renewal = Promise.withResolvers<void>()
      renewals.push(renewal)
      return renewal.promise
    },
  })
  const answer = (it: Sent, data = {}) => requests.answer(it.request_id, { ok: true, data: data as ReplyData })
  const refuse = (it: Sent, code: ErrorCode, details = {}) =>
    requests.answer(it.request_id, { ok: false, error: new RingwireError(code, code, details) })
  return { fake, sent, requests, answer, refuse, renewals }
}

const verb = (name: string) => ({ event: 'call.end', data: { call_uuid: name } }) as const
const relay = (name: string) => ({ event: 'webrtc.offer', data: { call_uuid: name } }) as const
const code = (promise: Promise<unknown>) =>
  promise.then(
    () => 'ok',
    (error: RingwireError) => error.code,
  )
const numbers = (sent: readonly Sent[]) => sent.map(({ n }) => n)

describe('numbers [EXT4]', () => {
  test('1, 2, 3 … in a session, also for what was asked before there was one', () => {
    const { sent, requests } = setUp()
    void requests.ask(verb('a'))
    void requests.ask(verb('b'))
    expect(sent).toEqual([])
    requests.resumed(0)
    void requests.ask(verb('c'))
    expect(numbers(sent)).toEqual([1, 2, 3])
    expect(new Set(sent.map((it) => it.request_id)).size).toBe(3)
  })

  test('after a resume: what did not take effect again, unchanged and in order, then what is new', async () => {
    const { sent, requests, answer } = setUp()
    requests.resumed(0)
    const asked = ['a', 'b', 'c', 'd'].map((name) => requests.ask(verb(name)))
    answer(sent[0]!)
    expect(requests.replied()).toBe(1)
    requests.pause()
    void requests.ask(verb('e'))
    const before = sent.splice(0)
    requests.resumed(2)
    expect(sent.slice(0, 2)).toEqual(before.slice(2))
    expect(numbers(sent)).toEqual([3, 4, 5])
    // The second one took effect; its reply comes by itself.
    answer(before[1]!)
    expect(await Promise.all(asked.slice(0, 2).map(code))).toEqual(['ok', 'ok'])
    expect(requests.replied()).toBe(2)
  })

  test('a page that was loaded again counts on from what took effect', () => {
    const { sent, requests } = setUp()
    void requests.ask(verb('a'))
    requests.resumed(41)
    expect(numbers(sent)).toEqual([42])
    expect(requests.replied()).toBe(41)
    requests.answer('of the other page', { ok: true, data: {} as ReplyData })
    expect(requests.replied()).toBe(41)
  })

  test('whatever happens, the service gets every number once, in order and without gaps', async () => {
    const names = ['ask', 'relay', 'lose', 'resume', 'new', 'deliver', 'deliver', 'answer', 'limit', 'pass'] as const
    await fc.assert(
      fc.asyncProperty(fc.array(fc.constantFrom(...names), { size: 'max', maxLength: 60 }), obeysNumbers),
      {
        numRuns: 300,
      },
    )
  })
})

/** The service's side of [EXT4], with a socket that loses what is on its way. */
async function obeysNumbers(steps: readonly string[]): Promise<void> {
  const { fake, sent, requests, answer, refuse } = setUp()
  let handled = 0
  let isOpen = false
  let onItsWay: Sent[] = []
  let unanswered: Sent[] = []
  const acts: Record<string, () => unknown> = {
    ask: () => requests.ask(verb('a')),
    relay: () => requests.ask(relay('b')),
    pass: () => fake.pass(1_000),
    lose() {
      requests.pause()
      isOpen = false
      onItsWay = []
    },
    resume() {
      if (isOpen) return
      isOpen = true
      requests.resumed(handled)
    },
    new() {
      if (isOpen) return
      isOpen = true
      handled = 0
      unanswered = []
      requests.restarted()
      requests.resumed(0)
    },
    deliver() {
      const it = onItsWay.shift()
      if (it === undefined) return
      expect(it.n).toBe(handled + 1)
      handled = it.n
      unanswered.push(it)
    },
    answer() {
      const it = isOpen ? unanswered.shift() : undefined
      if (it !== undefined) answer(it)
    },
    limit() {
      const it = isOpen ? unanswered.shift() : undefined
      if (it !== undefined) refuse(it, 'RATE_LIMITED', { retryable: true, retryAfterMs: 500 })
    },
  }
  for (const step of steps) {
    const done = acts[step]!()
    if (step === 'pass') await done
    expect(isOpen || sent.length === 0).toBe(true)
    onItsWay.push(...sent.splice(0))
  }
}

describe('a session that is gone [RES2]', () => {
  test('verbs and invites are asked again from 1; relays are not', async () => {
    const { sent, requests, answer } = setUp()
    requests.resumed(0)
    const asked = [requests.ask(verb('a')), requests.ask(relay('b')), requests.ask(verb('c'))]
    requests.pause()
    const unsent = requests.ask(relay('d'))
    sent.length = 0
    requests.restarted()
    requests.resumed(0)
    expect(sent).toMatchObject([
      { n: 1, data: { call_uuid: 'a' } },
      { n: 2, data: { call_uuid: 'c' } },
    ])
    for (const it of sent) answer(it)
    expect(await Promise.all([...asked, unsent].map(code))).toEqual([
      ...['ok', 'UNKNOWN_OUTCOME', 'ok', 'CONNECTION_CLOSED'],
    ])
  })

  test('what nobody waits for any more is not asked again, but for hanging up', async () => {
    const { fake, sent, requests } = setUp()
    requests.resumed(0)
    const asked = [requests.ask({ ...verb('a'), insistent: true }), requests.ask(verb('b'))]
    await fake.pass(10_000)
    expect(await Promise.all(asked.map(code))).toEqual(['TIMEOUT', 'TIMEOUT'])
    sent.length = 0
    requests.restarted()
    requests.resumed(0)
    expect(sent.map(({ data }) => data)).toEqual([{ call_uuid: 'a' }])
  })
})

describe('time', () => {
  test('what was sent keeps its number after its time, and its late reply is still heard', async () => {
    const { fake, sent, requests, answer } = setUp()
    requests.resumed(0)
    const heard: unknown[] = []
    const asked = requests.ask({
      ...verb('a'),
      onReply: (reply) => heard.push(reply),
      onUnsure: () => heard.push('unsure'),
    })
    await fake.pass(10_000)
    expect(await code(asked)).toBe('TIMEOUT')
    requests.pause()
    requests.resumed(0)
    expect(numbers(sent)).toEqual([1, 1])
    answer(sent[0]!)
    expect(heard).toEqual(['unsure', { ok: true, data: {} }])
  })

  test('what was never sent is forgotten after its time', async () => {
    const { fake, sent, requests } = setUp()
    let isUnsure = false
    const asked = requests.ask({ ...verb('a'), onUnsure: () => (isUnsure = true) })
    await fake.pass(10_000)
    expect(await code(asked)).toBe('TIMEOUT')
    expect(isUnsure).toBe(false)
    requests.resumed(0)
    expect(sent).toEqual([])
  })
})

describe('a request that may succeed later', () => {
  test('is asked again after the pause that it was told, with a new number', async () => {
    const { fake, sent, requests, refuse, answer } = setUp()
    requests.resumed(0)
    const asked = requests.ask(verb('a'))
    refuse(sent[0]!, 'RATE_LIMITED', { retryable: true, retryAfterMs: 3_000 })
    void requests.ask(verb('b'))
    await fake.pass(2_999)
    expect(numbers(sent)).toEqual([1, 2])
    await fake.pass(1)
    expect(numbers(sent)).toEqual([1, 2, 3])
    expect(sent[2]!.data).toEqual({ call_uuid: 'a' })
    answer(sent[2]!)
    expect(await code(asked)).toBe('ok')
  })

  test('fails at once where the pause is longer than its time, but for hanging up', async () => {
    const { fake, sent, requests, refuse } = setUp()
    requests.resumed(0)
    const patient = requests.ask({ ...verb('a'), insistent: true })
    const asked = requests.ask(verb('b'))
    for (const it of [...sent]) refuse(it, 'RATE_LIMITED', { retryable: true, retryAfterMs: 20_000 })
    expect(await code(asked)).toBe('RATE_LIMITED')
    await fake.pass(20_000)
    expect(await code(patient)).toBe('TIMEOUT')
    expect(numbers(sent)).toEqual([1, 2, 3])
  })

  test('is never asked again without a pause', async () => {
    const { fake, sent, requests, refuse } = setUp()
    requests.resumed(0)
    void requests.ask({ ...verb('a'), insistent: true })
    refuse(sent[0]!, 'SERVICE_UNAVAILABLE', { retryable: true, retryAfterMs: 0 })
    await fake.pass(199)
    expect(sent).toHaveLength(1)
    await fake.pass(201)
    expect(sent).toHaveLength(2)
  })

  test('is not asked for ever', async () => {
    const { fake, sent, requests, refuse } = setUp()
    requests.resumed(0)
    const asked = requests.ask(verb('a'))
    for (let i = 0; i < 9; i++) {
      refuse(sent.at(-1)!, 'RATE_LIMITED', { retryable: true, retryAfterMs: 10 })
      await fake.pass(10)
    }
    expect(sent).toHaveLength(6)
    expect(await code(asked)).toBe('RATE_LIMITED')
  })

  test('is asked for ever where it has to arrive at last, every 15 s at the least', async () => {
    const { fake, sent, requests, refuse, answer } = setUp()
    fake.random = 1
    requests.resumed(0)
    void requests.ask({ ...verb('a'), insistent: true })
    for (let i = 0; i < 40; i++) {
      refuse(sent.at(-1)!, 'SERVICE_UNAVAILABLE', { retryable: true })
      await fake.pass(15_000)
    }
    expect(sent).toHaveLength(41)
    answer(sent.at(-1)!)
    await fake.pass(60_000)
    expect(sent).toHaveLength(41)
    expect(fake.timers).toBe(0)
  })

  test('that the service failed at may have taken effect: whoever gives it up is told; a limit comes before it', async () => {
    for (const [code, isUnsure] of [
      ['SERVICE_UNAVAILABLE', true],
      ['RATE_LIMITED', false],
    ] as const) {
      const { fake, sent, requests, refuse } = setUp()
      requests.resumed(0)
      let told = 0
      void requests.ask({ ...verb('a'), onUnsure: () => told++ })
      for (let i = 0; i < 6; i++) {
        expect(told).toBe(0)
        refuse(sent.at(-1)!, code, { retryable: true, retryAfterMs: 10 })
        await fake.pass(10)
      }
      expect([code, told]).toEqual([code, isUnsure ? 1 : 0])
    }
  })

  test('[WS5] an invite that is refused for its token goes out again after a renewal, once', async () => {
    const { fake, sent, requests, refuse, renewals } = setUp()
    requests.resumed(0)
    const asked = requests.ask({ event: 'call.invite', data: {} })
    refuse(sent[0]!, 'AUTH_TOKEN_INVALID')
    await fake.pass(0)
    expect(sent).toHaveLength(1)
    renewals[0]!.resolve()
    await fake.pass(0)
    expect(numbers(sent)).toEqual([1, 2])
    refuse(sent[1]!, 'AUTH_TOKEN_INVALID')
    expect(await code(asked)).toBe('AUTH_TOKEN_INVALID')
    expect(renewals).toHaveLength(1)
  })

  test('anything else fails as it is', async () => {
    const { sent, requests, refuse } = setUp()
    requests.resumed(0)
    const asked = requests.ask(verb('a'))
    refuse(sent[0]!, 'CALL_NOT_FOUND')
    expect(await code(asked)).toBe('CALL_NOT_FOUND')
  })
})

describe('taking back', () => {
  const invite = { event: 'call.invite', data: { call_uuid: 'a' } } as const

  test('leaves nothing behind where it was not sent', async () => {
    const { sent, requests } = setUp()
    const a = requests.ask(invite)
    expect(requests.withdraw('a')).toBe(true)
    expect(await code(a)).toBe('CONNECTION_CLOSED')
    requests.resumed(0)
    expect(sent).toEqual([])
  })

  test('[EXT4] leaves what was sent until its reply comes; it may have taken effect', async () => {
    const { fake, sent, requests, refuse } = setUp()
    requests.resumed(0)
    const a = requests.ask(invite)
    expect(requests.withdraw('a')).toBe(false)
    requests.pause()
    requests.resumed(0)
    expect(numbers(sent)).toEqual([1, 1])
    refuse(sent[0]!, 'SERVICE_UNAVAILABLE', { retryable: true })
    await fake.pass(60_000)
    expect(sent).toHaveLength(2)
    expect(await code(a)).toBe('SERVICE_UNAVAILABLE')
  })

  test('ends a pause; a limit had no effect, a failure may have had one', async () => {
    for (const [reason, isUndone, end] of [
      ['RATE_LIMITED', true, 'CONNECTION_CLOSED'],
      ['SERVICE_UNAVAILABLE', false, 'UNKNOWN_OUTCOME'],
    ] as const) {
      const { fake, sent, requests, refuse } = setUp()
      requests.resumed(0)
      const a = requests.ask(invite)
      refuse(sent[0]!, reason, { retryable: true, retryAfterMs: 1_000 })
      expect(requests.withdraw('a')).toBe(isUndone)
      expect(await code(a)).toBe(end)
      await fake.pass(60_000)
      expect(sent).toHaveLength(1)
    }
  })

  test('after the session is gone: in the first one it may have taken effect', async () => {
    const { requests } = setUp()
    requests.resumed(0)
    const a = requests.ask(invite)
    requests.pause()
    requests.restarted()
    expect(requests.withdraw('a')).toBe(false)
    expect(await code(a)).toBe('UNKNOWN_OUTCOME')
  })
})

test('close fails everything, and leaves no timer', async () => {
  const { fake, requests } = setUp()
  const unsent = ask(requests)
  requests.resumed(0)
  const sent = ask(requests)
  requests.close()
  expect(await Promise.all([unsent, sent])).toEqual(['UNKNOWN_OUTCOME', 'UNKNOWN_OUTCOME'])
  expect(await code(requests.ask({ event: 'webrtc.offer', data: { sdp: 'x'.repeat(70_000) } }))).toBe(
    'PAYLOAD_TOO_LARGE',
  )
  expect(fake.timers).toBe(0)
})

function ask(requests: Requests): Promise<string> {
  return code(requests.ask(verb('a')))
}
