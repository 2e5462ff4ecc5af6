/**
 * What the phone of the command line knows of its calls: enough to say which one a verb without a call_uuid means.
 *
 *   const calls = createPhoneCalls()
 *   calls.hears(envelope), calls.says(envelope)
 *   calls.pick('accept')             → the call_uuid of the newest call that rings here, or undefined
 *   calls.find('3f2a')               → the one call_uuid that begins so, or undefined
 */
import type { Envelope } from './envelope.ts'

export interface PhoneCall {
  readonly uuid: string
  readonly direction: 'outgoing' | 'incoming'
  readonly state: 'ringing' | 'answered' | 'over'
  /** As `ben (agent)`; empty where nothing said who it is. */
  readonly peer: string
}

export type CallVerb = 'accept' | 'reject' | 'cancel' | 'end' | 'connected'

export interface PhoneCalls {
  hears(envelope: Envelope): void
  says(envelope: Envelope): void
  pick(verb: CallVerb): string | undefined
  find(beginning: string): string | undefined
  /** The newest is the last. */
  list(): readonly PhoneCall[]
}

const fits: Record<CallVerb, (call: PhoneCall) => boolean> = {
  accept: ({ direction, state }) => direction === 'incoming' && state === 'ringing',
  reject: ({ direction, state }) => direction === 'incoming' && state === 'ringing',
  cancel: ({ direction, state }) => direction === 'outgoing' && state !== 'over',
  end: ({ state }) => state !== 'over',
  connected: ({ state }) => state === 'answered',
}

const overEvents = ['call.rejected', 'call.cancelled', 'call.missed', 'call.ended']
const states: Record<string, PhoneCall['state']> = {
  'call.accept': 'answered',
  'call.reject': 'over',
  'call.cancel': 'over',
  'call.end': 'over',
}

export function createPhoneCalls(): PhoneCalls {
  const known = new Map<string, PhoneCall>()
  /** Who was invited, and what a call was before a request: by request_id. */
  const invited = new Map<string, string>()
  const before = new Map<string, PhoneCall>()

  const keep = (call: PhoneCall) => {
    known.set(call.uuid, call)
  }
  function change(uuid: string, state: PhoneCall['state']): void {
    const call = known.get(uuid)
    if (call !== undefined) keep({ ...call, state })
  }

  return {
    hears({ event, request_id = '', data }) {
      const uuid = textOf(data, 'call_uuid')
      if (event === 'call.error') {
        // A refused request has changed nothing.
        const call = before.get(request_id)
        if (call !== undefined) keep(call)
      } else if (event === 'call.invited') {
        // An invite that comes again may name a call that has gone on [INV3].
        const status = textOf(data, 'status')
        const isAnswered = status === 'accepted' || status === 'connected'
        const state = status === 'ringing' ? status : isAnswered ? 'answered' : 'over'
        keep({ uuid, direction: 'outgoing', state, peer: invited.get(request_id) ?? '' })
      } else if (event === 'call.ringing') {
        const peer = nameOf(textOf(data, 'caller_user_id'), textOf(data, 'caller_role'))
        keep({ uuid, direction: 'incoming', state: 'ringing', peer })
      } else if (event === 'call.accepted') {
        keep({ uuid, direction: 'outgoing', state: 'answered', peer: known.get(uuid)?.peer ?? '' })
      } else if (overEvents.includes(event)) {
        change(uuid, 'over')
      }
    },
    says({ event, request_id = '', data }) {
      if (event === 'call.invite') {
        const callee = textOf(data, 'callee_group') || textOf(data, 'callee_user_id')
        invited.set(request_id, nameOf(callee, textOf(data, 'callee_role')))
      }
      const uuid = textOf(data, 'call_uuid')
      const call = known.get(uuid)
      const state = states[event]
      if (call === undefined || state === undefined) return
      before.set(request_id, call)
      change(uuid, state)
    },
    pick: (verb) => [...known.values()].findLast(fits[verb])?.uuid,
    find(beginning) {
      const found = [...known.keys()].filter((uuid) => uuid.startsWith(beginning.toLowerCase()))
      return found.length === 1 ? found[0] : undefined
    },
    list: () => [...known.values()],
  }
}

const nameOf = (user: string, role: string) => `${user} (${role})`

function textOf(data: Envelope['data'], field: string): string {
  const value = data?.[field]
  return typeof value === 'string' ? value : ''
}
