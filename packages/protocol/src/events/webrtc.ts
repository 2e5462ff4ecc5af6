import Type, { type Static } from 'typebox'
import { boundedText, uuid } from '../text.ts'

/** Bounds of what is relayed, in bytes of UTF-8 [WS6]. */
export const relayLimits = { sdpBytes: 48 * 1024, candidateBytes: 4 * 1024 } as const

/** A schema counts characters, and no character is less than a byte; the bytes themselves are counted before it. */
const boundedBy = (bytes: number, description: string) =>
  Type.String({ maxLength: bytes, description: `${description} At most ${bytes} bytes of UTF-8.` })

// Objects stay open: whatever else the browser puts in passes through whole [REL4].
const description = <T extends 'offer' | 'answer'>(type: T) =>
  Type.Object({ type: Type.Literal(type), sdp: boundedBy(relayLimits.sdpBytes, 'SDP text (RFC 8866).') })

export const WebrtcOffer = Type.Object({ call_uuid: uuid(), sdp: description('offer') })
export const WebrtcAnswer = Type.Object({ call_uuid: uuid(), sdp: description('answer') })
export const WebrtcIceCandidate = Type.Object({
  call_uuid: uuid(),
  candidate: Type.Union([
    Type.Null({ description: 'The end of candidates: accepted, not relayed.' }),
    Type.Object({
      candidate: boundedBy(relayLimits.candidateBytes, 'candidate-attribute (RFC 8839 section 5.1); empty at the end.'),
      sdpMid: Type.Optional(Type.Union([boundedText(255, 'Media stream identification.'), Type.Null()])),
      sdpMLineIndex: Type.Optional(Type.Union([Type.Integer({ minimum: 0, maximum: 65535 }), Type.Null()])),
      usernameFragment: Type.Optional(
        Type.Union([boundedText(256, 'ice-ufrag of the section (RFC 8839 section 5.4).'), Type.Null()]),
      ),
    }),
  ]),
})
export type WebrtcOffer = Static<typeof WebrtcOffer>
export type WebrtcAnswer = Static<typeof WebrtcAnswer>
export type WebrtcIceCandidate = Static<typeof WebrtcIceCandidate>

/** What a relay adds to the sender's fields [REL3]. */
export const RelayOrigin = Type.Object({ from_user_id: Type.String(), from_role: Type.String() })
