import { describe, expect, test } from 'bun:test'
import {
  connectFour,
  type Four,
  inviteOf,
  listen,
  quiet,
  recordOf,
  type SessionName,
  sessionNames,
} from '../../support/sessions.ts'
import { type Start, serviceFor } from './composition.ts'

/** A call of four sessions in a state; `caller` and `callee` hold the places where it was answered. */
export type LiveStatus = 'ringing' | 'accepted' | 'connected'

export async function callIn(status: LiveStatus, four: Four, more: object = {}): Promise<string> {
  const callUuid = crypto.randomUUID()
  four.caller.send('call.invite', inviteOf(four.calleeId, { call_uuid: callUuid, ...more }))
  const rings = (message: { data: { call_uuid: string } }) => message.data.call_uuid === callUuid
  await Promise.all([
    four.caller.next('call.invited', rings),
    four.callee.next('call.ringing', rings),
    four.calleeTab.next('call.ringing', rings),
  ])
  if (status === 'ringing') return callUuid
  four.callee.send('call.accept', { call_uuid: callUuid })
  await four.calleeTab.next('call.cancelled', rings)
  await four.caller.next('call.accepted', rings)
  if (status === 'accepted') return callUuid
  four.callee.send('call.connected', { call_uuid: callUuid })
  await four.callee.settle()
  return callUuid
}

type Told = readonly [event: string, reason: string]
interface Row {
  readonly name: string
  readonly from: LiveStatus
  /** Who sends what, one after another. */
  readonly sends: readonly (readonly [who: SessionName, event: string, more?: object])[]
  readonly told: Partial<Record<SessionName, Told>>
  readonly status: string
  /** null: the call goes on. */
  readonly endReason: string | null
  /** Whose doing the notices name. */
  readonly by?: 'caller' | 'callee'
}

const busy = { reason: 'busy' }
const rows: readonly Row[] = [
  {
    name: 'call.accept, the first wins',
    from: 'ringing',
    sends: [['callee', 'call.accept']],
    told: { caller: ['call.accepted', ''], calleeTab: ['call.cancelled', 'answered_elsewhere'] },
    status: 'accepted',
    endReason: null,
    by: 'callee',
  },
  {
    name: 'call.reject',
    from: 'ringing',
    sends: [['calleeTab', 'call.reject']],
    told: { caller: ['call.rejected', 'declined'], callee: ['call.cancelled', 'rejected_elsewhere'] },
    status: 'rejected',
    endReason: 'declined',
    by: 'callee',
  },
  {
    name: 'call.reject with a reason of its own',
    from: 'ringing',
    sends: [['callee', 'call.reject', { reason: 'in_a_meeting' }]],
    told: { caller: ['call.rejected', 'in_a_meeting'], calleeTab: ['call.cancelled', 'rejected_elsewhere'] },
    status: 'rejected',
    endReason: 'in_a_meeting',
    by: 'callee',
  },
  {
    name: 'call.reject busy silences one session only',
    from: 'ringing',
    sends: [['callee', 'call.reject', busy]],
    told: {},
    status: 'ringing',
    endReason: null,
  },
  {
    name: 'call.reject busy twice by the same session is still one session',
    from: 'ringing',
    sends: [
      ['callee', 'call.reject', busy],
      ['callee', 'call.reject', busy],
    ],
    told: {},
    status: 'ringing',
    endReason: null,
  },
  {
    name: 'call.reject busy by every rung session',
    from: 'ringing',
    sends: [
      ['callee', 'call.reject', busy],
      ['calleeTab', 'call.reject', busy],
    ],
    told: { caller: ['call.rejected', 'busy'] },
    status: 'rejected',
    endReason: 'busy',
    by: 'callee',
  },
  {
    name: 'busy here, accepted there: the silenced session hears no more',
    from: 'ringing',
    sends: [
      ['callee', 'call.reject', busy],
      ['calleeTab', 'call.accept'],
    ],
    told: { caller: ['call.accepted', ''] },
    status: 'accepted',
    endReason: null,
    by: 'callee',
  },
  {
    name: 'busy here, declined there',
    from: 'ringing',
    sends: [
      ['callee', 'call.reject', busy],
      ['calleeTab', 'call.reject'],
    ],
    told: { caller: ['call.rejected', 'declined'] },
    status: 'rejected',
    endReason: 'declined',
    by: 'callee',
  },
  {
    name: 'busy, then accepted by the same session after all',
    from: 'ringing',
    sends: [
      ['callee', 'call.reject', busy],
      ['callee', 'call.accept'],
    ],
    told: { caller: ['call.accepted', ''], calleeTab: ['call.cancelled', 'answered_elsewhere'] },
    status: 'accepted',
    endReason: null,
    by: 'callee',
  },
  {
    name: 'busy here, cancelled by the caller',
    from: 'ringing',
    sends: [
      ['callee', 'call.reject', busy],
      ['caller', 'call.cancel'],
    ],
    told: { calleeTab: ['call.cancelled', 'caller_cancelled'] },
    status: 'cancelled',
    endReason: 'caller_cancelled',
    by: 'caller',
  },
  {
    name: 'call.cancel while it rings',
    from: 'ringing',
    sends: [['caller', 'call.cancel']],
    told: { callee: ['call.cancelled', 'caller_cancelled'], calleeTab: ['call.cancelled', 'caller_cancelled'] },
    status: 'cancelled',
    endReason: 'caller_cancelled',
    by: 'caller',
  },
  {
    name: 'call.end by the caller while it rings acts as cancel',
    from: 'ringing',
    sends: [['caller', 'call.end', { reason: 'user_hung_up' }]],
    told: { callee: ['call.cancelled', 'caller_cancelled'], calleeTab: ['call.cancelled', 'caller_cancelled'] },
    status: 'cancelled',
    endReason: 'caller_cancelled',
    by: 'caller',
  },
  {
    name: 'call.end by the callee while it rings acts as reject',
    from: 'ringing',
    sends: [['callee', 'call.end']],
    told: { caller: ['call.rejected', 'declined'], calleeTab: ['call.cancelled', 'rejected_elsewhere'] },
    status: 'rejected',
    endReason: 'declined',
    by: 'callee',
  },
  {
    name: 'call.cancel of an accepted call',
    from: 'accepted',
    sends: [['caller', 'call.cancel']],
    told: { caller: ['call.cancelled', 'caller_cancelled'], callee: ['call.cancelled', 'caller_cancelled'] },
    status: 'cancelled',
    endReason: 'caller_cancelled',
    by: 'caller',
  },
  ...(['accepted', 'connected'] as const).flatMap((from): Row[] => [
    {
      name: `call.end by the caller of a call that is ${from}`,
      from,
      sends: [['caller', 'call.end']],
      told: { callee: ['call.ended', 'hangup'] },
      status: 'ended',
      endReason: 'hangup',
      by: 'caller',
    },
    {
      name: `call.end by the callee of a call that is ${from}, with a reason of its own`,
      from,
      sends: [['callee', 'call.end', { reason: 'battery_low' }]],
      told: { caller: ['call.ended', 'battery_low'] },
      status: 'ended',
      endReason: 'battery_low',
      by: 'callee',
    },
    {
      name: `call.reject by the callee of a call that is ${from} acts as end`,
      from,
      sends: [['callee', 'call.reject']],
      told: { caller: ['call.ended', 'hangup'], callee: ['call.ended', 'hangup'] },
      status: 'ended',
      endReason: 'hangup',
      by: 'callee',
    },
    {
      name: `call.accept again by the one that accepted a call that is ${from}`,
      from,
      sends: [['callee', 'call.accept']],
      told: {},
      status: from,
      endReason: null,
    },
    {
      name: `call.connected by both, and again, of a call that is ${from}`,
      from,
      sends: [
        ['caller', 'call.connected'],
        ['callee', 'call.connected'],
        ['caller', 'call.connected'],
      ],
      told: {},
      status: 'connected',
      endReason: null,
    },
  ]),
  {
    name: 'call.cancel of a connected call acts as end',
    from: 'connected',
    sends: [['caller', 'call.cancel']],
    told: { caller: ['call.ended', 'hangup'], callee: ['call.ended', 'hangup'] },
    status: 'ended',
    endReason: 'hangup',
    by: 'caller',
  },
]

