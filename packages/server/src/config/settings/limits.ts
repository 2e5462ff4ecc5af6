import { limit, setting } from '../setting.ts'
import { integer, messageRate } from '../values.ts'

/** How much one address, key or participant may ask for. */
export const limits = {
  tokenRateIp: limit(
    'RINGWIRE_TOKEN_RATE_IP',
    '6000/60',
    'Token requests per address (IPv6: per /64); as many requests of backends (/v1/server/…), counted apart.',
  ),
  tokenFailRateIp: limit(
    'RINGWIRE_TOKEN_FAIL_RATE_IP',
    '20/60',
    'Failures of product credentials per address; over it only further failures are refused with 429.',
  ),
  tokenRateKey: limit(
    'RINGWIRE_TOKEN_RATE_KEY',
    '6000/60',
    'Token requests per product key; as many of its other requests (/v1/server/…), counted apart.',
  ),
  restRateIp: limit(
    'RINGWIRE_REST_RATE_IP',
    '1000/10',
    'All other REST requests per address (IPv6: per /64), and as many upgrades without a good token; by each process for itself.',
  ),
  restRate: limit(
    'RINGWIRE_REST_RATE',
    '120/60',
    'Requests of one participant for history, ICE servers, devices and ring tickets, counted by each process for itself.',
  ),
  connectRate: limit(
    'RINGWIRE_CONNECT_RATE',
    '40/10',
    'Sockets that one participant may open, resumes included, counted by each process for itself.',
  ),
  inviteRate: limit('RINGWIRE_INVITE_RATE', '30/60', 'Invites per caller.'),
  pairInviteRate: limit('RINGWIRE_PAIR_INVITE_RATE', '30/60', 'Invites from one caller to one callee.'),
  maxRinging: setting('RINGWIRE_MAX_RINGING', integer(1, 1000), '5', 'Ringing calls that one caller may have at once.'),
  maxUnsentMib: setting(
    'RINGWIRE_MAX_UNSENT_MIB',
    integer(1, 65_536),
    '256',
    'MiB that may wait unsent on all sockets of one process; beyond it, the sockets that owe the most are closed with 4008.',
  ),
  maxSockets: setting('RINGWIRE_MAX_SOCKETS', integer(1, 10_000), '20', 'Sockets of one participant.'),
  wsRate: setting(
    'RINGWIRE_WS_RATE',
    messageRate(),
    '20/200',
    'Messages that one socket may send. All of a participant on one node have ten times the rate and five times the burst.',
  ),
}
