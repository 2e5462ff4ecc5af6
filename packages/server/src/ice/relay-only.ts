/**
 * What peers of a product with `media: "relay"` hear of each other's network: relayed addresses and no others [PRIV1].
 * Pure functions on texts that come from clients; what cannot be read is taken for an address.
 *
 *   relayOnly(event, data)    → the data of an event that was parsed, so; undefined where nothing is to be passed on
 *   relayCandidate(candidate) → the candidate without its related address; undefined where it is not to be passed on
 *   relayDescription(sdp)     → the description without addresses other than those of its relay candidates
 */
import { isIP } from 'node:net'

/** RFC 8839 section 5.1: the address that stands where a related one is not to be known, and its port. */
const hidden = { 4: '0.0.0.0', 6: '::' } as const
const hiddenPort = '9'

/** ice-char, RFC 8839 section 5.4: no address only has these. */
const iceChars = '[A-Za-z0-9+/]'
const fragment = new RegExp(`^${iceChars}{4,256}$`)
/** token, RFC 8866 section 9: no colon. */
const shortToken = /^[\w!#$%&'*+.^`{|}~-]{1,64}$/

interface RelayedData {
  readonly call_uuid: string
  readonly candidate?: unknown
  readonly sdp?: unknown
}

interface Candidate {
  readonly candidate: string
  readonly [member: string]: unknown
}

/** Made anew of the members that the schema of the event names: of any other nobody has looked at the type. */
export function relayOnly<T extends RelayedData>(event: string, data: T): T | RelayedData | undefined {
  const { call_uuid } = data
  if (event === 'webrtc.ice_candidate') {
    const candidate = relayCandidate(data.candidate as Candidate)
    return candidate && { call_uuid, candidate }
  }
  if (event !== 'webrtc.offer' && event !== 'webrtc.answer') return data
  const { type, sdp } = data.sdp as { type: string; sdp: string }
  return { call_uuid, sdp: { type, sdp: relayDescription(sdp) } }
}

/** An empty candidate, which is the end of them, is passed on. Other members of a browser's repeat its address. */
export function relayCandidate(said: Candidate): object | undefined {
  const candidate = said.candidate === '' ? '' : relayLine(said.candidate)
  if (candidate === undefined) return undefined
  const { sdpMid, sdpMLineIndex, usernameFragment } = said
  return {
    candidate,
    ...((sdpMid === null || isMid(sdpMid)) && { sdpMid }),
    ...(sdpMLineIndex !== undefined && { sdpMLineIndex }),
    ...(typeof usernameFragment === 'string' && fragment.test(usernameFragment) && { usernameFragment }),
  }
}

const isMid = (mid: unknown) => typeof mid === 'string' && shortToken.test(mid) && hideWord(mid, () => false) === mid

interface RelayAddress {
  readonly address: string
  readonly port: string
}

export function relayDescription(sdp: string): string {
  // As the strictest and the laxest reader of descriptions would: none of them may find a line that this one does not.
  const parts = sdp.split(/(\r\n|\n|\r)/)
  const own: RelayAddress[] = []
  const lines: string[] = []
  for (let index = 0; index < parts.length; index += 2) {
    const [line = '', end = ''] = parts.slice(index, index + 2)
    if (!/candidates?\s*:/i.test(line)) {
      lines.push(line + end)
      continue
    }
    const relay = relayLine(line)
    if (relay === undefined) continue
    own.push(addressOf(relay))
    lines.push(relay + end)
  }
  return lines.map((line) => (isCandidateLine(line) ? line : hideIn(line, own))).join('')
}

const isCandidateLine = (line: string) => line.startsWith('a=candidate:')

const token = String.raw`[^\s]+`
const relayPattern = new RegExp(
  String.raw`^(a=)?candidate:(${iceChars}{1,32}) (\d{1,5}) ([a-z]{1,8}) (\d{1,10}) (${token}) (\d{1,5}) typ relay((?: ${token})*)$`,
  'i',
)
/** Other fields of a candidate that browsers write; any other name or value may be an address. */
const extensions: Readonly<Record<string, RegExp>> = {
  generation: /^\d{1,10}$/,
  ufrag: new RegExp(`^${iceChars}{1,256}$`),
  'network-id': /^\d{1,10}$/,
  'network-cost': /^\d{1,10}$/,
  tcptype: /^(active|passive|so)$/,
}

/** A relay candidate, written anew, or undefined. */
function relayLine(line: string): string | undefined {
  const found = relayPattern.exec(line.trim())
  if (found === null) return undefined
  const [, prefix = '', foundation, component, transport, priority, address = '', port, rest = ''] = found
  const family = isIP(address)
  if (family !== 4 && family !== 6) return undefined
  const related = `raddr ${hidden[family]} rport ${hiddenPort}`
  const head = `${prefix}candidate:${foundation} ${component} ${transport} ${priority} ${address} ${port} typ relay`
  return [head, related, ...extensionsOf(rest)].join(' ')
}

/** Pairs of a name and a value (RFC 8839 section 5.1). */
function extensionsOf(rest: string): string[] {
  const words = rest.trim().split(' ')
  const kept: string[] = []
  for (let index = 0; index + 1 < words.length; index += 2) {
    const [name = '', value = ''] = words.slice(index, index + 2)
    if (Object.hasOwn(extensions, name) && extensions[name]?.test(value)) kept.push(name, value)
  }
  return kept
}

function addressOf(line: string): RelayAddress {
  const words = line.split(' ')
  return { address: words[4] ?? '', port: words[5] ?? '' }
}

/** A line that is not a candidate: its addresses become the one that says nothing, and ports that go with them too. */
function hideIn(line: string, own: readonly RelayAddress[]): string {
  const isOwn = (address: string) => own.some((relay) => relay.address === address)
  // a=rtcp:<port> IN IP4 <address>, RFC 3605.
  const told = hidePort(line, own).replace(/^(a=rtcp:)\d+( IN IP[46] )(\S+)/i, (whole, start, net, address) => {
    return isOwn(address) ? whole : start + hiddenPort + net + address
  })
  const named = told.replace(/((?:^c=|\s)IN IP([46]) )([^\s/]+)/gi, (whole, start, family, address) => {
    return isOwn(address) ? whole : start + hidden[family === '6' ? 6 : 4]
  })
  return named.replace(/[^\s,;=/[\]()"']+/g, (word) => hideWord(word, isOwn))
}

/** Inside what is made of the characters of addresses: an IPv6 address, with or without the ellipsis. */
const sixInside = /::|(?:[\da-f]{1,4}:){6}(?:[\da-f]{1,4}:[\da-f]|\d{1,3}(?:\.\d{1,3}){3})/i
/** As of a=fingerprint. */
const hashText = /^[\da-f]{2}(?::[\da-f]{2}){15,}$/i

/** Addresses stand in longer words too, beside ports, names and zones: what is glued to one of IPv6 goes with it. */
function hideWord(word: string, isOwn: (address: string) => boolean): string {
  if (isAddress(word)) return isOwn(word) ? word : hiddenOf(word)
  const withoutSix = word.replace(/[\da-f:.]+/gi, (run) => {
    const text = run.replace(/^:(?!:)/, '')
    if (!sixInside.test(text) || hashText.test(text) || isOwn(text)) return run
    return run.slice(0, run.length - text.length) + hidden[6]
  })
  return withoutSix.replace(/(?<!\d)\d{1,3}(?:\.\d{1,3}){3}(?!\d)/g, (address) => {
    return isIP(address) === 4 && !isOwn(address) ? hidden[4] : address
  })
}

/** The port of the default destination; 0 stays, which refuses the section. */
function hidePort(line: string, own: readonly RelayAddress[]): string {
  return line.replace(/^(m=\S+ )(\d+)/i, (whole, start, port) => {
    return Number(port) === 0 || own.some((relay) => relay.port === port) ? whole : start + hiddenPort
  })
}

const isAddress = (word: string) => isIP(word) !== 0 || word.toLowerCase().endsWith('.local')
const hiddenOf = (address: string) => (isIP(address) === 6 ? hidden[6] : hidden[4])
