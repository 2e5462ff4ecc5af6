/** The settings of a product, for its backend: /v1/server/product [HOOK5]. */
import type { ProductChanged } from '@ringwire/protocol/backend'
import { failure, json } from '../http/replies.ts'
import type { AddressGuard } from '../outgoing/addresses.ts'
import type { ProductStore } from '../ports/product-store.ts'
import { createProductEndpoint, type ProductEndpointDeps } from './endpoint.ts'
import { readSettings, shownSettings } from './settings.ts'

export interface ServerProductDeps extends ProductEndpointDeps {
  readonly products: Pick<ProductStore, 'settings' | 'changeSettings'>
  /** The addresses to which requests may go [HOOK4]. */
  readonly guard: AddressGuard
}

export function createServerProductEndpoints(deps: ServerProductDeps) {
  const { products, guard } = deps

  return {
    serverProduct: createProductEndpoint(deps, async ({ product }) =>
      json(200, shownSettings(product, await products.settings(product))),
    ),
    serverProductChange: createProductEndpoint(deps, async ({ product, body }) => {
      const read = readSettings(body, guard)
      if (!read.ok) return failure('INVALID_REQUEST_BODY', { message: read.message })
      const { changes } = read
      const settings = await products.changeSettings(product, changes)
      const { inviteSecret } = settings
      const isShown = typeof changes.inviteUrl === 'string' && inviteSecret !== null
      const shown = { ...shownSettings(product, settings), ...(isShown && { invite_secret: inviteSecret }) }
      return json(200, shown satisfies ProductChanged)
    }),
  }
}
