import { type EndpointName, endpoints } from '@ringwire/protocol/endpoints'
import { busy, endpointId, few, liveUuid, product, uuidOf } from '../support/million.ts'

/** A request of an endpoint, in a store with many rows. */
export interface Ask {
  /** What stands for the parts of its path that are in braces, and what follows the path. */
  readonly params?: Readonly<Record<string, string>>
  readonly query?: string
  readonly body?: object
  readonly as?: 'product' | 'person' | 'ticket'
  readonly status: number
  /** The bytes of the answer that are read before the client leaves. */
  readonly reads?: number
}

const pathOf = { role: busy.role, user_id: busy.userId }
const fewOf = { role: few.role, user_id: few.userId }
const queryOf = ({ role, userId }: typeof busy) => `?role=${role}&user_id=${userId}`
const call = { call_uuid: uuidOf(4) }
const endpoint = { id: endpointId }
const group = { role: few.role, group: 'support' }
const groupOf500 = { strategy: 'all', members: Array.from({ length: 500 }, (_, n) => `member-${n}`) }
const later = Buffer.from(`${Date.now() - 30 * 86_400_000}.${uuidOf(1)}`).toString('base64url')
/** An export of 100,000 calls takes a minute. The pages are alike. */
const someOfExport = 500_000

/** The requests to each endpoint, the most destructive last. `hooks` is the URL of a receiver of webhooks. */
export const asksOf = (hooks: string): Readonly<Record<EndpointName, readonly Ask[]>> => ({
  sessionToken: [{ as: 'product', body: tokenRequest, status: 200 }],
  jwks: [{ status: 200 }],
  callHistory: ['?limit=100', `?limit=100&cursor=${later}`].map((query) => ({ as: 'person', query, status: 200 })),
  iceServers: [{ as: 'person', status: 200 }],
  serverCalls: [
    ...['', `&role=${busy.role}&user_id=${busy.userId}`].flatMap((who) =>
      ['', '&status=missed', '&status=live', '&status=ended', `&cursor=${later}`, '&since=2026-01-01T00:00:00Z'].map(
        (filter) => `?limit=100${who}${filter}`,
      ),
    ),
    `${queryOf(busy)}&refused=1&limit=100`,
  ].map((query) => ({ as: 'product', query, status: 200 })),
  serverCall: [{ as: 'product', params: call, status: 200 }],
  serverTimeline: [{ as: 'product', params: call, status: 200 }],
  serverTransferCall: [
    {
      ...{ as: 'product', params: { call_uuid: liveUuid }, status: 200 },
      body: { by: 'caller', to: { role: few.role, user_id: few.userId } },
    },
  ],
  serverEndCall: [{ as: 'product', params: { call_uuid: liveUuid }, status: 200 }],
  ring: [{ as: 'ticket', status: 410 }],
  rejectRing: [{ as: 'ticket', status: 410 }],
  alertRing: [{ as: 'ticket', status: 410 }],
  putDevice: [{ as: 'person', body: { platform: 'fcm', token: 'a-token' }, status: 200 }],
  forgetDevice: [{ as: 'person', status: 204 }],
  serverParticipant: [{ as: 'product', params: pathOf, status: 200 }],
  serverParticipantByQuery: [{ as: 'product', query: queryOf(busy), status: 200 }],
  serverDisconnect: [{ as: 'product', params: fewOf, status: 200 }],
  serverDisconnectByQuery: [{ as: 'product', query: queryOf(few), status: 200 }],
  serverExportParticipant: [
    { as: 'product', params: pathOf, status: 200, reads: someOfExport },
    { as: 'product', params: fewOf, status: 200 },
  ],
  serverExportParticipantByQuery: [{ as: 'product', query: queryOf(few), status: 200 }],
  serverGroupPut: [{ as: 'product', params: group, body: groupOf500, status: 200 }],
  serverGroup: [{ as: 'product', params: group, status: 200 }],
  serverGroups: [{ as: 'product', query: '?limit=100', status: 200 }],
  serverProduct: [{ as: 'product', status: 200 }],
  serverProductChange: [{ as: 'product', body: { busy: 'allow' }, status: 200 }],
  serverWebhooks: [{ as: 'product', status: 200 }],
  serverWebhookCreate: [{ as: 'product', body: { url: hooks }, status: 201 }],
  serverWebhook: [{ as: 'product', params: endpoint, status: 200 }],
  serverWebhookDeliveries: ['', '&status=failed', '&status=pending', '&status=delivered'].map((filter) => ({
    as: 'product',
    params: endpoint,
    query: `?limit=100${filter}`,
    status: 200,
  })),
  serverWebhookRotate: [{ as: 'product', params: endpoint, status: 200 }],
  serverWebhookTest: [{ as: 'product', params: endpoint, status: 202 }],
  serverWebhookRetry: [{ as: 'product', params: { ...endpoint, delivery_id: `msg_${uuidOf(1)}` }, status: 202 }],
  serverWebhookChange: [{ as: 'product', params: endpoint, body: { enabled: true, url: hooks }, status: 200 }],
  liveness: [{ status: 200 }],
  readiness: [{ status: 200 }],
  webSocket: [{ status: 426 }],
  serverEraseParticipantByQuery: [{ as: 'product', query: queryOf(few), status: 200 }],
  serverEraseParticipant: [{ as: 'product', params: pathOf, status: 503 }],
  serverGroupRemove: [{ as: 'product', params: group, status: 204 }],
  serverWebhookRemove: [{ as: 'product', params: endpoint, status: 204 }],
})

const tokenRequest = {
  ...{ product, user_id: busy.userId, role: busy.role, display_name: 'Busy', allowed_peer_role: 'agent' },
  ...{ context_type: 'order', context_id: '1' },
}

/** The method and the path of a request. */
export function targetOf(name: EndpointName, { params = {}, query = '' }: Ask): { method: string; path: string } {
  const { method, path } = endpoints[name]
  return { method, path: path.replaceAll(/\{(\w+)\}/g, (_, part: string) => params[part] ?? '') + query }
}
