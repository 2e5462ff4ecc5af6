import { randomBytes } from 'node:crypto'
import { setting, unset } from '../setting.ts'
import {
  baseUrl,
  demo,
  flag,
  host,
  integer,
  oneOf,
  oneOrTwo,
  origins,
  text,
  token,
  trustProxy,
  workers,
} from '../values.ts'

/** Where the service listens, who may reach it, and what it says of itself. */
export const service = {
  host: setting('RINGWIRE_HOST', host(), '127.0.0.1', 'Address to listen on.'),
  port: setting('RINGWIRE_PORT', integer(0, 65_535), '8080', 'Port to listen on; 0 takes any free one.'),
  workers: setting(
    'RINGWIRE_WORKERS',
    workers(),
    '1',
    'Processes that listen on the port together, each a node; auto: one for each usable core. More than 1 needs REDIS_URL.',
  ),
  publicUrl: unset(
    'RINGWIRE_PUBLIC_URL',
    baseUrl(),
    null,
    'unset: from the request',
    'Address at which clients reach the service, as https://calls.example.com; ws_url is made from it.',
  ),
  trustProxy: unset(
    'RINGWIRE_TRUST_PROXY',
    trustProxy(),
    null,
    'unset: none',
    'Proxies whose X-Forwarded-For is believed; the client is the right-most entry that is not one of them.',
  ),
  tlsCert: unset('RINGWIRE_TLS_CERT', text('file'), null, 'unset: plain HTTP', 'Certificate chain, PEM.'),
  tlsKey: unset('RINGWIRE_TLS_KEY', text('file'), null, 'unset', 'Private key of the certificate, PEM.'),
  allowedOrigins: unset(
    'RINGWIRE_ALLOWED_ORIGINS',
    origins(),
    null,
    'unset: any',
    'Origins of web pages that may connect and read the history.',
  ),
  adminPort: unset(
    'RINGWIRE_ADMIN_PORT',
    integer(0, 65_535),
    null,
    'unset: none (`npm start`: any free one)',
    'Port of a second listener for operators: /metrics, /healthz, /readyz; 0 takes any free one, and the log says which. With several workers it tells of all of them.',
  ),
  adminHost: setting(
    'RINGWIRE_ADMIN_HOST',
    host(),
    '127.0.0.1',
    'Address of the second listener; any but a loopback address needs RINGWIRE_ADMIN_TOKEN.',
  ),
  adminTokens: unset(
    'RINGWIRE_ADMIN_TOKEN',
    oneOrTwo(token()),
    null,
    'unset: none is asked for',
    'Bearer token for the second listener; on a loopback address not for /metrics. Two, with a comma between them, both count: so one is replaced.',
    { secret: true },
  ),
  demo: setting(
    'RINGWIRE_DEMO',
    demo(),
    '0',
    '1 serves a demo page on this machine only; lan, which ringwire serve --lan sets, to its local networks, too. It has a key of its own that counts for nothing without it. It knows who signed in, in its own process, so more than one worker is refused.',
  ),
  logLevel: setting('RINGWIRE_LOG_LEVEL', oneOf('debug', 'info', 'warn', 'error', 'silent'), 'info', 'What is logged.'),
  logParticipants: setting(
    'RINGWIRE_LOG_PARTICIPANTS',
    flag(),
    '0',
    '1 names participants in the log. Else a hash stands for each: the first 16 digits of the SHA-256 of product, role and user_id with a NUL between them.',
  ),
  nodeId: setting('RINGWIRE_NODE_ID', text(), 'random', 'Name of this node; of worker 2 of several it is NAME-2.', {
    fallback: () => randomBytes(8).toString('hex'),
  }),
}
