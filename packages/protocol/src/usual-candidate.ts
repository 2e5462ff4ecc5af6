import { relayLimits, type WebrtcIceCandidate } from './events/webrtc.ts'
import type { RelaySender } from './relay-text.ts'

/** Within a string of JSON: what stands for itself, one byte each. */
const plain = '[ !#-[\\]-~]'
const member = {
  requestId: `"request_id":"(${plain}{0,128})",`,
  n: '"n":([1-9]\\d{0,14}),',
  callUuid: '"call_uuid":"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"',
  candidate: `"candidate":"(${plain}{0,${relayLimits.candidateBytes}})"`,
  mid: `"sdpMid":"(${plain}{0,255})"`,
  index: '"sdpMLineIndex":(0|[1-9]\\d{0,3})',
  fragment: `"usernameFragment":"(${plain}{0,256})"`,
}
const head = `\\{"event":"webrtc\\.ice_candidate",(?:${member.requestId})?(?:${member.n})?`
/** Chromium and Safari name `sdpMid` first, Firefox the index. */
const section = `(?:${member.mid},${member.index}|${member.index},${member.mid})`
const candidate = `\\{${member.candidate},${section}(?:,${member.fragment})?\\}`
const usual = new RegExp(`^${head}"data":\\{${member.callUuid},"candidate":${candidate}\\}\\}$`)

/** The members of a request of this event. */
export interface UsualCandidate {
  readonly event: 'webrtc.ice_candidate'
  readonly requestId: string | undefined
  readonly n: number | undefined
  readonly data: WebrtcIceCandidate
  /** The event as the peer gets it. */
  readonly passedOn: string
}

/**
 * A candidate as a browser's `JSON.stringify` writes it, read from its text by one pattern; undefined where it is written in any
 * other way, or wrong. A service relays little else. The pattern leaves nothing to check: each member has its place and
 * its bounds, and nothing is named twice or escaped [WS6, REL4].
 */
export function readUsualCandidate(text: string, sender: RelaySender): UsualCandidate | undefined {
  const found = usual.exec(text)
  if (found === null) return undefined
  const [, requestId, n, callUuid = '', candidate = '', mid, index, firstIndex, laterMid = '', usernameFragment] = found
  const data = text.slice(text.indexOf('"data":') + '"data":'.length, -'}}'.length)
  const described = { candidate, sdpMid: mid ?? laterMid, sdpMLineIndex: Number(index ?? firstIndex) }
  return {
    event: 'webrtc.ice_candidate',
    requestId,
    n: n === undefined ? undefined : Number(n),
    data: {
      call_uuid: callUuid,
      candidate: usernameFragment === undefined ? described : { ...described, usernameFragment },
    },
    passedOn: `{"event":"webrtc.ice_candidate","data":${data}${sender.end}`,
  }
}
