/** What a scenario of a client has: the client under test behind the gate, and the other side, which the kit plays. */

import type { Who } from '../access.ts'
import { envelopeOf, type Heard } from '../heard.ts'
import type { Party } from '../party.ts'
import type { RuleId } from '../rules.ts'
import type { Person, Stage as Playing } from '../service/stage.ts'
import { type Judge, Stop } from '../verdicts.ts'
import { finals } from '../watch.ts'
import type { Gate } from './gate.ts'
import type { Link } from './link.ts'
import type { Said, Subject } from './subject.ts'

/** The instructions for the client; a person reads the text. */
export const actions = {
  connect: 'Connect, with a new token. Stay connected until you are told otherwise.',
  call: 'Call the peer.',
  answer: 'Answer the call.',
  decline: 'Decline the call.',
  cancel: 'Give up your call before it is answered.',
  hang_up: 'Hang up.',
  ignore: 'Let it ring: do nothing.',
  disconnect: 'Close the client for good.',
} as const
export type Action = keyof typeof actions

/** The client did not follow an instruction: nothing is known of the rules that come after. */
export class NotDone extends Error {}

export interface ClientStage extends Judge {
  readonly gate: Gate
  readonly subject: Subject
  /** The client's participant, as the peer invites it. */
  readonly client: { readonly user_id: string; readonly role: string }
  /** How long the kit waits for what the client does by itself, in ms. */
  readonly patienceMs: number
  tell(action: Action): void
  /** Tells it, and waits for the message by which it does it. */
  has(action: Action, does: (said: Said) => boolean): Promise<Said>
  /** The client's socket; if it has none, it gets the instruction to connect. */
  online(): Promise<Link>
  /**
   * The other side of its calls, or another device of the client, each connected past the gate; `can`: as an extended session
   * with these capabilities.
   */
  peer(can?: readonly string[]): Promise<Party>
  otherDevice(can?: readonly string[]): Promise<Party>
  /** Somebody else, whom the peer may call. */
  target(): Promise<{ readonly party: Party; readonly who: Who }>
  /** Waits for a socket of the client that is newer, and is in. */
  comesBack(rule: RuleId, after: number, why: string, ms?: number): Promise<Link>
  /** Fails if the client sends that within the time. */
  never(rule: RuleId, what: string, does: (said: Said) => boolean, ms?: number): Promise<boolean>
  /** The client got these events of this call, and has read them: a pong says so. */
  hears(events: readonly string[], call_uuid: string): Promise<void>
  /**
   * The client has read the reply to this request. A base client gets none, nor does a request without a `request_id` [EXT2].
   * Messages to the peer say nothing about it: they come on another socket.
   */
  hasReply(request: Said): Promise<void>
  note(text: string): void
}

export interface ClientScenario {
  readonly name: string
  readonly rules: readonly RuleId[]
  /** `transfer`: a client that lists this capability [EXT6]. */
  readonly needs?: 'extended' | 'base' | 'time' | 'transfer'
  run(stage: ClientStage): Promise<void>
}

export interface ClientStageOptions {
  readonly judge: Judge
  readonly gate: Gate
  readonly subject: Subject
  readonly playing: Playing
  readonly client: ClientStage['client']
  readonly peerId: string
  readonly patienceMs: number
  /** How long a person, or a program, has for an instruction, in ms. */
  readonly actMs: number
  tell(action: Action): void
}

/** Pauses grow while a client loses its connection again and again: it has this many times longer to come back. */
const backFactor = 4

