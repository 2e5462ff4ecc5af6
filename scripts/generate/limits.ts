/** docs/generated/limits.md: every limit, what it is without any configuration, what says that it was reached, what moves it. */
import type { EndReason } from '@ringwire/protocol/end-reasons'
import { messageLimits } from '@ringwire/protocol/envelope'
import { inviteLimits } from '@ringwire/protocol/events/call'
import { mostWatched } from '@ringwire/protocol/events/presence'
import { relayLimits } from '@ringwire/protocol/events/webrtc'
import { historyLimit } from '@ringwire/protocol/rest'
import { maxIdBytes } from '@ringwire/protocol/text'
import { mostEntries } from '../../packages/server/src/call/observed.ts'
import { leastPauseMs } from '../../packages/server/src/calls/quality.ts'
import { settings } from '../../packages/server/src/config/settings.ts'
import { maxBodyBytes } from '../../packages/server/src/http/body.ts'
import { maxUnreadBytes } from '../../packages/server/src/http/unread.ts'
import { deviceKeptMs, mostDevices } from '../../packages/server/src/ports/devices.ts'
import { sessionLogLimits, waitingLimits } from '../../packages/server/src/ports/sessions.ts'
import { maxTokenBytes } from '../../packages/server/src/products/session-token.ts'
import { maxMalformed } from '../../packages/server/src/signaling/connection.ts'
import { inboxLimits } from '../../packages/server/src/signaling/inbox.ts'
import { maxUnsentBytes } from '../../packages/server/src/signaling/outlet.ts'
import { mostRefusedOfOne } from '../../packages/server/src/timeline/recorder.ts'
import { maxEndpoints } from '../../packages/server/src/webhooks/endpoints.ts'
import { keptDeliveriesMs } from '../../packages/server/src/webhooks/upkeep.ts'
import { giveUpMs } from '../../packages/server/src/webhooks/verdict.ts'
import { code, page, table } from './tables.ts'

type Setting = (typeof settings)[keyof typeof settings]
type Row = readonly [what: string, value: string, over: string, setting: string]

function bytes(count: number): string {
  if (count % 2 ** 20 === 0) return `${count / 2 ** 20} MiB`
  return count % 1024 === 0 ? `${count / 1024} KiB` : `${count} bytes`
}
const seconds = (ms: number) => (ms % 3_600_000 === 0 ? `${ms / 3_600_000} h` : `${ms / 1000} s`)
const days = (ms: number) => `${ms / 86_400_000} days`
const fixed = 'fixed'
const ended = (event: string, reason: EndReason) => `\`${event}\`, \`${reason}\``
const limited = (limit: string) => `\`RATE_LIMITED\`, \`limit: "${limit}"\``

/** A rate of the configuration, as `120/60`. */
function rate(what: string, { name, default: value }: Setting, over: string): Row {
  const [count, per] = value.split('/')
  return [what, `${count} in ${per} s`, over, code(name)]
}
function time(what: string, { name, default: value, unit }: Setting, over: string): Row {
  return [what, seconds(Number(value) * (unit === 's' ? 1000 : 1)), over, code(name)]
}
function size(what: string, value: number, over: string): Row {
  return [what, bytes(value), over, fixed]
}

const { wsRate } = settings
const [perSecond, burst] = wsRate.default.split('/').map(Number) as [number, number]

