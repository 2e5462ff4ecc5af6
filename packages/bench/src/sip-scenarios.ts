// What the two ends of a call say, as scenarios of SIPp: INVITE, 180, 200, ACK, then at once BYE and 200.
import { sessionDescription } from './session-description.ts'

/** Messages of both ends in a call. The proxy's own 100 comes on top. */
export const SIP_MESSAGES = 6
/** In ms; over UDP only. */
const T1 = 500

function document(name: string, steps: readonly string[]): string {
  const head = '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE scenario SYSTEM "sipp.dtd">\n'
  return `${head}<scenario name="${name}">\n${steps.join('\n')}\n</scenario>\n`
}

/** SIPp gives each line its CRLF, and fills in what is in square brackets. */
function send(lines: readonly string[], attributes = ''): string {
  return `<send${attributes}><![CDATA[\n${lines.join('\n')}\n]]></send>`
}

const again = ` retrans="${T1}"`

function withBody(head: readonly string[], type: 'offer' | 'answer'): string[] {
  const { sdp } = sessionDescription(type)
  return [...head, 'Content-Type: application/sdp', 'Content-Length: [len]', '', ...sdp.trimEnd().split('\r\n')]
}

const EMPTY = ['Content-Length: 0', '']

/** A request of the caller to the callee. `routed`: on the way that the proxy has recorded. */
function request(method: string, cseq: string, routed: boolean): string[] {
  return [
    `${method} ${routed ? '[next_url]' : 'sip:callee@[remote_ip]:[remote_port];transport=[transport]'} SIP/2.0`,
    'Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch]',
    'From: <sip:caller@[local_ip]:[local_port]>;tag=[pid]-[call_number]',
    `To: <sip:callee@[remote_ip]:[remote_port]>${routed ? '[peer_tag_param]' : ''}`,
    'Call-ID: [call_id]',
    `CSeq: ${cseq}`,
    'Contact: <sip:caller@[local_ip]:[local_port];transport=[transport]>',
    'Max-Forwards: 70',
    ...(routed ? ['[routes]'] : []),
  ]
}

export function callerScenario(): string {
  return document('caller', [
    send(withBody(request('INVITE', '1 INVITE', false), 'offer'), again),
    '<recv response="100" optional="true"/>',
    '<recv response="180"/>',
    '<recv response="200" rrs="true"/>',
    send([...request('ACK', '1 ACK', true), ...EMPTY]),
    send([...request('BYE', '2 BYE', true), ...EMPTY], again),
    '<recv response="200"/>',
  ])
}

/** An answer of the callee, to the request that came last. */
function answer(status: string, tagged: boolean): string[] {
  return [
    `SIP/2.0 ${status}`,
    '[last_Via:]',
    '[last_Record-Route:]',
    '[last_From:]',
    `[last_To:]${tagged ? ';tag=[pid]-[call_number]' : ''}`,
    '[last_Call-ID:]',
    '[last_CSeq:]',
    'Contact: <sip:callee@[local_ip]:[local_port];transport=[transport]>',
  ]
}

export function calleeScenario(): string {
  return document('callee', [
    '<recv request="INVITE"/>',
    send([...answer('180 Ringing', true), ...EMPTY]),
    send(withBody(answer('200 OK', true), 'answer'), again),
    '<recv request="ACK"/>',
    '<recv request="BYE"/>',
    send([...answer('200 OK', false), ...EMPTY]),
  ])
}
