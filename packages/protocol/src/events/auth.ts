import Type, { type Static } from 'typebox'
import { timestamp, uuid } from '../text.ts'
import { transferOrigin } from '../transfers.ts'
import { PeerAbsence } from './call.ts'

/** Sessions and sockets: 128 random bits behind three characters of a hash of the participant [ID2]. */
export const sessionIdPattern = '^[A-Za-z0-9_-]{25}$'
const sessionId = (description: string) => Type.String({ pattern: sessionIdPattern, description })

export const AuthOk = Type.Object({
  user_id: Type.String(),
  role: Type.String(),
  display_name: Type.String(),
  socket_id: sessionId('Identifier of this socket, 25 characters [ID2].'),
})
export type AuthOk = Static<typeof AuthOk>

/** A live call as a session finds it when it connects: for information, the events are what counts [EXT1]. */
export const ActiveCall = Type.Object({
  call_uuid: uuid(),
  status: Type.Enum(['ringing', 'accepted', 'connected']),
  version: Type.Integer({ minimum: 1 }),
  direction: Type.Enum(['outgoing', 'incoming']),
  peer: Type.Object({
    user_id: Type.Union([Type.String(), Type.Null()], { description: 'null: nobody of the group has accepted.' }),
    role: Type.String(),
    group: Type.Optional(Type.String({ description: 'The group that was called, to its caller [GROUP1].' })),
    display_name: Type.Union([Type.String(), Type.Null()]),
    away: Type.Optional(PeerAbsence),
  }),
  call_type: Type.String(),
  context_type: Type.String(),
  context_id: Type.String(),
  started_at: timestamp('The invite.'),
  expires_at: timestamp('When the ring ends, or ended.'),
  holds_place: Type.Boolean({ description: 'Whether this session has the place of its side.' }),
  elsewhere: Type.Optional(
    Type.Literal(true, {
      description: 'Another session has that place, and this one may take it [TAKE1]; only if it listed `take`.',
    }),
  ),
  transferring_to: Type.Optional(uuid('The call is being transferred: the call that rings at the target [XFER1].')),
  ...transferOrigin,
})
export type ActiveCall = Static<typeof ActiveCall>

/** Asks which calls the participant has now [TAKE1]. */
export const CallList = Type.Object({})
export const CallListed = Type.Object({ active_calls: Type.Array(ActiveCall) })
export type CallListed = Static<typeof CallListed>

const sessionState = {
  session_id: sessionId('Names the session in a resume.'),
  epoch: Type.String({ description: "Names the incarnation of the session's log." }),
  active_calls: Type.Array(ActiveCall),
}

/** What `auth.ok` adds for an extended session [EXT1]. */
export const ExtendedAuthOk = Type.Object({
  ...AuthOk.properties,
  ...sessionState,
  resume_window_ms: Type.Integer({ description: 'How long the session can be resumed, in ms.' }),
  server_time: timestamp('Now.'),
  recovered: Type.Boolean({ description: 'True: the session goes on without a gap [RES1].' }),
  handled: Type.Integer({ minimum: 0, description: 'The n of the last request that took effect [EXT4].' }),
})
export type ExtendedAuthOk = Static<typeof ExtendedAuthOk>

/** The log was lost under a live socket [RES4]. */
export const SessionReset = Type.Object(sessionState)
export type SessionReset = Static<typeof SessionReset>

export const AuthRefresh = Type.Object({ token: Type.String({ description: 'A new token of the same participant.' }) })
export const AuthRefreshed = Type.Object({ expires_at: timestamp('Expiry of the new token.') })
export type AuthRefreshed = Static<typeof AuthRefreshed>
