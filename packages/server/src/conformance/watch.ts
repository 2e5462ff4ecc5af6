/** Looks at every message that a service sends, whatever the scenario: its shape, and its place among the others. */
import { type ServerEventName, serverEvents } from '@ringwire/protocol/server-events'
import { createValidator } from '@ringwire/protocol/validate'
import { envelopeOf, type Heard } from './heard.ts'
import type { RuleId } from './rules.ts'
import type { Judge } from './verdicts.ts'

/** Of one client's connection, or of its session where that goes on. */
export interface Watch {
  /** Undefined where it is no envelope at all. */
  look(who: string, text: string): Heard | undefined
}

/** By which rule an event has its shape. */
const ruleOfShape: Readonly<Record<ServerEventName, RuleId>> = {
  'auth.ok': 'WS3',
  'call.invited': 'INV2',
  'call.ringing': 'RING2',
  'call.accepted': 'PLACE1',
  'call.rejected': 'END2',
  'call.cancelled': 'END2',
  'call.ended': 'END2',
  'call.missed': 'END2',
  'call.error': 'ENV2',
  'webrtc.offer': 'REL3',
  'webrtc.answer': 'REL3',
  'webrtc.ice_candidate': 'REL3',
  'call.ack': 'EXT2',
  'call.status': 'EXT5',
  'call.alerting': 'EXT5',
  'call.media': 'MEDIA1',
  'call.peer_away': 'PEER1',
  'call.peer_moved': 'TAKE1',
  'call.listed': 'EXT2',
  'call.peer_back': 'PEER1',
  'call.transfer_started': 'XFER1',
  'call.transferring': 'XFER1',
  'call.transfer_failed': 'XFER1',
  'presence.state': 'EXT2',
  'presence.changed': 'EXT1',
  'ice.servers': 'ICE1',
  'auth.refreshed': 'WS5',
  'session.reset': 'RES1',
}

const validators = new Map(
  Object.entries(serverEvents).map(([event, { data }]) => [event, createValidator(data)] as const),
)
const replies = ['call.invited', 'call.ack', 'auth.refreshed', 'call.error', 'call.transfer_started', 'presence.state']
export const finals = ['call.rejected', 'call.cancelled', 'call.ended', 'call.missed']

/** `isExtended`: its pushes are numbered. `seq`: of the last push that its session had. */
export function createWatch(judge: Judge, isExtended: boolean, seq = 0): Watch {
  let lastSeq = seq
  const versions = new Map<string, number>()
  const over = new Set<string>()
  const replied = new Set<string>()

  function lookAtNumbers(who: string, heard: Heard): void {
    if (heard.seq === undefined) {
      const isPush = heard.event !== 'auth.ok' && heard.request_id === undefined && !replies.includes(heard.event)
      judge.check('EXT1', !isPush, `${who} got ${heard.event} without seq`)
      return
    }
    judge.check('EXT1', heard.seq === lastSeq + 1, `${who} got seq ${heard.seq} after ${lastSeq}`)
    lastSeq = heard.seq
    // It is an event of the new call, and names the one that it follows [XFER1].
    const callUuid = heard.event === 'call.transferring' ? heard.data?.new_call_uuid : heard.data?.call_uuid
    if (typeof heard.version !== 'number' || typeof callUuid !== 'string') return
    const before = versions.get(callUuid) ?? 0
    judge.check('ORD3', heard.version >= before, `${who} got version ${heard.version} after ${before}`)
    versions.set(callUuid, Math.max(before, heard.version))
  }

  function lookAtReplies(who: string, { event, request_id: id }: Heard): void {
    if (!replies.includes(event)) return void judge.check('ENV4', id === undefined, `${event} has a request_id`)
    if (id === undefined || !isExtended) return
    judge.check('EXT2', !replied.has(id), `${who} got a second reply to ${id}`)
    replied.add(id)
  }

  /** An end may come again; nothing else follows it. */
  function lookAtOrder(who: string, { event, data, request_id }: Heard): void {
    const callUuid = data?.call_uuid
    if (typeof callUuid !== 'string' || request_id !== undefined) return
    const isOver = over.has(callUuid)
    if (finals.includes(event)) over.add(callUuid)
    else judge.check('ORD2', !isOver, `${who} got ${event} after the end of the call`)
  }

  return {
    look(who, text) {
      const heard = envelopeOf(text)
      judge.check('ENV1', heard !== undefined, `${who} got what is no envelope`)
      if (heard === undefined) return undefined
      lookAtShape(judge, who, heard)
      lookAtReplies(who, heard)
      lookAtOrder(who, heard)
      if (isExtended) lookAtNumbers(who, heard)
      return heard
    },
  }
}

/** The fields of it that every client needs; an id of another form is not a mistake. */
function isHello({ data }: Heard): boolean {
  return ['user_id', 'role', 'display_name', 'socket_id'].every((name) => typeof data?.[name] === 'string')
}

function lookAtShape(judge: Judge, who: string, heard: Heard): void {
  const { event } = heard
  if (event === 'auth.ok' && heard.data?.session_id === undefined)
    return void judge.check(
      'WS3',
      isHello(heard),
      `${who} got an auth.ok without user_id, role, display_name, socket_id`,
    )
  const validate = validators.get(event)
  // An unknown event is an extension, which clients ignore.
  if (validate === undefined) return
  const checked = validate(heard.data)
  const problem = checked.ok ? '' : `data.${checked.field} ${checked.message}`
  judge.check(ruleOfShape[event as ServerEventName], checked.ok, `${who} got ${event}: ${problem}`)
  if (event !== 'call.error') return
  const isTwice = JSON.stringify(heard.error) === JSON.stringify(heard.data?.error)
  judge.check('ENV2', isTwice, 'error and data.error differ')
}
