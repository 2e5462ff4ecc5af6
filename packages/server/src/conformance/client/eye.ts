/** Looks at everything that the client under test sends, whatever the scenario. */
import { createMessageParser, messageLimits } from '@ringwire/protocol/envelope'
import { envelopeOf, type Heard } from '../heard.ts'
import type { RuleId } from '../rules.ts'
import type { Judge } from '../verdicts.ts'
import { finals } from '../watch.ts'
import type { Link } from './link.ts'
import { createNumbers } from './numbers.ts'

/** By which rule a request has its fields. */
function ruleOf(event: string | undefined): RuleId {
  if (event === 'call.invite') return 'INV1'
  if (event === 'call.accept') return 'PLACE1'
  if (event?.startsWith('webrtc.')) return 'REL1'
  return event === undefined ? 'ENV3' : 'END1'
}

export interface Eye {
  onUpgrade(link: Link): void
  onUp(link: Link, text: string): void
  onDown(link: Link, text: string): void
  onPing(payload: string): void
  onPong(payload: string): void
}

/** `judge`: that of the scenario which is played now. */
export function createEye(judge: () => Judge): Eye {
  const parse = createMessageParser()
  const numbers = createNumbers(judge)
  /** Whom the client invited by each call_uuid of its own. */
  const invited = new Map<string, string>()
  const over = new Set<string>()

  function lookAtInvite(data: Heard['data']): void {
    const callUuid = typeof data?.call_uuid === 'string' ? data.call_uuid.toLowerCase() : undefined
    if (callUuid === undefined) return
    const callee = `${data.callee_role} ${data.callee_user_id}`
    const isSame = (invited.get(callUuid) ?? callee) === callee
    judge().check('UUID1', isSame && !over.has(callUuid), 'a new call has the call_uuid of an earlier one')
    invited.set(callUuid, callee)
  }

  return {
    onUpgrade(link) {
      const { target, token } = link.request
      const isInUrl = /eyJ[\w-]+\.[\w-]+\./.test(target)
      judge().check('WS1', !isInUrl, 'the token is in the URL')
      judge().check('WS1', token !== undefined, 'no token as the subprotocol list "jwt, <token>" or as a header')
      numbers.onUpgrade(target)
    },
    onUp(link, text) {
      judge().check('WS6', Buffer.byteLength(text) <= messageLimits.messageBytes, 'a message of more than 64 KiB')
      const parsed = parse(text)
      if (parsed.kind === 'ignored') return
      const isMalformed = parsed.kind === 'error' && parsed.malformed
      judge().check('ENV1', !isMalformed, isMalformed ? parsed.error.message : '')
      if (isMalformed) return
      // Events of its own are answered with an error, and used as a probe.
      const isUnknown = parsed.kind === 'error' && parsed.event === undefined
      const event = parsed.kind === 'error' ? parsed.event : parsed.request.event
      const why = parsed.kind === 'error' ? `${event}: ${parsed.error.message}` : ''
      if (!isUnknown) judge().check(ruleOf(event), parsed.kind !== 'error', why)
      const said = envelopeOf(text)
      if (event === 'call.invite') lookAtInvite(said?.data)
      // Nobody tells it the end that it makes itself.
      const callUuid = said?.data?.call_uuid
      if (hangUps.includes(event ?? '') && typeof callUuid === 'string') over.add(callUuid.toLowerCase())
      if (said !== undefined && isExtended(link)) numbers.onUp(text)
    },
    onDown(_, text) {
      const heard = envelopeOf(text)
      if (heard === undefined) return
      if (finals.includes(heard.event) && heard.data?.ended_at) over.add(heard.data.call_uuid)
      numbers.onDown(heard)
    },
    onPing: numbers.onPing,
    onPong: numbers.onPong,
  }
}

const hangUps = ['call.end', 'call.cancel', 'call.reject']

const isExtended = ({ request }: Link) => /[?&]ext=1(&|$)/.test(request.target)
