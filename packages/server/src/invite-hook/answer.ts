import { inviteLimits, readReason } from '@ringwire/protocol/events/call'
import { participantName, utf8Length } from '@ringwire/protocol/text'
import { createValidator } from '@ringwire/protocol/validate'
import Type, { type TSchema } from 'typebox'

/** What a backend decided on an invite [HOOK5]. */
export type Decided =
  /** `metadata` takes the place of the invite's own; `ringTimeoutMs` only shortens. */
  | {
      readonly decision: 'allow'
      readonly metadata?: Readonly<Record<string, unknown>>
      readonly ringTimeoutMs?: number
    }
  | { readonly decision: 'refuse'; readonly reason: string | null }
  | { readonly decision: 'redirect'; readonly callee: RedirectedTo }

/** Somebody, or a group of the role; then the user_id is blank. */
export interface RedirectedTo {
  readonly role: string
  readonly userId: string
  readonly group?: string
}

const optional = <T extends TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]))
const metadata = Type.Record(Type.String(), Type.Unknown())
const Answer = Type.Union([
  Type.Object({
    decision: Type.Literal('allow'),
    metadata: Type.Optional(Type.Union([metadata, Type.Null()])),
    ring_timeout_ms: Type.Optional(Type.Union([Type.Integer({ minimum: 1 }), Type.Null()])),
  }),
  Type.Object({ decision: Type.Literal('refuse'), reason: Type.Optional(Type.Unknown()) }),
  Type.Object({
    decision: Type.Literal('redirect'),
    callee: Type.Object({
      role: participantName('Role of the callee.'),
      user_id: optional(participantName('The callee.')),
      group: optional(participantName('A group of the role.')),
    }),
  }),
])
const validate = createValidator(Answer)

/** Undefined if the answer is not valid: it decides nothing. */
export function readDecision(text: string): Decided | undefined {
  const read = validate(parse(text))
  if (!read.ok) return undefined
  const answer = read.value
  switch (answer.decision) {
    case 'allow': {
      const { metadata, ring_timeout_ms: ringTimeoutMs } = answer
      if (metadata != null && utf8Length(JSON.stringify(metadata)) > inviteLimits.metadataBytes) return undefined
      return {
        decision: 'allow',
        ...(metadata != null && { metadata }),
        ...(ringTimeoutMs != null && { ringTimeoutMs }),
      }
    }
    case 'refuse':
      return { decision: 'refuse', reason: readReason(answer.reason) }
    case 'redirect': {
      const { role, user_id: userId, group } = answer.callee
      // Exactly one of them says who it is.
      if ((userId == null) === (group == null)) return undefined
      return {
        decision: 'redirect',
        callee: group == null ? { role, userId: userId ?? '' } : { role, userId: '', group },
      }
    }
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
