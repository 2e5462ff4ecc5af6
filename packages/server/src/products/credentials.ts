/** Product credentials of a request: who sends it, as far as the limits allow. The first failure answers [TOK1, SRV1]. */
import type { RestCode } from '@ringwire/protocol/errors'
import { headers as headerNames } from '@ringwire/protocol/rest'
import { failure, retryAfter } from '../http/replies.ts'
import type { Limit, Limits } from '../limits/limits.ts'
import type { ProductKey } from '../ports/product-store.ts'
import type { ProductAuth } from './product-auth.ts'

export interface CredentialsDeps {
  readonly authenticate: ProductAuth
  readonly limits: Pick<Limits, 'failedAuthentication'>
}

/** The limits for requests with product credentials, besides those that fail. */
export interface CredentialsLimits {
  ofAddress(address: string | undefined): Promise<Limit>
  ofKey(keyId: string): Promise<Limit>
}

export type Credentials =
  | { readonly ok: true; readonly key: ProductKey }
  | { readonly ok: false; readonly response: Response }

export function createCredentialsCheck({ authenticate, limits }: CredentialsDeps, counted: CredentialsLimits) {
  return async (request: Request, address: string | undefined): Promise<Credentials> => {
    const byAddress = await counted.ofAddress(address)
    if (!byAddress.ok) return limited('BOOTSTRAP_IP_RATE_LIMITED', byAddress)
    const keyId = request.headers.get(headerNames.keyId)?.trim() ?? ''
    if (keyId === '') return refuse('PRODUCT_AUTH_KEY_ID_REQUIRED')
    const secret = request.headers.get(headerNames.secret)?.trim() ?? ''
    if (secret === '') return refuse('PRODUCT_AUTH_SECRET_REQUIRED')
    const authenticated = await authenticate(keyId, secret)
    if (!authenticated.ok) {
      const budget = await limits.failedAuthentication(address)
      return budget.ok ? refuse(authenticated.code) : limited('BOOTSTRAP_IP_RATE_LIMITED', budget)
    }
    const byKey = await counted.ofKey(authenticated.key.keyId)
    return byKey.ok ? authenticated : limited('BOOTSTRAP_KEY_RATE_LIMITED', byKey)
  }
}

const refuse = (code: RestCode, options?: Parameters<typeof failure>[1]): Credentials => ({
  ok: false,
  response: failure(code, options),
})
const limited = (code: RestCode, { retryAfterMs }: Extract<Limit, { ok: false }>): Credentials =>
  refuse(code, { headers: retryAfter(retryAfterMs) })

/** The product that is meant: the one that is given, or the key's only one; empty where it has several [TOK1]. */
export function productOf(given: string, { products }: ProductKey): string {
  return given || (products.length === 1 ? (products[0] ?? '') : '')
}

/** The refusal of a product: none is given, or it is not one of the key's. The products of a key are no secret to its owner. */
export function refusedProduct(product: string, { products }: ProductKey): Response | undefined {
  if (products.includes(product)) return undefined
  const own = products.slice(0, mostNamed).join(', ') + (products.length > mostNamed ? ', …' : '')
  return product === ''
    ? failure('PRODUCT_REQUIRED', { message: `product is required, because the key has several: ${own}.` })
    : failure('PRODUCT_AUTH_PRODUCT_MISMATCH', {
        message: `The key is not for the product ${JSON.stringify(product.slice(0, mostShown))}. It is for: ${own}.`,
      })
}

/** Of the products of a key, and of the characters of a name. */
const [mostNamed, mostShown] = [10, 255] as const
