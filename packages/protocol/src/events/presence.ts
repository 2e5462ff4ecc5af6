import Type, { type Static } from 'typebox'
import { participantName } from '../text.ts'

/** The most people that one session watches [PRES1]. */
export const mostWatched = 200

/** Whom an extended session wants to hear of; it replaces those before [PRES1]. */
export const PresenceWatch = Type.Object({
  participants: Type.Array(
    Type.Object({
      role: participantName("Role; must be in the token's allowed_peer_roles."),
      user_id: participantName('Participant ID.'),
    }),
    {
      maxItems: mostWatched,
      description: 'Everybody to watch from now on; empty: nobody.',
    },
  ),
})
export type PresenceWatch = Static<typeof PresenceWatch>

/** Who is there, and in a call: all that are watched as the reply, and then those that changed [PRES1]. */
export const PresenceState = Type.Object({
  participants: Type.Array(
    Type.Object({
      role: Type.String(),
      user_id: Type.String(),
      online: Type.Boolean({ description: 'Connected, or was until a moment ago.' }),
      in_call: Type.Optional(
        Type.Boolean({
          description:
            'Calls somebody, or is in a call that was answered. Left out if that is not known at this moment.',
        }),
      ),
    }),
  ),
})
export type PresenceState = Static<typeof PresenceState>