export function createClientStage(options: ClientStageOptions): ClientStage {
  const { judge, gate, subject, playing, patienceMs, actMs } = options
  const begin = subject.said.length
  const since = () => subject.said.slice(begin)

  async function online(): Promise<Link> {
    if (subject.link !== undefined) return subject.link
    options.tell('connect')
    const link = await subject.until(() => subject.link, actMs)
    if (link === undefined) throw new NotDone('the client did not connect')
    return link
  }
  const proven = async () => {
    if ((await subject.link?.ping(patienceMs)) !== true) throw new Stop('no pong')
  }
  async function heard(fits: (heard: Heard) => boolean, what: string): Promise<void> {
    const found = await subject.until(() => subject.heard.find(fits), patienceMs)
    if (found === undefined) throw new Stop(`the service did not ${what}`)
    await proven()
  }
  const enter = async (person: Person, device: string, can?: readonly string[]) =>
    (await playing.enter(person, { device, isExtended: can !== undefined, ...(can !== undefined && { can }) })).party
  const known = (name: string, side: 'caller' | 'callee', user_id: string): Person => ({
    name,
    who: { ...playing.person(name, side).who, user_id },
  })

  return {
    ...judge,
    ...{ gate, subject, patienceMs, client: options.client, online, note: playing.note },
    tell: options.tell,
    async has(action, does) {
      const from = subject.said.length
      options.tell(action)
      const said = await subject.until(() => subject.said.slice(from).find(does), actMs)
      if (said === undefined) throw new NotDone(`the client was told "${action}", and did not do it`)
      return said
    },
    peer: (can) => enter(known('peer', 'callee', options.peerId), 'kit-peer', can),
    otherDevice: (can) => enter(known('other device', 'caller', options.client.user_id), 'kit-other-device', can),
    async target() {
      const target = playing.person('target', 'caller')
      return { party: await enter(target, 'kit-target'), who: target.who }
    },
    async comesBack(rule, after, why, ms = backFactor * patienceMs) {
      const link = await subject.until(() => (subject.link?.number ?? 0) > after && subject.link, ms)
      judge.check(rule, link !== undefined, `${why}: it did not come back within ${ms / 1_000} s`)
      if (link === undefined) throw new Stop(why)
      return link
    },
    async never(rule, what, does, ms = 1_500) {
      const said = await subject.until(() => since().find(does), ms)
      return judge.check(rule, said === undefined, `${what}: ${said?.event}`)
    },
    hears: (events, call_uuid) =>
      heard(
        ({ event, data }) => events.includes(event) && data?.call_uuid === call_uuid,
        `tell the client ${events.join(' or ')}`,
      ),
    async hasReply({ event, text }) {
      const id = envelopeOf(text)?.request_id
      if (id === undefined || !subject.isExtended) return proven()
      await heard(({ request_id }) => request_id === id, `reply to ${event}`)
    },
  }
}

/** Whether it is such a message about this call. */
export const says =
  (event: string, call_uuid?: string) =>
  (said: Said): boolean =>
    said.event === event && (call_uuid === undefined || sameCall(said, call_uuid))

const sameCall = ({ data }: Said, call_uuid: string) => String(data.call_uuid).toLowerCase() === call_uuid

/** Which of them a client sends depends on what it has heard of the call. */
export const hangsUp = ({ event }: Pick<Said, 'event'>) => ['call.end', 'call.cancel', 'call.reject'].includes(event)

/** The peer calls the client, and the client has heard it; answers the call_uuid. */
export async function callClient(stage: ClientStage, peer: Party, more: object = {}): Promise<string> {
  const { user_id, role } = stage.client
  const id = crypto.randomUUID()
  peer.send('call.invite', { callee_user_id: user_id, callee_role: role, ...more }, id)
  const invited = await peer.next('INV2', 'call.invited', ({ request_id }) => request_id === id)
  await stage.hears(['call.ringing'], invited.data.call_uuid)
  return invited.data.call_uuid
}

/** A call that the client has answered; an extended one that asked with a `request_id` knows that it is in the call. */
export async function answeredByClient(stage: ClientStage, peer: Party): Promise<string> {
  const call_uuid = await callClient(stage, peer)
  const accept = await stage.has('answer', says('call.accept'))
  await peer.next('PLACE1', 'call.accepted', ({ data }) => data.call_uuid === call_uuid)
  await stage.hasReply(accept)
  return call_uuid
}

/** The peer hangs up, whatever state the call is in; the client has heard it. */
export async function finish(stage: ClientStage, peer: Party, call_uuid: string): Promise<void> {
  peer.send('call.end', { call_uuid })
  await peer.settle()
  if (stage.subject.link !== undefined) await stage.hears(finals, call_uuid)
}
