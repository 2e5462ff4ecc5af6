import { expect, test } from 'bun:test'
import type { Call, CallGroup, Participant, RingingCall } from '../call/call.ts'
import type { Step } from '../call/effects.ts'
import { decline } from '../call/group.ts'
import type { WokenAgain } from '../call/hook.ts'
import { leaveGroup } from '../call/leave.ts'
import { created, ringing } from '../ports/call-store.fixture.ts'
import type { Device } from '../ports/devices.ts'
import { createMemoryWakes } from '../stores/memory/wakes.ts'
import type { PushMessage } from './service.ts'
import { createWaking } from './waking.ts'

const idsOf = (count: number) => Array.from({ length: count }, (_, n) => `member-${n}`)

function groupCall(members: readonly string[]): RingingCall & { readonly group: CallGroup } {
  const call = ringing()
  return { ...call, callee: { ...call.callee, userId: '' }, group: { name: 'support', members, declined: [] } }
}

const phone = (participant: Participant): Device => ({
  ...{ participant, deviceId: 'phone', registeredAt: 0 },
  address: { platform: 'fcm', token: participant.userId },
})

/** Members with a phone each, none of them connected. A push is answered once `answer` is called. */
function setUp(call: RingingCall) {
  let known: Call = call
  const counts = { devices: 0, sessions: 0, most: 0 }
  const sent: { readonly what: string; readonly signal: AbortSignal | undefined; answer(): void }[] = []
  const again: WokenAgain[] = []
  const members: (readonly [count: number, woken: number])[] = []
  const waking = createWaking({
    devices: {
      of: (participant) => [phone(participant)],
      ofMembers(of, userIds) {
        counts.devices++
        counts.most = Math.max(counts.most, userIds.length)
        return userIds.map((userId) => phone({ ...of, userId }))
      },
    },
    sessions: {
      seen() {
        counts.sessions++
        return []
      },
      heldHere: () => undefined,
    },
    wakes: createMemoryWakes(() => call.startedAt),
    load: () => known,
    known: () => known,
    hearsWakes: () => false,
    onWokenAgain: async (_, woken) => void again.push(...woken),
    sender: {
      serves: () => true,
      servesAny: true,
      send: ({ participant }: Device, { type }: PushMessage, signal?: AbortSignal) =>
        new Promise((resolve) => {
          sent.push({ what: `${participant.userId} ${type}`, signal, answer: () => resolve('accepted') })
          signal?.addEventListener('abort', () => resolve('expired'))
          if (type === 'call.wake_cancelled') resolve('accepted')
        }),
      close() {},
    },
    tickets: { sign: (_, { userId }) => `ticket of ${userId}` },
    now: () => call.startedAt,
    onMembers: (_, count, woken) => members.push([count, woken]),
    onNoDevice() {
      throw new Error('of members nothing is said')
    },
    onError(error) {
      throw error
    },
  })
  const whats = () => sent.map(({ what }) => what)
  /** What one step decides is known here, and committed here unless `isElsewhere`. */
  function commit(decision: ReturnType<typeof decline>, isElsewhere = false): RingingCall {
    const step = (decision as { readonly steps: readonly Step[] }).steps[0] as Step
    known = step.call
    if (step.call.status === 'ringing') waking.ringsOn(step.call)
    else waking.isQuiet(step.call)
    if (!isElsewhere) waking.committed(step)
    return step.call as RingingCall
  }
  return { waking, counts, sent, again, members, whats, commit, know: (call: Call) => (known = call) }
}

/** Lets everything go on that waits for nothing but its turn. */
async function turns(): Promise<void> {
  for (let n = 0; n < 50; n++) await Promise.resolve()
}

const actorOf = (userId: string, { product, callee }: Call) => ({
  ...{ sessionId: `session of ${userId}`, deviceId: null, node: 'node', displayName: userId },
  participant: { product, role: callee.role, userId },
})

test('[GROUP1] [PUSH2] 500 members are woken with a query for each hundred, which waits for no push', async () => {
  const call = groupCall(idsOf(500))
  const { waking, counts, members, sent, whats } = setUp(call)
  waking.committed(created(call))
  await turns()
  expect([sent.length, counts]).toEqual([500, { devices: 5, sessions: 500, most: 100 }])
  expect(members).toEqual([[500, 500]])
  for (const { answer } of sent) answer()
  await turns()
  waking.committed({ call: { ...call, version: 2 }, event: { type: 'silenced', at: 0, by: null, notices: [] } })
  await waking.stop()
  expect(whats()).toEqual(idsOf(500).map((userId) => `${userId} call.wake`))
})

test('[GROUP1] [PUSH2] a member who declines is pushed to no more, wherever that was committed; the others are', async () => {
  for (const isElsewhere of [false, true]) {
    const call = groupCall(idsOf(3))
    const { waking, sent, whats, commit } = setUp(call)
    waking.committed(created(call))
    await turns()
    const declined = commit(decline(call, call.group, actorOf('member-1', call), 0), isElsewhere)
    await turns()
    expect(sent.slice(0, 3).map(({ signal }) => signal?.aborted)).toEqual([false, true, false])
    expect(whats().slice(3)).toEqual(['member-1 call.wake_cancelled'])
    // It is reported once, also when the others hear that the ring is over.
    commit(leaveGroup(declined, ['member-2'], 0))
    await turns()
    expect(sent[2]?.signal?.aborted).toBe(true)
    expect(whats().slice(4)).toEqual(['member-2 call.wake_cancelled'])
    await waking.stop()
  }
})

test('[GROUP1] [PUSH2] a member who has declined before its device was found is not woken', async () => {
  const call = groupCall(idsOf(3))
  const { waking, know, whats } = setUp(call)
  const { steps } = decline(call, call.group, actorOf('member-0', call), 0) as { readonly steps: readonly Step[] }
  waking.committed(created(call))
  know((steps[0] as Step).call)
  await turns()
  expect(whats()).toEqual(['member-1 call.wake', 'member-2 call.wake'])
})

test('[GROUP1] [HOOK2] when a node is gone a backend hears which members sleep, each with its own devices', async () => {
  const call = groupCall(idsOf(250))
  const { waking, again, counts } = setUp(call)
  waking.nodeDied([call])
  while (again.length < 250) await Bun.sleep(50)
  expect(counts.devices).toBe(3)
  expect(again.map(({ participant: { userId } }) => userId)).toEqual(idsOf(250))
  const device = { device_id: 'phone', platform: 'fcm', reached: false, pushed: true }
  for (const { devices } of again) expect(devices).toEqual([device])
  await waking.stop()
})
