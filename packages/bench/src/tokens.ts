// Session tokens over Ringwire's own endpoint, as an application backend asks for them.
import type { Way } from './connection.ts'
import { HttpConnection, postJson } from './http-connection.ts'

const CONNECTIONS = 16

export interface ProductKey {
  id: string
  secret: string
  product: string
}

export const productKey: ProductKey = keyOf('bench')

/** The key of a product of that name. */
export function keyOf(product: string): ProductKey {
  return { id: product, secret: `${product}-secret-0123456789-0123456789-abcdef`, product }
}

/** As the service takes it among its first keys. */
export function bootstrapKey({ id, secret, product }: ProductKey): string {
  return `${id}:${secret}:${product}`
}

/** The request for one participant: callers may call callees and the other way round. */
export function tokenRequest(port: number, id: string, deviceId?: string, key = productKey): Uint8Array {
  const role = id.endsWith('caller') ? 'caller' : 'callee'
  return postJson(
    port,
    '/v1/call/session-token',
    [`X-SVC-Product-Key-ID: ${key.id}`, `X-SVC-Product-Secret: ${key.secret}`],
    {
      product: key.product,
      context_type: 'order',
      context_id: 'order-1',
      user_id: id,
      role,
      device_id: deviceId,
      display_name: 'A participant of the benchmark',
      allowed_peer_role: role === 'caller' ? 'callee' : 'caller',
    },
  )
}

export function tokenIn(body: string): string {
  const token = (JSON.parse(body) as { token?: unknown }).token
  if (typeof token !== 'string') throw new Error('A token response without a token')
  return token
}

/** One token per participant, in the order of the ids. */
export async function mintTokens(
  port: number,
  ids: readonly string[],
  deviceId?: string,
  key = productKey,
  way: Way = {},
): Promise<string[]> {
  const tokens: string[] = []
  let next = 0
  const worker = async () => {
    const connection = await HttpConnection.open(port, way)
    while (next < ids.length) {
      const at = next++
      const answer = await connection.request(tokenRequest(port, ids[at]!, deviceId, key))
      if (answer.status !== 200) throw new Error(`The token endpoint answered ${answer.status}: ${answer.body}`)
      tokens[at] = tokenIn(answer.body)
    }
    connection.close()
  }
  await Promise.all(Array.from({ length: Math.min(CONNECTIONS, ids.length) }, worker))
  return tokens
}
