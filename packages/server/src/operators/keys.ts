/** Product keys, for operators: `keys`, and what is below it [ADM2, TOK4]. */
import type { Audit } from '../audit/audit.ts'
import { failure, json } from '../http/replies.ts'
import type { AuditActor } from '../ports/audit.ts'
import type { KeyStore, ProductKey } from '../ports/product-store.ts'
import { readBody } from '../products/endpoint.ts'
import {
  isProductName,
  isRotatable,
  keyView,
  longestGraceS,
  newKeyId,
  newSecret,
  productRule,
  usualGraceS,
} from '../products/keys.ts'
import { hashSecret } from '../products/product-auth.ts'

export interface KeyApiOptions {
  readonly products: KeyStore
  readonly audit: Pick<Audit, 'record'>
  readonly now: () => number
}

type Answer = (request: Request, key: ProductKey, actor: AuditActor) => Promise<Response>

export function createKeyApi({ products, audit, now }: KeyApiOptions) {
  async function create(request: Request, actor: AuditActor): Promise<Response> {
    const body = await readBody(request)
    if (body instanceof Response) return body
    const names = readProducts(body.products)
    if (names === undefined) return failure('INVALID_REQUEST_BODY', { message: productsRule })
    const [keyId, secret] = [newKeyId(), newSecret()]
    await products.putKey({ keyId, secretHash: hashSecret(secret), products: names, origin: 'page' }, now())
    await audit.record({ actor, action: 'key.create', subject: keyId, detail: { products: names } })
    return json(200, { success: true, key_id: keyId, secret, products: names })
  }

  const setDisabled =
    (disabled: boolean): Answer =>
    async (_, { keyId }, actor) => {
      await products.setDisabled(keyId, disabled, now())
      await audit.record({ actor, action: disabled ? 'key.disable' : 'key.enable', subject: keyId })
      return json(200, { success: true, key_id: keyId, state: disabled ? 'disabled' : 'enabled' })
    }

  const rotate: Answer = async (request, key, actor) => {
    const { keyId } = key
    const body = await readBody(request)
    if (body instanceof Response) return body
    if (!isRotatable(key)) return failure('INVALID_REQUEST_BODY', { message: elsewhere })
    const { grace_s: grace = usualGraceS } = body
    if (!(typeof grace === 'number' && Number.isInteger(grace) && grace >= 0 && grace <= longestGraceS))
      return failure('INVALID_REQUEST_BODY', { message: `grace_s must be a whole number from 0 to ${longestGraceS}.` })
    const secret = newSecret()
    const until = now() + grace * 1_000
    await products.rotateKey(keyId, hashSecret(secret), until, now())
    await audit.record({ actor, action: 'key.rotate', subject: keyId, detail: { grace_s: grace } })
    const old_secret_valid_until = new Date(until).toISOString()
    return json(200, { success: true, key_id: keyId, secret, old_secret_valid_until })
  }

  const changes: Readonly<Record<string, Answer>> = {
    disable: setDisabled(true),
    enable: setDisabled(false),
    rotate,
  }

  /** `parts`: what follows `keys/`, decoded. */
  return async (request: Request, parts: readonly string[], actor: AuditActor): Promise<Response> => {
    const [keyId, change, ...more] = parts
    if (keyId === undefined) {
      if (request.method === 'POST') return create(request, actor)
      if (request.method !== 'GET') return failure('METHOD_NOT_ALLOWED', { headers: { Allow: 'GET, POST' } })
      return json(200, { success: true, data: (await products.listKeys(now())).map(keyView) })
    }
    const answer = change !== undefined && Object.hasOwn(changes, change) ? changes[change] : undefined
    if (answer === undefined || more.length > 0) return failure('NOT_FOUND')
    if (request.method !== 'POST') return failure('METHOD_NOT_ALLOWED', { headers: { Allow: 'POST' } })
    const key = await products.findKey(keyId, now())
    return key === undefined ? failure('NOT_FOUND', { message: 'There is no such key.' }) : answer(request, key, actor)
  }
}

const elsewhere = 'The secret of this key is set in RINGWIRE_BOOTSTRAP_KEYS, or by the demo: change it there.'
const productsRule = `products must be a list of 1 to 20 names, each ${productRule}.`

function readProducts(value: unknown): readonly string[] | undefined {
  if (!Array.isArray(value) || value.length === 0 || value.length > 20) return undefined
  const names = value.filter((name): name is string => typeof name === 'string' && isProductName(name))
  return names.length === value.length ? [...new Set(names)] : undefined
}