const sections: Readonly<Record<string, readonly Row[]>> = {
  'REST [TOK1, TOK5, HTTP1, HTTP3]': [
    rate('Token requests of one address (IPv6: of its /64)', settings.tokenRateIp, '429 `BOOTSTRAP_IP_RATE_LIMITED`'),
    rate(
      'Product credentials that fail, of one address',
      settings.tokenFailRateIp,
      '429 `BOOTSTRAP_IP_RATE_LIMITED`, only to further failures',
    ),
    rate('Token requests of one key', settings.tokenRateKey, '429 `BOOTSTRAP_KEY_RATE_LIMITED`'),
    rate('Requests of one address to /v1/server/…', settings.tokenRateIp, '429 `BOOTSTRAP_IP_RATE_LIMITED`'),
    rate('Requests with one key to /v1/server/…', settings.tokenRateKey, '429 `BOOTSTRAP_KEY_RATE_LIMITED`'),
    rate(
      'Other requests of one address, and as many upgrades without a good token, of each process',
      settings.restRateIp,
      '429 `RATE_LIMITED`; upgrades with a good token still pass',
    ),
    rate(
      'History, ICE servers, devices and ring tickets of one participant, of each process',
      settings.restRate,
      '429 `RATE_LIMITED`',
    ),
    size('A body', maxBodyBytes, '413 `REQUEST_BODY_TOO_LARGE`'),
    ['The request line and headers', '16 KiB', '431 without a body', fixed],
    size(
      'Answers over 16 KiB that clients have not read, of each process',
      maxUnreadBytes,
      'the connections that wait the longest are closed',
    ),
    size('A field of a token request', maxIdBytes, '400 `INVALID_REQUEST_BODY`'),
    size('The session token that comes of it', maxTokenBytes, '400 `INVALID_REQUEST_BODY`'),
    ['Records of a page of the history', String(historyLimit.max), 'the page has no more than these', fixed],
  ],
  'Sockets [WS5, WS6, WS7]': [
    rate(
      'Sockets that one participant opens, of each process',
      settings.connectRate,
      `${limited('connections')}, then 4429; after twenty of those the upgrade gets 429`,
    ),
    [
      'Sockets of one participant at once',
      settings.maxSockets.default,
      `the oldest without a call is closed with 4409; if there is none, the new one gets ${limited('connections')}, then 4429`,
      code(settings.maxSockets.name),
    ],
    time('Silence until a ping', settings.pingIntervalMs, 'a ping'),
    time('Until the pong', settings.pongTimeoutMs, 'close 4408'),
    time('Life of a session token', settings.tokenTtlS, '`AUTH_TOKEN_INVALID` to a new call or socket; calls go on'),
    time('A socket after its token and its last call', settings.tokenGraceMs, 'close 4401'),
    size('Unsent to one socket', maxUnsentBytes, 'close 4008'),
    [
      'Unsent to all sockets of one process',
      `${settings.maxUnsentMib.default} MiB`,
      'close 4008 of those that owe the most',
      code(settings.maxUnsentMib.name),
    ],
  ],
  'Messages [WS6, WS7, ORD1]': [
    [
      'Messages of one socket; each 4 KiB count as one',
      `${perSecond} a second, ${burst} at once`,
      `${limited('messages')}; close 4429 after 10 s over it. Hang-ups and \`auth.refresh\` still pass`,
      code(wsRate.name),
    ],
    [
      'Messages of all sockets of one participant on a node; each KiB counts as one',
      `${perSecond * 10} a second, ${burst * 5} at once`,
      `${limited('messages')}`,
      code(wsRate.name),
    ],
    size('A message', messageLimits.messageBytes, 'close 1009'),
    size('`sdp.sdp`', relayLimits.sdpBytes, '`PAYLOAD_TOO_LARGE`'),
    size('`candidate.candidate`', relayLimits.candidateBytes, '`PAYLOAD_TOO_LARGE`'),
    size('`metadata` of an invite, as JSON', inviteLimits.metadataBytes, '`PAYLOAD_TOO_LARGE`'),
    size('An id or a name', maxIdBytes, '`INVALID_PAYLOAD`'),
    size('`request_id`', messageLimits.requestIdBytes, '`INVALID_MESSAGE`'),
    ['Objects and arrays within each other', String(messageLimits.depth), '`INVALID_MESSAGE`', fixed],
    ['What is no envelope, in a row', String(maxMalformed), 'close 4400', fixed],
    [
      'What waits for its turn on a socket',
      `${inboxLimits.messages} messages, ${bytes(inboxLimits.bytes)}`,
      'close 4429',
      fixed,
    ],
  ],
  'Calls [INV8, RING1, END3]': [
    rate('Invites of one caller', settings.inviteRate, limited('invites')),
    rate('Invites from one caller to one callee', settings.pairInviteRate, limited('pair_invites')),
    [
      'Ringing calls of one caller at once',
      settings.maxRinging.default,
      limited('ringing'),
      code(settings.maxRinging.name),
    ],
    time(
      'Ringing; a product may set its own, an invite may shorten it',
      settings.ringTimeoutMs,
      '`call.missed` to both',
    ),
    time('A ringing call whose caller is away', settings.callerLostMs, ended('call.cancelled', 'caller_lost')),
    time('An answered call with one side away', settings.peerLostMs, ended('call.ended', 'peer_lost')),
    time('An answered call that both sides closed', settings.callerLostMs, ended('call.ended', 'peer_lost')),
    time('An answered call', settings.maxCallMs, ended('call.ended', 'max_duration')),
  ],
  'What is kept [PLACE5, RES1, REL2]': [
    [
      'For a place whose socket is away; of the caller before the accept',
      `${waitingLimits.entries} messages, ${bytes(waitingLimits.bytes)}`,
      '`RELAY_BUFFER_FULL` to the sender',
      fixed,
    ],
    [
      'For an extended session with a socket',
      `${sessionLogLimits.events} events, ${bytes(sessionLogLimits.bytes)}`,
      'the oldest goes; a resume from before it is refused (`recovered: false`)',
      fixed,
    ],
    time('For an extended session without a socket', settings.resumeWindowMs, 'a resume is refused'),
    [
      'Calls after their end',
      `${settings.retentionDays.default} days`,
      'they leave the history',
      code(settings.retentionDays.name),
    ],
  ],
  'Webhooks, pushes, presence and timelines [HOOK1, HOOK3, PUSH1, PRES1, STAT1, TRACE1]': [
    ['Webhook endpoints of a product', String(maxEndpoints), '400 `INVALID_REQUEST_BODY`', fixed],
    ['Attempts of a webhook', `${days(giveUpMs)} from its event`, 'it has failed', fixed],
    [
      'Webhooks after their end',
      `${days(keptDeliveriesMs.delivered)}; ${days(keptDeliveriesMs.failed)} if they failed`,
      'they leave the list',
      fixed,
    ],
    ['Devices of one participant', String(mostDevices), 'those that registered last are woken', fixed],
    ['A device that does not register again', days(deviceKeptMs), 'it is given up', fixed],
    ['Participants that one session watches', String(mostWatched), '`INVALID_PAYLOAD`', fixed],
    ['Two `call.stats` of one side', `${seconds(leastPauseMs)} apart`, limited('messages'), fixed],
    ['Entries of a timeline', String(mostEntries), 'changes of the call stay, and the first of the rest', fixed],
    ['Refused invites of one participant in timelines', `${mostRefusedOfOne} a minute`, 'no more are written', fixed],
  ],
}

/** The limits that a developer turns up or off on the own machine. */
export const whileDeveloping: Readonly<Record<string, string>> = {
  [settings.tokenFailRateIp.name]: 'off',
  [settings.inviteRate.name]: 'off',
  [settings.pairInviteRate.name]: 'off',
  [settings.connectRate.name]: 'off',
  [settings.ringTimeoutMs.name]: '15000',
}

export function limitsPage(): string {
  const heads = ['Limit', 'Without configuration', 'Over it', 'Setting']
  return page(
    'Limits',
    'Every 429 carries `Retry-After`. Every `RATE_LIMITED` of a socket says which `limit` it was, and in `retry_after_ms` ' +
      'when it is over, where that is known. A rate is turned off with `off`. Sizes of text are in bytes of UTF-8.',
    ...Object.entries(sections).flatMap(([title, rows]) => [`## ${title}`, table(heads, rows)]),
    '## While developing',
    'A script that calls in a loop, or a page that reloads with each save, reaches these first. On your own machine:',
    `\`\`\`sh\n${Object.entries(whileDeveloping)
      .map(([name, value]) => `export ${name}=${value}`)
      .join('\n')}\n\`\`\``,
  )
}