/**
 * Every row of the table of call states: what each of four sessions receives, whole, and that nobody else receives
 * anything.
 */
export function registerCallStates(name: string, start: Start): void {
  describe(`call states, ${name}`, () => {
    const service = serviceFor(start)
    test('[INV1] call.invite: invited to the inviter, ringing at every session of the callee, also a late one', async () => {
      const four = await connectFour(service())
      const callUuid = await callIn('ringing', four)
      const late = await service().connect({ user_id: four.calleeId, role: 'agent' })
      await quiet(four.caller, four.callerTab, four.callee, four.calleeTab, late)
      expect(four.caller.events()).toEqual(['auth.ok', 'call.invited'])
      expect(four.callerTab.events()).toEqual(['auth.ok'])
      for (const client of [four.callee, four.calleeTab, late]) {
        expect(client.events()).toEqual(['auth.ok', 'call.ringing'])
        expect(client.all[1]?.data.call_uuid).toBe(callUuid)
      }
    })
    for (const row of rows) {
      test(`[END1] [END2] [PLACE1] ${row.from}: ${row.name}`, () => checkRow(service(), row))
    }
  })
}

async function checkRow(service: Parameters<typeof connectFour>[0], row: Row): Promise<void> {
  const four = await connectFour(service)
  const callUuid = await callIn(row.from, four)
  const news = listen(four, sessionNames)
  for (const [who, event, more] of row.sends) {
    four[who].send(event, { call_uuid: callUuid, ...more })
    await four[who].settle()
  }
  await quiet(...sessionNames.map((who) => four[who]))

  const record = await recordOf(service, { user_id: four.callerId, role: 'customer' }, callUuid)
  expect(record).toMatchObject({ status: row.status, end_reason: row.endReason })
  expect(record.ended_at === null).toBe(row.endReason === null)
  const told = sessionNames.map((who) => [who, noticesOf(row, row.told[who], four, callUuid, record.ended_at)])
  expect(news()).toEqual(Object.fromEntries(told))
}

/** The whole envelope that a session gets, by END2. */
function noticesOf(row: Row, told: Told | undefined, four: Four, callUuid: string, endedAt: string | null) {
  if (told === undefined) return []
  const [event, reason] = told
  if (event === 'call.accepted') return [{ event, data: { call_uuid: callUuid, status: 'accepted' } }]
  const caller = { user_id: four.callerId, role: 'customer' }
  const callee = { user_id: four.calleeId, role: 'agent' }
  const by = row.by === 'caller' ? caller : callee
  return [{ event, data: { call_uuid: callUuid, status: row.status, reason, by, ended_at: endedAt } }]
}
