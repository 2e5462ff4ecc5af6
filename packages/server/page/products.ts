import { ask } from './ask.ts'
import { type Asking, useAsked } from './hooks.ts'

/** The products that the service knows, in order. */
export function useProducts(): Asking<readonly string[]> {
  return useAsked('products', async () => {
    const { data } = await ask<{ data: readonly { product: string }[] }>('products')
    return data.map(({ product }) => product)
  })
}

/** The part of an API path that a product has. */
export const productPath = (product: string, ...parts: readonly string[]) =>
  ['products', product, ...parts].map(encodeURIComponent).join('/')
