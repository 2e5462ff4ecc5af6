/** Calls to groups: at all members at once, and at one after another. */
import { about } from '../heard.ts'
import type { Party } from '../party.ts'
import { Stop } from '../verdicts.ts'
import type { Scenario, Stage } from './stage.ts'

interface Group {
  readonly caller: Party
  readonly first: Party
  readonly second: Party
  readonly name: string
  /** Calls the group; answers the call_uuid. */
  call(): Promise<string>
}

/** Two members of a group that no other scenario knows, and somebody who calls it. */
async function withGroup(stage: Stage, strategy: string, play: (group: Group) => Promise<void>): Promise<void> {
  const [ann, ...members] = [
    stage.person('caller', 'caller'),
    stage.person('ben', 'callee'),
    stage.person('eve', 'callee'),
  ]
  const ids = members.map(({ who }) => who.user_id)
  const role = members[0]?.who.role ?? ''
  const name = `kit-${crypto.randomUUID().slice(0, 8)}`
  const path = `groups/${encodeURIComponent(role)}/${name}`
  const { status } = await stage.access.ask('PUT', path, { members: ids, strategy })
  // Another service may have no groups: then nothing is said of them.
  if (status === 404) throw new Stop('the service has no groups')
  stage.must('GROUP1', status === 200, `PUT of a group got ${status}`)
  try {
    const [caller, first, second] = await Promise.all(
      [ann, ...members].map(async (one) => (await stage.enter(one)).party),
    )
    if (caller === undefined || first === undefined || second === undefined) return
    const call = async () => {
      const id = crypto.randomUUID()
      caller.send('call.invite', { callee_group: name, callee_role: role }, id)
      return (await caller.next('GROUP1', 'call.invited', ({ request_id }) => request_id === id)).data.call_uuid
    }
    await play({ caller, first, second, name, call })
  } finally {
    await stage.access.ask('DELETE', path)
  }
}

const elsewhere = (reason: string, status: string) => (data: Record<string, unknown>) =>
  data.reason === reason && data.status === status && data.ended_at === null

const atOnce: Scenario = {
  name: 'a call to a group rings at all of its members',
  rules: ['GROUP1'],
  run: (stage: Stage) =>
    withGroup(stage, 'all', async ({ caller, first, second, name, call }) => {
      const answered = await call()
      for (const member of [first, second]) {
        const { data } = await member.next('GROUP1', 'call.ringing', about(answered))
        stage.check('GROUP1', data.callee_group === name, 'call.ringing does not name the group')
      }
      second.send('call.accept', { call_uuid: answered })
      await caller.next('GROUP1', 'call.accepted', about(answered))
      const { data } = await first.next('GROUP1', 'call.cancelled', about(answered))
      stage.check('GROUP1', elsewhere('answered_elsewhere', 'accepted')(data), 'why it rings no more at the others')
      caller.send('call.end', { call_uuid: answered })
      await second.next('GROUP1', 'call.ended', about(answered))
      const declined = await call()
      for (const member of [first, second]) {
        await member.next('GROUP1', 'call.ringing', about(declined))
        member.send('call.reject', { call_uuid: declined })
      }
      const rejected = await caller.next('GROUP1', 'call.rejected', about(declined))
      stage.check(
        'GROUP1',
        rejected.data.reason === 'all_declined',
        `all declined, and it says ${rejected.data.reason}`,
      )
    }),
}

const inTurn: Scenario = {
  name: 'a call to a group rings at one member after another',
  rules: ['GROUP1'],
  run: (stage: Stage) =>
    withGroup(stage, 'in_turn', async ({ caller, first, second, call }) => {
      const call_uuid = await call()
      await first.next('GROUP1', 'call.ringing', about(call_uuid))
      await second.settle()
      const isEarly = second.hasUnread((heard) => heard.event === 'call.ringing' && about(call_uuid)(heard))
      stage.check('GROUP1', !isEarly, 'it rings at the second member in the turn of the first one')
      first.send('call.reject', { call_uuid })
      await second.next('GROUP1', 'call.ringing', about(call_uuid))
      second.send('call.accept', { call_uuid })
      await caller.next('GROUP1', 'call.accepted', about(call_uuid))
      await first.settle()
      const isTold = first.hasUnread((heard) => about(call_uuid)(heard))
      stage.check('GROUP1', !isTold, 'a member who declined is told more of the call')
      caller.send('call.end', { call_uuid })
      await second.next('GROUP1', 'call.ended', about(call_uuid))
    }),
}

export const groupScenarios: readonly Scenario[] = [atOnce, inTurn]
