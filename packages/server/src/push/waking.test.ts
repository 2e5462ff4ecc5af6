import { heapStats } from 'bun:jsc'
import { afterEach, expect, jest, test } from 'bun:test'
import { type Call, callKey, participantOf, type RingingCall } from '../call/call.ts'
import type { Step } from '../call/effects.ts'
import { accepted, created, ended, event, ringing } from '../ports/call-store.fixture.ts'
import type { Device, PushAddress } from '../ports/devices.ts'
import { StoreError } from '../ports/store-error.ts'
import { createMemoryWakes } from '../stores/memory/wakes.ts'
import type { Sender } from './sender.ts'
import type { PushMessage } from './service.ts'
import { createWaking, type WakingOptions } from './waking.ts'

afterEach(() => void jest.useRealTimers())

const addresses: Readonly<Record<string, PushAddress>> = {
  iphone: { platform: 'apns', token: 'aa', voip: true, environment: 'production' },
  android: { platform: 'fcm', token: 'bb' },
  browser: { platform: 'webpush', endpoint: 'https://push.example.com/x', p256dh: 'x', auth: 'x' },
}

/** What of the parts is to be otherwise. */
type Parts = Partial<Omit<WakingOptions, 'sender' | 'devices'>> & {
  readonly sender?: Partial<Sender>
  readonly devices?: Partial<WakingOptions['devices']>
}

function devicesOf({ product, callee }: RingingCall): readonly Device[] {
  const participant = { product, role: callee.role, userId: callee.userId }
  return Object.entries(addresses).map(([deviceId, address]) => ({ participant, deviceId, address, registeredAt: 0 }))
}

/** Somebody with a device of each platform, none of them connected; resolves with the next pushes. */
function setUp(call: RingingCall, known: Call = call, { sender, devices, ...parts }: Parts = {}) {
  const registered = devicesOf(call)
  const sent: string[] = []
  const waking = createWaking({
    devices: { of: () => registered, ofMembers: () => registered, ...devices },
    sessions: { seen: () => [], heldHere: () => undefined },
    wakes: createMemoryWakes(() => call.startedAt),
    load: () => known,
    hearsWakes: () => false,
    onWokenAgain: async () => {},
    sender: {
      serves: () => true,
      servesAny: true,
      async send({ deviceId }: Device, { type }: PushMessage) {
        sent.push(`${deviceId} ${type}`)
        // All of a step are sent in one turn: the one after it comes after all of them.
        if (deviceId === 'browser') heard.resolve(sent.splice(0))
        return 'accepted'
      },
      close() {},
      ...sender,
    },
    tickets: { sign: () => 'ticket' },
    now: () => call.startedAt,
    known: () => known,
    onNoDevice: () => {},
    onMembers: () => {},
    onError: (error) => heard.reject(error),
    ...parts,
  })
  let heard = Promise.withResolvers<string[]>()
  const told = async (step: Step) => {
    heard = Promise.withResolvers()
    waking.committed(step)
    return heard.promise
  }
  const { stop, doubt, nodeDied, rangNowhere } = waking
  return Object.assign(told, { stop, doubt, nodeDied, rangNowhere })
}

/** Rejected by a session whose socket this node does not hold. */
function rejected(call: RingingCall): Step {
  const by = { userId: call.callee.userId, role: call.callee.role, sessionId: 'elsewhere' }
  return { call: ended(call).call, event: { ...event('rejected'), by } }
}

/** Lets everything go on that waits for nothing but its turn. */
async function turns(): Promise<void> {
  for (let n = 0; n < 20; n++) await Promise.resolve()
}

/** A store that is away for `times` reads, while time stands still but for what a test lets pass. */
function away(times: number, call: RingingCall) {
  jest.useFakeTimers()
  const left = { reads: times }
  let passed = 0
  const parts: Parts = {
    sessions: {
      async seen() {
        if (left.reads === 0) return []
        left.reads--
        throw new StoreError('unavailable', 'away')
      },
      heldHere: () => undefined,
    },
    now: () => call.startedAt + passed,
  }
  /** Lets a second pass once what is under way waits for it, and resolves when it waits again. */
  async function second(): Promise<void> {
    await turns()
    passed += 1_000
    jest.advanceTimersByTime(1_000)
    await turns()
  }
  return { parts, left, second }
}

test('[PUSH2] all devices are woken; when it stops ringing APNs is sent nothing, which would have to ring', async () => {
  for (const over of [accepted, ended]) {
    const call = ringing()
    const told = setUp(call)
    expect(await told(created(call))).toEqual(['iphone call.wake', 'android call.wake', 'browser call.wake'])
    expect(await told(over(call))).toEqual(['android call.wake_cancelled', 'browser call.wake_cancelled'])
  }
})

