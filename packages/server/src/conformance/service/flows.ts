/** What many scenarios begin with: two who may call each other, a ring, a call. */
import { about, type Heard } from '../heard.ts'
import type { Party } from '../party.ts'
import type { RuleId } from '../rules.ts'
import type { EnterOptions, Person, Stage } from './stage.ts'

export interface Pair {
  readonly ann: Person
  readonly ben: Person
  readonly caller: Party
  readonly callee: Party
  readonly callerHello: Heard
  readonly calleeHello: Heard
}

export async function connectPair(stage: Stage, options: EnterOptions = {}): Promise<Pair> {
  const ann = stage.person('caller', 'caller')
  const ben = stage.person('callee', 'callee')
  const [first, second] = await Promise.all([
    stage.enter(ann, { device: 'kit-caller', ...options }),
    stage.enter(ben, { device: 'kit-callee', ...options }),
  ])
  const hellos = { callerHello: first.hello, calleeHello: second.hello }
  return { ann, ben, caller: first.party, callee: second.party, ...hellos }
}

export function inviteData({ who }: Person, more: object = {}): object {
  return { callee_user_id: who.user_id, callee_role: who.role, ...more }
}

/** Invites, and answers call.invited. */
export async function invite(caller: Party, callee: Person, more: object = {}, rule: RuleId = 'INV2'): Promise<Heard> {
  const id = crypto.randomUUID()
  caller.send('call.invite', inviteData(callee, more), id)
  return caller.next(rule, 'call.invited', ({ request_id }) => request_id === id)
}

/** A call that rings at the callee; answers its call_uuid. */
export async function ring(pair: Pair, more: object = {}): Promise<string> {
  const { call_uuid } = (await invite(pair.caller, pair.ben, more)).data
  await pair.callee.next('RING2', 'call.ringing', about(call_uuid))
  return call_uuid
}

/** A call that was answered, and both know it. */
export async function answered(pair: Pair, more: object = {}): Promise<string> {
  const call_uuid = await ring(pair, more)
  pair.callee.send('call.accept', { call_uuid })
  await pair.caller.next('PLACE1', 'call.accepted', about(call_uuid))
  return call_uuid
}

export const sdp = (type: 'offer' | 'answer', mark = '-') => ({ type, sdp: `v=0\r\ns=${mark}\r\n` })

export const candidate = (n: number) => ({
  candidate: `candidate:${n} 1 udp 2122260223 192.0.2.1 ${50_000 + n} typ relay raddr 0.0.0.0 rport 9`,
  sdpMid: '0',
  sdpMLineIndex: 0,
})

export const isCandidate = (call_uuid: string) => (heard: Heard) =>
  heard.event === 'webrtc.ice_candidate' && heard.data?.call_uuid === call_uuid

/** The numbers of the candidates that came, in their order. */
export function candidateNumbers(party: Party, call_uuid: string): number[] {
  return party.all
    .filter(isCandidate(call_uuid))
    .map(({ data }) => Number(/^candidate:(\d+)/.exec(data.candidate?.candidate ?? '')?.[1]))
}
