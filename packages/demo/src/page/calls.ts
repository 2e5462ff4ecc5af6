import type { CallRecord, CallType, Peer } from './backend.ts'
import { type Data, type Envelope, object, text } from './envelope.ts'
import type { MediaFacts } from './flow.ts'
import { closeLocalMedia, type LocalMedia, openLocalMedia } from './media.ts'
import { createPeerLink, type PeerLink } from './peer-link.ts'
import { endText, errorText } from './wording.ts'

/** calling: it rings at the other side; incoming: it rings here; connecting: answered; live: media arrives. */
export type Phase = 'calling' | 'incoming' | 'connecting' | 'live'

export type Call = {
  uuid: string
  side: 'caller' | 'callee'
  phase: Phase
  peer: Peer
  type: CallType
  /** When media first arrived. */
  since: number | undefined
  interrupted: boolean
  muted: boolean
  cameraOff: boolean
  local: MediaStream | undefined
  remote: MediaStream | undefined
  facts: MediaFacts | undefined
}

/** The parts of a call that nobody looks at. */
type Wiring = {
  confirmed: boolean
  media?: Promise<LocalMedia>
  link?: PeerLink
  early: RTCIceCandidateInit[]
  /** `call.ringing` of the same peer while our own invite is on its way: glare, if the service says so [INV6]. */
  crossing?: Data
}

type CallsOptions = {
  send(event: string, data: Data): string
  rtc(): RTCConfiguration
  onChange(call: Call | undefined, note: string): void
  onFacts(call: Call): void
  onNote(note: string): void
}

// Two offers that cross meet within a round trip. One that comes later than this is no glare: the peer started anew.
const glareMs = 2000