test('[PUSH2] an alert of a phone without PushKit is taken back, too', async () => {
  const call = ringing()
  const address: PushAddress = { platform: 'apns', token: 'aa', voip: false, environment: 'production' }
  const participant = { product: call.product, role: call.callee.role, userId: call.callee.userId }
  const sent: string[] = []
  const told = setUp(call, call, {
    devices: { of: () => [{ participant, deviceId: 'plain', address, registeredAt: 0 }] },
    sender: {
      async send(device, { type }) {
        sent.push(`${device.deviceId} ${type}`)
        return 'accepted'
      },
    },
  })
  void told(created(call))
  void told(ended(call))
  await told.stop()
  expect(sent).toEqual(['plain call.wake', 'plain call.wake_cancelled'])
})

test('[TRACE1] where no device can be woken that is said, once', async () => {
  const call = ringing()
  const said: unknown[] = []
  const onNoDevice: WakingOptions['onNoDevice'] = ({ callUuid }, found) => said.push({ callUuid, ...found })
  const told = setUp(call, call, { devices: { of: () => [] }, onNoDevice })
  void told(created(call))
  void told(ended(call))
  await told.stop()
  expect(said).toEqual([{ callUuid: call.callUuid, connected: 0, registered: 0 }])
})

test('[TRACE1] where nobody is woken, and the ring reached no session, that is said with the devices that there are', async () => {
  const call = ringing()
  for (const [servesAny, heard] of [
    [false, [{ connected: 0, registered: 3 }]],
    // The look for devices to wake says it.
    [true, []],
  ] as const) {
    const said: unknown[] = []
    const told = setUp(call, call, { sender: { servesAny }, onNoDevice: (_, found) => said.push(found) })
    told.rangNowhere(call)
    await told.stop()
    expect(said).toEqual([...heard])
  }
  const said: unknown[] = []
  const answered = setUp(call, accepted(call).call, {
    ...{ sender: { servesAny: false }, onNoDevice: (_, found) => said.push(found) },
  })
  answered.rangNowhere(call)
  await answered.stop()
  expect(said).toEqual([])
})

test('[PUSH2] what was answered elsewhere before its commit was answered here wakes nobody', async () => {
  const call = ringing()
  const answer = accepted(call)
  const told = setUp(call, answer.call)
  void told(created(call))
  expect(await told(answer)).toEqual(['android call.wake_cancelled', 'browser call.wake_cancelled'])
})

test('[PUSH2] a step that is told again, late, wakes nobody again, and of a ring that is over only its end is told', async () => {
  const call = ringing()
  const told = setUp(call)
  await told(created(call))
  void told(created(call))
  const over = ended(call)
  void told({ ...created(call), call: { ...over.call, version: 1 } })
  expect(await told(over)).toEqual(['android call.wake_cancelled', 'browser call.wake_cancelled'])
})

test('[PUSH2] while a store is away at the moment of the ring it is read again every second: they are woken', async () => {
  const call = ringing()
  const { parts, second } = away(3, call)
  const woken = setUp(call, call, parts)(created(call))
  for (let n = 0; n < 3; n++) await second()
  expect(await woken).toEqual(['iphone call.wake', 'android call.wake', 'browser call.wake'])
})

test('[PUSH2] while a store is away when the ring ends it is read again every second: they hear that it is over', async () => {
  const call = ringing()
  const { parts, second } = away(0, call)
  let reads = 0
  const of = () => {
    if (reads-- > 0) throw new StoreError('unavailable', 'away')
    return devicesOf(call)
  }
  const told = setUp(call, call, { ...parts, devices: { of } })
  await told(created(call))
  reads = 3
  const cancelled = told(ended(call))
  for (let n = 0; n < 4; n++) await second()
  expect(reads).toBe(-1)
  expect(await cancelled).toEqual(['android call.wake_cancelled', 'browser call.wake_cancelled'])
})

test('[PUSH2] a store that stays away is read for as long as the call rings, and no longer', async () => {
  const call = ringing()
  const ringS = call.ringTimeoutMs / 1_000
  const { parts, left, second } = away(2 * ringS, call)
  const failed = setUp(call, call, parts)(created(call)).catch((error) => String(error))
  for (let n = 0; n < 2 * ringS; n++) await second()
  expect(await failed).toContain('away')
  expect(left.reads).toBe(ringS)
})

test('[PUSH2] a store that is back when the call was answered wakes nobody any more', async () => {
  const call = ringing()
  const { parts, left, second } = away(2, call)
  const errors: unknown[] = []
  const told = setUp(call, call, { ...parts, onError: (error) => errors.push(error) })
  void told(created(call))
  await second()
  const cancelled = told(accepted(call))
  left.reads = 0
  expect(await cancelled).toEqual(['android call.wake_cancelled', 'browser call.wake_cancelled'])
  expect(errors).toMatchObject([{ message: 'away' }])
})

test('[PUSH2] a stop waits for what is under way, and wakes nobody after', async () => {
  const call = ringing()
  const { promise: answered, resolve: answer } = Promise.withResolvers<'accepted'>()
  const begun = Promise.withResolvers<void>()
  let sends = 0
  const told = setUp(call, call, {
    sender: {
      send() {
        sends++
        begun.resolve()
        return answered
      },
    },
  })
  void told(created(call))
  await begun.promise
  let isStopped = false
  const stopped = told.stop().then(() => {
    isStopped = true
  })
  await turns()
  expect(isStopped).toBe(false)
  answer('accepted')
  await stopped
  expect(sends).toBe(3)
  void told(created(ringing()))
  await turns()
  expect(sends).toBe(3)
})

