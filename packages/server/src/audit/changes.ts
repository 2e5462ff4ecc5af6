/** The audit log's entry for a request that changed something of a product [ADM3]. */
import type { ProductShown } from '@ringwire/protocol/backend'
import type { AuditActor } from '../ports/audit.ts'
import type { ProductSettings } from '../ports/product-store.ts'
import type { Change } from './audit.ts'

/** A request that was done or begun, by the name of its endpoint in the registry. */
export interface DoneRequest {
  readonly endpoint: string
  readonly outcome: 'done' | 'begun'
  readonly actor: AuditActor
  readonly product: string
  readonly params: Readonly<Record<string, string>>
  readonly query: URLSearchParams
  readonly body: Readonly<Record<string, unknown>>
}

type About = Pick<Change, 'participant' | 'subject' | 'detail'>
type Say = (done: DoneRequest) => About

const participant: Say = ({ params, query }) => ({
  participant: {
    role: params.role ?? query.get('role') ?? '',
    userId: params.user_id ?? query.get('user_id') ?? '',
  },
})
/** Of who is erased, no name is left [SRV2]. */
const erased: Say = (done) => ({ participant: { role: participant(done).participant?.role ?? '', userId: '' } })
const group: Say = ({ params: { role, group: name } }) => ({ subject: `${role}/${name}` })
const endpoint: Say = ({ params: { id = '' } }) => ({ subject: id })

/** Every request that changes something, and what is done by it. */
const actions: Readonly<Record<string, readonly [action: string, say: Say]>> = {
  // The reason that was given may name somebody.
  serverEndCall: ['call.end', ({ params }) => ({ subject: (params.call_uuid ?? '').toLowerCase() })],
  // The target is named in the call.
  serverTransferCall: [
    'call.transfer',
    ({ params, body }) => ({ subject: (params.call_uuid ?? '').toLowerCase(), detail: { by: body.by } }),
  ],
  serverDisconnect: ['participant.disconnect', (done) => ({ ...participant(done), detail: untilOf(done) })],
  serverDisconnectByQuery: ['participant.disconnect', (done) => ({ ...participant(done), detail: untilOf(done) })],
  serverEraseParticipant: ['participant.erase', erased],
  serverEraseParticipantByQuery: ['participant.erase', erased],
  serverProductChange: ['product.change', ({ body }) => ({ detail: settingsOf(body) })],
  serverGroupPut: [
    'group.put',
    (done) => ({ ...group(done), detail: { members: lengthOf(done.body.members), strategy: done.body.strategy } }),
  ],
  serverGroupRemove: ['group.remove', group],
  serverWebhookCreate: ['webhook.create', ({ body }) => ({ detail: hookOf(body) })],
  serverWebhookChange: ['webhook.change', (done) => ({ ...endpoint(done), detail: hookOf(done.body) })],
  serverWebhookRemove: ['webhook.remove', endpoint],
  serverWebhookRotate: ['webhook.rotate', endpoint],
  serverWebhookTest: ['webhook.test', endpoint],
  serverWebhookRetry: [
    'webhook.retry',
    (done) => ({ ...endpoint(done), detail: { delivery: done.params.delivery_id ?? '' } }),
  ],
}

/** Undefined for a request that changes nothing. */
export function changeOf(done: DoneRequest): Change | undefined {
  const known = Object.hasOwn(actions, done.endpoint) ? actions[done.endpoint] : undefined
  if (known === undefined) return undefined
  const [action, say] = known
  const about = say(done)
  const detail = { ...about.detail, ...(done.outcome === 'begun' && { outcome: 'begun' }) }
  return { actor: done.actor, action, product: done.product, ...about, detail }
}

const untilOf = ({ body: { until } }: DoneRequest) => (typeof until === 'string' ? { until } : {})
const lengthOf = (value: unknown) => (Array.isArray(value) ? value.length : 0)

/** The settings of a product, as its backend names them and as the store does. */
const settingNames: Readonly<Record<Exclude<keyof ProductShown, 'product'>, keyof ProductSettings>> = {
  busy: 'busy',
  reveal_busy: 'revealBusy',
  ring_timeout_ms: 'ringTimeoutMs',
  media: 'media',
  presence: 'presence',
  take: 'take',
  invite_url: 'inviteUrl',
  invite_failure: 'inviteFailure',
}

/** Other fields of a body are ignored where it is read, and may be secrets. So may a URL: only its host is kept. */
function settingsOf(body: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const given = Object.keys(settingNames).filter((name) => body[name] !== undefined)
  return Object.fromEntries(given.map((name) => [name, name === 'invite_url' ? hostOf(body[name]) : body[name]]))
}

/** As of a request that changed the same. */
export function changedSettings(changes: Partial<ProductSettings>): Record<string, unknown> {
  const named = Object.entries(settingNames).map(([name, stored]) => [name, changes[stored]] as const)
  return settingsOf(Object.fromEntries(named))
}

export function hookOf({ url, events, enabled }: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return {
    ...(url !== undefined && { url: hostOf(url) }),
    ...(events !== undefined && { events }),
    ...(enabled !== undefined && { enabled }),
  }
}

function hostOf(value: unknown): unknown {
  return typeof value === 'string' ? (URL.parse(value)?.host ?? '') : value
}