export function createCalls(options: CallsOptions) {
  let current: (Call & Wiring) | undefined
  let requests = new Map<string, { event: string; uuid: string }>()

  function request(event: string, uuid: string, data: Data = {}): void {
    requests.set(options.send(event, { call_uuid: uuid, ...data }), { event, uuid })
  }

  function begin(side: Call['side'], phase: Phase, uuid: string, peer: Peer, type: CallType): Call & Wiring {
    const call: Call & Wiring = {
      ...{ uuid, side, phase, peer, type, since: undefined, interrupted: false, muted: false, cameraOff: false },
      ...{ local: undefined, remote: undefined, facts: undefined, confirmed: false, early: [] },
    }
    current = call
    return call
  }

  function changed(note = ''): void {
    options.onChange(current, note)
  }

  function finish(note: string): void {
    const call = current
    if (!call) return
    current = undefined
    requests = new Map()
    call.link?.close()
    void call.media?.then(closeLocalMedia)
    changed(note)
    if (call.crossing) ringing(call.crossing)
  }

  function openMedia(call: Call & Wiring): Promise<LocalMedia> {
    call.media ??= openLocalMedia(call.type).then((media) => {
      call.local = media.stream
      if (current === call) {
        applyMutes(call)
        changed(media.note)
      }
      return media
    })
    return call.media
  }

  function applyMutes(call: Call): void {
    for (const track of call.local?.getAudioTracks() ?? []) track.enabled = !call.muted
    for (const track of call.local?.getVideoTracks() ?? []) track.enabled = !call.cameraOff
  }

  function openLink(call: Call & Wiring): PeerLink {
    call.link?.close()
    const isCurrent = () => current === call && call.link === link
    const link: PeerLink = createPeerLink({
      configuration: options.rtc(),
      kinds: call.type === 'video' ? ['audio', 'video'] : ['audio'],
      local: openMedia(call).then(({ stream }) => stream),
      early: call.early.splice(0),
      send: (event, data) => {
        if (isCurrent()) request(event, call.uuid, data)
      },
      onRemote: (stream) => {
        if (!isCurrent()) return
        call.remote = stream
        changed()
      },
      onFlow: () => {
        if (isCurrent()) mediaFlows(call)
      },
      onFacts: (facts) => {
        if (!isCurrent()) return
        call.facts = facts
        options.onFacts(call)
      },
      onState: (state) => {
        if (isCurrent()) linkState(call, state)
      },
      onError: options.onNote,
    })
    call.link = link
    return link
  }

  function mediaFlows(call: Call): void {
    call.interrupted = false
    if (call.since === undefined) request('call.connected', call.uuid)
    call.since ??= Date.now()
    call.phase = 'live'
    changed()
  }

  function linkState(call: Call & Wiring, state: RTCPeerConnectionState): void {
    const interrupted = state === 'disconnected' || state === 'failed'
    if (interrupted !== call.interrupted && (interrupted || state === 'connected')) {
      call.interrupted = interrupted
      changed()
    }
    if (state === 'failed') openLink(call).offer()
  }

  function ringing(data: Data): void {
    const uuid = text(data, 'call_uuid')
    const peer = {
      user_id: text(data, 'caller_user_id'),
      role: text(data, 'caller_role'),
      display_name: text(data, 'display_name'),
    }
    if (!current) {
      begin('callee', 'incoming', uuid, peer, callType(text(data, 'call_type')))
      changed()
    } else if (current.uuid !== uuid) {
      const { user_id, role } = current.peer
      const sameTwo = user_id === peer.user_id && role === peer.role
      if (sameTwo && current.phase === 'calling' && !current.confirmed) current.crossing = data
      else request('call.reject', uuid, { reason: 'busy' })
    }
  }

  /** A call_uuid of our own makes the invite repeatable and the call cancellable at once [INV1, INV3]. */
  function sendInvite({ uuid, peer, type }: Call): void {
    request('call.invite', uuid, { callee_user_id: peer.user_id, callee_role: peer.role, call_type: type })
  }

  function accept(call: Call & Wiring): void {
    call.phase = 'connecting'
    void openMedia(call)
    request('call.accept', call.uuid)
    changed()
  }

  function accepted(call: Call & Wiring): void {
    if (call.phase !== 'calling') return
    call.phase = 'connecting'
    openLink(call).offer()
    changed()
  }

  /** Perfect negotiation with a fresh connection per offer: of two that cross, the caller's stands. */
  function offered(call: Call & Wiring, sdp: Data): void {
    const own = call.link
    const glare = own?.isOffering() === true && performance.now() - own.openedAt < glareMs
    if (!glare || call.side === 'callee') {
      openLink(call).answer(sdp)
      return
    }
    // The peer answers ours now, unless it was not there yet when ours was sent: nothing is kept for a page that is
    // being reloaded [PLACE5].
    setTimeout(() => {
      if (current === call && call.link === own && own.isOffering()) openLink(call).offer()
    }, glareMs)
  }

  function failed({ request_id, error }: Envelope): void {
    const asked = requests.get(request_id ?? '')
    if (!current || !error || !asked || asked.uuid !== current.uuid) return
    const gone = error.code === 'CALL_NOT_PARTICIPANT' || error.code === 'CALL_NOT_FOUND'
    const decisive = asked.event === 'call.invite' || asked.event === 'call.accept' || gone
    if (asked.event === 'call.invite' && error.code === 'CALL_GLARE') joinCrossing(current, error.call_uuid ?? '')
    else if (decisive) finish(errorText(error, current.peer))
    else options.onNote(`${asked.event}: ${error.code}`)
  }

  /** Both called each other at once and the other's invite came first: they want to talk, so take it. */
  function joinCrossing(call: Call & Wiring, uuid: string): void {
    const { crossing } = call
    if (!crossing || text(crossing, 'call_uuid') !== uuid) {
      finish('You called each other at the same moment.')
      return
    }
    const joined = begin('callee', 'connecting', uuid, call.peer, callType(text(crossing, 'call_type')))
    if (call.type === joined.type && call.media) {
      joined.media = call.media
      joined.local = call.local
    } else void call.media?.then(closeLocalMedia)
    accept(joined)
  }

  function invited({ request_id, data }: Envelope): void {
    if (!current || requests.get(request_id ?? '')?.uuid !== current.uuid) return
    // Another uuid is a call of ours that still rings: the invite took it over [INV7].
    current.uuid = text(data, 'call_uuid')
    current.confirmed = true
  }

  function aboutCurrent(call: Call & Wiring, event: string, data: Data): void {
    switch (event) {
      case 'call.accepted':
        accepted(call)
        break
      case 'call.rejected':
      case 'call.cancelled':
      case 'call.ended':
      case 'call.missed':
        finish(endText(text(data, 'status'), text(data, 'reason'), call.peer, call.side === 'caller'))
        break
      case 'webrtc.offer':
        offered(call, object(data, 'sdp'))
        break
      case 'webrtc.answer':
        call.link?.receiveAnswer(object(data, 'sdp'))
        break
      case 'webrtc.ice_candidate': {
        const candidate = object(data, 'candidate') as RTCIceCandidateInit
        if (call.link) call.link.receiveCandidate(candidate)
        else call.early.push(candidate)
      }
    }
  }

  function adopt(record: CallRecord, phase: Phase): Call & Wiring {
    const side = record.direction === 'outgoing' ? 'caller' : 'callee'
    const call = begin(side, phase, record.call_uuid, record.peer, callType(record.call_type))
    call.confirmed = true
    if (record.connected_at) call.since = Date.parse(record.connected_at)
    return call
  }

  function resume(record: CallRecord): void {
    if (current) return
    openLink(adopt(record, 'connecting')).offer()
    changed()
  }

  return {
    current: (): Call | undefined => current,
    connection: (): RTCPeerConnection | undefined => current?.link?.connection,

    invite(peer: Peer, type: CallType): void {
      if (current) return
      const call = begin('caller', 'calling', crypto.randomUUID(), peer, type)
      void openMedia(call)
      sendInvite(call)
      changed()
    },
    accept(): void {
      if (current?.phase === 'incoming') accept(current)
    },
    hangUp(): void {
      const call = current
      if (!call) return
      const verbs = {
        calling: 'call.cancel',
        incoming: 'call.reject',
        connecting: 'call.end',
        live: 'call.end',
      } as const
      request(verbs[call.phase], call.uuid)
      const notes = {
        calling: 'You cancelled the call.',
        incoming: 'You declined.',
        connecting: '',
        live: 'You hung up.',
      }
      finish(notes[call.phase])
    },
    toggle(what: 'muted' | 'cameraOff'): void {
      if (!current) return
      current[what] = !current[what]
      applyMutes(current)
      changed()
    },
    resume,

    /** After every connect: what the history says goes over what this page remembers. */
    reconcile(records: CallRecord[], reloaded: boolean): void {
      const call = current
      if (!call) {
        const live = records.find(({ ended_at, status }) => ended_at === null && status !== 'ringing')
        const mine = records.find(({ ended_at, direction }) => ended_at === null && direction === 'outgoing')
        if (reloaded && live) resume(live)
        else if (reloaded && mine) {
          void openMedia(adopt(mine, 'calling'))
          changed()
        }
        return
      }
      const record = records.find(({ call_uuid }) => call_uuid === call.uuid)
      if (!record) {
        // The invite was lost with its socket.
        if (call.phase === 'calling' && !call.confirmed) sendInvite(call)
        return
      }
      if (record.ended_at !== null) {
        finish(endText(record.status, record.end_reason ?? '', call.peer, call.side === 'caller'))
      } else if (record.status !== 'ringing' && call.phase === 'incoming') {
        finish(endText(record.status, 'answered_elsewhere', call.peer, false))
      } else if (record.status !== 'ringing' && call.phase === 'calling') accepted(call)
      else if (call.link && call.link.connection.connectionState !== 'connected') openLink(call).offer()
    },

    handle(envelope: Envelope): void {
      const { event, data } = envelope
      if (event === 'call.ringing') ringing(data)
      else if (event === 'call.error') failed(envelope)
      else if (event === 'call.invited') invited(envelope)
      else if (current && text(data, 'call_uuid') === current.uuid) aboutCurrent(current, event, data)
    },
  }
}

export type Calls = ReturnType<typeof createCalls>

function callType(value: string): CallType {
  return value === 'video' ? 'video' : 'audio'
}