test('[PUSH2] a stop waits for a second at the most, and gives up what is still to be sent', async () => {
  const call = ringing()
  const begun = Promise.withResolvers<AbortSignal | undefined>()
  const never = new Promise<never>(() => {})
  const told = setUp(call, call, {
    sender: {
      send(_device, _message, signal) {
        begun.resolve(signal)
        return never
      },
    },
  })
  void told(created(call))
  const signal = await begun.promise
  expect(signal?.aborted).toBe(false)
  await told.stop()
  expect(signal?.aborted).toBe(true)
})

test('[PUSH2] when a node is gone the service waits a second, and looks for a hundred calls at a time', async () => {
  jest.useFakeTimers()
  const call = ringing()
  const calls = Array.from({ length: 250 }, (_, n) => ({ ...call, callUuid: `call ${n}` }))
  const answers: (() => void)[] = []
  const told = setUp(call, call, {
    sessions: { seen: () => new Promise((resolve) => answers.push(() => resolve([]))), heldHere: () => undefined },
  })
  told.nodeDied(calls)
  jest.advanceTimersByTime(950)
  await turns()
  expect(answers).toHaveLength(0)
  jest.advanceTimersByTime(50)
  await turns()
  expect(answers).toHaveLength(100)
  jest.useRealTimers()
  for (const more of [100, 50, 0]) {
    for (const answer of answers.splice(0)) answer()
    while (answers.length < more) await new Promise((resolve) => setImmediate(resolve))
    expect(answers).toHaveLength(more)
  }
})

test('[PUSH2] a client that a node which stops sent to another one, and that is there within a second, is not woken', async () => {
  jest.useFakeTimers()
  const call = ringing()
  const sent: string[] = []
  const isBack = { phone: false }
  const session = { sessionId: 's', extended: false, appVersion: null, openedAt: 0, isUnsure: false }
  const told = setUp(call, call, {
    sessions: {
      seen: () => (isBack.phone ? Object.keys(addresses).map((deviceId) => ({ ...session, deviceId })) : []),
      heldHere: () => undefined,
    },
    sender: {
      async send({ deviceId }) {
        sent.push(deviceId)
        return 'accepted'
      },
    },
  })
  told.nodeDied([call])
  jest.advanceTimersByTime(500)
  await turns()
  isBack.phone = true
  jest.advanceTimersByTime(500)
  await told.stop()
  expect(sent).toEqual([])
})

test('[PUSH2] a node that only had a session of the callee remembers nothing of the call once it has looked', async () => {
  const call = ringing()
  const told = setUp(call, call, { devices: { of: () => [] } })
  const participant = participantOf(call, 'callee')
  const controllers = () => {
    Bun.gc(true)
    return heapStats().objectTypeCounts.AbortController ?? 0
  }
  const before = controllers()
  for (let n = 0; n < 1_000; n++)
    told.doubt({ ...call, callUuid: `call ${n}` }, { cause: 'unsure', participant, deviceId: null })
  await new Promise((resolve) => setImmediate(resolve))
  await told.stop()
  expect(controllers() - before).toBeLessThan(100)
})

test('[PUSH2] if nobody was woken, the end of a ring reads neither sessions nor devices', async () => {
  const call = ringing()
  let reads = 0
  const heard = Promise.withResolvers<void>()
  const wakes = createMemoryWakes(() => call.startedAt)
  wakes.add(callKey(call), [], call.ringExpiresAt)
  const read = () => {
    reads++
    return []
  }
  const told = setUp(call, call, {
    devices: { of: read },
    sessions: { seen: read, heldHere: () => undefined },
    wakes: {
      ...wakes,
      of(key) {
        heard.resolve()
        return wakes.of(key)
      },
    },
  })
  void told(rejected(call))
  await heard.promise
  await told.stop()
  expect(reads).toBe(0)
})

test('[PUSH2] a ring whose devices only a backend wakes reads nothing when it is over', async () => {
  const call = ringing()
  let reads = 0
  const read = () => {
    reads++
    return []
  }
  const told = setUp(call, call, {
    hearsWakes: () => true,
    sender: { servesAny: false },
    devices: { of: read },
    wakes: { ...createMemoryWakes(() => call.startedAt), of: read },
    sessions: { seen: read, heldHere: () => undefined },
  })
  void told(ended(call))
  await turns()
  await told.stop()
  expect(reads).toBe(0)
})

test('[PUSH2] sessions that cannot be read when somebody has rejected keep no cancellation back', async () => {
  const call = ringing()
  const { parts, left } = away(0, call)
  const told = setUp(call, call, parts)
  await told(created(call))
  left.reads = 1
  expect(await told(rejected(call))).toEqual(['android call.wake_cancelled', 'browser call.wake_cancelled'])
})
